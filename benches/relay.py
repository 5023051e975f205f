"""Real loopback against bare C: ms-com -> srv -> ss-com, and the answer straight back to ms-com.

Both are three processes and three hops of UDP on loopback, waiting in the same way, in the same
scheduling class. In tcpsbed the samples carry 64 bytes, each with an echo command to the entry of
ss-com, and everything is recorded; the C processes hand 64 bytes on and record nothing but the round
trip. Both count to the kernel's stamp on the returning datagram. The two take turns in windows.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from measure import HERE, Result, Row, compile_c, median, run_program, spread, summary_of, tcpsbed

TITLE = "Real loopback against a chain of bare C relays"
SCENARIO = HERE / "scenarios" / "relay.toml"
POINT = "ss-com.entry"
FIFO = "10"
BARS = {1: {"p50": 1.3, "p99": 1.5}} | {khz: {"p50": 1.1, "p99": 1.3} for khz in (4, 8)}
"""Most that a percentile may be of that of the bare chain, by kHz."""


def bare_window(program: Path, waiting: str, khz: int, seconds: float) -> dict[str, Any]:
    """One window of the C chain, microseconds."""
    fifo = FIFO if os.geteuid() == 0 else "0"
    words = [
        "--rate",
        f"{khz}000",
        "--seconds",
        f"{seconds}",
        "--waiting",
        waiting,
        "--fifo",
        fifo,
        "--return",
        "direct",
        "--bytes",
        "64",
    ]
    told: dict[str, Any] = run_program([program, *words]).json()
    return told


def our_window(waiting: str, khz: int, seconds: float, folder: Path) -> dict[str, Any]:
    """One window of tcpsbed: the echo's round trip, and whether the window was disturbed."""
    keys = {"duration": f'"{seconds} s"', "real.waiting": f'"{waiting}"', "measure.pcapng": '"off"'}
    keys["flows.kinematic.rate"] = f'"{khz} kHz"'
    # The C chain spins in as many processes, however few the cores are.
    keys["real.crowded"] = "true"
    tcpsbed("run", SCENARIO, "--world", "real", "--out", str(folder), "--no-report", keys=keys)
    read = summary_of(folder)
    trip = next(p for p in read["echo"]["kinematic"]["points"] if p["point"] == POINT)
    return {**trip, "nodes": read["nodes"], "disturbances": read["disturbances"]}


def compare(waiting: str, khz: int, windows: int, seconds: float) -> tuple[list[Row], dict[str, Any]]:
    """Windows in turns, in one way of waiting, at one rate."""
    program = compile_c("relay_chain")
    bare, ours = [], []
    with tempfile.TemporaryDirectory() as place:
        for i in range(windows):
            bare.append(bare_window(program, waiting, khz, seconds))
            ours.append(our_window(waiting, khz, seconds, Path(place) / str(i)))
    rows = []
    for key, bar in BARS[khz].items():
        mine_us = [window["round_trip_ms"][key] * 1e3 for window in ours]
        bare_us = [window["kernel_us"][key] for window in bare]
        ratio = median(mine_us) / median(bare_us)
        what = (
            f"round trip {key}, {khz} kHz, {waiting}, {bare[0]['policy']}, {windows} windows of {seconds:g} s"
        )
        rows.append(
            Row(
                what,
                f"{spread(mine_us, 1)} µs",
                f"bare C: {spread(bare_us, 1)} µs",
                f"{ratio:.2f}",
                f"{bar}",
                ratio <= bar,
            )
        )
    return rows, {"bare": bare, "ours": ours}


def measure(quick: bool) -> Result:
    """Many windows with the timer, fewer with the other two ways of waiting, and at higher rates."""
    plan = {("timer", 1): (4, 2.0), ("timer", 8): (2, 2.0)}
    if not quick:
        plan = {("timer", 1): (20, 10.0)}
        plan |= dict.fromkeys([("blocking", 1), ("hybrid", 1), ("timer", 4), ("timer", 8)], (5, 10.0))
    rows: list[Row] = [
        Row(
            "processes and hops",
            "3 nodes, 3 hops, one orchestrator that waits",
            "3 processes, 3 hops",
            "",
            "",
        )
    ]
    raw = {}
    for (waiting, khz), (windows, seconds) in plan.items():
        more, raw[f"{waiting}, {khz} kHz"] = compare(waiting, khz, windows, seconds)
        rows += more
    return Result("relay", TITLE, rows, raw)
