"""The page of the studio beside a command: its options, its start, and its stay after the work."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from urllib.parse import urlsplit

import typer

from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from tcpsbed.results import Place
    from tcpsbed.scenarios import Scenario
    from tcpsbed.studio.feed import Feed
    from tcpsbed.studio.listening import Listening
    from tcpsbed.worlds import Steering

LOOK_S = 0.2
SHORTEST_S = 1.0
"""A run that takes less is not watched."""
MOST_SOCKET_BYTES = 107
"""Longest path of a Unix socket (Linux, unix(7): 108 with the zero behind it)."""

Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0 takes a free one.")]
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="ADDRESS",
        help="Where the page listens, such as 0.0.0.0; over TLS unless on loopback [default: 127.0.0.1].",
        show_default=False,
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="Certificate of the page, PEM [default: self-made].",
        show_default=False,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Private key of --certificate, PEM.", show_default=False),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Open no browser.")]
OnPage = Annotated[
    bool,
    typer.Option("--studio", help="Show it in the browser while it happens, at the address that is printed."),
]
AT_ONCE = (
    "tcpsbed: at --pace max a run in virtual time is over at once, and its page shows it afterwards; --pace 1 runs it as on "
    "a clock"
)
"""Said of a page that nobody can watch, however long the scenario."""
PACE = "Simulated seconds per second with --world virtual, such as 1 or 0.1, or max."


@dataclass(frozen=True)
class Page:
    """How a run is shown in the browser.

    Attributes
    ----------
    listening
        Where it listens.
    browser
        Whether a browser opens it.
    stays
        Whether it is there after the run, until Ctrl-C.
    sinks
        Where the live data goes besides, `NAME` or `NAME=TARGET` each.
    label
        The command, in front of what it prints.
    operator
        Whether the page has a pane for the run's operator.
    tour
        The guided tour beside it.
    """

    listening: Listening
    browser: bool = False
    stays: bool = True
    sinks: tuple[str, ...] = ()
    label: str = "studio"
    operator: bool = False
    tour: str = ""

    def feed(self, place: Place, steering: Steering, *, aside: bool = False, saves: str = "scenario") -> Feed:
        """Starts the page of a run and prints its address, with `aside` on standard error."""
        from tcpsbed.studio.feed import Feed

        shows: dict[str, Any] = {"tour": self.tour} if self.tour else {}
        if self.operator:
            shows["operator"] = _seen(steering.scenario)
        feed = Feed(
            place.path,
            place.shown,
            steering=steering,
            listening=self.listening,
            saves=saves,
            sinks=self.sinks,
            shows=shows,
        )
        self.announce(feed, aside=aside)
        for opened in feed.sinks:
            print(opened, file=sys.stderr if aside else sys.stdout, flush=True)
        return feed

    def announce(self, served: Addressed, *, aside: bool = False) -> None:
        """Prints the addresses of a page, and opens the first where there is a browser, else says what to do."""
        address = served.address
        told = told_of(served, self.label)
        print("\n".join(told), file=sys.stderr if aside else sys.stdout, flush=True)
        if not self.browser:
            return
        screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
        try:
            if screen and webbrowser.get().open(address):
                return
            why = "no browser could be opened" if screen else "no screen found (DISPLAY is not set)"
        except webbrowser.Error:
            why = "no browser found (Debian: apt-get install chromium)"
        port = urlsplit(address).port
        after = f" after: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE" if self.listening.local else ""
        print(
            f"{self.label}: {why}; open the address above in a browser on this machine, or on yours{after}",
            file=sys.stderr,
            flush=True,
        )

    def stay(self, served: Served) -> None:
        """Keeps a page until Ctrl-C."""
        from tcpsbed.interrupts import ends, interrupts

        if ends():
            return
        with interrupts() as stop:
            print(f"{self.label}: the page stays until Ctrl-C", file=sys.stderr, flush=True)
            while not stop.asked and served.alive:
                time.sleep(LOOK_S)


def _seen(scenario: Scenario) -> dict[str, Any]:
    """What the operator's pane cannot know by itself: frame rate, whose supervisor, whether regions can be marked."""
    rates = [
        flow.rate_hz for flow in scenario.flows.values() if flow.picture and flow.picture.display == "console"
    ]
    hooks = scenario.hooks.values()
    watched = [at for hook in hooks if hook.run == "supervisor" for at in hook.at or ()]
    marks = any(hook.run == "tcpsbed.console.hooks:Mark" for hook in hooks)
    return {"fps": next(iter(rates), None), "supervisor": next(iter(watched), None), "marks": marks}


