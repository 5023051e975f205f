"""`tcpsbed proxy` and `tcpsbed netns`: an emulated network between programs that are not ours."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.cli.options import Quiet, Sets
from tcpsbed.errors import ConfigError, TcpsbedError

if TYPE_CHECKING:
    from tcpsbed.proxy import Profile, Proxy
    from tcpsbed.proxy.verdict import Margin

LOOK_S = 0.25
"""Time between two looks at the profile, and two drawings."""
TOLD_S = 1.0
"""Time between two lines of `--json`."""

PROXY_HELP = """Put an emulated network between programs that are not ours: ports that hand on to their targets.

\b
Examples:
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100/udp
  tcpsbed proxy --delay "20 ms" --loss "1 %" 7000=127.0.0.1:7100
  tcpsbed proxy --profile mine.toml 7000=robot:7100/udp 7001=robot:7101/tcp --pcapng both.pcapng
  tcpsbed proxy --profile list

Clients connect to port 7000 here in place of 7100 there; each finds its own answers back. UDP gets everything that links
of a scenario can do; a TCP connection ends here and gets delay and rate (for the rest: tcpsbed netns). Works without root.
A profile file is read again when it changes. Ctrl-C ends it: then set is told against delivered, and the exit status is 1
if they differ by more than the margin. docs/proxy.md has recipes for ROS 2, WebRTC and LeRobot.
"""

NETNS_HELP = """Run a command behind an emulated network, in a network namespace; its exit status is passed on.

\b
Examples:
  tcpsbed netns --profile lte --far "iperf3 -s -1" -- iperf3 -c 10.77.0.2
  tcpsbed netns --delay "20 ms" --loss "1 %" --reach 7100/udp -- ./client 10.77.0.2 7100
  tcpsbed netns --profile wifi --far "ros2 run demo_nodes_cpp listener" -- ros2 run demo_nodes_cpp talker

The command is at 10.77.0.1 (TCPSBED_NEAR), the far side at 10.77.0.2 (TCPSBED_FAR): there another command runs, or ports
lead out to this computer. Every IP packet crosses the network, multicast too. Without root it happens in a user
namespace, where the kernel allows them. Nothing is left behind, however it ends.
"""

ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        help='A profile by name, or its file; "list" names them.',
        show_default=False,
    ),
]
Delay = Annotated[
    str | None,
    typer.Option("--delay", metavar="TIME", help="Delay of the link, each way.", show_default=False),
]
Loss = Annotated[
    str | None,
    typer.Option("--loss", metavar="SHARE", help="Independent loss, each way.", show_default=False),
]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="RATE", help="Rate of the link, each way.", show_default=False)
]
Pcapng = Annotated[
    Path | None,
    typer.Option(
        "--pcapng", metavar="FILE", help="Capture packets where they come in and go out.", show_default=False
    ),
]
LateMs = Annotated[
    float, typer.Option("--margin-ms", min=0, help="Most that the 99th percentile may be later than set.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("proxy", help=PROXY_HELP)(guarded(proxy))
    settings = {"allow_interspersed_args": False}
    app.command("netns", help=NETNS_HELP, context_settings=settings)(guarded(netns))


def proxy(
    ports: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS:]PORT=HOST:PORT[/udp|/tcp]…", help="Ports to hand on.", show_default=False
        ),
    ] = None,
    profile: ProfileName = None,
    delay: Delay = None,
    loss: Loss = None,
    rate: Rate = None,
    sets: Sets = None,
    pcapng: Pcapng = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="End by itself after this time.", show_default=False),
    ] = None,
    margin_ms: LateMs = 0.3,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object a line on standard output: ready, now, profile, end."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Runs a proxy; see PROXY_HELP."""
    from tcpsbed.config.units import duration_ns
    from tcpsbed.proxy import Proxy
    from tcpsbed.proxy.door import parse
    from tcpsbed.proxy.verdict import Margin

    if _listed(profile):
        return
    overrides = _overrides(sets, delay, loss, rate)
    chosen = _profile(profile, overrides)
    doors = [parse(text) for text in ports or ()]
    end_s = float("inf") if duration is None else _span(duration, duration_ns)
    margin = Margin(p99_ms=margin_ms)
    with _asked_to_end() as asked:
        session = Session(Proxy(chosen, doors, capture=pcapng), overrides, as_json=as_json, quiet=quiet)
        session.watch(asked, end_s)
        good = session.finish(margin)
    if not good:
        raise typer.Exit(FAILED)


