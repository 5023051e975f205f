"""Datagrams of strangers at the sockets of a real run: the run goes on, counts them and says so."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from again import in_time
from real_run import DELIVERED, NETWORK, Started, chain, rows, started, summary

DATAGRAMS = 2000
SEND_S, RUN_S = 1.0, 4.0
"""Length of the attack, and of the run that it is in."""
ECHO = 'echo = { points = "all", period = "5 ms" }\nsync = "50 ms"\n'
REPLY = bytes([0xEC]) + b"TCE" + bytes([1, 0, 0, 0])
CLOCK = bytes([0xCC]) + b"TCC" + bytes([1])
FORGED = 0x7FFF_0000
"""Numbers that no honest echo of a run has."""


def ports(pid: int) -> list[int]:
    """UDP ports of a process on the IPv4 loopback address."""
    owned = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = []
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        words = line.split()
        address, port = words[1].split(":")
        if f"socket:[{words[9]}]" in owned and address == "0100007F":
            found.append(int(port, 16))
    return found


def throw(run: Started, victims: list[str], datagrams: list[bytes]) -> int:
    """Sends datagrams from a stranger's socket, spread over all ports of some nodes and over a second."""
    targets = [port for node in victims for port in ports(run.nodes[node])]
    assert targets, "a node has no socket"
    begun = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for i, datagram in enumerate(datagrams):
            stranger.sendto(datagram, ("127.0.0.1", targets[i % len(targets)]))
            ahead = begun + SEND_S * (i + 1) / len(datagrams) - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
    return len(datagrams)


def sample(flow: int, index: int, flags: int = 0, payload: bytes = bytes(64)) -> bytes:
    """A datagram that looks like a sample (crates/tcps-wire/src/header.rs)."""
    return struct.pack(">BBHIqIHH", 1, flags, flow, index, 10**9, len(payload), 0, 1) + payload


def reply(number: int) -> bytes:
    """A forged answer to an echo command."""
    return REPLY + struct.pack(">HHIqq", 3, 0, FORGED + number, 0, 10**12)


def crafted(rng: random.Random) -> Iterator[bytes]:
    """Random bytes, and all formats: whole, cut, with changed bits, and empty."""
    while True:
        i = rng.randrange(1 << 16)
        whole = [
            rng.randbytes(rng.randrange(0, 1400)),
            sample(rng.randrange(4), i),
            sample(0, i, rng.randrange(256)),
            sample(1, i, 0, rng.randbytes(rng.randrange(0, 1200))),
            reply(i),
            CLOCK + rng.randbytes(31),
        ]
        yield from whole
        for datagram in whole:
            yield datagram[: rng.randrange(len(datagram) + 1)]
            changed = bytearray(datagram or b"\0")
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            yield bytes(changed)
        yield b""


def attacked(
    folder: Path, text: str, victims: list[str], datagrams: list[bytes], nodes: int
) -> tuple[Started, str]:
    """A run during which strangers throw datagrams at nodes; it must end well."""
    with started(folder, text, nodes) as run:
        throw(run, victims, datagrams)
        in_time = run.command.poll() is None and run.run_time_s("node0") < RUN_S - 0.5
        status, screen, errors = run.finish()
    assert status == 0, errors + screen
    assert summary(run.out)["errors"] == []
    assert in_time, f"all were thrown within {RUN_S:g} s"
    return run, screen


def assert_unharmed(run: Started) -> None:
    """Every honest sample arrived once and unchanged."""
    for flow in summary(run.out)["flows"].values():
        # Samples of the last second may be on their way where a loop stalls at the end.
        assert flow["lost"] == 0 and flow["sent"] > 1000
        assert flow["delivered"] == flow["sent"] - flow["in_flight"]
        assert flow["duplicated"] == flow["duplicates_dropped"] == 0
    found = rows(run.out)
    delivered = found[found["kind"] == DELIVERED]
    assert set(delivered["size"]) == {64}
    assert delivered["index"].max() < 1000 * RUN_S


def assert_counted(run: Started) -> None:
    """Nodes have counted all datagrams of strangers, by whichever door they came."""
    told = summary(run.out)
    with in_time(told["disturbances"]):
        assert sum(node["strangers"] + node["asides_refused"] for node in told["nodes"]) == DATAGRAMS


@pytest.fixture
def garbage() -> list[bytes]:
    """A bounded lot of crafted datagrams, the same each time."""
    source = crafted(random.Random(20))
    return [next(source) for _ in range(DATAGRAMS)]


def test_nodes_refuse_and_count_strangers(tmp_path: Path, garbage: list[bytes]) -> None:
    text = chain(f"{RUN_S:g} s", more="[measure]\n" + ECHO)
    run, screen = attacked(tmp_path, text, ["node0", "node1", "node2"], garbage, 3)
    assert_unharmed(run)
    assert_counted(run)
    told = [text for text in summary(run.out)["disturbances"] if "from strangers" in text]
    assert len(told) == 3, "each node tells"
    page = (run.out / "report.html").read_text()
    assert all(f"DISTURBED: {text}" in screen and text in page for text in told)


def test_the_emulator_carries_nothing_of_strangers(tmp_path: Path, garbage: list[bytes]) -> None:
    text = chain(f"{RUN_S:g} s", more=NETWORK + ECHO)
    run, _ = attacked(tmp_path, text, ["emulator"], garbage, 4)
    assert_unharmed(run)
    assert_counted(run)


def test_forged_echoes_and_clock_exchanges_change_no_measurement(tmp_path: Path) -> None:
    text = chain(f"{RUN_S:g} s", more="[measure]\n" + ECHO)
    # A clock answer that is right but for its sender would move the clock by a second.
    clock = CLOCK + bytes([2]) + bytes(2) + struct.pack(">Iqqq", 7, 10**9, 2 * 10**9, 2 * 10**9)
    forged = [reply(i) if i % 2 else clock[:36] for i in range(DATAGRAMS)]
    run, _ = attacked(tmp_path, text, ["node0", "node1", "node2"], forged, 3)
    assert_unharmed(run)
    assert_counted(run)
    found = rows(run.out)
    echoes = found[(found["kind"] >= 6) & (found["kind"] <= 8)]
    assert len(echoes) > 100
    assert (echoes["index"] < FORGED).all(), "a forged answer was measured"
    for point in summary(run.out)["echo"]["kinematic"]["points"]:
        assert point["round_trip_ms"]["p50"] < 50
    for line in summary(run.out)["clocks"]:
        assert abs(line["offset_ms"]) < 1
