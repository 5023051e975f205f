"""`tcpsbed run`: a scenario in a world, then tables and a report."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import FAILED, HOST_LOST, guarded
from tcpsbed.cli.options import AnyWhere, Duration, File, Out, Quiet, Seed, Sets, overrides
from tcpsbed.cli.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.config import Scenario
    from tcpsbed.session import Outcome
    from tcpsbed.sweep.survey import Survey

SEEDS = "seeds"
"""Folder of further seeds in a run's folder."""

HELP = """Run a scenario and report where the time went.

\b
Examples:
  tcpsbed run scenarios/quickstart.toml
  tcpsbed run my.toml --set 'traffic.cbr.rate="310 kbit/s"' --seed 7
  tcpsbed run my.toml --seeds 10
  tcpsbed run my.toml --world real --live --duration "30 s"
  sudo tcpsbed run my.toml --world namespaces
  tcpsbed run my.toml --out here --json > summary.json

Leaves a folder with scenario.toml, summary.json, series.json, records.bin, samples.parquet and report.html. Ctrl-C
ends a run early and keeps what it recorded.

One seed is one draw of everything random. With --seeds 10 nine further seeds run after it, and delay and loss of every
flow are told as means over the seeds with their 95 % interval; everything else is about the first seed.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", help=HELP)(guarded(run))


def run(
    file: File,
    world: AnyWhere = "virtual",
    out: Out = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print summary.json on standard output, and nothing else.")
    ] = False,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, max=10_000, help="Seeds to run, counted from the scenario's, for intervals."
        ),
    ] = 1,
    live: Annotated[
        bool, typer.Option("--live", help="Show a running real session in the terminal.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave report.html out.")] = False,
    no_samples: Annotated[
        bool,
        typer.Option("--no-samples", help="Leave samples.parquet out; `tcpsbed export` can write it later."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Runs a scenario; see HELP."""
    from tcpsbed import config, worlds
    from tcpsbed.clocks import SIMULATED
    from tcpsbed.sweep.survey import Survey

    worlds.check(world)
    if live and world in SIMULATED:
        raise typer.BadParameter(
            "needs another --world, such as real: a virtual run is over before it can be watched",
            param_hint="--live",
        )
    scenario = config.load(file, overrides(sets, seed, duration))
    outcome = watched(scenario, world, out, live=live, quiet=quiet or as_json, samples=not no_samples)
    cells = outcome.folder / SEEDS
    shutil.rmtree(cells, ignore_errors=True)
    others = () if outcome.stopped else tuple(range(scenario.seed + 1, scenario.seed + seeds))
    settings = tuple(overrides(sets, None, duration))
    try:
        failed = _spread(Survey(file, (), others, settings, world, cells), quiet=quiet or as_json)
    finally:
        page = None if no_report else _report(outcome.folder)
    _tell(outcome, page, as_json=as_json, quiet=quiet)
    if failed:
        print(f"tcpsbed: {failed} of {seeds} seeds failed", file=sys.stderr)
        raise typer.Exit(FAILED)


def _spread(survey: Survey, *, quiet: bool) -> int:
    """Runs the other seeds and adds what they say to the summary of the first; the number that failed."""
    if not survey.seeds:
        return 0
    from tcpsbed.analysis.summary import add_across_seeds
    from tcpsbed.cli.sweep import run_cells, width_of
    from tcpsbed.session import summary_of
    from tcpsbed.sweep import seeds

    folder, width = survey.out.parent, width_of(survey.world)
    try:
        across, failures = run_cells(
            lambda told: seeds.spread(survey, summary_of(folder), width, told),
            f"{len(survey.seeds)} further seeds",
            quiet=quiet,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the run under the first seed is in {folder}") from None
    add_across_seeds(folder, across)
    return len(failures)


def watched(
    scenario: Scenario,
    world: str,
    out: Path | None,
    *,
    live: bool = False,
    quiet: bool = False,
    samples: bool = True,
) -> Outcome:
    """Runs a scenario with a progress bar or the live view."""
    from tcpsbed import session

    folder = session.new_folder(scenario.name) if out is None else out
    if live:
        from tcpsbed.cli.live import LiveView

        with LiveView(folder) as view:
            return session.execute(scenario, world=world, out=folder, live=view, samples=samples)
    bar = Progress(f"{scenario.name}, {world}", quiet=quiet)
    try:
        return session.execute(scenario, world=world, out=folder, progress=bar, samples=samples)
    finally:
        bar.clear()


def _report(folder: Path) -> Path:
    from tcpsbed.report import html

    return html.write(folder)


def _tell(outcome: Outcome, page: Path | None, *, as_json: bool, quiet: bool) -> None:
    from tcpsbed.report import text
    from tcpsbed.report.folder import open_folder

    opened = open_folder(outcome.folder)
    if as_json:
        print(json.dumps(opened.summary, indent=1))
    elif not quiet:
        print(text.overview(opened))
        print(f"report: {page}" if page else f"run: {outcome.folder}")
    for sentence in opened.summary.get("untried") or ():
        print(f"tcpsbed: {sentence}", file=sys.stderr)
    if outcome.stopped:
        raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {outcome.folder}")
    if errors := opened.summary.get("errors"):
        print(*(f"tcpsbed: {error}" for error in errors), sep="\n", file=sys.stderr)
        lost = any(host["lost"] for host in opened.summary.get("hosts", ()))
        raise typer.Exit(HOST_LOST if lost else FAILED)
