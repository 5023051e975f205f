"""`tcpsbed map`: the stability map of a control loop. [Polachan 2022]"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import (
    MOST_BURST,
    MOST_RUNS,
    Cluster,
    Disturbed,
    Duration,
    File,
    Force,
    Jobs,
    OwnController,
    OwnPlant,
    Quiet,
    Seed,
    Sets,
    may_draw,
)
from tcpsbed.runs import MOST_SEEDS
from tcpsbed.runs.progress import Progress

HELP = """Draw how much delay and loss a control loop tolerates, out of hundreds of runs in every cell of a grid.

\b
Examples:
  tcpsbed init --from step                     writes step.toml
  tcpsbed map step.toml
  tcpsbed map step.toml --rtt "0 ms..60 ms" --loss 0..40% --bursts 5 --gain 0.2:0.05 --figure map.svg
  tcpsbed map step.toml --reliability 95% --rise 50
  tcpsbed map step.toml --cells 20x10 --verify 5
  tcpsbed map step.toml --cells 200x200 --cluster tcp://head:8786

Step, gains and period are those of the scenario; delay and loss are those of the grid, not of its network. The loop is
computed from its difference equations, without packets: 10^9 ticks take seconds.

--out leaves a folder with scenario.toml, map.json, which holds what --json prints, and a page, map.html.
"""


Trips = Annotated[str, typer.Option("--rtt", metavar="LOW..HIGH", help="Round trips.")]
Losses = Annotated[
    str, typer.Option("--loss", metavar="LOW..HIGH", help="Losses each way, or one, such as 10%.")
]
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
Factor = Annotated[
    str | None,
    typer.Option(
        "--factor",
        metavar="FACTOR",
        help="What multiplies the linear controller, as tcpsbed tune finds it.",
        show_default=False,
    ),
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
OnCommand = Annotated[
    bool,
    typer.Option("--on-command", help="The far side answers each command on arrival, not at its own ticks."),
]
Aligned = Annotated[bool, typer.Option("--aligned", help="Both sides tick together, unlike two computers.")]
Verify = Annotated[
    int,
    typer.Option(
        "--verify",
        metavar="N",
        min=0,
        max=100,
        help="Run the scenario with packets, too, at N cells at the boundary.",
    ),
]
VerifyRuns = Annotated[
    int,
    typer.Option("--verify-runs", min=1, max=MOST_SEEDS, help="Runs with packets of each of these cells."),
]
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
    factor: Factor = None,
    plant: OwnPlant = None,
    controller: OwnController = None,
    disturbance: Disturbed = None,
    period: Period = None,
    overshoot: Overshoot = 20.0,
    rise: Rise = None,
    reliability: Reliability = None,
    loop: Which = None,
    axis: Axis = None,
    on_command: OnCommand = False,
    aligned: Aligned = False,
    verify: Verify = 0,
    verify_runs: VerifyRuns = 20,
    out: Kept = None,
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
    """Draws the map; see HELP."""
    from tcpsbed import executors
    from tcpsbed.api.map import computed
    from tcpsbed.lab.control import systems
    from tcpsbed.lab.control.mapping import Asked
    from tcpsbed.runs.given import given

    may_draw(figure, force=force, reads=[file])
    asked = Asked.of(locals())
    with given(file, set=sets or (), seed=seed, duration=duration) as source:
        own = systems.read(plant, "plant"), systems.read(controller, "controller"), disturbance
        label = f"{source.scenario.name}, {runs} runs per cell"
        with executors.opened(jobs, cluster) as executor, Progress(label, quiet=quiet or as_json) as bar:
            scenario = systems.applied(source.scenario, *own, loop)
            found = computed(scenario, asked, out, bar, executor)
    if figure is not None:
        found.draw(figure)
    if as_json:
        print(json.dumps(found.figures))
    elif not quiet:
        print(found)
        left = {"results": found.folder, "figure": figure}
        print(*(f"{what}: {where}\n" for what, where in left.items() if where), sep="", end="")
