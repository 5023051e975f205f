"""`tcpsbed sweep`: a grid of runs on all cores."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.cli.options import AnyWhere, Cluster, Duration, File, Jobs, Quiet, Sets, Yes, agreed, overrides
from tcpsbed.errors import ConfigError, counted, printable
from tcpsbed.runs import MOST_SEEDS
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.campaign.survey import Survey
    from tcpsbed.campaign.worker import Job
    from tcpsbed.scenarios import Scenario

T = TypeVar("T")
OnCell = Callable[[int, int, "Job", str | None], None]
"""Hears of (done, all, job, failure) as cells end."""

HELP = """Run a grid of values and seeds on all cores.

\b
Examples:
  tcpsbed sweep my.toml --over 'links.l1.rate=1 Mbit/s,1.5 Mbit/s' --seeds 10
  tcpsbed sweep my.toml --over 'traffic.cbr.rate=0 bit/s,400 kbit/s' --over 'flows.haptic.rate=500 Hz,1 kHz'
  tcpsbed sweep my.toml --over 'links.l1.rate=1..2 Mbit/s step 0.25'      a range
  sudo tcpsbed sweep my.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s' --seeds 3 --world mininet

Leaves one Parquet file and one figure. The first --over is the x axis of the figure, the others are its lines. Every
combination is checked before the first run, and runs with the same seeds, so that differences share their random
numbers; intervals are across seeds. If the first two seeds give the same records, nothing is random: the other seeds are
skipped, and there is no interval. If a cell fails, the sweep names it, runs the others and ends with status 1. After a
kill, the same command resumes the sweep.
"""


Over = Annotated[
    list[str],
    typer.Option(
        "--over",
        metavar="KEY=V1,V2,...",
        help="A key and its values; may be repeated.",
        show_default=False,
    ),
]
Seeds = Annotated[
    int, typer.Option("--seeds", min=1, max=MOST_SEEDS, help="Seeds, counted from the scenario's.")
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder of results [default: runs/sweep-NAME-HASH].",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sweep", help=HELP)(guarded(sweep))


def sweep(
    file: File,
    over: Over,
    seeds: Seeds = 10,
    jobs: Jobs = None,
    world: AnyWhere = "virtual",
    out: Results = None,
    sets: Sets = None,
    duration: Duration = None,
    cluster: Cluster = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Runs a sweep; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.campaign import design
    from tcpsbed.campaign.survey import Survey

    worlds.require(world)
    axes = tuple(design.axis(text) for text in over)
    if len({axis.key for axis in axes}) < len(axes):
        raise ConfigError("found a key twice", key="--over", allowed="each key once, with all its values")
    settings = tuple(overrides(sets, None, duration))
    first = scenarios.load(file, settings)
    seeds_ = tuple(range(first.seed, first.seed + seeds))
    places = {axis.key: design.Written(None, None, f"--over {axis.key}") for axis in axes}
    folder = out or _folder(file, [*over, *settings, world])
    survey = Survey(file, axes, seeds_, settings, world, folder, design.Design(places=places))
    perform(survey, first, jobs, cluster, yes=yes, quiet=quiet)


def perform(
    survey: Survey, first: Scenario, jobs: int | None, cluster: str | None, *, yes: bool, quiet: bool
) -> None:
    """Asks about a huge sweep or campaign, checks it whole, runs it, and prints what came out.

    `first` is the scenario without the values of a cell.
    """
    from tcpsbed.campaign.outcome import carried_out, check
    from tcpsbed.campaign.worker import width_of
    from tcpsbed.runs import forecast

    width, runs = jobs or width_of(survey.world), len(survey.cells())
    found = forecast.ask(
        survey.file, survey.settings, first, survey.world, survey.out, runs=runs, width=width, kept=False
    )
    agreed(found, f"a {survey.kind} of {runs} runs", yes)
    with Progress("checking", quiet=quiet) as bar:
        check(survey, bar)
    place = None
    if cluster is not None:
        from tcpsbed.campaign.cluster import places

        place = places(cluster, survey)
    try:
        outcome = run_cells(
            lambda told: carried_out(survey, told, jobs, place, first.files), survey.kind, quiet=quiet
        )
    finally:
        if place is not None:
            place.close()
    if outcome.rows and not quiet:
        print(tables(survey.shown.tables(outcome.rows)))
        remarks = [*outcome.remarks, *(place.remarks if place is not None else ())]
        print(*remarks, sep="\n", end="\n" * bool(remarks))
        print(f"figure: {survey.out / 'sweep.html'}\ntable: {survey.out / 'sweep.parquet'}")
    if outcome.failures:
        number = counted(len(outcome.failures), "cell")
        print(f"tcpsbed: {number} failed; the messages are in {survey.out / 'failed'}", file=sys.stderr)
        raise typer.Exit(FAILED)


def _folder(file: Path, described: Sequence[str]) -> Path:
    """A folder that the same command finds again."""
    short = hashlib.sha256("\n".join([str(file.resolve()), *described]).encode()).hexdigest()[:8]
    return Path("runs") / f"sweep-{file.stem}-{short}"


def run_cells(run: Callable[[OnCell], T], label: str, *, quiet: bool) -> T:
    """Runs cells with a progress bar and the messages of those that fail."""
    with Progress(label, quiet=quiet) as bar:
        before: list[int] = []

        def told(done: int, number: int, job: Job, failure: str | None) -> None:
            if not before:
                before.append(done - 1)
                bar.base = before[0] / number
            each = (time.monotonic() - bar.begun) / max(done - before[0], 1)
            bar.note = f"{done} of {number} cells, one in {each:.2g} s"
            if failure is not None:
                bar.clear()
                print(
                    f"tcpsbed: cell failed: {' '.join(job.settings)}: {printable(failure)}", file=sys.stderr
                )
            bar(done / number)

        return run(told)
