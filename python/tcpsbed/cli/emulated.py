"""Shared parts of `tcpsbed proxy` and `tcpsbed netns`: profiles on the command line, and output during a run."""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tcpsbed import results
from tcpsbed.cli import complete
from tcpsbed.cli.colour import tables
from tcpsbed.cli.page import Page, listening, refuse_without
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.runs.progress import LINE_S

if TYPE_CHECKING:
    from tcpsbed.analysis.delivered import Margin
    from tcpsbed.proxy import Profile
    from tcpsbed.proxy.recorded import Recorder
    from tcpsbed.results import Place
    from tcpsbed.studio.feed import Feed

LOOK_S = 0.25
"""Polling interval of the profile, and interval of drawings."""
DRAIN_S = 0.05
"""Polling interval of rows."""
TOLD_S = 1.0
"""Time between two lines of `--json`."""

ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        help='A profile by name, or its file; "list" shows them with their numbers.',
        autocompletion=complete.links,
        show_default=False,
    ),
]
Delay = Annotated[
    str | None,
    typer.Option("--delay", metavar="TIME", help="Delay of the link, in each direction.", show_default=False),
]
Loss = Annotated[
    str | None,
    typer.Option("--loss", metavar="SHARE", help="Independent loss, in each direction.", show_default=False),
]
Jitter = Annotated[
    str | None,
    typer.Option(
        "--jitter",
        metavar="TIME",
        help="Mean of an exponential delay added to each packet, in each direction. Packets stay in order, so a "
        "late one delays those behind it.",
        show_default=False,
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATE",
        help="Rate of the link, in each direction; its queue is unlimited unless set (links.path.queue).",
        show_default=False,
    ),
]
Pcapng = Annotated[
    Path | None,
    typer.Option("--pcapng", metavar="FILE", help="Capture packets at entry and exit.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Leave a run folder [default: none; with --studio runs/NAME-DATE-TIME].",
        show_default=False,
    ),
]
LateMs = Annotated[
    float, typer.Option("--margin-ms", help="Fail if the p99 emulation error exceeds this many ms.")
]


def margin_of(p99_ms: float) -> Margin:
    """The margin of `--margin-ms`."""
    from tcpsbed.analysis.delivered import Margin

    if not 0 < p99_ms < math.inf:
        allowed = "a finite number of ms above 0, such as 0.3"
        raise ConfigError(f"found {p99_ms:g}", key="--margin-ms", allowed=allowed)
    return Margin(p99_ms=p99_ms)


def refuse_same(files: Mapping[str, Path | None]) -> None:
    """Raises `ConfigError` if two options name one file."""
    met: dict[Path, str] = {}
    for option, file in files.items():
        if file is not None and (other := met.setdefault(file.resolve(), option)) != option:
            raise ConfigError(f"found {file} at {other}, too", key=option, allowed="a file of its own")


def may_write(file: Path | None, *, force: bool, profile: str | None) -> None:
    """Raises `ConfigError` if what is written while the network runs has no place."""
    if file is None:
        return
    results.may_write(file, force=force, reads=[profile] if profile else [])
    if not file.parent.is_dir():
        found = f"is in {file.parent}, a folder that does not exist"
        allowed = f"a file in an existing folder; mkdir -p {shlex.quote(str(file.parent))} creates this one"
        raise ConfigError(found, file=file, allowed=allowed)


def listed(profile: str | None) -> bool:
    """Prints the profiles if they are asked for."""
    from tcpsbed.proxy import load, shipped
    from tcpsbed.views import text
    from tcpsbed.views.markup import words

    if profile != "list":
        return False
    found = {name: load(name) for name in shipped()}
    columns = [words(title) for title in ("profile", "rate", "delay", "mean jitter", "loss", "outage")]
    rows = [[name, *_both(one.directions()), _outage(one.outage())] for name, one in found.items()]
    print(tables(text.table(columns, rows)))
    print("near to far / far to near, where they differ. Where the numbers come from:")
    for name, one in found.items():
        print(f"  {name:18} {one.description}")
    return True