def netns(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND…", help="What runs, after --.", show_default=False)
    ],
    profile: ProfileName = None,
    far: Annotated[
        str | None,
        typer.Option("--far", metavar="COMMAND", help="A command at the far side.", show_default=False),
    ] = None,
    reach: Annotated[
        list[str] | None,
        typer.Option(
            "--reach",
            metavar="PORT[=HOST:PORT][/udp|/tcp]",
            help="A port of the far side that leads out; may be repeated.",
            show_default=False,
        ),
    ] = None,
    delay: Delay = None,
    loss: Loss = None,
    rate: Rate = None,
    sets: Sets = None,
    pcapng: Pcapng = None,
    margin_ms: LateMs = 0.3,
    quiet: Quiet = False,
) -> None:
    """Runs a command behind an emulated network; see NETNS_HELP."""
    from tcpsbed.proxy import netns as namespaces
    from tcpsbed.proxy import verdict

    chosen = _profile(profile, _overrides(sets, delay, loss, rate))
    reaching = [namespaces.reach(text) for text in reach or ()]
    ended = namespaces.run(chosen, command, far=shlex.split(far or ""), reaching=reaching, capture=pcapng)
    if not quiet:
        print(verdict.told(ended.outcome, verdict.Margin(p99_ms=margin_ms)), file=sys.stderr)
    raise typer.Exit(ended.status)


def _listed(profile: str | None) -> bool:
    """Prints the profiles if they are asked for."""
    from tcpsbed.proxy import load, shipped

    if profile != "list":
        return False
    for name in shipped():
        print(f"{name:18} {load(name).description}")
    return True


def _overrides(sets: list[str] | None, delay: str | None, loss: str | None, rate: str | None) -> list[str]:
    from tcpsbed.proxy.profile import settings_of

    given = {"delay": delay, "loss": loss, "rate": rate}
    return [*(sets or ()), *settings_of({key: value for key, value in given.items() if value is not None})]


def _profile(name: str | None, overrides: list[str]) -> Profile:
    from tcpsbed.proxy import load
    from tcpsbed.proxy.profile import STRAIGHT

    if name is None and not overrides:
        raise ConfigError(
            "found nothing", key="--profile", allowed="a profile, or --delay, --loss, --rate, --set"
        )
    return load(name or STRAIGHT, overrides)


def _span(text: str, read: Any) -> float:
    from pydantic_core import PydanticCustomError

    try:
        return float(read(text)) / 1e9
    except PydanticCustomError as error:
        context = error.context or {}
        raise ConfigError(context["found"], key="--duration", allowed=context["allowed"]) from None


@contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """Notes Ctrl-C and a request to end: both are the usual end. A handler may take no lock, so it is a plain list."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Session:
    """A proxy on the command line: what it tells while it runs, and its profile, read again when its file changes."""

    def __init__(self, running: Proxy, overrides: list[str], *, as_json: bool, quiet: bool) -> None:
        self.proxy, self.overrides, self.as_json = running, overrides, as_json
        self.talks = not quiet and not as_json
        self.shown = self.talks and sys.stderr.isatty()
        self.stamp = self._stamp()
        ports = [
            {"port": port, "kind": door.kind, "target": f"{door.target[0]}:{door.target[1]}"}
            for door, port in zip(running.doors, running.ports, strict=True)
        ]
        self._tell("ready", profile=running.profile.name, ports=ports)
        for row in ports:
            self._say(f"{row['port']}/{row['kind']} → {row['target']}  through {running.profile.name}")
        self._note_streams()

    def watch(self, asked: list[int], end_s: float) -> None:
        """Until it is asked to end, or the time is over."""
        begun, told = time.monotonic(), time.monotonic()
        with _Screen(self.shown) as screen:
            while not asked and time.monotonic() - begun < end_s and not self.proxy.ended():
                time.sleep(LOOK_S)
                self._look()
                snapshot = self.proxy.snapshot()
                screen.draw(self.proxy.profile.name, snapshot)
                if time.monotonic() - told >= TOLD_S:
                    told = time.monotonic()
                    self._tell("now", **snapshot)

    def finish(self, margin: Margin) -> bool:
        """Ends it and tells what came of it; whether it was good."""
        from tcpsbed.proxy import verdict

        outcome = self.proxy.close()
        broken = verdict.broken(outcome, margin)
        self._tell("end", good=not broken, broken=broken, **outcome)
        if self.talks:
            print(verdict.told(outcome, margin))
        return not broken

    def _look(self) -> None:
        """Reads the profile again if its file has changed; one that is wrong changes nothing."""
        from tcpsbed.proxy import load

        if (stamp := self._stamp()) == self.stamp:
            return
        self.stamp = stamp
        try:
            self.proxy.change(load(self.proxy.profile.file, self.overrides))
        except TcpsbedError as error:
            self._tell("profile", error=str(error))
            print(f"tcpsbed: the profile stays as it was: {error}", file=sys.stderr)
            return
        self._tell("profile", name=self.proxy.profile.name)
        self._say(f"profile {self.proxy.profile.name} read again")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.proxy.profile.file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _note_streams(self) -> None:
        left = self.proxy.profile.left_out_of_streams()
        if left and any(door.kind == "tcp" for door in self.proxy.doors):
            self._tell("note", tcp_without=left)
            print(
                f"tcpsbed: tcp ports get delay and rate only, not {', '.join(left)}: a connection ends here, and segments "
                "that were lost nobody would see; tcpsbed netns has all of it",
                file=sys.stderr,
            )

    def _tell(self, event: str, **content: Any) -> None:
        if self.as_json:
            print(json.dumps({"event": event} | content), flush=True)

    def _say(self, line: str) -> None:
        if self.talks:
            print(line, file=sys.stderr)


class _Screen:
    """The live table on a terminal; nothing elsewhere."""

    def __init__(self, shown: bool) -> None:
        self.live: Any = None
        if shown:
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> _Screen:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def draw(self, profile: str, snapshot: dict[str, Any]) -> None:
        """Shows this moment."""
        if self.live is not None:
            self.live.update(table(profile, snapshot), refresh=True)


def table(profile: str, snapshot: dict[str, Any]) -> Any:
    """Rates, delays and losses of the last second, a row a port and direction."""
    from rich.table import Table

    from tcpsbed.report import numbers

    found = Table(
        title=f"{profile}  {snapshot['t_s']:.0f} s, clients: {snapshot['clients']}  (Ctrl-C ends it)"
    )
    for heading in ("port", "direction"):
        found.add_column(heading)
    for heading in ("packets/s", "rate", "delay p50 ms", "p99 ms", "lost/s", "in", "out", "lost"):
        found.add_column(heading, justify="right")
    for row in snapshot["doors"]:
        recent, quiet = row["recent_delay_ns"], row["rate_pps"] == 0
        spans = [numbers.NONE] * 2 if quiet else [f"{recent[key] / 1e6:.3f}" for key in ("p50", "p99")]
        counts = [numbers.count(row[key]) for key in ("recent_lost", "packets", "delivered", "lost")]
        found.add_row(
            row["door"], row["way"], f"{row['rate_pps']:.0f}", numbers.rate(row["rate_bps"]), *spans, *counts
        )
    return found
