"""`tcpsbed show`, `compare`, `report`, `export`: reading runs that are over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Folder

SHOW = """Print the tables of a run again.

\b
Examples:
  tcpsbed show runs/latest
  tcpsbed show runs/latest --json | jq .flows.haptic.delay_ms
"""
COMPARE = """Put runs side by side: every metric of every flow, with difference and ratio to the first.

\b
Example:
  tcpsbed compare runs/udp runs/dpm
"""
REPORT = """Write report.html of a run again.

\b
Example:
  tcpsbed report runs/latest
"""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("show", help=SHOW)(guarded(show))
    app.command("compare", help=COMPARE)(guarded(compare))
    app.command("report", help=REPORT)(guarded(report))


def show(
    folder: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json.")] = False,
) -> None:
    """Prints a run's tables."""
    from tcpsbed.report import text
    from tcpsbed.report.folder import open_folder

    run = open_folder(folder)
    print(json.dumps(run.summary, indent=1) if as_json else text.everything(run), end="\n" if as_json else "")


def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="A B ...", help="Folders of runs.", show_default=False)
    ],
) -> None:
    """Prints runs side by side."""
    from tcpsbed.report.compare import compare as table

    print(table(folders), end="")


def report(folder: Folder) -> None:
    """Writes report.html again."""
    from tcpsbed.report import html

    print(html.write(folder))
