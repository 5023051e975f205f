"""The proxy between a user's own programs: what was set is delivered, to many clients, with and without root."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner
from watch import blocks, until

from tcpsbed.analysis.delivered import Margin
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.proxy import Proxy, forward, load, verdict
from tcpsbed.proxy.door import parse
from tcpsbed.proxy.profile import settings_of
from tcpsbed.views import programs

COMMAND = [sys.executable, "-m", "tcpsbed", "proxy"]
WAIT_S = 20.0


@contextmanager
def echo() -> Iterator[int]:
    """A UDP server that sends back what it gets; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.05)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    data, client = server.recvfrom(65536)
                    server.sendto(data, client)
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


@contextmanager
def client(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.connect(("127.0.0.1", port))
        found.settimeout(WAIT_S)
        yield found


def doors(*ports: int, kind: str = "udp") -> list:
    return [parse(f"0=127.0.0.1:{port}/{kind}") for port in ports]


def profile(**settings: str) -> object:
    return load("direct", settings_of(settings))


def test_what_is_set_is_delivered_both_ways():
    with echo() as port, Proxy(profile(delay="10 ms"), doors(port)) as running:
        with client(running.ports[0]) as talk:
            for _ in range(200):
                talk.send(b"hand")
                assert talk.recv(100) == b"hand"
        outcome = running.close()
    assert [row["way"] for row in outcome["doors"]] == ["near -> far", "far -> near"]
    for row in outcome["doors"]:
        assert (row["packets"], row["delivered"], row["lost"]) == (200, 200, 0)
        assert row["set_delay_ns"]["p50"] == pytest.approx(10e6, rel=0.002)
        assert row["delivered_delay_ns"]["p50"] == pytest.approx(10e6, abs=0.5e6)


def test_losses_are_those_of_the_model_and_the_same_again():
    lost = []
    for _ in range(2):
        with echo() as port, Proxy(profile(loss="20 %"), doors(port)) as running:
            with client(running.ports[0]) as talk:
                for _ in range(1000):
                    talk.send(b"hand")
                    time.sleep(0.0002)
                until(lambda r=running: sum(row["packets"] for row in r.snapshot()["doors"][:1]) == 1000)
            lost.append(running.close()["doors"][0]["lost"])
    assert 150 < lost[0] < 250
    assert lost[0] == lost[1], "the same seed loses the same packets"


@pytest.mark.beside
def test_many_clients_of_several_ports_get_their_own_answers():
    with ExitStack() as stack:
        servers = [stack.enter_context(echo()) for _ in range(2)]
        running = stack.enter_context(Proxy(profile(delay="2 ms"), doors(*servers)))
        talks = [stack.enter_context(client(running.ports[n % 2])) for n in range(40)]
        for n, talk in enumerate(talks):
            talk.send(f"client {n}".encode())
        assert [talk.recv(100).decode() for talk in talks] == [f"client {n}" for n in range(40)]
        until(lambda: running.snapshot()["clients"] == 40)


def test_the_network_changes_while_packets_are_under_way():
    with echo() as port:
        running = Proxy(profile(delay="300 ms"), doors(port))
        with running, client(running.ports[0]) as talk:
            talk.send(b"slow")
            until(lambda: running.snapshot()["doors"][0]["packets"] == 1)
            running.change(profile(delay="1 ms"))
            until(lambda: fast(talk))
            until(lambda: running.snapshot()["doors"][1]["delivered"] >= 2)
        assert running.close()["doors"][0]["lost"] == 0


def fast(talk: socket.socket) -> bool:
    """Whether a round trip is short by now."""
    begun = time.monotonic()
    talk.send(b"fast")
    while talk.recv(100) != b"fast":
        continue
    return time.monotonic() - begun < 0.15


@pytest.mark.beside
def test_a_stream_has_delay_and_rate():
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = profile(delay="20 ms", rate="4 Mbit/s")
        with Proxy(settings, doors(server.getsockname()[1], kind="tcp")) as running:
            with socket.create_connection(("127.0.0.1", running.ports[0])) as talk:
                talk.settimeout(WAIT_S)
                peer, _ = server.accept()
                with peer:
                    peer.settimeout(WAIT_S)
                    begun = time.monotonic()
                    talk.sendall(b"x" * 100_000)
                    talk.shutdown(socket.SHUT_WR)
                    got = b""
                    while data := peer.recv(65536):
                        got += data
                    took_s = time.monotonic() - begun
                    assert len(got) == 100_000
                    # 70 segments with 78 bytes of headers each at 4 Mbit/s, and the delay.
                    assert took_s >= (100_000 + 70 * 78) * 8 / 4e6 + 0.019
                    peer.sendall(b"back")
                    assert talk.recv(10) == b"back", "half-closed, the other half still works"
            row = running.close()["doors"][0]
            assert row["delivered_bytes"] == 100_000 and row["packets"] >= 70


@pytest.mark.beside
def test_nobody_listens_at_the_target_of_a_stream():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = Proxy(profile(delay="1 ms"), doors(port, kind="tcp"))
    with running, socket.create_connection(("127.0.0.1", running.ports[0])) as talk:
        talk.settimeout(WAIT_S)
        assert talk.recv(10) == b""


@pytest.mark.beside
def test_strangers_that_write_to_a_clients_socket_are_not_heard():
    with echo() as port, Proxy(profile(), doors(port)) as running, client(running.ports[0]) as talk:
        talk.send(b"hand")
        assert talk.recv(10) == b"hand"
        rows = Path("/proc/net/udp").read_text().splitlines()[1:]
        ports = {int(row.split()[1].split(":")[1], 16) for row in rows}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for other in ports - {port, running.ports[0], talk.getsockname()[1]}:
                stranger.sendto(b"?", ("127.0.0.1", other))
        talk.send(b"again")
        assert talk.recv(10) == b"again"
        assert running.close()["own"]["strangers"] >= 1


def packets(capture: Path) -> list[tuple[int, int]]:
    """Interface and stamp of each packet of a capture."""
    heads = [struct.unpack_from("<III", body) for kind, body in blocks(capture) if kind == 6]
    return [(interface, high << 32 | low) for interface, high, low in heads]


@pytest.mark.beside
def test_a_capture_has_every_packet_where_it_came_in_and_where_it_went_out(tmp_path):
    file = tmp_path / "both.pcapng"
    with echo() as port:
        running = Proxy(profile(delay="5 ms"), doors(port), capture=file)
        with running, client(running.ports[0]) as talk:
            for _ in range(3):
                talk.send(b"hand")
                talk.recv(10)
    found = packets(file)
    assert sorted(interface for interface, _ in found) == [0] * 6 + [1] * 6
    assert all(abs(stamp / 1e9 - time.time()) < 600 for _, stamp in found), "the wall clock"


@pytest.mark.beside
def test_the_command_tells_json_follows_its_file_and_ends_on_ctrl_c(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[links.path]\ndelay = "200 ms"\n')
    with echo() as port:
        command = [*COMMAND, "--profile", str(file), f"0=127.0.0.1:{port}", "--json", "--margin-ms", "1000"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        assert ready["event"] == "ready"
        with client(ready["ports"][0]["port"]) as talk:
            talk.send(b"hand")
            talk.recv(10)
            file.write_text('[links.path]\ndelay = "1 mss"\n')
            assert "links.path.delay" in told(child, "profile")["error"]
            file.write_text('[links.path]\ndelay = "1 ms"\n')
            assert told(child, "profile")["name"] == "mine"
            until(lambda: fast(talk))
        assert told(child, "now")["doors"][0]["packets"] >= 1
        child.send_signal(signal.SIGINT)
        lines = child.communicate(timeout=60)[0].strip().splitlines()
    end = json.loads(lines[-1])
    assert end["event"] == "end" and end["doors"][0]["delivered"] >= 2
    assert child.returncode == (0 if end["good"] else 1)


def told(child: subprocess.Popen[str], event: str) -> dict:
    assert child.stdout is not None
    for line in child.stdout:
        found = json.loads(line)
        if found["event"] == event:
            return dict(found)
    raise AssertionError(f"no {event}: {child.stderr.read() if child.stderr else ''}")


@pytest.mark.beside
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--profile"),
        (["--delay", "20 ms"], "PORT"),
        (["--delay", "20", "7000=127.0.0.1:7100"], "without a unit"),
        (["--profile", "ltee", "7000=127.0.0.1:7100"], "did you mean lte"),
        (["--delay", "1 ms", "--duration", "5", "0=127.0.0.1:9"], "--duration"),
    ],
)
def test_bad_input_ends_with_2_and_one_message(arguments, words):
    done = CliRunner().invoke(app, ["proxy", *arguments])
    assert done.exit_code == 2 and words in done.stderr


@pytest.mark.beside
def test_beyond_the_margin_it_is_marked_and_ends_with_1():
    with echo() as port:
        command = [
            *COMMAND,
            "--delay",
            "1 ms",
            f"0=127.0.0.1:{port}",
            "--margin-ms",
            "0.000001",
            "--duration",
            "3 s",
        ]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        listens = re.search(r"(\d+)/udp", child.stderr.readline())
        assert listens, "it listens"
        with client(int(listens[1])) as talk:
            for _ in range(150):
                talk.send(b"hand")
                time.sleep(0.001)
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 1, errors
    assert "NOT GOOD" in output and "margin 1e-06 ms" in output


@pytest.mark.beside
def test_streams_point_to_netns_for_what_they_cannot_have():
    command = [*COMMAND, "--delay", "1 ms", "--loss", "1 %", "0=127.0.0.1:9/tcp", "--duration", "0.1 s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "not loss" in done.stderr and "tcpsbed netns" in done.stderr


@pytest.mark.beside
def test_a_target_that_takes_no_connection_and_packets_that_never_come_out_are_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND, "--delay", "20 s", f"0=127.0.0.1:{port}/tcp", f"0=127.0.0.1:{port}/udp", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    ports = [row["port"] for row in json.loads(child.stdout.readline())["ports"]]
    with socket.create_connection(("127.0.0.1", ports[0])) as talk:
        assert talk.recv(10) == b""
    with client(ports[1]) as talk:
        talk.send(b"hand")
        until(lambda: any(row["packets"] for row in told(child, "now")["doors"]))
    child.send_signal(signal.SIGINT)
    end = json.loads(child.communicate(timeout=60)[0].strip().splitlines()[-1])
    assert not end["good"] and child.returncode == 1
    assert sorted(end["broken"]) == [
        "0/tcp to far: the target did not accept 1 connection: it refused, or did not answer",
        "0/udp to far: delivered none of 1 packet: 1 were still in flight at the end",
    ]


@pytest.mark.beside
def test_a_udp_port_at_whose_target_nobody_listens_is_told():
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND, "--delay", "1 ms", f"0=127.0.0.1:{port}/udp", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    here = json.loads(child.stdout.readline())["ports"][0]["port"]
    with client(here) as talk:
        for _ in range(10):
            talk.send(b"hand")
        until(lambda: any(row["delivered"] == 10 for row in told(child, "now")["doors"]))
    child.send_signal(signal.SIGINT)
    end = json.loads(child.communicate(timeout=60)[0].strip().splitlines()[-1])
    assert not end["good"] and child.returncode == 1
    assert len(end["broken"]) == 1 and "0/udp to far: " in end["broken"][0]
    assert "no program listened at its port" in end["broken"][0]


@pytest.mark.beside
def test_the_fixture_gives_delay_between_two_programs(emulated_network):
    with echo() as port:
        network = emulated_network(port, delay="30 ms")
        with client(network.ports[0]) as talk:
            begun = time.monotonic()
            talk.send(b"hand")
            talk.recv(10)
            assert time.monotonic() - begun >= 0.059


@pytest.mark.beside
def test_a_good_run_is_called_good_and_a_slow_one_is_not():
    spread = {"p50": 10_000, "p99": 100_000}
    row = {
        "door": "a",
        "way": "near -> far",
        "delivered": 1000,
        "error_ns": spread,
        "set_loss": 0,
        "delivered_loss": 0,
        "set_rate_bps": 1e6,
        "delivered_rate_bps": 0.995e6,
        "refused": 0,
        "unreached": 0,
        "packets": 1000,
        "lost": 0,
        "unsent": 0,
        "inside": 0,
    }
    outcome = {"doors": [row], "own": {}, "errors": []}
    assert verdict.broken(outcome, Margin(), {}) == []
    late = outcome | {"doors": [row | {"error_ns": {"p50": 60_000, "p99": 400_000}}]}
    assert len(verdict.broken(late, Margin(), {})) == 2
    lost = outcome | {"doors": [row | {"delivered_loss": 0.02}]}
    assert "lost 2.00%" in verdict.broken(lost, Margin(), {})[0]
    slow = outcome | {"doors": [row | {"delivered_rate_bps": 0.98e6}]}
    assert "delivered 980.0 kbit/s, set 1000.0 kbit/s (margin 1%)" in verdict.broken(slow, Margin(), {})[0]
    short = outcome | {"doors": [row | {"set_rate_bps": None, "delivered_rate_bps": None}]}
    assert verdict.broken(short, Margin(), {}) == []
    crowded = outcome | {"doors": [row | {"refused": 7}]}
    assert "closed 7 connections" in verdict.broken(crowded, Margin(), {})[0]
    silent = outcome | {"doors": [row | {"delivered": 0, "inside": 1000}]}
    assert "delivered none of 1000 packets: 1000 were still" in verdict.broken(silent, Margin(), {})[0]
    nothing = row | {"delivered": 0, "lost": 1000, "set_loss": 1, "delivered_loss": 1}
    assert verdict.broken(outcome | {"doors": [nothing]}, Margin(), {}) == []
    idle = outcome | {"doors": [row | {"delivered": 0, "packets": 0}]}
    assert verdict.judged(idle, Margin(), {}) == (None, [programs.PROVES_NOTHING])
    dropped = outcome | {"own": {"socket_drops": 3}}
    assert "3 datagrams" in verdict.broken(dropped, Margin(), {})[0]


def test_python_forwards_as_the_command_does() -> None:
    with (
        echo() as port,
        forward(f"0=127.0.0.1:{port}/udp", delay="10 ms") as running,
        client(running.ports[0]) as talk,
    ):
        begun = time.monotonic()
        talk.send(b"there and back")
        assert talk.recv(100) == b"there and back" and time.monotonic() - begun >= 0.02
        assert running.good is None and str(running).endswith("at work")
    assert running.good is not None and "there" not in str(running) and "delivered" in str(running)
    for wrong, said in (((), "found no port"), (("7000",), "7000")):
        with pytest.raises(ConfigError, match=said):
            forward(*wrong, delay="1 ms")
    with pytest.raises(ConfigError, match="found no network; allowed: profile="):
        forward("0=127.0.0.1:1/udp")
