"""`tcpsbed reproduce`: published experiments repeated, with published values beside the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli import complete
from tcpsbed.cli.failures import FAILED, WRONG_INPUT, fail, guarded
from tcpsbed.cli.options import Cluster, Jobs, Quiet
from tcpsbed.runs.progress import Beat

HELP = """Run the experiments of a published work and compare.

\b
Examples:
  tcpsbed reproduce --list                    which works there are
  tcpsbed reproduce gokhale2017               table, figures and a page in reproduced/gokhale2017
  tcpsbed reproduce gokhale2017 --json        the rows as JSON: item, published, ours, within, reason, ...
  tcpsbed reproduce gokhale2017 --cluster tcp://head:8786
  tcpsbed reproduce all                       every work, except what takes minutes in real time (--list)

Each row gives the basis of our value (outcome, input or fitted), its tolerance and the values that would have failed. The
last line counts verdicts: only outcomes beside published values count as reproduced. Exit status 0 if every row is within
its tolerance or has an explanation of its difference; 1 if a row is "missed, unexplained".
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("reproduce", help=HELP)(guarded(reproduce))


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A work, or all.", show_default=False, autocompletion=complete.works
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the works.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Rows as JSON on standard output.")] = False,
    short: Annotated[bool, typer.Option("--short", help="Short sweeps, as the tests run them.")] = False,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the figures; a folder for each work in it."),
    ] = Path("reproduced"),
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Note about the run, kept in rows.json.")
    ] = "",
    jobs: Jobs = None,
    cluster: Cluster = None,
    quiet: Quiet = False,
) -> None:
    """Reproduces works; see HELP."""
    from tcpsbed.api.reproduce import reproduce as reproduced
    from tcpsbed.lab.reproduce import page
    from tcpsbed.lab.reproduce.works import IN_ALL, WORKS

    if listing:
        _list(as_json=as_json)
        return
    if name is None:
        fail("reproduce: NAME is missing; allowed: all, " + ", ".join(w.name for w in WORKS), WRONG_INPUT)
    rows: dict[str, list[dict[str, object]]] = {}
    verdicts: list[str] = []
    failed = False
    every = name == "all"
    silent = quiet or as_json
    for work in [work.name for work in IN_ALL] if every else [name]:
        with _alive(work, silent):
            found = reproduced(
                work,
                short=short,
                out=out,
                note=note,
                tell=_teller(silent),
                clock=not every,
                jobs=jobs,
                cluster=cluster,
            )
        rows[work] = [row.to_json() for row in found.rows]
        verdicts += [row.verdict for row in found.rows]
        failed |= bool(found.missed)
        if not silent:
            typer.echo(f"{found}\nfigures: {found.page}")
    if every and not silent:
        typer.echo(f"all works: {page.counted(verdicts)}")
    if as_json:
        typer.echo(json.dumps(rows if every else rows[name], indent=1))
    if failed:
        sys.exit(FAILED)


def _list(*, as_json: bool) -> None:
    from tcpsbed.lab.reproduce.works import WORKS

    if as_json:
        listed = [
            {"name": work.name, "reference": work.reference, "left_out_of_all": work.apart} for work in WORKS
        ]
        typer.echo(json.dumps(listed))
        return
    width = max(len(work.name) for work in WORKS)
    for work in WORKS:
        typer.echo(f"{work.name:{width}s} {work.reference}" + f" ({work.apart})" * bool(work.apart))


def _teller(silent: bool) -> Callable[[str], None]:
    """Prints each finished case: over the last one on a terminal, otherwise as a line."""
    if silent:
        return _silent
    return _say if sys.stderr.isatty() else partial(print, file=sys.stderr, flush=True)


@contextmanager
def _alive(name: str, silent: bool) -> Iterator[None]:
    """A line now and then where there is no terminal, also between two cases."""
    if silent or sys.stderr.isatty():
        yield
        return
    beat = Beat(lambda spent_s: print(f"{name}: {spent_s:.0f} s", file=sys.stderr, flush=True))
    try:
        yield
    finally:
        beat.stop()


def _silent(_: str) -> None:
    """Prints nothing."""


def _say(text: str) -> None:
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
