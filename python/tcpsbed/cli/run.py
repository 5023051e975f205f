"""`tcpsbed run`: a scenario in a world, then tables and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.apart import apart
from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import DISTURBED, FAILED, guarded
from tcpsbed.cli.options import (
    MOST_SEEDS,
    AnyWhere,
    Duration,
    File,
    Out,
    Quiet,
    Seed,
    Sets,
    Yes,
    agreed,
    overrides,
)
from tcpsbed.cli.progress import Progress
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import one_line

if TYPE_CHECKING:
    from tcpsbed.campaign.survey import Survey
    from tcpsbed.results import Place
    from tcpsbed.scenarios import Scenario
    from tcpsbed.views.folder import RunFolder

SEEDS = "seeds"
"""Folder of further seeds in a run's folder."""

HELP = """Run a scenario and report where the time went.

\b
Examples:
  tcpsbed init --from quickstart && tcpsbed run quickstart.toml
  tcpsbed run my.toml --set 'traffic.cbr.rate="310 kbit/s"' --seed 7
  tcpsbed run my.toml --seeds 10
  tcpsbed run my.toml --world real --live --duration "30 s"
  sudo tcpsbed run my.toml --world namespaces
  tcpsbed run my.toml --out here --json > summary.json

Leaves a folder with scenario.toml, summary.json, series.json, records.bin, samples.parquet and report.html. Ctrl-C
ends a run early and keeps what it recorded.

One seed is one draw of everything random. With --seeds 10 nine further seeds run after it, and delay and loss of every
flow are told as means over the seeds with their 95 % interval; everything else is about the first seed. Where
the second seed gives the same records nothing is random: the others do not run.
"""


AsJson = Annotated[
    bool, typer.Option("--json", help="Print summary.json on standard output, and nothing else.")
]
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds", min=1, max=MOST_SEEDS, help="Seeds to run, counted from the scenario's, for intervals."
    ),
]
ShownLive = Annotated[bool, typer.Option("--live", help="Show a running real session in the terminal.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Leave report.html out.")]
NoSamples = Annotated[
    bool,
    typer.Option("--no-samples", help="Do not write samples.parquet; `tcpsbed export` can write it later."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="End with status 3 if the run, or one of further seeds, was disturbed."),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", help=HELP)(guarded(run))


def run(
    file: File,
    world: AnyWhere = "virtual",
    out: Out = None,
    as_json: AsJson = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    seeds: Seeds = 1,
    live: ShownLive = False,
    no_report: NoReport = False,
    no_samples: NoSamples = False,
    yes: Yes = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Runs a scenario; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.campaign.survey import Survey
    from tcpsbed.results import RUNS
    from tcpsbed.runs import forecast, session
    from tcpsbed.views.folder import open_folder

    worlds.check(world)
    if live and world in SIMULATED:
        raise typer.BadParameter(
            "needs another --world, such as real: a virtual run is over before it can be watched",
            param_hint="--live",
        )
    given = overrides(sets, seed, duration)
    with _not_begun():
        scenario = scenarios.load(file, given)
        if not (yes and (quiet or as_json)):  # nobody wants to know
            found = forecast.ask(file, given, scenario, world, out or RUNS, runs=seeds)
            agreed(found, "a run" if seeds == 1 else f"{seeds} runs", yes)
    others = tuple(range(scenario.seed + 1, scenario.seed + seeds))
    settings, silent, failed = tuple(overrides(sets, None, duration)), quiet or as_json, 0
    with session.place(scenario, out) as place:
        survey = Survey(file, (), others, settings, world, place.path / SEEDS)
        _ = survey.begun  # what the first run reads: the others must find it as it was
        stopped = watched(scenario, world, place, live=live, quiet=silent, samples=not no_samples)
        try:
            failed = 0 if stopped else _spread(survey, place, quiet=silent)
        finally:
            page = None if no_report else _report(place.path)
        opened = open_folder(place.path)
        _ = opened.series, opened.scenario
    _tell(opened, place, page, stopped=stopped, as_json=as_json, quiet=quiet)
    if failed:
        print(f"tcpsbed: {failed} of {seeds} seeds failed", file=sys.stderr)
        raise typer.Exit(FAILED)
    if strict:
        _refuse_disturbed(opened.summary)


@contextmanager
def _not_begun() -> Iterator[None]:
    """Prints that nothing was recorded if the user stops before the run."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped before the run began: nothing was recorded") from None


def _refuse_disturbed(summary: Mapping[str, Any]) -> None:
    seeds = summary["across_seeds"]["disturbed"]
    found = [*summary["disturbances"], *([f"seeds {', '.join(map(str, seeds))}"] if seeds else [])]
    if found:
        print("tcpsbed: DISTURBED, and --strict was given:", *found, sep="\n  ", file=sys.stderr)
        raise typer.Exit(DISTURBED)


def _spread(survey: Survey, place: Place, *, quiet: bool) -> int:
    """Runs the other seeds and adds their results to the summary of the first; the number of failures."""
    if not survey.seeds:
        return 0
    from tcpsbed.analysis.summary import add_across_seeds
    from tcpsbed.campaign import seeds
    from tcpsbed.cli.sweep import run_cells, width_of
    from tcpsbed.runs.session import summary_of

    width = width_of(survey.world)
    try:
        across, failures = run_cells(
            lambda told: seeds.spread(survey, summary_of(place.path), width, told),
            f"{len(survey.seeds)} further seeds",
            quiet=quiet,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the run under the first seed is in {place.shown}") from None
    add_across_seeds(place.path, across)
    return len(failures)


def watched(
    scenario: Scenario,
    world: str,
    place: Place,
    *,
    live: bool = False,
    quiet: bool = False,
    samples: bool = True,
) -> bool:
    """Runs a scenario with a progress bar or the live view; whether the user stopped it."""
    from tcpsbed.runs import session

    if world in SIMULATED:
        apart(scenario)
    if live:
        from tcpsbed.cli.live import LiveView

        with LiveView(place.path) as view:
            return session.record(scenario, place, world=world, live=view, samples=samples)
    with Progress(f"{scenario.name}, {world}", quiet=quiet) as bar:
        return session.record(scenario, place, world=world, progress=bar, samples=samples)


def _report(folder: Path) -> Path:
    from tcpsbed.views import html

    return html.write(folder)


def _tell(
    opened: RunFolder, place: Place, page: Path | None, *, stopped: bool, as_json: bool, quiet: bool
) -> None:
    from tcpsbed.views import text

    if as_json:
        print(json.dumps(opened.summary, indent=1))
    elif not quiet:
        print(tables(text.overview(opened)))
        print(f"report: {place.told(page)}" if page else f"run: {place.shown}")
    for sentence in opened.summary.get("untried") or ():
        print(f"tcpsbed: {sentence}", file=sys.stderr)
    if stopped:
        raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {place.shown}")
    refuse_errors(opened.summary)


def refuse_errors(summary: Mapping[str, Any]) -> None:
    """Ends with a status and the errors of a run that had some."""
    if errors := summary.get("errors"):
        print(*(f"tcpsbed: {one_line(error)}" for error in errors), sep="\n", file=sys.stderr)
        raise typer.Exit(DISTURBED if any(host["lost"] for host in summary.get("hosts", ())) else FAILED)
