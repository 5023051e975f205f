"""The emulator between bare C ends: 10 ms set, 1 kHz both ways, what is delivered.

The ends are one C process that knows nothing of tcpsbed; the emulator is a node process, driven over its
control lines as a run would drive it. Delay is counted from before `sendto` to the kernel's receive
stamp, so that the cost of loopback itself (the floor, measured in the same windows) is inside.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from measure import PROGRAM, CannotMeasureError, Result, Row, compile_c, median, run_program, spread

TITLE = "Emulator between bare C ends, 10 ms set, 1 kHz both ways"
SET_MS = 10
BARS_US = {"hybrid": 30, "timer": 50}
TAIL_US = 300


def plan(waiting: str, seconds: float) -> dict[str, Any]:
    """Two nodes and a link each way; no components, the ends are strangers."""
    link = {"delay_ns": SET_MS * 1_000_000}
    links = [
        {"name": "forward", "from": 0, "to": 1, **link},
        {"name": "backward", "from": 1, "to": 0, **link},
    ]
    return {
        "name": "emulator",
        "seed": 1,
        "duration_ns": int((seconds + 3) * 1e9),
        "sessions": ["main"],
        "nodes": [{"name": "a"}, {"name": "b"}],
        "components": [],
        "flows": [],
        "network": {"vertices": ["a", "b"], "links": links},
        "real": {"waiting": waiting, "spin_ns": 50_000, "realtime": True, "ipv6": False},
    }


def free_ports(count: int) -> list[int]:
    """UDP ports that nobody has just now."""
    with_ports = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in with_ports:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return ports


class Emulator:
    """A node process that emulates a network, or stands before the program that simulates it; talk is one JSON object a
    line.
    """

    def __init__(
        self, place: Path, waiting: str, seconds: float, foreign: dict[str, Any] | None = None
    ) -> None:
        self.child = subprocess.Popen(
            [PROGRAM, "node"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place
        )
        assert self.child.stdin and self.child.stdout
        self.said, self.heard = self.child.stdin, self.child.stdout
        spec, beside = plan(waiting, seconds), {} if foreign is None else {"foreign": foreign}
        if foreign is not None:
            # As what it is compared with, which has no privileges.
            spec["real"]["realtime"] = False
        self.send(op="prepare", plan=spec, node=None, ring=str(place / "emulator"), **beside)
        gates = self.receive("ready")["gates"]
        # A gate stands for its node: the other end sends there.
        self.gates = {gate["node"]: int(gate["address"].rpartition(":")[2]) for gate in gates}

    def send(self, **message: Any) -> None:
        """Send a line."""
        self.said.write(json.dumps(message) + "\n")
        self.said.flush()

    def receive(self, op: str) -> dict[str, Any]:
        """Wait for a line."""
        answer: dict[str, Any] = json.loads(self.heard.readline() or '{"op": "silence"}')
        if answer["op"] != op:
            raise CannotMeasureError(f"the emulator said {answer} in place of {op}")
        return answer

    def start(self, ports: list[int]) -> None:
        """Tell it where the ends listen and let it begin."""
        ends = {str(i): [f"127.0.0.1:{port}"] for i, port in enumerate(ports)}
        senders = [[i, f"127.0.0.1:{port}"] for i, port in enumerate(ports)]
        at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 100_000_000
        self.send(op="start", at_ns=at_ns, asides=ends, aside_senders=senders)
        time.sleep(0.2)

    def end(self) -> dict[str, Any]:
        """Stop it and take its report."""
        self.send(op="stop")
        report: dict[str, Any] = self.receive("done")["reports"][0]
        return report

    def close(self) -> None:
        """Let the process go."""
        self.said.close()
        self.child.wait(5)


def window(program: Path, waiting: str, seconds: float) -> dict[str, Any]:
    """The floor of loopback, then the ends with the emulator between."""
    fifo = "10" if os.geteuid() == 0 else "0"
    common = ["--seconds", f"{seconds}", "--fifo", fifo, "--waiting", "timer"]
    floor = run_program([program, "--direct", "1", *common]).json()
    with tempfile.TemporaryDirectory() as place, closing(Emulator(Path(place), waiting, seconds)) as emulator:
        ports = free_ports(2)
        emulator.start(ports)
        words = ["--a-port", f"{ports[0]}", "--b-port", f"{ports[1]}"]
        words += ["--a-to", f"{emulator.gates[1]}", "--b-to", f"{emulator.gates[0]}"]
        ends = run_program([program, *words, *common]).json()
        return {"floor": floor, "ends": ends, "report": emulator.end()}


def compare(waiting: str, windows: int, seconds: float) -> tuple[list[Row], list[dict[str, Any]]]:
    """Windows in one way of waiting; both directions of a window count."""
    program = compile_c("udp_ends")
    runs = [window(program, waiting, seconds) for _ in range(windows)]
    lost = sum(run["ends"][way]["lost"] for run in runs for way in ("a_to_b", "b_to_a"))
    rows = []
    for key, bar in (("p50", BARS_US[waiting]), ("p99", TAIL_US)):
        over = [
            run["ends"][way]["kernel_us"][key] - SET_MS * 1e3 for run in runs for way in ("a_to_b", "b_to_a")
        ]
        floor = [run["floor"][way]["kernel_us"][key] for run in runs for way in ("a_to_b", "b_to_a")]
        what = f"delivered {key} over {SET_MS} ms, {waiting}, {windows} windows of {seconds:g} s, {lost} lost"
        holds = abs(median(over)) <= bar
        rows.append(
            Row(
                what,
                f"{spread(over, 1)} µs",
                f"loopback alone: {spread(floor, 1)} µs",
                "",
                f"{bar} µs",
                holds,
            )
        )
    return rows, runs


def measure(quick: bool) -> Result:
    """Both ways of waiting."""
    windows, seconds = (2, 2.0) if quick else (10, 10.0)
    rows, raw = [], {}
    for waiting in BARS_US:
        more, raw[waiting] = compare(waiting, windows, seconds)
        rows += more
    return Result("emulator", TITLE, rows, raw)
