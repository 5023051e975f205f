"""`tcpsbed tune`: gains for a network, with stability margins and the rise-time index."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.cli.options import MOST_BURST, MOST_RUNS, MOST_SEED, Force, Quiet, may_draw
from tcpsbed.errors import ConfigError
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.theory import LoopModel, Margins
    from tcpsbed.lab.control.tuning import Tuned

HELP = """Find the gains of the step experiment's controller for a network, and how good control through it can be.

\b
Examples:
  tcpsbed tune --rtt "10 ms"
  tcpsbed tune --rtt "10 ms" --loss 30% --bursts 5 --overshoot 20 --undershoot 20
  tcpsbed tune --rtt "10 ms" --plant step.toml     for the plant of a scenario, which may be dynamic
  tcpsbed tune --rtt "10 ms" --for sensitivity --c 1.5,2,4 --overshoot 20 --nyquist loop.svg

Finds the gains with the shortest mean rise time, among those for which 95 % of runs keep the limits. --for sensitivity
finds those whose overshoot grows most steeply with the round trip, which makes changes of the network visible. With
several steps (--c) it also chooses the best step.
The rise-time index is log10(1 ms / rise time).
"""


MOST_RTT_NS = 10_000_000_000
"""Longest round trip. A run lasts many round trips and thousands of runs are made, so a longer one would take too long."""


class Goal(StrEnum):
    """What gains are to serve."""

    rise = "rise"
    sensitivity = "sensitivity"


Trip = Annotated[str, typer.Option("--rtt", metavar="TIME", help="Round trip.", show_default=False)]
Loss = Annotated[str, typer.Option("--loss", metavar="SHARE", help="Loss each way.")]
Bursts = Annotated[
    float, typer.Option("--bursts", min=1, max=MOST_BURST, help="Mean length of a loss burst, in packets.")
]
Period = Annotated[str, typer.Option("--period", metavar="TIME", help="Time between commands.")]
Steps = Annotated[str, typer.Option("--c", metavar="C,...", help="The step falls to 1/c.")]
Far = Annotated[
    Path | None,
    typer.Option(
        "--plant",
        metavar="FILE",
        help="Scenario whose plant it is [default: the static one].",
        show_default=False,
    ),
]
For = Annotated[Goal, typer.Option("--for", help="What to tune for.")]
Overshoot = Annotated[float, typer.Option("--overshoot", help="Largest acceptable overshoot, %.")]
Undershoot = Annotated[float, typer.Option("--undershoot", help="Largest acceptable undershoot, %.")]
Runs = Annotated[int, typer.Option("--runs", min=1, max=MOST_RUNS, help="Runs of each pair of gains.")]
OwnSeed = Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of every random number.")]
Nyquist = Annotated[
    Path | None,
    typer.Option("--nyquist", metavar="FILE", help="Draw the Nyquist curve.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tune", help=HELP)(guarded(tune))


def tune(
    rtt: Trip,
    loss: Loss = "0",
    bursts: Bursts = 1.0,
    period: Period = "1 ms",
    c: Steps = "2",
    plant: Far = None,
    goal: For = Goal.rise,
    overshoot: Overshoot = 5.0,
    undershoot: Undershoot = 5.0,
    runs: Runs = 200,
    seed: OwnSeed = 1,
    nyquist: Nyquist = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tunes; see HELP."""
    from tcpsbed.lab.control import theory, tuning, values
    from tcpsbed.lab.control.batch import bursty

    may_draw(nyquist, force=force)
    share = values.share(loss, "--loss")
    rtt_ms, period_ms = (
        values.duration_ns(rtt, "--rtt", MOST_RTT_NS) / 1e6,
        values.positive_ns(period, "--period") / 1e6,
    )
    network = tuning.Network(rtt_ms, period_ms, bursty(share, bursts), plant=_plant(plant))
    steps, limits = _steps(c), values.limits(math.inf, overshoot, undershoot)
    every: list[Tuned | None] = []
    with Progress("tuning", quiet=quiet or as_json) as bar:
        for one in steps:

            def tell(done: float, before: int = len(every)) -> None:
                bar((before + done) / len(steps))

            every.append(
                tuning.tune(
                    network, goal=goal.value, limits=limits, c=one, runs=runs, seed=seed, progress=tell
                )
            )
    tuned = [one for one in every if one is not None]
    found = tuning.best(tuned, goal.value)
    if found is None:
        reason = "no gains keep these limits in 95 % of runs"
        print(json.dumps({"kp": None, "ki_per_ms": None, "reason": reason}) if as_json else reason)
        raise typer.Exit(FAILED)
    loop = theory.LoopModel(found.kp, found.ki_per_ms, period_ms, rtt_ms, found.c, network.plant)
    spare = theory.margins(loop)
    if nyquist is not None:
        _draw(loop, spare, nyquist)
    _tell(
        found, tuned, spare, theory.delay_of_drops_ms(share, period_ms), nyquist, as_json=as_json, quiet=quiet
    )


