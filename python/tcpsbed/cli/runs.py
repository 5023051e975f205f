"""`tcpsbed show`, `compare`, `report`, `export`: commands for finished runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed import documents, results
from tcpsbed.cli import complete
from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Folder, Force, OnPage
from tcpsbed.errors import DataError
from tcpsbed.views.folder import RunFolder, open_folder, state_of
from tcpsbed.views.numbers import count, seconds

if TYPE_CHECKING:
    from tcpsbed.views.compare import Compared
    from tcpsbed.views.markup import Html
    from tcpsbed.views.paired import Comparison

SHOW = """Print the tables of a run again.

\b
Examples:
  tcpsbed show runs/latest
  tcpsbed show runs/latest --json | jq .flows.haptic.delay_ms
  tcpsbed show runs/sweep-my-1a2b3c4d               combinations of a sweep or a campaign, a search, a step, a map
"""
COMPARE = """Put runs side by side, flow by flow.

\b
Examples:
  tcpsbed compare runs/udp runs/dpm
  tcpsbed compare runs/udp runs/dpm --page udp-dpm.html
  tcpsbed compare runs/sweep-my-1a2b3c4d            combinations of a sweep
  tcpsbed compare runs/sweep-my-1a2b3c4d --metric haptic.delay_ms.p99

Every metric of every flow that all of them have, with difference and ratio to the first run, and where most of each delay
is. Runs with --seeds, and the combinations of a sweep, are compared seed by seed, too: the numbers of --metric, or else the
metrics of a campaign, or else delay and loss, less those of the first, or of the baseline of a campaign. There are 95 %
intervals, Hedges' g and p-values corrected for these tests alone (they need scipy: pip install 'tcpsbed[stats]'), and a
sentence for each number: which is lower, or that no difference is shown.
"""
REPORT = """Write report.html of a run again; recover a run whose process was killed.

\b
Examples:
  tcpsbed report runs/latest
  tcpsbed report runs/mine.unfinished-4711

A run that was killed leaves what it recorded beside its folder, under a name with .unfinished- in it; so does a run on the
machine's clock whose disk was full. This merges its rows and makes summary, samples and report of them, marked as
incomplete. If a full disk ends a run in virtual time, nothing is kept: the same command gives the same rows again.
"""

EXPORT = """Write the samples of a run for other programs.

\b
Examples:
  tcpsbed export runs/latest --csv
  tcpsbed export runs/latest --mcap --to session.mcap
  tcpsbed export runs/latest --operator hand.csv

csv and parquet: one row for every record, with names. mcap: a topic for each flow and kind of record, which Foxglove
and PlotJuggler open. operator: what left the operator, which another session replays:
--set flows.kinematic.source=operator:hand.csv
"""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("show", help=SHOW)(guarded(show))
    app.command("compare", help=COMPARE)(guarded(compare))
    app.command("report", help=REPORT)(guarded(report))
    app.command("export", help=EXPORT)(guarded(export))


def opened(folder: Path) -> RunFolder:
    """The run in a folder; names interrupted runs beside it on standard error."""
    found = open_folder(folder)
    newer = [] if folder.name != "latest" else results.interrupted_after(folder.resolve())
    for line in [*results.interrupted(folder), *newer]:
        print(f"tcpsbed: {line}", file=sys.stderr)
    return found


def show(
    folder: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json.")] = False,
) -> None:
    """Prints a run's tables."""
    from tcpsbed.views import text

    with documents.trusted(folder):
        if results.kind_of(folder) in ("search", "step", "map"):
            return _show_found(folder, as_json)
        if (folder / "sweep.json").is_file():
            return _show_sweep(folder, as_json)
        run = opened(folder)
        told = json.dumps(run.summary, indent=1) + "\n" if as_json else text.everything(run)
    print(told if as_json else tables(told), end="")


def _show_found(folder: Path, as_json: bool) -> None:
    """Prints what a search, a step experiment or a map found."""
    from tcpsbed.api.load import load

    found: Any = load(folder)
    print(json.dumps(found.figures, indent=1) if as_json else tables(str(found)))


def _show_sweep(folder: Path, as_json: bool) -> None:
    """Prints the tables of a sweep or a campaign: first what it is, and what is missing."""
    from tcpsbed.campaign import outcome

    found = outcome.opened(folder)
    if as_json:
        print(json.dumps(found.rows, indent=1))
        return
    survey = found.survey
    factors = ", ".join(f"{survey.shown.called(axis.key)} ({len(axis.values)})" for axis in survey.axes)
    seeds = f"seeds {survey.seeds[0]} to {survey.seeds[-1]}"
    print(f"{survey.kind} of {survey.file} \u00b7 {survey.world} \u00b7 {factors} \u00b7 {seeds}")
    print(tables(f"\n{found}"))


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B ...",
            help="Folders of runs, or one of a sweep.",
            show_default=False,
            autocompletion=complete.run_folders,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="A number to test, such as haptic.delay_ms.p99; may be repeated "
            "[default: those of the campaign; else delay and loss].",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Of runs, show rows without a difference, too.")
    ] = False,
    page: OnPage = None,
    force: Force = False,
) -> None:
    """Prints runs side by side."""
    from tcpsbed.api.compare import compare as compared
    from tcpsbed.views.paired import Comparison

    if page is not None:
        results.may_write(page, force=force, reads=folders)
    with documents.trusted(" or ".join(map(str, folders))):
        found: Compared | Comparison = compared(*folders, metrics=metric or ())
        if isinstance(found, Comparison):
            told = str(found)
            state = state_of(folders[0])
            told = f"{state}\n\n{told}" if state else told
            drawn = None if page is None else _page_of(folders[0], found)
        else:
            told = found.told(every=every)
            drawn = None if page is None else _beside(found)
    if page is not None and drawn is not None:
        results.write_whole(page, drawn)
    print(tables(told), end="")
    if page is not None:
        print(f"page: {page}")