@contextmanager
def operated() -> Iterator[Path]:
    """The folder in which the nodes of a run find their console."""
    from tcpsbed.media.line import VARIABLE
    from tcpsbed.worlds import memory

    with memory.folder() as folder:
        if (length := len(os.fsencode(folder / "console"))) > MOST_SOCKET_BYTES:
            raise ConfigError(
                f"{folder}: the path of a socket in it would have {length} bytes",
                key=memory.VARIABLE,
                allowed=f"at most {MOST_SOCKET_BYTES} bytes: {memory.VARIABLE}=/dev/shm",
            )
        os.environ[VARIABLE] = str(folder)
        try:
            yield folder
        finally:
            del os.environ[VARIABLE]


def listening(listen: str | None, port: int, certificate: Path | None, key: Path | None) -> Listening:
    """Where the page of a command listens; parameters and errors as of `studio.listening.listening`."""
    from tcpsbed.studio import listening

    return listening.listening(listen, port, certificate, key)


def told_of(served: Addressed, label: str) -> list[str]:
    """What is printed of a page: its address, that for those who only watch if it has one, and what its certificate is known
    by.
    """
    told = [f"{label}: {served.address}"]
    if served.watch:
        told.append(f"watch: {served.watch}")
    if served.fingerprint:
        told.append(f"certificate: SHA-256 {served.fingerprint}")
    return told


class Addressed(Protocol):
    """Something whose page has addresses."""

    @property
    def address(self) -> str:
        """For those who steer."""

    @property
    def watch(self) -> str:
        """For those who only watch; empty: there is none."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its certificate; empty without TLS."""


class Served(Protocol):
    """Something whose page a browser shows."""

    @property
    def alive(self) -> bool:
        """Whether it is there."""


def refuse_without(given: Mapping[str, object]) -> None:
    """Refuses options of a page where there is none.

    Raises
    ------
    typer.BadParameter
        If one of them is given.
    """
    for key, value in given.items():
        if value:
            raise typer.BadParameter("found no page; allowed: with --studio", param_hint=key)


def refuse_unwatchable(duration_s: float, speed: float | None) -> None:
    """Refuses a page for a run that is over before anybody sees it.

    Raises
    ------
    typer.BadParameter
        If it takes less than `SHORTEST_S`.
    """
    seconds = duration_s / (speed or 1.0)
    if seconds < SHORTEST_S:
        raise typer.BadParameter(
            f"found {seconds:g} s, too short to watch: the run would be over before a browser has opened its page; "
            f'allowed: {SHORTEST_S:g} s and more, such as --duration "10 s"; in virtual time also --pace 0.01. Without '
            "watching: tcpsbed run, then tcpsbed studio on the folder of the run",
            param_hint="duration",
        )


def speed_of(pace: str, world: str) -> float | None:
    """Simulated seconds a second; `None`: as fast as the machine can.

    Raises
    ------
    typer.BadParameter
        If it is no pace, or the world runs on the machine's clock.
    """
    if pace == "max":
        return None
    try:
        speed = float(pace)
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1000:
        raise typer.BadParameter(f'found "{pace}"; allowed: 0.001 to 1000, or max', param_hint="--pace")
    if world not in SIMULATED:
        raise typer.BadParameter(
            f"found {pace}: {world} runs on the machine's clock; allowed: --world virtual --pace {pace}",
            param_hint="--pace",
        )
    return speed
