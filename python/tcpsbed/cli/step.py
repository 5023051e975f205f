"""`tcpsbed step`: the step experiment, its figures and its verdict. [Polachan 2022]"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed import __version__
from tcpsbed.cli.apart import apart
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import (
    MOST_SEEDS,
    AnyWhere,
    Duration,
    File,
    Force,
    Out,
    Quiet,
    Seed,
    Sets,
    may_draw,
    overrides,
)
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.experiment import Experiment
    from tcpsbed.lab.control.verdict import Limits
    from tcpsbed.scenarios import Scenario

HELP = """Measure the step response of a loop over the network: rise time, overshoot, and the share of runs within limits.

\b
Examples:
  tcpsbed init --from step                     writes step.toml
  tcpsbed step step.toml
  tcpsbed step step.toml --rtt "5 ms,10 ms,20 ms" --loss 0,30% --runs 100
  tcpsbed step step.toml --world real --phases --runs 50 --figure step.svg
  sudo tcpsbed step step.toml --world namespaces --runs 5

The scenario has a component with robot = "step". Every setting runs RUNS times, each with a seed of its own; --rtt,
--loss and --gain change the scenario's link and its controller, and of several values every combination runs.

Leaves a folder with scenario.toml, step.json, which holds what --json prints, and a page, step.html.
"""

KIND = "step"
"""Kind of result that the command leaves."""
Runs = Annotated[int, typer.Option("--runs", min=1, max=MOST_SEEDS, help="Runs of each setting.")]
Trips = Annotated[
    str | None, typer.Option("--rtt", metavar="TIME,...", help="Round trips of the link.", show_default=False)
]
Losses = Annotated[
    str | None, typer.Option("--loss", metavar="SHARE,...", help="Losses each way.", show_default=False)
]
Gains = Annotated[
    str | None, typer.Option("--gain", metavar="KP:KI,...", help="Gains, Ki per ms.", show_default=False)
]
OfLink = Annotated[
    str | None,
    typer.Option("--link", help="The link to change [default: the only one].", show_default=False),
]
Rise = Annotated[float, typer.Option("--rise", help="Longest acceptable rise time, ms.", show_default=False)]
Overshoot = Annotated[float, typer.Option("--overshoot", help="Largest acceptable overshoot, %.")]
Undershoot = Annotated[
    float, typer.Option("--undershoot", help="Largest acceptable undershoot, %.", show_default=False)
]
Phases = Annotated[bool, typer.Option("--phases", help="Draw the tick phases of both sides at random.")]
Warped = Annotated[
    bool,
    typer.Option("--offsets", help="Time and value offset of h as the controller sees it, by time warping."),
]
Figure = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Draw the curves.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all figures as JSON, and nothing else.")]


@dataclass(frozen=True)
class Setting:
    """One combination of values: what it is called, and its overrides."""

    name: str
    sets: tuple[str, ...]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("step", help=HELP)(guarded(step))


def step(
    file: File,
    runs: Runs = 20,
    rtt: Trips = None,
    loss: Losses = None,
    gain: Gains = None,
    link: OfLink = None,
    rise: Rise = math.inf,
    overshoot: Overshoot = 20.0,
    undershoot: Undershoot = math.inf,
    phases: Phases = False,
    warped: Warped = False,
    world: AnyWhere = "virtual",
    out: Out = None,
    figure: Figure = None,
    force: Force = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Runs the experiment; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.lab.control import experiment, table, values
    from tcpsbed.runs import session

    worlds.require(world)
    may_draw(figure, force=force, reads=[file])
    limits = values.limits(rise, overshoot, undershoot)
    base = overrides(sets, seed, duration)
    first = scenarios.load(file, base)
    if world in SIMULATED:
        apart(first)
    settings = list(_settings(first, rtt, loss, gain, link))
    found: list[tuple[str, Experiment]] = []
    with session.place(first, out, "-step", KIND) as place:
        with Progress(f"{first.name}, {world}", quiet=quiet or as_json) as bar:
            for number, setting in enumerate(settings):
                scenario = scenarios.load(file, [*base, *setting.sets])
                share = lambda done, n=number: bar((n + done) / len(settings))  # noqa: E731
                every = experiment.run(
                    scenario,
                    runs=runs,
                    world=world,
                    phases=phases,
                    warped=warped,
                    progress=share,
                    duration_key="duration" if duration is None else "--duration",
                )
                found += _named(every, setting.name)
        told = json.dumps(table.plain(_figures(found, limits, first, world)), indent=1)
        (place.path / "scenario.toml").write_text(scenarios.dump(first), encoding="utf-8")
        (place.path / "step.json").write_text(told + "\n", encoding="utf-8")
        (place.path / "step.html").write_text(_page(found, limits, first, world), encoding="utf-8")
    drawn = _draw(found, limits, first, world, figure)
    if as_json:
        print(told)
    elif not quiet:
        print(_caption(first, world, runs), table.text(found, limits), sep="\n\n")
        print(f"results: {place.shown}", *([f"figure: {drawn}"] if drawn else []), sep="\n")


def _figures(
    found: Sequence[tuple[str, Experiment]], limits: Limits, scenario: Scenario, world: str
) -> dict[str, Any]:
    """All figures, as `step.json` has them."""
    from tcpsbed.lab.control import table

    head = {"scenario": scenario.name, "world": world, "seed": scenario.seed, "limits": asdict(limits)}
    return head | {"settings": [table.entry(*one, limits) for one in found]}


def _page(found: Sequence[tuple[str, Experiment]], limits: Limits, scenario: Scenario, world: str) -> str:
    """`step.html`: the table, and the median of each setting's curves with its extremes."""
    import numpy as np

    from tcpsbed.lab.control import table
    from tcpsbed.lab.control.figure import resampled
    from tcpsbed.lab.control.verdict import reliability
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup
    from tcpsbed.views.charts import Chart, Sheet

    sheet, charts = Sheet(), []
    for name, one in found:
        t_ms, curves = resampled(one)
        lines = dict(
            zip(
                ("least", "greatest", "median"),
                np.percentile(curves, [0, 100, 50], axis=0).tolist(),
                strict=True,
            )
        )
        charts.append(
            Chart(name or "Step response", t_ms.tolist(), "time from the step (ms)", "h", lines, steps=True)
        )
    drawn = markup.section("curves", "Curves", sheet.place(charts))
    worst = min(found, key=lambda one: reliability(one[1].responses, limits).share)
    good = reliability(worst[1].responses, limits)
    opening = [
        ("much", f"{good.good} of {good.runs} runs are good"),
        ("", f" ({limits}){f' with {worst[0]}' * bool(worst[0])}."),
    ]
    notes = markup.note("; ".join(table.said(found, limits).splitlines()))
    facts = [
        ("world", world),
        ("runs", len(found[0][1].curves)),
        ("seed", scenario.seed),
        ("tcpsbed", __version__),
    ]
    body = [freeze.table(table.laid(found, limits)), notes, drawn]
    return freeze.page(f"{scenario.name} step", opening, facts, body, sheet)


