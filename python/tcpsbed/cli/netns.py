"""`tcpsbed netns`: a command behind an emulated network."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from tcpsbed import results
from tcpsbed.cli import emulated
from tcpsbed.cli.emulated import Delay, Jitter, LateMs, Loss, Out, Pcapng, ProfileName, Rate, Screen, Session
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Force, Quiet, Sets, Sinks
from tcpsbed.cli.page import CertificateFile, KeyFile, Listen, NoBrowser, OnPage, Port
from tcpsbed.clocks import NETNS
from tcpsbed.errors import ConfigError, TcpsbedError

if TYPE_CHECKING:
    from tcpsbed.proxy.netns import Behind, Ended

NETNS_HELP = """Run a command behind an emulated network, in a network namespace; its exit status is passed on.

\b
Examples:
  tcpsbed netns --profile lte --far "iperf3 -s -1" -- iperf3 -c 10.77.0.2
  tcpsbed netns --delay "20 ms" --loss "1 %" --reach 7100/udp -- ./client 10.77.0.2 7100
  tcpsbed netns --profile wifi --far "ros2 run demo_nodes_cpp listener" -- ros2 run demo_nodes_cpp talker

The command is at 10.77.0.1 (TCPSBED_NEAR), the far side at 10.77.0.2 (TCPSBED_FAR): there another command runs (--far), or
ports forward to this computer (--reach). Every IP packet crosses the network, multicast too. Without root it happens in a
user namespace, where the kernel allows them. A profile file is read again when it changes. No process or device is left
behind, even by kill -9, and no file but what --out, --studio, --json and --pcapng ask for (kill -9 leaves a folder in /tmp):
--out the folder of a run, as tcpsbed run leaves one, and --studio also a page with sliders in the browser.
"""


COMMANDS = 'a command as a shell reads it, such as "iperf3 -s -1"'


Words = Annotated[
    list[str], typer.Argument(metavar="COMMAND…", help="Command to run, after --.", show_default=False)
]
Far = Annotated[
    str | None,
    typer.Option("--far", metavar="COMMAND", help="A command at the far side.", show_default=False),
]
Reach = Annotated[
    list[str] | None,
    typer.Option(
        "--reach",
        metavar="PORT[=HOST:PORT][/udp|/tcp]",
        help="A port of the far side that leads out; may be repeated.",
        show_default=False,
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="The live table on the terminal, below what the commands write.")
]
JsonLines = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="One JSON object a line into a file: ready, now, profile, end.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    settings = {"allow_interspersed_args": False}
    app.command("netns", help=NETNS_HELP, context_settings=settings)(guarded(netns))


def netns(
    command: Words,
    profile: ProfileName = None,
    far: Far = None,
    reach: Reach = None,
    delay: Delay = None,
    jitter: Jitter = None,
    loss: Loss = None,
    rate: Rate = None,
    sets: Sets = None,
    pcapng: Pcapng = None,
    margin_ms: LateMs = 0.3,
    live: Live = False,
    json: JsonLines = None,
    out: Out = None,
    studio: OnPage = False,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    no_browser: NoBrowser = False,
    sinks: Sinks = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Runs a command behind a network; see NETNS_HELP."""
    from tcpsbed.proxy import netns as namespaces
    from tcpsbed.proxy import verdict

    emulated.refuse_same({"--json": json, "--pcapng": pcapng, "--out": out})
    written = [file for file in (json, pcapng) if file is not None]
    for file in written:
        emulated.may_write(file, force=force, profile=profile)
    overrides = emulated.overrides_of(sets, delay, loss, rate, jitter)
    chosen = emulated.profile_of(profile, overrides)
    reaching = [namespaces.reach(text) for text in reach or ()]
    beyond = [] if far is None else _words(far)
    if not command[0]:
        raise ConfigError('found "", an empty command', key="COMMAND", allowed=COMMANDS)
    margin = emulated.margin_of(margin_ms)
    page = emulated.page_of(studio, port, listen, certificate, key, no_browser, sinks)
    with (
        _gone_if_refused(written),
        emulated.kept(out, page, chosen, [("ip", "ip")], NETNS, aside=True) as record,
    ):
        with ExitStack() as stack:
            told = None if json is None else stack.enter_context(_written(json))
            screen = stack.enter_context(Screen(live and sys.stderr.isatty(), lambda _: ""))
            say = screen.above if screen.live is not None else None
            behind = stack.enter_context(
                namespaces.Behind(
                    chosen,
                    command,
                    far=beyond,
                    reaching=reaching,
                    capture=pcapng,
                    say=say,
                    record=record.settings,
                )
            )
            session = Session(behind, overrides, told=told, talks=not quiet, record=record)
            ended = _watched(session, behind, screen)
            good, broken = verdict.judged(ended.outcome, margin, chosen.network)
            ending = verdict.ending(ended.outcome, margin, chosen.network)
            more = {key: ending[key] for key in ("settings", "remedies")}
            session.tell("end", good=good, broken=broken, **more, **verdict.shown(ended.outcome))
        for file in written:
            results.mark(file)
        report = record.finish(ended.outcome, margin)
        session.say(verdict.told(ended.outcome, margin, chosen.network))
        if report is not None:
            session.say(f"report: {report}")
    raise typer.Exit(ended.status)


@contextmanager
def _gone_if_refused(files: Sequence[Path]) -> Iterator[None]:
    """What a command that could not start has left of new files goes; what it left of files of ours stays ours."""
    new = [file for file in files if not file.exists()]
    try:
        yield
    except TcpsbedError:
        for file in files:
            if file in new:
                file.unlink(missing_ok=True)
            else:
                results.mark(file)
        raise


@contextmanager
def _written(file: Path) -> Iterator[IO[str]]:
    """A file that is written line by line."""
    try:
        lines = file.open("w", encoding="utf-8")
    except OSError as error:
        allowed = "a file in a folder where you may write, such as --json told.jsonl"
        raise ConfigError(f"cannot be written ({error.strerror})", file=file, allowed=allowed) from None
    with results.named(file), lines:
        yield lines


def _words(command: str) -> list[str]:
    try:
        words, wrong = shlex.split(command), ""
    except ValueError as error:
        words, wrong = [], f" ({error})"
    if not any(words[:1]):
        wrong = wrong or ", an empty command"
        raise ConfigError(f'found "{command}"{wrong}', key="--far", allowed=COMMANDS)
    return words


def _watched(session: Session, behind: Behind, screen: Screen) -> Ended:
    """Until the command has ended."""
    session.tell("ready", profile=behind.profile.name)
    while not behind.ended():
        session.rest(behind.wait)
        session.look(screen)
    return behind.close()
