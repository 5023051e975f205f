"""`tcpsbed map`: the stability map of a control loop. [Polachan 2022]"""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import MOST_BURST, MOST_RUNS, File, Force, Quiet, Seed, Sets, may_draw, overrides
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.loop import Loop
    from tcpsbed.lab.control.stability import Grid, StabilityMap

HELP = """Draw how much delay and loss a control loop tolerates, out of hundreds of runs in every cell of a grid.

\b
Examples:
  tcpsbed init --from step                     writes step.toml
  tcpsbed map step.toml
  tcpsbed map step.toml --rtt "0 ms..60 ms" --loss 0..40% --bursts 5 --gain 0.2:0.05 --figure map.svg
  tcpsbed map step.toml --reliability 95% --rise 50

Step, gains and period are those of the scenario; delay and loss are those of the grid, not of its network. The loop is
computed from its difference equations, without packets: 10^9 ticks take seconds.

--out leaves a folder with scenario.toml, map.json, which holds what --json prints, and a page, map.html.
"""
KIND = "map"
"""Kind of result that the command leaves."""


Trips = Annotated[str, typer.Option("--rtt", metavar="LOW..HIGH", help="Round trips.")]
Losses = Annotated[str, typer.Option("--loss", metavar="LOW..HIGH", help="Losses each way.")]
Cells = Annotated[
    str, typer.Option("--cells", metavar="NxM", help="Cells of the grid: round trips x losses.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, max=MOST_RUNS, help="Runs in each cell.")]
Bursts = Annotated[
    float, typer.Option("--bursts", min=1, max=MOST_BURST, help="Mean length of a loss burst, in packets.")
]
Jitter = Annotated[
    str | None,
    typer.Option("--jitter", metavar="TIME", help="Mean extra delay, exponential.", show_default=False),
]
Gain = Annotated[
    str | None, typer.Option("--gain", metavar="KP:KI", help="Other gains, Ki per ms.", show_default=False)
]
Period = Annotated[
    str | None, typer.Option("--period", metavar="TIME", help="Another period.", show_default=False)
]
Overshoot = Annotated[float, typer.Option("--overshoot", help="Largest acceptable overshoot, %.")]
Rise = Annotated[
    float | None,
    typer.Option("--rise", help="Longest acceptable rise time, ms; with --reliability.", show_default=False),
]
Reliability = Annotated[
    str | None,
    typer.Option(
        "--reliability",
        metavar="SHARE",
        help="Share of runs that must be good [default: the mean overshoot counts].",
        show_default=False,
    ),
]
Which = Annotated[
    str | None,
    typer.Option(
        "--loop", metavar="NAME", help="The loop by its robot [default: the only one].", show_default=False
    ),
]
OnCommand = Annotated[
    bool,
    typer.Option("--on-command", help="The far side answers each command on arrival, not at its own ticks."),
]
Aligned = Annotated[bool, typer.Option("--aligned", help="Both sides tick together, unlike two computers.")]
Figure = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Draw the map.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the map as JSON, and nothing else.")]
Kept = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder for scenario.toml, map.json and map.html [default: none].",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("map", help=HELP)(guarded(stability_map))


def stability_map(
    file: File,
    rtt: Trips = "0 ms..50 ms",
    loss: Losses = "0..60%",
    cells: Cells = "50x50",
    runs: Runs = 200,
    bursts: Bursts = 1.0,
    jitter: Jitter = None,
    gain: Gain = None,
    period: Period = None,
    overshoot: Overshoot = 20.0,
    rise: Rise = None,
    reliability: Reliability = None,
    which: Which = None,
    on_command: OnCommand = False,
    aligned: Aligned = False,
    out: Kept = None,
    figure: Figure = None,
    force: Force = False,
    sets: Sets = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draws the map; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.lab.control import stability, values
    from tcpsbed.lab.control.batch import Bench
    from tcpsbed.runs import session

    may_draw(figure, force=force, reads=[file])
    share = _share(reliability, rise)
    scenario = scenarios.load(file, overrides(sets, seed))
    loop = loop_of(scenario, which)
    if on_command and jitter and loop.step.plant:
        allowed = "one of them, where the plant has a memory"
        raise ConfigError("found it with --jitter", key="--on-command", allowed=allowed)
    most_ns = scenario.duration_ns  # what takes longer than a run shows no answer in it
    grid = _grid(loop, (rtt, loss, cells), (gain, period, jitter), bursts, most_ns, aligned=aligned)
    limits = values.limits(math.inf if rise is None else rise, overshoot)
    bench = Bench(
        loop.step,
        runs,
        scenario.duration_ns / 1e6,
        scenario.seed,
        limits,
        "commands" if on_command else "ticks",
    )
    with nullcontext() if out is None else session.place(scenario, out, kind=KIND) as place:
        with Progress(f"{scenario.name}, {runs} runs per cell", quiet=quiet or as_json) as bar:
            found = stability.compute(grid, bench, bar)
        sentences = _sentences(found, share)
        if place is not None:
            (place.path / "scenario.toml").write_text(scenarios.dump(scenario), encoding="utf-8")
            (place.path / "map.json").write_text(f"{_json(found, sentences)}\n", encoding="utf-8")
            (place.path / "map.html").write_text(_page(found, sentences, scenario.name), encoding="utf-8")
    if figure is not None:
        from tcpsbed.lab.control.figure import stability as draw

        draw(found, f"{scenario.name} · {sentences[0]}", figure)
    if as_json:
        print(_json(found, sentences))
    elif not quiet:
        print(*sentences, sep="\n")
        left = {"results": place.shown if place is not None else None, "figure": figure}
        print(*(f"{what}: {where}\n" for what, where in left.items() if where), sep="", end="")


def _share(reliability: str | None, rise: float | None) -> float | None:
    """The share of runs that must be good; a limit of the rise time has an effect only with such a share."""
    from tcpsbed.lab.control import values

    if rise is not None and reliability is None:
        allowed = f"both, such as --rise {rise:g} --reliability 95% (a rise time of {rise:g} ms or less in 95 % of the runs)"
        raise ConfigError(f"found {rise:g} without --reliability", key="--rise", allowed=allowed)
    return values.share(reliability, "--reliability") if reliability else None


def _grid(
    loop: Loop,
    spans: tuple[str, str, str],
    other: tuple[str | None, str | None, str | None],
    bursts: float,
    most_ns: int,
    *,
    aligned: bool,
) -> Grid:
    """Spans are those of RTT and loss and the number of cells; other gains, another period, jitter."""
    from tcpsbed.lab.control import stability, values

    (rtt, loss, cells), (gain, period, jitter) = spans, other
    columns, rows = _size(cells)
    reader = partial(values.duration_ns, most_ns=most_ns)
    kp, ki = values.gains(gain, "--gain") if gain else _known_gains(loop)
    return stability.Grid(
        [ns / 1e6 for ns in values.span(rtt, columns, reader, "--rtt")],
        values.span(loss, rows, values.share, "--loss"),
        values.positive_ns(period, "--period", most_ns) / 1e6 if period else loop.period_ms,
        kp,
        ki,
        bursts,
        reader(jitter, "--jitter") / 1e6 if jitter else 0.0,
        phases=not aligned,
    )


def loop_of(scenario: Any, which: str | None, key: str = "--loop") -> Loop:
    """The loop with this name, or the only one."""
    import tempfile

    from tcpsbed import scenarios
    from tcpsbed.lab.control.loop import loops, reached

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = scenarios.compile_plan(scenario, Path(folder))
    found = {loop.name: loop for loop in loops(plan)}
    only = next(iter(found)) if which is None and len(found) == 1 else which
    loop = found.get(only or "")
    if loop is None:
        named = f'found "{which}"' if which else f"found {len(found)} loops"
        raise ConfigError(
            named, key=key, allowed=f"a component that closes a loop: {close_match(which or '', found)}"
        )
    reached(plan, [loop])
    return loop


def _known_gains(loop: Loop) -> tuple[float, float]:
    if loop.kp is None or loop.ki_per_ms is None:
        raise ConfigError(
            'found no hook with run = "pi"', key="--gain", allowed='Kp and Ki per ms, such as "0.2:0.09"'
        )
    return loop.kp, loop.ki_per_ms


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    sizes = [int(part) for part in (columns, rows) if part.isascii() and part.isdigit()]
    if len(sizes) < 2 or not all(2 <= size <= 1000 for size in sizes):
        raise ConfigError(
            f'found "{text}"', key="--cells", allowed='2 to 1000 in each dimension, such as "50x50"'
        )
    return sizes[0], sizes[1]


def _page(found: StabilityMap, sentences: list[str], name: str) -> str:
    """`map.html`: the mean overshoot over the round trip, at some of the losses."""
    from tcpsbed import __version__
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup
    from tcpsbed.views.charts import Chart, Sheet

    sheet, grid = Sheet(), found.grid
    lines = {f"loss {100 * grid.loss[row]:.3g} %": found.mean["overshoot"][row] for row in _rows(found)}
    chart = Chart("Mean overshoot", grid.rtt_ms, "RTT (ms)", "overshoot (% of the step)", lines)
    body = [
        markup.section("overshoot", "Overshoot", sheet.place([chart])),
        markup.section("limits", "Where the limit is", markup.listing(sentences)),
    ]
    facts = [
        ("scenario", name),
        ("runs per cell", found.bench.runs),
        ("cells", f"{len(grid.rtt_ms)} x {len(grid.loss)}"),
        ("good", found.bench.limits),
        ("tcpsbed", __version__),
    ]
    return freeze.page(
        f"{name} map", [("", f"{sentences[0][:1].upper()}{sentences[0][1:]}.")], facts, body, sheet
    )


def _rows(found: StabilityMap) -> list[int]:
    """Five of its losses."""
    return sorted({round(share * (len(found.grid.loss) - 1)) for share in (0, 0.25, 0.5, 0.75, 1)})


def _sentences(found: StabilityMap, reliability: float | None) -> list[str]:
    """Sentences about the map at five of its losses."""
    return [found.sentence(row, reliability) for row in _rows(found)]


def _json(found: StabilityMap, sentences: list[str]) -> str:
    from tcpsbed.lab.control.table import plain

    tables = {key: table.tolist() for key, table in (*found.mean.items(), ("good", found.good))}
    content = {"grid": asdict(found.grid), "bench": asdict(found.bench), "sentences": sentences}
    return json.dumps(plain(content | tables))
