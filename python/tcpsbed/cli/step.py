"""`tcpsbed step`: the step experiment, its figures and its verdict. [Polachan 2022]"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.apart import apart
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import (
    AnyWhere,
    Cluster,
    Disturbed,
    Duration,
    File,
    Force,
    Out,
    OwnController,
    OwnPlant,
    Quiet,
    Seed,
    Sets,
    may_draw,
)
from tcpsbed.clocks import SIMULATED
from tcpsbed.runs import MOST_SEEDS
from tcpsbed.runs.progress import Progress

HELP = """Measure the step response of a loop over the network: rise time, overshoot, and the share of runs within limits.

\b
Examples:
  tcpsbed init --from step                     writes step.toml
  tcpsbed step step.toml
  tcpsbed step step.toml --rtt "5 ms,10 ms,20 ms" --loss 0,30% --runs 100
  tcpsbed step step.toml --plant '{ kind = "transfer-function", num = [1], den = [0.02, 1] }' --gain 0.2:0.03
  tcpsbed step step.toml --world real --phases --runs 50 --figure step.svg
  sudo tcpsbed step step.toml --world namespaces --runs 5

The scenario has a component with robot = "step". Every setting runs RUNS times, each with a seed of its own; --rtt,
--loss, --gain and --factor change the scenario's link and its controller, and of several values every combination runs.

Leaves a folder with scenario.toml, step.json, which holds what --json prints, and a page, step.html.
"""

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
Factors = Annotated[
    str | None,
    typer.Option(
        "--factor",
        metavar="FACTOR,...",
        help="What multiplies the linear controller, as tcpsbed tune finds it.",
        show_default=False,
    ),
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
Axis = Annotated[
    int | None,
    typer.Option(
        "--axis",
        min=1,
        max=16,
        metavar="N",
        help="The axis that jumps, of several [default: each].",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, max=1000, help="Runs at a time, in simulated time [default: 1].", show_default=False
    ),
]
Figure = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Draw the curves.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all figures as JSON, and nothing else.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("step", help=HELP)(guarded(step))


def step(
    file: File,
    runs: Runs = 20,
    rtt: Trips = None,
    loss: Losses = None,
    gain: Gains = None,
    factor: Factors = None,
    plant: OwnPlant = None,
    controller: OwnController = None,
    disturbance: Disturbed = None,
    link: OfLink = None,
    rise: Rise = math.inf,
    overshoot: Overshoot = 20.0,
    undershoot: Undershoot = math.inf,
    phases: Phases = False,
    warped: Warped = False,
    axis: Axis = None,
    world: AnyWhere = "virtual",
    out: Out = None,
    figure: Figure = None,
    force: Force = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Runs the experiment; see HELP."""
    from tcpsbed import executors, worlds
    from tcpsbed.api.step import measured
    from tcpsbed.lab.control import systems
    from tcpsbed.runs.given import given

    worlds.require(world)
    may_draw(figure, force=force, reads=[file])
    with given(file, set=sets or (), duration=duration, seed=seed) as asked:
        own = systems.read(plant, "plant"), systems.read(controller, "controller"), disturbance
        scenario = systems.applied(asked.scenario, *own)
        if world in SIMULATED:
            apart(scenario)
        with (
            executors.opened(jobs, cluster, world) as executor,
            Progress(f"{asked.scenario.name}, {world}", quiet=quiet or as_json) as bar,
        ):
            found = measured(
                scenario,
                runs=runs,
                values=(rtt, loss, gain, factor),
                link=link,
                limits=(rise, overshoot, undershoot),
                phases=phases,
                offsets=warped,
                axis=axis,
                world=world,
                out=out,
                progress=bar,
                executor=executor,
                duration_key="duration" if duration is None else "--duration",
            )
    drawn = found.draw(figure) if figure is not None else None
    if as_json:
        print(json.dumps(found.figures, indent=1))
    elif not quiet:
        print(found)
        print(f"results: {found.folder}", *([f"figure: {drawn}"] if drawn else []), sep="\n")
