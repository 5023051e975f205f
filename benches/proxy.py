"""The proxy between bare C ends: 10 ms set, what is delivered at 1 kHz, what is lost at 20,000 packets/s, and the knee.
Windows at 1 kHz take turns with windows of ns-3 in real time behind its UDP gates, set to the same 10 ms, and with those
of a delay line in C that does nothing else, as the same nobody: what this machine can do at that moment.

The ends are one C process that knows nothing of tcpsbed; the proxy is the command as a user starts it, with
a port for each direction. Delay is counted from before `sendto` to the kernel's receive stamp.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from emulator import Emulator, free_ports, plan
from measure import PROGRAM, CannotMeasureError, Result, Row, compile_c, median, run_program, spread

TITLE = "Proxy without root between bare C ends, 10 ms set"
SET_MS = 10
BARS_US = {"p50": 30, "p99": 150}
RATE_HZ, RATE_S = 20_000, 30.0
KNEE_HZ = (20_000, 40_000, 60_000, 80_000, 100_000, 125_000, 150_000)
WAYS = ("a_to_b", "b_to_a")
NOBODY = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
"""How root becomes somebody without any capability."""


class Proxy:
    """`tcpsbed proxy` with a port towards each end."""

    def __init__(self, ports: list[int]) -> None:
        doors = [f"0=127.0.0.1:{ports[1]}", f"0=127.0.0.1:{ports[0]}"]
        nobody: list[str | Path] = [*NOBODY] if os.geteuid() == 0 else []
        command = [*nobody, PROGRAM, "proxy", "--delay", f"{SET_MS} ms", "--json", *doors]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout
        ready = json.loads(self.child.stdout.readline() or "{}")
        if ready.get("event") != "ready":
            raise CannotMeasureError(f"the proxy said {ready}")
        self.ports = [row["port"] for row in ready["ports"]]

    def end(self) -> dict[str, Any]:
        """Stop it and take what it tells of itself."""
        self.child.terminate()
        lines = self.child.communicate(timeout=60)[0].strip().splitlines()
        told: dict[str, Any] = json.loads(lines[-1])
        return told

    def close(self) -> None:
        """Let the process go."""
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


def between(program: Path, ports: list[int], to: list[int], seconds: float, rate_hz: int = 1000) -> Any:
    """What the ends at `ports` tell that send to `to`."""
    waiting = "timer" if rate_hz <= 1000 else "hybrid"
    words = ["--seconds", f"{seconds}", "--fifo", "10" if os.geteuid() == 0 else "0", "--waiting", waiting]
    words += ["--rate", f"{rate_hz}", "--a-port", f"{ports[0]}", "--b-port", f"{ports[1]}"]
    return run_program([program, *words, "--a-to", f"{to[0]}", "--b-to", f"{to[1]}"]).json()


def window(program: Path, seconds: float, rate_hz: int = 1000) -> dict[str, Any]:
    """The ends with the proxy between."""
    ports = free_ports(2)
    with closing(Proxy(ports)) as proxy:
        ends = between(program, ports, proxy.ports, seconds, rate_hz)
        return {"ends": ends, "proxy": proxy.end(), "rate_hz": rate_hz, "seconds": seconds}


def behind_c(program: Path, seconds: float) -> dict[str, Any]:
    """The ends with the delay line in C between."""
    ports = free_ports(2)
    nobody: list[str | Path] = [*NOBODY] if os.geteuid() == 0 else []
    command = [*nobody, compile_c("delay_line"), f"{SET_MS}", *map(str, ports)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as line:
        try:
            assert line.stdout
            doors = [int(word) for word in line.stdout.readline().split()]
            return {"ends": between(program, ports, doors, seconds)}
        finally:
            line.kill()


def behind_ns3(program: Path, seconds: float) -> dict[str, Any] | None:
    """The ends with ns-3 between, behind UDP gates as of a run; nothing where ns-3 is not there."""
    from tcpsbed.worlds import ns3, ns3_program

    if ns3_program.missing():
        return None
    foreign = ns3.foreign_of(plan("timer", seconds), [])
    with (
        tempfile.TemporaryDirectory() as place,
        closing(Emulator(Path(place), "timer", seconds, foreign)) as gates,
    ):
        ports = free_ports(2)
        gates.start(ports)
        ends = between(program, ports, [gates.gates[1], gates.gates[0]], seconds)
        return {"ends": ends, "report": gates.end()}


def exactness(program: Path, windows: int, seconds: float) -> tuple[list[Row], dict[str, Any]]:
    """Delivered beyond set at 1 kHz, beside ns-3 and the line in C; both directions of a window count."""
    turns = [
        (window(program, seconds), behind_ns3(program, seconds), behind_c(program, seconds))
        for _ in range(windows)
    ]
    runs, others = [run for run, _, _ in turns], [other for _, other, _ in turns if other is not None]
    least = [line for _, _, line in turns]
    rows = []
    for key, bar in BARS_US.items():
        over, slower = beyond(runs, key), beyond(others, key)
        what = f"delivered {key} over {SET_MS} ms, 1 kHz both ways, {windows} windows of {seconds:g} s"
        bare = beyond(least, key)
        against = f"a delay line in C: {spread(bare, 1)} µs; "
        against += f"ns-3 gates: {spread(slower, 1)} µs" if slower else "ns-3 is not there"
        better = key != "p99" or not slower or median(over) < median(slower)
        wanted = f"{bar} µs" + (", less than ns-3" if key == "p99" else "")
        holds = abs(median(over)) <= bar and better
        rows.append(
            Row(
                what,
                f"{spread(over, 1)} µs",
                against,
                f"{median(over) - median(bare):+.1f} µs",
                wanted,
                holds,
            )
        )
    return rows, {"proxy": runs, "ns3": others, "c": least}


def beyond(runs: list[dict[str, Any]], key: str) -> list[float]:
    """What was delivered beyond what was set, in µs: a value a window and direction."""
    return [run["ends"][way]["kernel_us"][key] - SET_MS * 1e3 for run in runs for way in WAYS]


def lost(run: dict[str, Any]) -> tuple[int, int]:
    """Packets that were lost, and those that were sent, both ways."""
    return sum(run["ends"][way]["lost"] for way in WAYS), sum(run["ends"][way]["sent"] for way in WAYS)


def throughput(program: Path, seconds: float) -> tuple[Row, dict[str, Any]]:
    """Loss at the rate that is guaranteed."""
    run = window(program, seconds, RATE_HZ)
    gone, sent = lost(run)
    what = f"lost at {RATE_HZ} packets/s each way, {seconds:g} s"
    wanted = 2 * RATE_HZ * seconds
    measured = f"{gone} of {sent} ({sent / wanted:.1%} of what was to be sent)"
    return Row(what, measured, "", "", "0", gone == 0 and sent > 0.99 * wanted), run


def knee(program: Path, seconds: float) -> tuple[Row, list[dict[str, Any]]]:
    """The highest rate without loss that the ends themselves can send."""
    best, runs = 0, []
    for rate_hz in KNEE_HZ:
        run = window(program, seconds, rate_hz)
        runs.append(run)
        gone, sent = lost(run)
        if gone or sent < 0.99 * 2 * rate_hz * seconds:
            break
        best = rate_hz
    gone, sent = lost(runs[-1])
    last = f"at {runs[-1]['rate_hz']}: {gone} of {sent} lost"
    return Row(f"knee, {seconds:g} s a rate", f"{best} packets/s each way without loss", last, "", ""), runs


def measure(quick: bool) -> Result:
    """Exactness, loss, knee."""
    program = compile_c("udp_ends")
    windows, seconds = (2, 2.0) if quick else (10, 10.0)
    rows, raw = exactness(program, windows, seconds)
    row, run = throughput(program, 5.0 if quick else RATE_S)
    limit, runs = knee(program, 2.0 if quick else 5.0)
    return Result("proxy", TITLE, [*rows, row, limit], {"exact": raw, "rate": run, "knee": runs})