def _both(directions: tuple[dict[str, Any], dict[str, Any]]) -> list[str]:
    """Rate, delay, jitter and loss of both directions as words."""
    from tcpsbed.views import numbers

    def ms(value: float | None) -> str:
        return f"{value:.3g} ms" if value else numbers.NONE

    shown: dict[str, Callable[[float | None], str]] = {
        "rate_bps": lambda value: f"{value / 1e6:g} Mbit/s" if value else numbers.NONE,
        "delay_ms": ms,
        "jitter_ms": ms,
        "loss": lambda value: f"{100 * value:.2g} %" if value else numbers.NONE,
    }
    pairs = ([tell(one[key]) for one in directions] for key, tell in shown.items())
    return [" / ".join(dict.fromkeys(pair)) for pair in pairs]


def _outage(found: tuple[float, float] | None) -> str:
    """An outage and its period as words."""
    return f"{found[0]:g} ms every {found[1] / 1e3:g} s" if found else "–"


def overrides_of(
    sets: list[str] | None, delay: str | None, loss: str | None, rate: str | None, jitter: str | None
) -> list[str]:
    """All overrides of the profile: an option and `--set` may not give the same key."""
    from tcpsbed.scenarios.origin import option

    given = {"delay": delay, "loss": loss, "rate": rate}
    for key, value in (given | {"jitter": jitter}).items():
        if value is not None:
            _refuse_both(key, value, sets or ())
    named = [option(key, f"links.path.{key}", value) for key, value in given.items() if value is not None]
    if jitter is not None:
        law = {"kind": "exponential", "mean": jitter}
        named.append(option("jitter", "links.path.jitter", jitter, law))
    return [*(sets or ()), *named]


def _refuse_both(key: str, value: str, sets: Sequence[str]) -> None:
    """Raises `ConfigError` if `--set` gives what an option gives, in one direction or in both."""
    from tcpsbed.scenarios.load import assigned

    for text in sets:
        path: Any = assigned(text)
        for name in ("links", "path"):
            path = path.get(name) if isinstance(path, dict) else None
        ways = [path, path.get("forward"), path.get("backward")] if isinstance(path, dict) else []
        if any(isinstance(way, dict) and key in way for way in ways):
            allowed = f"one of them: leave out --{key}, or --set {shlex.quote(text)}"
            raise ConfigError(f'found "{value}" beside --set {text}', key=f"--{key}", allowed=allowed)


def profile_of(name: str | None, overrides: list[str]) -> Profile:
    """The profile that is asked for."""
    from tcpsbed.proxy import load
    from tcpsbed.proxy.profile import STRAIGHT

    if name is None and not overrides:
        raise ConfigError(
            "is missing",
            key="--profile",
            allowed="a profile, such as --profile lte, or one of --delay, --jitter, --loss, --rate, --set",
        )
    return load(STRAIGHT if name is None else name, overrides)


class Running(Protocol):
    """An emulated network at work."""

    profile: Profile

    def snapshot(self) -> dict[str, Any]:
        """Counts so far, rates and delays of the last second."""

    def start_ns(self) -> int | None:
        """When its time was 0 (CLOCK_MONOTONIC); `None` before that."""

    def event(self, line: dict[str, Any], network: dict[str, Any]) -> None:
        """Asks for an event, after which the network is this one."""

    def change(self, profile: Profile, event: int | None = None) -> None:
        """Puts another profile in the place of the present one."""


def page_of(
    studio: bool,
    port: int,
    listen: str | None,
    certificate: Path | None,
    key: Path | None,
    no_browser: bool,
    sinks: Sequence[str] | None,
) -> Page | None:
    """The page that is asked for.

    Raises
    ------
    typer.BadParameter
        If there is none, but something is said of it.
    """
    if not studio:
        about = {"--port": port, "--listen": listen, "--certificate": certificate, "--key": key}
        refuse_without(about | {"--no-browser": no_browser, "--sink": sinks})
        return None
    where = listening(listen, port, certificate, key)
    return Page(where, browser=not no_browser, stays=sys.stdout.isatty(), sinks=tuple(sinks or ()))


