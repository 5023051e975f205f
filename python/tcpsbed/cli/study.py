"""`tcpsbed study`: a blinded comparison with people at the browser console."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import guarded

if TYPE_CHECKING:
    from tcpsbed.console.server import Console
    from tcpsbed.study.conductor import Conductor
    from tcpsbed.study.plan import Study
    from tcpsbed.study.ratings import Store

HELP = """Let people compare conditions at the browser console without knowing which is which.

\b
Examples:
  tcpsbed study examples/study.toml                 the next subject, or the one who had a break
  tcpsbed study examples/study.toml --scripted 4    try it with scripts first
  tcpsbed study examples/study.toml --results       the table so far

FILE names a scenario, a reference and conditions (overrides of the scenario). A subject practises, then meets the
conditions in an order of their own, each after the reference, and rates transparency, smoothness and overall
experience on five grades. Every rating is on the disk before the next question: Ctrl-C or a crash loses none, and the
same command goes on. docs/study.md says more.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("study", help=HELP)(guarded(study))


def study(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Study in TOML.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder of the study [default: studies/NAME].", show_default=False
        ),
    ] = None,
    subject: Annotated[
        int | None,
        typer.Option(
            "--subject", min=1, help="Number of the subject [default: the next one].", show_default=False
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on loopback; 0 takes a free one.")
    ] = 0,
    scripted: Annotated[
        int, typer.Option("--scripted", min=0, max=1000, help="Let so many scripts take part.")
    ] = 0,
    results: Annotated[
        bool, typer.Option("--results", help="Print the table so far, and nothing else.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the means.", show_default=False)
    ] = None,
) -> None:
    """Leads a subject through a study; see HELP."""
    from tcpsbed.study import plan
    from tcpsbed.study.ratings import Store

    if scripted and subject:
        raise typer.BadParameter("goes with people; scripts are numbered from 1 on", param_hint="--subject")
    loaded = plan.load(file)
    folder = out or Path("studies") / (f"{loaded.name}-scripted" if scripted else loaded.name)
    store = Store(folder, loaded.fingerprint, scripted=scripted > 0)
    one = subject or store.next_subject(len(loaded.conditions))
    try:
        if not results:
            with _console(port) as served:
                for number in range(1, scripted + 1) if scripted else [one]:
                    _lead(loaded, store, served, number, scripted=scripted > 0)
    finally:
        _write(loaded, store, scripted=scripted > 0)
    if results or scripted or figure is not None:
        _tell(loaded, store, figure, scripted=scripted > 0)
    print(f"ratings: {store.folder / 'ratings.csv'}")


@contextmanager
def _console(port: int) -> Iterator[Console]:
    """A console that serves, and whose folder the runs find."""
    from tcpsbed.console.server import Console
    from tcpsbed.media.line import VARIABLE

    with tempfile.TemporaryDirectory(prefix="tcpsbed-study-") as folder:
        os.environ[VARIABLE] = folder  # for the node processes of the runs
        served = Console(Path(folder), port)
        served.start()
        try:
            yield served
        finally:
            served.stop()
            del os.environ[VARIABLE]


def _lead(loaded: Study, store: Store, served: Console, number: int, *, scripted: bool) -> None:
    """One subject, whose progress the terminal tells without a condition."""
    from tcpsbed.study.conductor import Conductor
    from tcpsbed.study.presentation import presenter

    def notify(told: dict[str, object]) -> None:
        served.notify(told)
        if told["phase"] == "rate":
            print(f"subject {number}: presentation {told['place']} of {told['of']}", file=sys.stderr)

    conductor = Conductor(loaded, store, number, presenter(loaded), notify, lambda: served.gone)
    served.answer = conductor.hear
    print(f"study: subject {number}: {served.address}", flush=True)
    if not scripted:
        conductor.lead()
        return
    thread = threading.Thread(target=_answer, args=(served.address, number, conductor), daemon=True)
    thread.start()
    conductor.lead()
    thread.join(10.0)


def _answer(address: str, number: int, conductor: Conductor) -> None:
    """Lets a script answer; what stops it stops the study."""
    from tcpsbed.study.scripted import ScriptedSubject

    try:
        ScriptedSubject(address, number).answer_all()
    except Exception as error:
        conductor.fail(error)


def _write(loaded: Study, store: Store, *, scripted: bool) -> None:
    from tcpsbed.study import results

    results.write(store.folder, store.ratings, list(loaded.conditions), scripted=scripted)


def _tell(loaded: Study, store: Store, figure: Path | None, *, scripted: bool) -> None:
    from tcpsbed.study import results

    print(results.table(store.ratings, list(loaded.conditions), scripted=scripted), end="")
    if figure is not None and store.ratings:
        print(results.figure(store.ratings, list(loaded.conditions), loaded.name, figure, scripted=scripted))
