"""Bad input to `tcpsbed proxy` and `tcpsbed netns`: one message that says what to change, and exit status 2."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner
from watch import until

from tcpsbed import proxy
from tcpsbed.analysis.delivered import Margin
from tcpsbed.cli.app import app
from tcpsbed.cli.emulated import Record, Screen, Session, overrides_of
from tcpsbed.proxy import door, verdict
from tcpsbed.views import programs

PORT = "[ADDRESS:]PORT=HOST:PORT"
UNREAD = "IPv6 extension headers, later fragments or encryption"
PROXY = {
    "an unknown profile": (["--profile", "ltee", "0=127.0.0.1:9"], "did you mean lte"),
    "a profile that is a folder": (["--profile", "/", "0=127.0.0.1:9"], "/"),
    "an unknown key of a profile": (
        ["--profile", "lte", "--set", "links.air.dely='1 ms'", "0=127.0.0.1:9"],
        "did you mean delay",
    ),
    "a loss of more than all": (["--loss", "120 %", "0=127.0.0.1:9"], '--loss: found "120 %"'),
    "a delay without a unit": (
        ["--delay", "5", "0=127.0.0.1:9"],
        'tcpsbed: --delay: found "5", a number without',
    ),
    "a jitter without a unit": (
        ["--jitter", "5", "0=127.0.0.1:9"],
        'tcpsbed: --jitter: mean: found "5", a number without',
    ),
    "a rate that is none": (["--rate", "x", "0=127.0.0.1:9"], 'tcpsbed: --rate: found "x"; allowed'),
    "a delay of a profile whose links have other names": (
        ["--profile", "lte", "--delay", "5 ms", "0=127.0.0.1:9"],
        '--delay: found a profile without the link "path"; allowed: --set \'links.grant.delay=',
    ),
    "a port alone": (["--delay", "1 ms", "7000"], PORT),
    "a port that is none": (["--delay", "1 ms", "x=127.0.0.1:9"], PORT),
    "a target without a port": (["--delay", "1 ms", "7000=127.0.0.1"], PORT),
    "an unknown kind": (
        ["--delay", "1 ms", "7000=127.0.0.1:9/sctp"],
        'with the unknown protocol "sctp"; allowed: ',
    ),
    "a port beyond all": (
        ["--delay", "1 ms", "70000=127.0.0.1:9"],
        "with the port to listen on 70000; allowed: a port",
    ),
    "a port of a thousand digits": (["--delay", "1 ms", f"{'7' * 5000}=127.0.0.1:9"], PORT),
    "a target at port 0": (
        ["--delay", "1 ms", "7000=127.0.0.1:0"],
        "with the target port 0; allowed: a target port from 1 to 65535",
    ),
    "a host without an address": (["--delay", "1 ms", "0=no.such.host.invalid:9"], "no.such.host.invalid"),
    "a host that no name can be": (
        ["--delay", "1 ms", f"0={'a' * 70}.invalid:9"],
        "an IP address, or a host name that this computer can resolve",
    ),
    "an address of another computer": (["--delay", "1 ms", "192.0.2.1:0=127.0.0.1:9"], "192.0.2.1:0"),
    "a capture nowhere": (
        ["--delay", "1 ms", "0=127.0.0.1:9", "--pcapng", "/no/such/folder/a.pcapng"],
        "/a.pcapng is in /no/such/folder, a folder that does not exist; allowed: a file in an existing folder",
    ),
    "a margin without an end": (
        ["--delay", "1 ms", "0=127.0.0.1:9", "--margin-ms", "inf"],
        "--margin-ms: found inf; allowed: a finite number of ms above 0, such as 0.3",
    ),
    "a margin that no run keeps": (
        ["--delay", "1 ms", "0=127.0.0.1:9", "--margin-ms", "0"],
        "--margin-ms: found 0; allowed: a finite number of ms above 0, such as 0.3",
    ),
}
BESIDE = {
    "delay": 'links.path.delay="30 ms"',
    "jitter": "links.path.jitter.mean=1 ms",
    "loss": "links.path = { backward = { loss = 0.1 } }",
    "rate": "links.path.forward.rate=9 Mbit/s",
}
"""What `--set` may not give beside an option, by its key."""
NETNS = {
    "a delay without a unit": (["--delay", "5"], '--delay: found "5", a number without a unit'),
    "a margin that no run keeps": (["--margin-ms", "0"], "--margin-ms: found 0; allowed: a finite number"),
    "a margin that is none": (["--margin-ms", "inf"], "--margin-ms: found inf; allowed: a finite number"),
    "a far command that is none": (["--far", ""], '--far: found "", an empty command; allowed: a command'),
    "a far command of an empty name": (
        ["--far", "''"],
        "--far: found \"''\", an empty command; allowed: a command",
    ),
    "a port without a name": (["--reach", ""], '--reach: found ""; allowed: a port'),
    "a profile without a name": (["--profile", ""], '--profile: found no profile ""'),
    "a far command that ends in a quotation": (["--far", "sh -c '"], "--far: found"),
    "an unknown kind": (["--reach", "7100/sctp"], PORT),
    "a port beyond all": (["--reach", "70000"], '--reach: found "70000=127.0.0.1:70000", with the port'),
    "a port that is none": (["--reach", "x"], PORT),
}


def refused(words: list[str], message: str) -> None:
    """Status 2, nothing on standard output, one line on standard error."""
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("tcpsbed: ") and message in line and len(line) < 400, line


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is asked for outside: those that the tests use are known to nobody."""
    known = socket.getaddrinfo

    def found(host: str, *more: Any, **named: Any) -> Any:
        if host.endswith(".invalid") and len(host) < 64:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.usefixtures("no_names")