class Record:
    """The run folder of an emulated network, and its page, where there are any; see `kept`."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.recorder: Recorder | None = None
        self.feed: Feed | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """What the native module is to record."""
        return None if self.recorder is None else self.recorder.settings

    def finish(self, outcome: dict[str, Any], margin: Margin) -> Path | None:
        """Analyses what was recorded; the report, as the user knows it."""
        if self.recorder is None or self.place is None:
            return None
        from tcpsbed.runs import session
        from tcpsbed.studio import freeze

        session.sum_up(self.place.path, self.recorder.finish(outcome, margin))
        self.place.keep = True
        return self.place.told(freeze.write(self.place.path))


@contextmanager
def kept(
    out: Path | None,
    page: Page | None,
    profile: Profile,
    doors: Sequence[tuple[str, str]],
    world: str,
    *,
    end_s: float = math.inf,
    aside: bool = False,
) -> Iterator[Record]:
    """The record of an emulated network while it is at work: a folder with `--out` and always with a page, else none.

    The page stays after the folder is whole.
    """
    record = Record()
    if out is None and page is None:
        yield record
        return
    from tcpsbed.proxy.recorded import recording
    from tcpsbed.runs import session

    with ExitStack() as stays:
        with (
            session.named_place(f"{world}-{profile.file.stem}", out, [profile.file]) as record.place,
            recording(record.place, profile, doors, world, end_s) as record.recorder,
        ):
            if page is not None:
                steering = record.recorder.steering
                feed = page.feed(record.place, steering, aside=aside, saves="profile")
                record.feed = stays.enter_context(feed)
            yield record
        if record.feed is not None and page is not None:
            record.feed.over(record.place.shown)
            if page.stays:
                page.stay(record.feed)


class Session:
    """An emulated network on the command line: its output, and its profile, read again when its file changes.

    Parameters
    ----------
    running : Running
        The network.
    overrides : list of str
        Settings that the command line adds to the profile.
    told : file, optional
        Where events go, one JSON object a line.
    talks : bool
        Whether changes of the profile are said on standard error.
    record : Record
        What is kept of it.
    """

    def __init__(
        self,
        running: Running,
        overrides: list[str],
        *,
        told: IO[str] | None,
        talks: bool,
        record: Record,
    ) -> None:
        self.running, self.overrides, self.told, self.talks = running, overrides, told, talks
        self.record = record
        self.stamp = self._stamp()
        self.last = time.monotonic()

    def rest(self, idle: Callable[[float], None]) -> None:
        """Waits until the next look, by `idle` where nothing is recorded: else events and rows are passed on meanwhile."""
        recorder = self.record.recorder
        if recorder is None:
            idle(LOOK_S)
            return
        end = time.monotonic() + LOOK_S
        while time.monotonic() < end:
            recorder.steering.wait(DRAIN_S)
            idle(0.0)
            recorder.turn(self.running, self.record.feed)

    def look(self, screen: Screen) -> None:
        """One look at profile and network."""
        self._read_again()
        snapshot = self.running.snapshot()
        if self.record.recorder is not None:
            self.record.recorder.seconds.note(snapshot)
        screen.draw(self.running.profile.name, snapshot)
        if time.monotonic() - self.last >= TOLD_S:
            self.last = time.monotonic()
            self.tell("now", **snapshot)

    def _read_again(self) -> None:
        """Reads the profile again if its file has changed; one that is wrong changes nothing."""
        from tcpsbed.proxy import load

        if (stamp := self._stamp()) == self.stamp:
            return
        self.stamp = stamp
        try:
            file = self.running.profile.file
            if stamp is None:
                raise ConfigError(
                    "does not exist any more", file=file, allowed="a profile in its place, which is then read"
                )
            if not file.stat().st_size:  # an editor is about to write it
                raise ConfigError("is empty", file=file, allowed="a link, such as [links.path]")
            self._change(load(file, self.overrides))
        except (TcpsbedError, OSError) as error:
            self.tell("profile", error=str(error))
            print(f"tcpsbed: the profile stays as it was: {error}", file=sys.stderr)
            return
        self.tell("profile", name=self.running.profile.name)
        self.say(f"profile {self.running.profile.name} read again")

    def _change(self, profile: Profile) -> None:
        recorder, feed = self.record.recorder, self.record.feed
        if recorder is None:
            self.running.change(profile)
            return
        told = recorder.change(self.running, profile)
        if feed is not None:
            from tcpsbed.scenarios import dump

            feed.happened(told, dump(recorder.scenario))

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.running.profile.file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def tell(self, event: str, **content: Any) -> None:
        """Writes an event."""
        if self.told is not None:
            print(json.dumps({"event": event} | content), file=self.told, flush=True)

    def say(self, line: str) -> None:
        """Prints something for the user."""
        if self.talks:
            print(line, file=sys.stderr)


class Screen:
    """The live table on a terminal; elsewhere nothing, or a line now and then.

    Parameters
    ----------
    shown : bool
        Whether it is shown.
    note : callable
        What its title says beside profile and time.
    lines : bool
        Whether there are lines where it is not shown.
    """

    def __init__(self, shown: bool, note: Callable[[dict[str, Any]], str], *, lines: bool = False) -> None:
        self.live: Any = None
        self.note, self.lines, self.said = note, lines and not shown, time.monotonic()
        if shown:
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> Screen:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def draw(self, profile: str, snapshot: dict[str, Any]) -> None:
        """Shows the current state."""
        if self.live is not None:
            title = f"{profile}  {snapshot['t_s']:.0f} s{self.note(snapshot)}"
            self.live.update(table(title, snapshot), refresh=True)
        elif self.lines and time.monotonic() - self.said >= LINE_S:
            self.said = time.monotonic()
            print(line(snapshot), file=sys.stderr, flush=True)

    def above(self, line: str) -> None:
        """Shows a line above the table."""
        self.live.console.print(line, markup=False, highlight=False, soft_wrap=True)


def line(snapshot: dict[str, Any]) -> str:
    """The last second of all ports and directions in a line."""
    from tcpsbed.views import numbers

    total = {
        key: sum(row[key] for row in snapshot["doors"]) for key in ("rate_pps", "rate_bps", "recent_lost")
    }
    shown = (
        f"{total['rate_pps']:.0f} packets/s, {numbers.rate(total['rate_bps'])}, {total['recent_lost']} lost/s"
    )
    return f"{snapshot['t_s']:.0f} s: {shown}"


def table(title: str, snapshot: dict[str, Any]) -> Any:
    """Rates, delays and losses of the last second, a row a port (or service) and direction."""
    from rich.table import Table

    from tcpsbed.proxy.verdict import rows
    from tcpsbed.views import numbers

    found = Table(title=title)
    for heading in ("port", "direction"):
        found.add_column(heading)
    for heading in ("packets/s", "rate", "delay p50 ms", "p99 ms", "lost/s", "in", "out", "inside", "lost"):
        found.add_column(heading, justify="right")
    for row in rows(snapshot):
        recent, quiet = row["recent_delay_ns"], row["rate_pps"] == 0
        spans = [numbers.NONE] * 2 if quiet else [f"{recent[key] / 1e6:.3f}" for key in ("p50", "p99")]
        counts = [
            numbers.count(row[key]) for key in ("recent_lost", "packets", "delivered", "inside", "lost")
        ]
        found.add_row(
            row["door"], row["way"], f"{row['rate_pps']:.0f}", numbers.rate(row["rate_bps"]), *spans, *counts
        )
    return found
