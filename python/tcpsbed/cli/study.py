"""`tcpsbed study`: a blinded comparison with people at the browser console."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import MOST_RUNS, Force, may_draw
from tcpsbed.cli.page import CertificateFile, KeyFile, Listen, Port, listening, operated, told_of

if TYPE_CHECKING:
    from tcpsbed.console.server import Console
    from tcpsbed.lab.study.conductor import Conductor
    from tcpsbed.lab.study.plan import Study
    from tcpsbed.lab.study.ratings import Store
    from tcpsbed.studio.listening import Listening
    from tcpsbed.studio.subject import Subject

HELP = """Let people compare conditions at the browser console without knowing which is which.

\b
Examples:
  tcpsbed init --from study                writes study.toml
  tcpsbed study study.toml                 the next subject, or the one who had a break
  tcpsbed study study.toml --scripted 4    try it with scripts first
  tcpsbed study study.toml --results       the table so far

FILE names a scenario, a reference and conditions (overrides of the scenario). A subject practises, then meets the
conditions in an order of their own, each after the reference, and rates transparency, smoothness and overall
experience on five grades. Every rating is on the disk before the next question: Ctrl-C or a crash loses none, and the
same command goes on. tcpsbed docs study says more.
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
            "--subject",
            min=1,
            max=MOST_RUNS,
            help="Number of the subject [default: the next one].",
            show_default=False,
        ),
    ] = None,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    scripted: Annotated[
        int, typer.Option("--scripted", min=0, max=1000, help="Let so many scripts take part.")
    ] = 0,
    results: Annotated[
        bool, typer.Option("--results", help="Print the table so far, and nothing else.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the means.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Leads a subject through a study; see HELP."""
    from tcpsbed.lab.study import plan
    from tcpsbed.lab.study.ratings import Store
    from tcpsbed.results import growing

    if scripted and subject:
        raise typer.BadParameter("is for people; scripts are numbered from 1", param_hint="--subject")
    loaded = plan.load(file)
    folder = out or Path("studies") / (f"{loaded.name}-scripted" if scripted else loaded.name)
    may_draw(figure, force=force, reads=loaded.files)  # before anybody sits down
    where = listening(listen, port, certificate, key)
    if scripted and where.certificate:
        raise typer.BadParameter("found a page over TLS; allowed: on loopback", param_hint="--scripted")
    store = Store(folder, loaded.fingerprint, scripted=scripted > 0)
    if results:
        store.read()
    else:
        with growing(folder, "study", inputs=loaded.files), store.leading():
            one = subject or store.next_subject(len(loaded.conditions))
            people = range(1, scripted + 1) or [one]
            _lead_all(loaded, store, where, people, scripted=scripted > 0)
    if results or scripted or figure is not None:
        _tell(loaded, store, figure, scripted=scripted > 0)
    if not results:
        print(f"ratings: {store.folder / 'ratings.csv'}")


def _lead_all(
    loaded: Study, store: Store, where: Listening, subjects: Sequence[int], *, scripted: bool
) -> None:
    """Leads subjects, and writes the table whatever happens."""
    from tcpsbed.console.server import Console
    from tcpsbed.studio.subject import Subject

    try:
        with operated() as folder:
            served = Console(folder)
            page = Subject(where, served)
            page.start()
            try:
                for number in subjects:
                    _lead(loaded, store, page, served, number, scripted=scripted)
            finally:
                page.stop()
    finally:
        _write(loaded, store, scripted=scripted)


def _lead(
    loaded: Study, store: Store, page: Subject, served: Console, number: int, *, scripted: bool
) -> None:
    """One subject; the terminal shows the progress without conditions."""
    from tcpsbed.lab.study.conductor import Conductor
    from tcpsbed.lab.study.presentation import presenter

    def notify(told: dict[str, object]) -> None:
        served.notify(told)
        if told["phase"] == "rate":
            print(f"subject {number}: presentation {told['place']} of {told['of']}", file=sys.stderr)

    conductor = Conductor(loaded, store, number, presenter(loaded), notify, lambda: served.gone)
    served.answer = conductor.hear
    served.forget()
    print("\n".join(told_of(page, f"study: subject {number}")), flush=True)
    if not scripted:
        conductor.lead()
        return
    thread = threading.Thread(target=_answer, args=(served.address, number, conductor), daemon=True)
    thread.start()
    conductor.lead()
    thread.join(10.0)


def _answer(address: str, number: int, conductor: Conductor) -> None:
    """Lets a script answer; what stops it stops the study."""
    from tcpsbed.lab.study.scripted import ScriptedSubject

    try:
        ScriptedSubject(address, number).answer_all()
    except Exception as error:
        conductor.fail(error)


def _write(loaded: Study, store: Store, *, scripted: bool) -> None:
    from tcpsbed.lab.study import results

    results.write(store.folder, store.ratings, list(loaded.conditions), scripted=scripted)


def _tell(loaded: Study, store: Store, figure: Path | None, *, scripted: bool) -> None:
    from tcpsbed.lab.study import results

    print(results.table(store.ratings, list(loaded.conditions), scripted=scripted), end="")
    if figure is not None and not store.ratings:
        print(f"{figure}: nothing to draw, and not written", file=sys.stderr)
    elif figure is not None:
        from tcpsbed.drawing import saved

        drawn = results.figure(store.ratings, list(loaded.conditions), loaded.name, scripted=scripted)
        print(saved(drawn, figure))