@pytest.mark.parametrize("case", PROXY)
def test_the_proxy_says_what_to_change(case: str) -> None:
    words, message = PROXY[case]
    refused(["proxy", *words, "--duration", "0.1 s"], message)


def test_a_proxy_that_would_end_at_once_is_refused() -> None:
    refused(["proxy", "--delay", "1 ms", "0=127.0.0.1:9", "--duration", "0 s"], "--duration: found 0 s")


def test_a_proxy_through_which_nothing_passed_proves_nothing() -> None:
    words = ["proxy", "--delay", "1 ms", "0=127.0.0.1:9", "--duration", "0.1 s"]
    done = CliRunner().invoke(app, words)
    said, remedy = done.stdout.splitlines()[-2:]
    assert done.exit_code == 3 and said == programs.PROVES_NOTHING
    assert remedy.startswith("  → let the client send to the port of the proxy, not to that of the target")
    done = CliRunner().invoke(app, [*words, "--json"])
    end = json.loads(done.stdout.splitlines()[-1])
    assert (done.exit_code, end["good"], end["broken"]) == (3, None, [programs.PROVES_NOTHING])


@pytest.mark.parametrize(("unread", "note"), [(0, None), (1, "1 packet"), (70, "70 packets")])
def test_the_verdict_counts_packets_whose_port_cannot_be_read(unread: int, note: str | None) -> None:
    outcome = {"doors": [], "own": {"unread": unread}, "errors": []}
    said, remedy, *last = verdict.told(outcome, Margin(), {}).strip().splitlines()[-2 - bool(note) :]
    assert said == programs.PROVES_NOTHING and remedy.startswith(
        "  → let the client send to the port of the proxy"
    )
    assert last == ([f"not read: the port of {note}: {UNREAD}"] if note else [])


