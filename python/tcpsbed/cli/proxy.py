"""`tcpsbed proxy`: an emulated network between your own programs."""

from __future__ import annotations

import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpsbed import interrupts, results
from tcpsbed.cli import emulated
from tcpsbed.cli.emulated import Delay, Jitter, LateMs, Loss, Out, Pcapng, ProfileName, Rate, Screen, Session
from tcpsbed.cli.failures import DISTURBED, FAILED, guarded
from tcpsbed.cli.options import Force, Quiet, Sets, Sinks, span_s
from tcpsbed.cli.page import CertificateFile, KeyFile, Listen, NoBrowser, OnPage, Port
from tcpsbed.clocks import PROXY

if TYPE_CHECKING:
    from tcpsbed.analysis.delivered import Margin
    from tcpsbed.proxy import Proxy
    from tcpsbed.proxy.door import Door

UDP_FILES, TCP_FILES, SPARE_FILES = 1_000, 400, 100
"""Files that may be open: of all clients of UDP, of the connections of a TCP port with two each, and of all else."""

PROXY_HELP = """Put an emulated network between your own programs: ports that forward to their targets.

\b
Examples:
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100/udp
  tcpsbed proxy --delay "20 ms" --loss "1 %" 7000=127.0.0.1:7100
  tcpsbed proxy --profile mine.toml 7000=robot:7100/udp 7001=robot:7101/tcp --pcapng both.pcapng
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100 --studio
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100 --out runs/lte --duration "1 min"
  tcpsbed proxy --profile list

Clients connect to port 7000 here in place of 7100 there; each finds its own answers back. UDP gets everything that links
of a scenario can do; a TCP connection ends here and gets delay and rate (for the rest: tcpsbed netns). Works without root.
A profile file is read again when it changes. Ctrl-C ends the proxy and compares the delay delivered with the delay set. The
exit status is 1 if they differ by more than the margin, 3 if nothing passed. tcpsbed docs proxy has recipes for ROS 2,
WebRTC and LeRobot.

--out leaves the folder of a run, as tcpsbed run does, with a row for each packet. --studio also shows the network in the
browser, with sliders that change it.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("proxy", help=PROXY_HELP)(guarded(proxy))


def proxy(
    ports: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS:]PORT=HOST:PORT[/udp|/tcp]…", help="Ports to forward.", show_default=False
        ),
    ] = None,
    profile: ProfileName = None,
    delay: Delay = None,
    jitter: Jitter = None,
    loss: Loss = None,
    rate: Rate = None,
    sets: Sets = None,
    pcapng: Pcapng = None,
    out: Out = None,
    studio: OnPage = False,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    no_browser: NoBrowser = False,
    sinks: Sinks = None,
    force: Force = False,
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
    from tcpsbed.proxy import Proxy, verdict
    from tcpsbed.proxy.door import parse
    from tcpsbed.proxy.proxy import check

    if emulated.listed(profile):
        return
    overrides = emulated.overrides_of(sets, delay, loss, rate, jitter)
    chosen = emulated.profile_of(profile, overrides)
    doors = [parse(text) for text in ports or ()]
    end_s = float("inf") if duration is None else span_s(duration, "--duration")
    margin = emulated.margin_of(margin_ms)
    emulated.refuse_same({"--pcapng": pcapng, "--out": out})
    emulated.may_write(pcapng, force=force, profile=profile)
    page = emulated.page_of(studio, port, listen, certificate, key, no_browser, sinks)
    check(doors)
    told, talks = sys.stdout if as_json else None, not quiet and not as_json
    named = [(door.name, door.kind) for kind in ("udp", "tcp") for door in doors if door.kind == kind]
    with emulated.kept(out, page, chosen, named, PROXY, end_s=end_s, aside=as_json) as record:
        with _asked_to_end() as asked:
            _make_room(doors)
            running = Proxy(chosen, doors, capture=pcapng, record=record.settings)
            session = Session(running, overrides, told=told, talks=talks, record=record)
            _begin(session, running)
            _watch(session, running, asked, end_s)
            outcome = running.close()
        good, _ = verdict.judged(outcome, margin, chosen.network)
        report = record.finish(outcome, margin)
        _tell(session, outcome, margin, chosen.network, report)
    if pcapng is not None:
        results.mark(pcapng)
    if not good:
        raise typer.Exit(DISTURBED if good is None else FAILED)


@contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """Notes Ctrl-C and a request to end, the usual ends of a proxy, in a plain list: a signal handler may take no lock."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {
        number: signal.signal(number, note)
        for number in interrupts.ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_room(doors: list[Door]) -> None:
    """Raises the limit of open files as far as it may, and says where clients may not all have room."""
    files = SPARE_FILES + UDP_FILES * any(door.kind == "udp" for door in doors)
    files += sum(TCP_FILES for door in doors if door.kind == "tcp")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # where no process may have so many
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft != resource.RLIM_INFINITY and soft < files:
        print(
            f"tcpsbed: at most {soft} files may be open, and clients and connections may need {files}: beyond, new ones are"
            f" refused, of TCP as if the target did not answer; allowed: ulimit -n {files}",
            file=sys.stderr,
        )


def _begin(session: Session, running: Proxy) -> None:
    ports = [
        {"port": port, "kind": door.kind, "target": f"{door.target[0]}:{door.target[1]}"}
        for door, port in zip(running.doors, running.ports, strict=True)
    ]
    session.tell("ready", profile=running.profile.name, ports=ports)
    for row in ports:
        session.say(f"{row['port']}/{row['kind']} → {row['target']}  through {running.profile.name}")
    left = running.profile.left_out_of_streams()
    if left and any(door.kind == "tcp" for door in running.doors):
        session.tell("note", tcp_without=left)
        print(
            f"tcpsbed: tcp ports get delay and rate only, not {', '.join(left)}: a connection ends here, and segments "
            "that were lost nobody would see; tcpsbed netns has all of it",
            file=sys.stderr,
        )


def _watch(session: Session, running: Proxy, asked: list[int], end_s: float) -> None:
    """Until it is asked to end, or the time is over."""
    begun = time.monotonic()
    note = lambda snapshot: f", clients: {snapshot['clients']}  (Ctrl-C ends it)"  # noqa: E731
    with Screen(session.talks and sys.stderr.isatty(), note, lines=session.talks) as screen:
        while not asked and time.monotonic() - begun < end_s and not running.ended():
            session.rest(time.sleep)
            session.look(screen)


def _tell(
    session: Session, outcome: dict[str, Any], margin: Margin, network: dict[str, Any], report: Path | None
) -> None:
    """Prints the outcome, and where it is kept."""
    from tcpsbed.proxy import verdict

    good, broken = verdict.judged(outcome, margin, network)
    ending = verdict.ending(outcome, margin, network)
    more = {key: ending[key] for key in ("settings", "remedies")}
    session.tell("end", good=good, broken=broken, **more, **verdict.shown(outcome))
    if session.talks:
        print(verdict.told(outcome, margin, network))
        if report is not None:
            print(f"report: {report}", flush=True)
