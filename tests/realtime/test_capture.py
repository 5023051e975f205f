"""Datagrams of a real run as a capture: all of them, in order, readable for others, also after a node was killed."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from real_run import NETWORK, chain, rows, started, whole
from watch import blocks

pytestmark = pytest.mark.beside

MEASURE = 'echo = { points = "all", period = "20 ms" }\nsync = "50 ms"\nrecords = "packets"\n'
NODES = ["ms", "edge", "ss"]
COMING, LEAVING = 1, 2
FIRST_PORT, ASIDE_PORT = 47000, 47999
TRANSMIT, RECEIVE = 16, 17
"""Kinds of the rows of packets."""
INTERFACE, PACKET = 1, 6
"""Types of blocks."""


@dataclass(frozen=True)
class Seen:
    """A packet of a capture: when, at which node, in which direction, from and to which node and port."""

    time_ns: int
    node: int
    direction: int
    source: int
    target: int
    port: int
    payload: bytes


def packets(capture: Path) -> list[Seen]:
    """The packets of a capture in its order."""
    found = []
    for kind, body in blocks(capture):
        if kind == PACKET:
            node, high, low, length, _ = struct.unpack_from("<IIIII", body)
            frame = body[20 : 20 + length]
            options = body[20 + length + -length % 4 :]
            code, size, direction = struct.unpack_from("<HHI", options)
            assert (code, size) == (2, 4)
            source, target = frame[29] - 1, frame[33] - 1
            port = struct.unpack_from(">H", frame, 36)[0]
            found.append(Seen(high << 32 | low, node, direction, source, target, port, frame[42:]))
    return found


def interfaces(capture: Path) -> list[str]:
    """Names of the interfaces."""
    bodies = [body for kind, body in blocks(capture) if kind == INTERFACE]
    return [body[12 : 12 + struct.unpack_from("<H", body, 10)[0]].decode() for body in bodies]


def channel_packets(found: np.ndarray, kind: int, node: int) -> int:
    """Packets on channels that a node tells of in its rows."""
    return int(((found["kind"] == kind) & (found["node"] == node)).sum())


def test_every_datagram_of_every_node_is_in_the_capture(tmp_path: Path) -> None:
    summary, _ = whole(tmp_path, chain("2 s", more=NETWORK + MEASURE))
    assert summary["errors"] == []
    capture, told = tmp_path / "out" / "packets.pcapng", rows(tmp_path / "out")
    assert interfaces(capture) == NODES
    seen = packets(capture)
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(seen)), "out of order"
    for node in range(3):
        here = [p for p in seen if p.node == node]
        assert all((p.source if p.direction == LEAVING else p.target) == node for p in here)
        for direction, kind in ((LEAVING, TRANSMIT), (COMING, RECEIVE)):
            on_channels = [p for p in here if p.direction == direction and p.port != ASIDE_PORT]
            assert len(on_channels) == channel_packets(told, kind, node)
    assert len(seen) > 2000
    assert_joined(seen)
    assert list((tmp_path / "out").glob("node*.pcapng")) == [], "parts of the capture are left"


def assert_joined(seen: list[Seen]) -> None:
    """What came is what somebody sent, unchanged and later; answers and clock exchanges are among it."""
    sent = {(p.source, p.target, p.port, p.payload): p.time_ns for p in seen if p.direction == LEAVING}
    came = [p for p in seen if p.direction == COMING]
    assert all(sent[p.source, p.target, p.port, p.payload] < p.time_ns for p in came)
    formats = {p.payload[0] for p in came if p.port == ASIDE_PORT}
    assert formats == {0xEC, 0xCC}
    # 5 ms on the way between ms and the router.
    first = next(p for p in came if p.node == 1 and p.source == 0 and p.port == FIRST_PORT)
    assert first.time_ns - sent[0, 1, FIRST_PORT, first.payload] > 4_900_000


@pytest.mark.needs("tshark")
def test_wireshark_reads_it_with_our_dissector(root: Path, tmp_path: Path) -> None:
    whole(tmp_path, chain("1 s", more="[measure]\n" + MEASURE))
    lua = root / "python" / "tcpsbed" / "data" / "tcpsbed.lua"
    command = [
        "tshark",
        "-X",
        f"lua_script:{lua}",
        "-r",
        str(tmp_path / "out" / "packets.pcapng"),
        "-T",
        "fields",
    ]
    fields = ["frame.interface_name", "tcpsbed.index", "_ws.malformed"]
    done = subprocess.run(
        [*command, *(word for f in fields for word in ("-e", f))], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert {line[0] for line in lines} == set(NODES)
    assert sum(line[1] != "" for line in lines) > 500 and not any(line[2] for line in lines)


def test_a_killed_node_loses_at_most_the_last_part_of_its_capture(tmp_path: Path) -> None:
    with started(tmp_path, chain("60 s"), 3, "--set", 'measure.pcapng="on"') as run:
        while run.run_time_s("node1") < 1.0:
            time.sleep(0.01)
        os.kill(run.nodes["node1"], signal.SIGKILL)
        status, _, errors = run.finish()
    assert status == 1 and "node edge died" in errors
    seen, told = packets(run.out / "packets.pcapng"), rows(run.out)
    last_row_ns = int(told["time"][told["node"] == 1].max())
    mine = [p for p in seen if p.node == 1]
    # Parts of 32 KiB are handed to the writer, at 4 packets of 150 B a millisecond or so.
    assert len(mine) > 500 and last_row_ns - mine[-1].time_ns < 5e9
    assert {p.node for p in seen} == {0, 1, 2}


def test_without_a_wish_or_for_long_there_is_none(tmp_path: Path) -> None:
    whole(tmp_path, chain("1 s", more='[measure]\npcapng = "off"\n'))
    assert not (tmp_path / "out" / "packets.pcapng").exists()
