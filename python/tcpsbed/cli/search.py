"""`tcpsbed search`: where a condition begins to hold, or which values are best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import FAILED, fail, guarded
from tcpsbed.cli.options import (
    AnyWhere,
    Duration,
    File,
    Force,
    Jobs,
    Quiet,
    Sets,
    Yes,
    agreed,
    may_draw,
    overrides,
)
from tcpsbed.cli.sweep import Cluster, OnCell, run_cells
from tcpsbed.runs import MOST_SEEDS

if TYPE_CHECKING:
    from tcpsbed.campaign.search.boundary import Boundary
    from tcpsbed.campaign.search.contour import BoundaryCurve
    from tcpsbed.campaign.search.optimum import Optimum
    from tcpsbed.campaign.search.searching import Search

HELP = """Find where a condition begins to hold, or which values are best, without running a whole grid.

\b
Examples:
  tcpsbed search my.toml --over 'links.l1.delay=0..200 ms' --until 'haptic.delay_ms.p99>30'
  tcpsbed search my.toml --over 'links.l1.rate=1..4 Mbit/s' --over 'links.l1.delay=0..50 ms' --until 'haptic.loss>1 %'
  tcpsbed search my.toml --over 'links.l1.rate=1..4 Mbit/s' --minimise haptic.delay_ms.p99 --limit 'haptic.loss<1 %'

One --over gives the value from which on the condition holds in more than half of all seeds, with its 95 % interval:
bisection with a sequential test over seeds. Two give a curve, followed cell by cell. --minimise and --maximise take any
number of factors, also alternatives (KEY=udp,dpm), and need the extra search. After a kill, the same command continues.
Status 1: there is no boundary in the range, or more than one; no point keeps the limits.
"""
Over = Annotated[
    list[str],
    typer.Option(
        "--over",
        metavar="KEY=LOW..HIGH",
        help="A key and its range, with ' step 5' for values of your own; may be repeated.",
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="METRIC>LIMIT",
        help="The condition, such as 'haptic.delay_ms.p99 > 30'.",
        show_default=False,
    ),
]
Minimise = Annotated[
    str | None,
    typer.Option(
        "--minimise", metavar="METRIC", help="A metric whose mean is to be small.", show_default=False
    ),
]
Maximise = Annotated[
    str | None,
    typer.Option(
        "--maximise", metavar="METRIC", help="A metric whose mean is to be large.", show_default=False
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="METRIC<LIMIT",
        help="What the best values must keep; may be repeated.",
        show_default=False,
    ),
]
Trials = Annotated[
    int, typer.Option("--trials", min=1, max=100_000, help="Points that --minimise and --maximise try.")
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        max=MOST_SEEDS,
        help="Seeds at a point: with --until the most [default: 20], otherwise all [default: 5].",
        show_default=False,
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder of results [default: runs/search-NAME-HASH].", show_default=False
    ),
]
Figure = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Draw the result.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("search", help=HELP)(guarded(search))


def search(
    file: File,
    over: Over,
    until: Until = None,
    minimise: Minimise = None,
    maximise: Maximise = None,
    limit: Limit = None,
    seeds: Seeds = None,
    trials: Trials = 60,
    jobs: Jobs = None,
    world: AnyWhere = "virtual",
    out: Results = None,
    sets: Sets = None,
    duration: Duration = None,
    cluster: Cluster = None,
    figure: Figure = None,
    force: Force = False,
    as_json: AsJson = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Searches; see HELP."""
    from tcpsbed.api.search import perform
    from tcpsbed.campaign.search.ground import CellFailed
    from tcpsbed.campaign.search.optimum import Optimum
    from tcpsbed.campaign.worker import width_of
    from tcpsbed.runs import forecast
    from tcpsbed.runs.given import given

    may_draw(figure, force=force, reads=[file])
    with given(file, set=overrides(sets, None, duration)) as asked:

        def ask(made: Search, runs: int) -> None:
            found = forecast.ask(
                made.file, made.settings, asked.scenario, world, made.out,
                runs=runs, width=jobs or width_of(world), kept=False,
            )  # fmt: skip
            agreed(found, f"a search of about {runs} runs", yes)

        def searched(told: OnCell) -> Boundary | BoundaryCurve | Optimum:
            return perform(
                asked,
                over,
                (until, minimise, maximise),
                limits=limit or (),
                trials=trials,
                seeds=seeds,
                world=world,
                jobs=jobs,
                cluster=cluster,
                out=out,
                told=told,
                agreed=ask,
            )

        try:
            found = run_cells(searched, "search", quiet=quiet or as_json)
        except CellFailed as error:
            fail(str(error), FAILED)
    if figure is not None:
        found.draw(figure, force=force)
    if as_json:
        print(json.dumps(found.figures))
    elif not quiet:
        print(tables(str(found)))
        left = {"results": found.context.folder / "search.html", "figure": figure}
        print(*(f"{what}: {where}\n" for what, where in left.items() if where), sep="", end="")
    else:
        print(found.sentences[0])
    if not (found.best if isinstance(found, Optimum) else found.there):
        raise typer.Exit(FAILED)
