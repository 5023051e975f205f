"""`tcpsbed runs` and `open`: the list of runs, and the page of a result."""

from __future__ import annotations

import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import typer

from tcpsbed.cli.colour import tables
from tcpsbed.cli.complete import result_folders
from tcpsbed.cli.failures import guarded

MOST_KNOWN = 10_000
"""Summaries that are read once, by a page that lists runs again and again."""
_UNKNOWN: dict[str, Any] = {"folder": "", "scenario": "", "world": "", "seed": None, "duration_s": None}

RUNS_HELP = """List the runs in a folder, the newest last.

\b
Examples:
  tcpsbed runs
  tcpsbed runs results --json

The verdict of a run is ok, DISTURBED (its numbers prove nothing), ATTACKED (it accepted datagrams of an attack), ERROR,
unfinished (tcpsbed report recovers it) or unreadable.
"""
OPEN_HELP = """Open the page of a result in the browser.

\b
Examples:
  tcpsbed open                    the newest run
  tcpsbed open runs/mine

A result is a run, a sweep, a campaign, a search, a step experiment, a map or a reproduction of a published work.
Prints the path of the page; where there is no browser, that is all.
"""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("runs", help=RUNS_HELP)(guarded(runs))
    app.command("open", help=OPEN_HELP)(guarded(open_page))


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Folder with the runs [default: runs].", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Lists runs; see RUNS_HELP."""
    from tcpsbed.errors import DataError
    from tcpsbed.results import RUNS

    place = folder or RUNS
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder", file=folder, allowed="a folder with runs in it, such as runs")
    found = listed(place)
    if as_json:
        print(json.dumps(found, indent=1))
    elif found:
        print(tables(_text(found)), end="")
    else:
        print(f"no runs in {place}; to make one: tcpsbed run FILE", file=sys.stderr)


def listed(place: Path) -> list[dict[str, Any]]:
    """The runs in a folder, the newest last; of each its folder, scenario, world, seed, duration, end and verdict."""
    found = [row for one in _folders(place) if (row := _row(one)) is not None]
    return sorted(found, key=lambda row: row["ended"])


def _folders(place: Path) -> list[Path]:
    """The run in a folder, or those below it."""
    if (place / "summary.json").is_file():
        return [place]
    return [one for one in place.glob("*") if one.is_dir() and not one.is_symlink()]


def _row(folder: Path) -> dict[str, Any] | None:
    """The table row of a run; `None` if a folder holds none."""
    from tcpsbed import results

    file = folder / "summary.json"
    if results.is_unfinished(folder):  # also one whose summary is there before its report
        return _UNKNOWN | {"folder": str(folder), "ended": folder.stat().st_mtime, "verdict": "unfinished"}
    return _ended(folder, file.stat().st_mtime) if file.is_file() else None


@lru_cache(MOST_KNOWN)
def _ended(folder: Path, ended: float) -> dict[str, Any]:
    """The row of a run that has a summary, written at this time."""
    from tcpsbed.errors import TcpsbedError
    from tcpsbed.views.folder import RunFolder

    row = _UNKNOWN | {"folder": str(folder), "ended": ended}
    try:
        summary = RunFolder(folder).summary
    except TcpsbedError:
        return row | {"verdict": "unreadable"}
    told = {"scenario": summary["name"], "world": summary["world"], "seed": summary["seed"]}
    amiss = (("ERROR", "errors"), ("ATTACKED", "attacked"), ("DISTURBED", "disturbances"))
    verdict = next((word for word, key in amiss if summary.get(key)), "ok")
    return row | told | {"duration_s": summary["duration_s"], "verdict": verdict}


def _text(rows: list[dict[str, Any]]) -> str:
    from tcpsbed.views import text
    from tcpsbed.views.markup import Column, words
    from tcpsbed.views.numbers import NONE, seconds

    columns = [
        words("ended"),
        *map(words, ("verdict", "scenario", "world")),
        Column("seed"),
        Column("duration"),
    ]
    return text.table(
        [*columns, words("folder")],
        [
            [
                time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["ended"])),
                *(row[key] or NONE for key in ("verdict", "scenario", "world")),
                NONE if row["seed"] is None else row["seed"],
                seconds(row["duration_s"]),
                row["folder"],
            ]
            for row in rows
        ],
    )


def open_page(
    folder: Annotated[
        Path,
        typer.Argument(metavar="[DIR]", help="Folder of a result.", autocompletion=result_folders),
    ] = Path("runs/latest"),
) -> None:
    """Opens the page of a result; see OPEN_HELP."""
    import webbrowser

    from tcpsbed import results
    from tcpsbed.errors import DataError
    from tcpsbed.views.folder import PAGES, open_folder

    kind = results.kind_of(folder)
    if kind not in PAGES:
        kind = results.RUN
    if kind == results.RUN:
        open_folder(folder)
    page = folder / PAGES[kind]
    if not page.is_file():
        again = f"tcpsbed report {folder}" if kind == results.RUN else "the command that made this result"
        raise DataError(f"has no {page.name}", file=folder, allowed=f"{again} writes it")
    print(page)
    try:
        webbrowser.get()
    except webbrowser.Error:
        print("tcpsbed: no browser found; open the file above in one", file=sys.stderr)
    else:
        webbrowser.open(page.resolve().as_uri())