def _named(every: Sequence[Experiment], name: str) -> Iterator[tuple[str, Experiment]]:
    """The experiments of a setting, each with what it is called."""
    for one in every:
        yield (name if len(every) == 1 else f"{one.loop.name}, {name}".strip(", ")), one


def _settings(
    scenario: Scenario, rtt: str | None, loss: str | None, gain: str | None, link: str | None
) -> Iterator[Setting]:
    from tcpsbed.lab.control import values
    from tcpsbed.lab.control.loop import controllers

    axes: list[list[tuple[str, list[str]]]] = []
    if rtt is not None or loss is not None:
        name = _link(scenario, link)
        axes.append(
            [(f"RTT {text}", [f"links.{name}.delay={_half(scenario, text)}"]) for text in values.parts(rtt)]
        )
        axes.append([(f"loss {text}", [f"links.{name}.loss={_share(text)}"]) for text in values.parts(loss)])
    if gain is not None:
        hooks = controllers(scenario.hooks)
        axes.append([(f"gain {text}", _gains(text, hooks)) for text in values.parts(gain)])
    for choice in itertools.product(*(axis for axis in axes if axis)):
        yield Setting(
            ", ".join(name for name, _ in choice), tuple(text for _, sets in choice for text in sets)
        )


def _link(scenario: Scenario, wanted: str | None) -> str:
    names = list(scenario.links)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    found = f'found "{wanted}"' if wanted else f"found {len(names)} links"
    raise ConfigError(
        found, key="--link", allowed=close_match(wanted or "", names) if names else "a scenario with a link"
    )


def _half(scenario: Scenario, text: str) -> str:
    """Half a round trip, for each direction; one that is longer than the run would show no answer."""
    from tcpsbed.lab.control import values

    return json.dumps(f"{values.duration_ns(text, '--rtt', scenario.duration_ns) // 2} ns")


def _share(text: str) -> str:
    """A share as an override has it, once it is known to be one."""
    from tcpsbed.lab.control import values

    return json.dumps(text) if values.share(text, "--loss") else "0"


def _gains(text: str, hooks: Sequence[str]) -> list[str]:
    from tcpsbed.lab.control import values

    found = dict(zip(("kp", "ki_per_ms"), values.gains(text, "--gain"), strict=True))
    if not hooks:
        raise ConfigError('found no hook with run = "pi"', key="--gain", allowed='a hook with run = "pi"')
    return [f"hooks.{name}.params.{key}={value!r}" for name in hooks for key, value in found.items()]


def _draw(
    found: Sequence[tuple[str, Experiment]],
    limits: Limits,
    scenario: Scenario,
    world: str,
    file: Path | None,
) -> Path | None:
    if file is None:
        return None
    from tcpsbed.lab.control import figure

    return figure.responses(found, limits, _caption(scenario, world, len(found[0][1].curves)), file)


def _caption(scenario: Scenario, world: str, runs: int) -> str:
    return f"{scenario.name} · {world} · {runs} runs · seed {scenario.seed} · tcpsbed {__version__}"