def _plant(file: Path | None) -> dict[str, Any] | None:
    """The plant of a scenario's loop; none where it is static."""
    if file is None:
        return None
    from tcpsbed import scenarios
    from tcpsbed.cli.stability import loop_of

    return loop_of(scenarios.load(file), None, "--plant").step.plant


def _steps(text: str) -> list[float]:
    """Steps to be tried."""
    from tcpsbed.lab.control import tuning, values

    try:
        steps = [values.number(part) for part in values.parts(text)]
    except ValueError:
        steps = []
    if not steps or not all(1.01 <= step <= tuning.MOST_C for step in steps):
        allowed = f"numbers from 1.01 to {tuning.MOST_C:g}, separated by commas, such as 1.5,2,4"
        beyond = next((step for step in steps if not 1.01 <= step <= tuning.MOST_C), None)
        which = "" if beyond is None else f", with {beyond:g}"
        raise ConfigError(f'found "{text}"{which}', key="--c", allowed=allowed)
    return steps


def _draw(loop: LoopModel, spare: Margins, file: Path) -> None:
    from tcpsbed.lab.control import figure

    caption = f"Kp {loop.kp:g}, Ki {loop.ki_per_ms:g} per ms, delay {loop.delay_ms:g} ms, gain margin {spare.gain:.2f}"
    figure.nyquist(loop, caption, file)


def _tell(
    found: Tuned,
    every: Sequence[Tuned],
    spare: Margins,
    drops_ms: float,
    drawn: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from tcpsbed.lab.control.table import plain

    if as_json:
        content = asdict(found) | {
            "growth": found.growth,
            "rise_time_index": found.index,
            "margins": asdict(spare),
            "delay_of_drops_ms": drops_ms,
            "steps": [asdict(one) | {"growth": one.growth} for one in every],
        }
        print(json.dumps(plain(content), indent=1))
    elif not quiet:
        compared = every if len(every) > 1 else ()
        print(
            *(
                f"c = {one.c:<8g} rise time {one.rise_ms:.1f} ms, h higher by {one.growth:.2f} % for each ms of RTT"
                for one in compared
            ),
            *([f"step         c = {found.c:g}"] if compared else []),
            f"gains        params = {{ kp = {found.kp:.4g}, ki_per_ms = {found.ki_per_ms:.4g} }}",
            f"measured     rise time {found.rise_ms:.1f} ms, overshoot {found.overshoot:.1f} %, "
            f"plus {found.per_ms:.2f} points for each ms of RTT",
            f"theory       gain margin {spare.gain:.2f}, delay margin {spare.delay_ms:.1f} ms without loss; "
            f"these losses act as {drops_ms:.2f} ms of delay",
            f"index        rise-time index {found.index:.2f}: log10(1 ms / rise time)",
            *([f"figure: {drawn}"] if drawn else []),
            sep="\n",
        )
