"""`tcpsbed tune`: gains for a network, with stability margins and the rise-time index."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.cli.options import (
    MOST_BURST,
    MOST_RUNS,
    MOST_SEED,
    Disturbed,
    Force,
    OwnController,
    Quiet,
    may_draw,
)
from tcpsbed.runs.progress import Progress

HELP = """Find the gains of the step experiment's controller for a network, and how good control through it can be.

\b
Examples:
  tcpsbed tune --rtt "10 ms"
  tcpsbed tune --rtt "10 ms" --loss 30% --bursts 5 --overshoot 20 --undershoot 20
  tcpsbed tune --rtt "10 ms" --margin "3,5 ms"     a gain margin of 3 and a delay margin of 5 ms, or more
  tcpsbed tune --rtt "10 ms" --plant step.toml     for the plant of a scenario, which may be dynamic
  tcpsbed tune --rtt "10 ms" --for sensitivity --c 1.5,2,4 --overshoot 20 --nyquist loop.svg

Finds the gains with the shortest mean rise time, among those for which 95 % of runs keep the limits, and the loop has the
least --margin by theory, without loss. --for sensitivity
finds those whose overshoot grows most steeply with the round trip, which makes changes of the network visible. With
several steps (--c) it also chooses the best step.
The rise-time index is log10(1 ms / rise time).
"""


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
    str | None,
    typer.Option(
        "--plant",
        metavar="FILE|SYSTEM",
        help="The plant, as of tcpsbed step, or a scenario whose plant it is [default: the static one].",
        show_default=False,
    ),
]
For = Annotated[Goal, typer.Option("--for", help="What to tune for.")]
Overshoot = Annotated[float, typer.Option("--overshoot", help="Largest acceptable overshoot, %.")]
Undershoot = Annotated[
    float, typer.Option("--undershoot", help="Largest acceptable undershoot after the target was crossed, %.")
]
Margin = Annotated[
    str | None,
    typer.Option(
        "--margin",
        metavar="FACTOR,TIME",
        help='Least gain margin, such as 3, least delay margin, such as "5 ms", or both: "3,5 ms".',
        show_default=False,
    ),
]
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
    controller: OwnController = None,
    disturbance: Disturbed = None,
    goal: For = Goal.rise,
    overshoot: Overshoot = 5.0,
    undershoot: Undershoot = 5.0,
    margin: Margin = None,
    runs: Runs = 200,
    seed: OwnSeed = 1,
    nyquist: Nyquist = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tunes; see HELP."""
    from tcpsbed.api.tune import tune as tuned
    from tcpsbed.lab.control import systems

    may_draw(nyquist, force=force, key="--nyquist")
    with Progress("tuning", quiet=quiet or as_json) as bar:
        found = tuned(
            rtt,
            loss=loss,
            bursts=bursts,
            period=period,
            c=c,
            plant=systems.read(plant, "plant"),
            controller=systems.read(controller, "controller"),
            disturbance=disturbance,
            goal=goal.value,
            overshoot=overshoot,
            undershoot=undershoot,
            margin=margin,
            runs=runs,
            seed=seed,
            progress=bar,
        )
    if found is None:
        asked = f" with a margin of {margin}" * bool(margin)
        smaller = ", a smaller --margin" * bool(margin)
        reason = (
            f"no gains that are stable by theory keep these limits in 95 % of runs{asked}; try larger --overshoot and "
            f"--undershoot{smaller}, or gains beyond the searched range with tcpsbed step (--gain or --factor)"
        )
        print(json.dumps({"kp": None, "ki_per_ms": None, "reason": reason}) if as_json else reason)
        raise typer.Exit(FAILED)
    if nyquist is not None:
        found.draw(nyquist)
    if as_json:
        print(json.dumps(found.figures, indent=1))
    elif not quiet:
        print(found, *([f"figure: {nyquist}"] if nyquist else []), sep="\n")