def _beside(found: Compared) -> str:
    """A page of runs side by side."""
    from tcpsbed.studio import freeze
    from tcpsbed.views import compare, markup
    from tcpsbed.views.charts import Sheet

    sheet = Sheet()
    drawn = markup.section("delays", "Delay", sheet.place(compare.delays(found)))
    tables = (freeze.table(one) for one in found.flows)
    where = markup.section("places", "Where most of the delay is", markup.listing(found.largest))
    body = [freeze.table(found.runs), drawn, *tables, where, *map(markup.note, found.left_out)]
    body += [markup.note(found.one_seed)] * bool(found.one_seed)
    body += _paired(found.by_seed)
    return freeze.page("Comparison", compare.sentence(found), [], body, sheet)


def _page_of(folder: Path, found: Comparison) -> str:
    """A page of the combinations of a sweep."""
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup

    state = state_of(folder)
    doubt = [markup.banner("doubt", state.partition(":")[0].capitalize(), [state])] if state else []

    count = f"{len(found.conditions)} combinations of values, compared with their baseline seed by seed."
    return freeze.page(f"{folder.name} compared", [("", count)], [], [*doubt, *_paired(found)])


def _paired(found: Comparison) -> list[Html]:
    """Comparisons seed by seed, where there are some: in words, then the tables."""
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup, paired

    said = markup.section("verdicts", "In words", markup.listing(found.verdicts))
    tables = [replace(one, title=f"{one.title}, {paired.TITLE}") for one in found.tables]
    return [*filter(None, [said]), *map(freeze.table, tables), *map(markup.note, found.notes)]


def report(folder: Folder, force: Force = False) -> None:
    """Writes report.html again; first recovers a run whose process died."""
    from tcpsbed.studio import freeze

    if results.is_unfinished(folder):
        from tcpsbed.runs import recovery

        folder = recovery.recovered(folder)
        print(f"tcpsbed: {_recovered(folder)}", file=sys.stderr)
    opened(folder)
    with documents.trusted(folder), results.tended(folder, writes=["report.html"], force=force):
        page = freeze.write(folder)
    print(page)


def _recovered(folder: Path) -> str:
    """What was made of an interrupted run."""
    from tcpsbed.runs.recovery import WHY

    summary = open_folder(folder).summary
    rows, ran, asked = count(summary["records"]["rows"]), summary["ran_s"], summary["duration_s"]
    marked = "; it is marked as incomplete" if WHY in summary["errors"] else ""
    return f"recovered {rows} rows, {seconds(ran)} of {seconds(asked)}, as {folder}{marked}"


def export(
    folder: Folder,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    mcap: Annotated[bool, typer.Option("--mcap", help="MCAP.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet.")] = False,
    operator: Annotated[
        Path | None,
        typer.Option("--operator", metavar="FILE", help="The operator's output, as csv.", show_default=False),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option("--flow", help="Flow of --operator [default: kinematic].", show_default=False),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="File to write [default: in DIR].", show_default=False),
    ] = None,
    force: Force = False,
) -> None:
    """Writes a run's samples in other formats."""
    from tcpsbed.analysis import export as exporting
    from tcpsbed.analysis import operator as operators

    if flow is not None and operator is None:
        raise DataError(
            "found no file for the operator's output", key="--flow", allowed="with --operator FILE"
        )
    if to is not None and operator is not None and not (csv or mcap or parquet):
        found = "found no format for the file: the operator's output goes to the FILE of --operator"
        raise DataError(found, key="--to", allowed="with --csv, --mcap or --parquet")
    opened(folder)
    if operator is not None:
        results.may_write(operator, force=force, reads=[folder])
        with documents.trusted(folder):
            _tell(operators.export(folder, operator, flow))
        if not (csv or mcap or parquet):
            return
    writers = {"csv": exporting.to_csv, "mcap": exporting.to_mcap, "parquet": exporting.to_parquet}
    wanted = [kind for kind, asked in (("csv", csv), ("mcap", mcap), ("parquet", parquet)) if asked]
    if not wanted:
        raise DataError(
            "found no format", key="export", allowed="--csv, --mcap, --parquet or --operator FILE"
        )
    if to is not None and len(wanted) > 1:
        raise DataError(
            f"found {len(wanted)} formats for one file", key="--to", allowed="one format, or no --to"
        )
    if to is not None and to.resolve() == (folder / f"samples.{wanted[0]}").resolve():
        to = None
    if to is not None:
        results.may_write(to, force=force, reads=[folder])
    written = [] if to is not None else [f"samples.{kind}" for kind in wanted]
    with documents.trusted(folder), results.tended(folder, writes=written, force=force):
        for kind in wanted:
            _tell(writers[kind](folder, to))


def _tell(file: Path) -> None:
    """Names a file that was written; nothing where it may be standard output, behind whose rows no name belongs."""
    if file.is_file():
        print(file)