def test_packets_that_were_still_inside_are_counted() -> None:
    """What came in over a queue that grows is out, inside or lost."""
    with socket.socket(type=socket.SOCK_DGRAM) as target, socket.socket(type=socket.SOCK_DGRAM) as talk:
        target.bind(("127.0.0.1", 0))
        rate = proxy.load("direct", ['links.path.rate="100 kbit/s"'])
        with proxy.Proxy(rate, [door.parse(f"0=127.0.0.1:{target.getsockname()[1]}/udp")]) as running:
            for _ in range(50):
                talk.sendto(bytes(1000), ("127.0.0.1", running.ports[0]))
            until(lambda: running.snapshot()["doors"][0]["delivered"] > 0)
            outcome = running.close()
    row = outcome["doors"][0]
    assert row["packets"] == 50 and 0 < row["inside"] == 50 - row["delivered"] - row["lost"] - row["unsent"]
    head, _, cells = verdict.table(outcome).splitlines()[:3]
    at = head.index("inside")
    assert cells[: at + len("inside")].split()[-1] == str(row["inside"])


@pytest.mark.parametrize("case", NETNS)
def test_netns_says_what_to_change(case: str) -> None:
    words, message = NETNS[case]
    refused(["netns", "--delay", "1 ms", *words, "--", "true"], message)


@pytest.mark.parametrize("key", BESIDE)
def test_an_option_and_set_do_not_give_the_same_key(key: str) -> None:
    values = {"delay": "10 ms", "jitter": "2 ms", "loss": "1 %", "rate": "1 Mbit/s"}
    words = [f"--{key}", values[key], "--set", BESIDE[key]]
    said = f'--{key}: found "{values[key]}" beside --set {BESIDE[key]}; allowed: one of them: leave out --{key}, or'
    refused(["netns", *words, "--", "true"], said)
    refused(["proxy", *words, "0=127.0.0.1:9", "--duration", "0.1 s"], said)


def test_set_gives_other_keys_beside_an_option() -> None:
    sets = ["links.path.queue=9 packets", 'links.path={ delay = "3 ms" }', "seed=3"]
    assert overrides_of(sets, None, "1 %", None, None)[:3] == sets


def test_a_profile_that_is_deleted_is_said_and_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('links.path.delay = "1 ms"')
    running = SimpleNamespace(profile=proxy.load(file), snapshot=dict, change=lambda profile: None)
    session = Session(running, [], told=None, talks=False, record=Record())
    file.unlink()
    session.look(Screen(shown=False, note=str))
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"tcpsbed: the profile stays as it was: {file} does not exist any more; allowed: a profile in its place, which "
        "is then read"
    )


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_a_port_that_others_have_is_named(kind: str) -> None:
    what = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, what) as other:
        other.bind(("127.0.0.1", 0))
        if kind == "tcp":
            other.listen()
        port = other.getsockname()[1]
        words = ["proxy", "--delay", "1 ms", f"{port}=127.0.0.1:9/{kind}", "--duration", "0.1 s"]
        refused(words, f"127.0.0.1:{port}: Address already in use (os error 98); allowed: a free port")


def test_a_profile_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe[links]")
    refused(["proxy", "--profile", str(file), "0=127.0.0.1:9", "--duration", "0.1 s"], "mine.toml")
    file.write_text("[links.path\n")
    refused(["proxy", "--profile", str(file), "0=127.0.0.1:9", "--duration", "0.1 s"], "mine.toml")


@pytest.mark.parametrize(
    ("ports", "limit", "needed"),
    [(["0=127.0.0.1:9"], 1000, 1100), (["0=127.0.0.1:9/tcp"], 400, 500), (["0=127.0.0.1:9"], 1100, None)],
)
def test_too_few_open_files_for_all_clients_are_told_at_the_start(
    ports: list[str], limit: int, needed: int | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "proxy", "--delay", "1 ms", *ports, "--duration", "0.1 s", "-q"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit)),
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    said = f"tcpsbed: at most {limit} files may be open"
    assert (said in done.stderr, f"; allowed: ulimit -n {needed}" in done.stderr) == (needed is not None,) * 2
