"""`tcpsbed check-qos`: does a run keep the limits of a profile?"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli import complete
from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import DISTURBED, FAILED, guarded
from tcpsbed.cli.options import Folder, Force, OnPage, Quiet
from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpsbed.lab.qos.check import Verdict
    from tcpsbed.lab.qos.ci import Checked
    from tcpsbed.lab.qos.profile import Profile
    from tcpsbed.views.tables import Table

HELP = """Compare a run with a profile of limits, flow by flow; ends with 1 if one is broken, 3 if disturbed or failed.

\b
Examples:
  tcpsbed check-qos runs/latest --profile telehaptics
  tcpsbed check-qos runs/latest --profile mine.toml --json
  tcpsbed check-qos runs/latest --profile mine.toml --page verdict.html
  tcpsbed check-qos runs/latest --profile mine.toml --junit qos.xml
  tcpsbed check-qos runs/sweep-my-1a2b3c4d --profile mine.toml    every cell of a sweep
  tcpsbed check-qos runs/latest --profile list

--profile list prints the profiles that ship with their limits. tcpsbed docs qos says how to write one, and how pytest
runs a scenario as a test; tcpsbed docs ci, how a CI shows the limits.
"""


READ = ("world", "seed", "wall", "flows", "errors", "disturbances")
"""What is read of the summary of a cell."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("check-qos", help=HELP)(guarded(check_qos))


def check_qos(
    folder: Folder,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME|FILE",
            help='A profile by name, or its file; "list" shows them with their limits.',
            show_default=False,
            autocompletion=complete.limits,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON, and nothing else.")
    ] = False,
    page: OnPage = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write JUnit XML, too.", show_default=False),
    ] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github",
            help="Print annotations of GitHub Actions [default: if GITHUB_ACTIONS is true].",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Checks a run; see HELP."""
    from tcpsbed import documents, results
    from tcpsbed.cli.runs import opened
    from tcpsbed.lab.qos import ci
    from tcpsbed.lab.qos import profile as profiles

    if profile == "list":
        print(profiles.listing().lstrip("\n"))
        return
    if profile is None:
        raise ConfigError("found no profile", key="--profile", allowed=profiles.CHOICE + profiles.listing())
    if page is not None and page == junit:
        raise ConfigError(f'found the file of --page, "{page}"', key="--junit", allowed="another file")
    for file in filter(None, (page, junit)):
        results.may_write(file, force=force, reads=[folder, profile])
    chosen = profiles.load(profile)
    with documents.trusted(folder):
        if (folder / "sweep.json").is_file():
            checked = ci.checked_all(_cells(folder), chosen, str(folder))
        else:
            checked = ci.checked(opened(folder).summary, chosen, str(folder))
    verdicts, errors, disturbed = checked.verdicts, checked.errors, checked.disturbed
    amiss = " and ".join(word for word, said in (("ERROR", errors), ("DISTURBED", disturbed)) if said)
    passed = all(verdict.passed for verdict in verdicts)
    if page is not None:
        results.write_whole(page, _page(chosen, verdicts, [*errors, *disturbed], folder))
    if junit is not None:
        results.write_whole(junit, ci.junit(checked))
    if github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true":
        root = Path(os.environ.get("GITHUB_WORKSPACE") or ".")
        for line in ci.github(checked, root):  # GitHub reads both outputs
            print(line, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(_document(checked))
    elif not quiet:
        doubt = f" ({amiss}: this proves nothing)" if amiss else ""
        print(tables(f"{_table(chosen, verdicts)}\n{'pass' if passed else 'FAIL'}{doubt}"))
        if checked.absent:
            print(f"skipped, because the run has no such flow: {', '.join(checked.absent)}")
        for name, written in (("page", page), ("junit", junit)):
            if written is not None:
                print(f"{name}: {written}")
    if amiss:
        print(
            "tcpsbed: the numbers of this run prove nothing:",
            *(f"ERROR: {said}" for said in errors),
            *(f"DISTURBED: {said}" for said in disturbed),
            sep="\n  ",
            file=sys.stderr,
        )
        raise typer.Exit(DISTURBED)
    if not passed:
        raise typer.Exit(FAILED)


def _cells(sweep: Path) -> dict[str, dict[str, Any]]:
    """Summaries of the finished cells of a sweep by their overrides.

    Raises
    ------
    DataError
        If it has none.
    """
    from tcpsbed.errors import DataError
    from tcpsbed.views.folder import cells_in, differing

    cells = [(one.settings, one.part(*READ)) for one in cells_in(sweep)]
    if not cells:
        raise DataError("has no finished cell", file=sweep, allowed="a sweep with results; start it again")
    names = differing([(*settings, f"world={summary.get('world')}") for settings, summary in cells])
    return dict(zip(names, (summary for _, summary in cells), strict=True))


def _document(checked: Checked) -> str:
    """The verdicts as JSON."""
    rows = [
        asdict(one) | {"file": str(one.file), "margin": one.margin, "passed": one.passed}
        for one in checked.verdicts
    ]
    found = {
        "profile": checked.profile.name,
        "passed": all(verdict.passed for verdict in checked.verdicts),
        "errors": checked.errors,
        "disturbed": checked.disturbed,
        "left_out": checked.absent,
        "verdicts": [{key: _plain(value) for key, value in row.items()} for row in rows],
    }
    return json.dumps(found, indent=1)


def _page(chosen: Profile, verdicts: Sequence[Verdict], doubts: list[str], run: Path) -> str:
    """The verdicts as a page."""
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup

    broken = [one for one in verdicts if not one.passed]
    opening = (
        [
            ("bad", f"{len(broken)} of {len(verdicts)} limits are broken"),
            ("", f", first {broken[0].metric} of {broken[0].flow}."),
        ]
        if broken
        else [("much", f"All {len(verdicts)} limits are kept"), ("", ".")]
    )
    facts = [("run", run), ("profile", chosen.name), ("source", chosen.source)]
    above = markup.banner("doubt", "Do not use these numbers: the run had errors or was disturbed", doubts)
    return freeze.page(f"{run.name}: {chosen.name}", opening, facts, [above, freeze.table(_laid(verdicts))])


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(chosen: Profile, verdicts: Sequence[Verdict]) -> str:
    from tcpsbed.views import text

    laid = _laid(verdicts)
    head = f"{chosen.name}" + (f" · {chosen.source}" if chosen.source else "")
    return f"{head}\n\n{text.table(laid.columns, laid.rows)}"


def _laid(verdicts: Sequence[Verdict]) -> Table:
    """A line for each limit."""
    from tcpsbed.views.markup import Column, words
    from tcpsbed.views.numbers import NONE
    from tcpsbed.views.tables import Table

    def number(value: float) -> str:
        return f"{value:g}" if math.isfinite(value) else NONE

    numbers = (Column(title) for title in ("found", "least", "most", "margin"))
    columns = (*map(words, ("flow", "metric", "unit")), *numbers, words(""))
    rows = (
        (
            one.flow,
            one.metric,
            one.unit,
            *(number(value) for value in (one.found, one.least, one.most, one.margin)),
            "pass" if one.passed else "FAIL",
        )
        for one in verdicts
    )
    return Table("Limits", columns, tuple(rows))
