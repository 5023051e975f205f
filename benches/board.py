"""A sample to a board and back through a line of tcpsbed, against a bare loop in C on the same firmware in the same QEMU."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import HERE, CannotMeasureError, Result, Row, compile_c, median, spread, summary_of, tcpsbed
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.worlds import firmware

TITLE = "Echo of a board on QEMU, over a unix socket"
PERIOD_US, PAYLOAD = 5000, 24
RATES_HZ = (50, 100, 200, 300, 400, 500, 700, 1000)
"""Rates that are tried, of commands and of forces at once."""
QEMU = ["qemu-system-arm", "-M", "lm3s6965evb", "-nodefaults", "-display", "none", "-monitor", "none"]
LEFT, ARRIVED = (1 + KINDS.index(kind) for kind in ("exit", "delivered"))


def through_tcpsbed(seconds: float) -> dict[str, float]:
    """Time from the com component's exit until the sample is back from the board, ns."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        keys = {"duration": f'"{seconds + 1} s"'}
        tcpsbed(
            "run", HERE / "scenarios/board.toml", "--world", "real", "--out", out, "--no-report", keys=keys
        )
        rows = np.asarray(open_records(out / "records.bin"))
        told: dict[str, Any] = summary_of(out)
    rows = rows[rows["time"] >= 1e9]
    # Points of ss-com, whose number is 1: its exit is 3. The robot is the last component.
    left = {r["index"]: r["value"] for r in rows[(rows["kind"] == LEFT) & (rows["point"] == 3)]}
    back = {r["index"]: r["value"] for r in rows[rows["kind"] == ARRIVED]}
    took = np.array([back[i] - left[i] for i in back.keys() & left.keys()], dtype=float)
    if not len(took) or told["boards"][0]["gone"]:
        raise CannotMeasureError(f"the board did not answer: {told['errors']}")
    return {"n": len(took), "p50_ns": float(np.median(took)), "p99_ns": float(np.percentile(took, 99))}


def bare(image: Path, seconds: float) -> dict[str, float]:
    """The same by the bare loop, which QEMU with an image joins."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        socket = Path(folder) / "line"
        rounds = str(round(seconds * 1e6 / PERIOD_US))
        command = [compile_c("line_echo"), socket, rounds, str(PERIOD_US), str(PAYLOAD)]
        loop = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        while not socket.exists() and loop.poll() is None:
            time.sleep(0.01)
        line = ["-chardev", f"socket,id=line,path={socket}", "-serial", "chardev:line", "-kernel", str(image)]
        board = subprocess.Popen([*QEMU, *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            output, _ = loop.communicate(timeout=seconds + 60)
        finally:
            for process in (loop, board):
                process.kill()
                process.wait()
    if loop.returncode:
        raise CannotMeasureError("the bare loop had no answer")
    return dict(json.loads(output))


KEPT = 0.99
"""Least share of the samples asked for that a run must have sent."""


def lost(rate_hz: int, seconds: float) -> float:
    """Share of the samples of both flows that a board on QEMU does not give back at a rate.

    Those that a loop which came too late has left out count: nothing is known of a rate that was not kept.
    """
    rate = f'"{rate_hz} Hz"'
    keys = {"duration": f'"{seconds + 1} s"', "flows.kinematic.rate": rate, "flows.haptic.rate": rate}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        scenario = HERE / "scenarios/board-both.toml"
        tcpsbed("run", scenario, "--world", "real", "--out", out, "--no-report", keys=keys)
        told: dict[str, Any] = summary_of(out)
    asked = 2 * rate_hz * (seconds + 1)
    sent = sum(flow["sent"] for flow in told["flows"].values())
    drops = sum(n for flow in told["flows"].values() for place, n in flow["drops"].items() if "line" in place)
    left_out = asked - sent if sent < KEPT * asked else 0
    return float((drops + left_out) / asked)


def highest(seconds: float) -> tuple[Row, dict[int, float]]:
    """The highest rate at which nothing is lost, going up until something is."""
    shares: dict[int, float] = {}
    for rate_hz in RATES_HZ:
        shares[rate_hz] = lost(rate_hz, seconds)
        if shares[rate_hz] > 0:
            break
    kept = [rate_hz for rate_hz, share in shares.items() if share == 0]
    beyond = [f"{100 * share:.1f} % at {rate_hz} Hz" for rate_hz, share in shares.items() if share > 0]
    row = Row(
        "highest rate of commands and forces at once without a lost sample",
        f"{max(kept, default=0)} Hz",
        "".join(f"lost: {words}" for words in beyond),
        "",
        "",
    )
    return row, shares


def measure(quick: bool) -> Result:
    """Rounds of each in turns; medians of their medians."""
    if lack := firmware.missing("qemu"):
        raise CannotMeasureError(f"firmware for QEMU needs {lack}")
    image = firmware.built("qemu")
    seconds, rounds = (3.0, 3) if quick else (8.0, 7)
    found: dict[str, list[dict[str, float]]] = {"tcpsbed": [], "bare": [], "bytes": []}
    for _ in range(rounds):
        found["bare"].append(bare(image, seconds))
        found["tcpsbed"].append(through_tcpsbed(seconds))
        found["bytes"].append(bare(image.with_name("bare.elf"), seconds))
    us = {name: [r["p50_ns"] / 1000 for r in each] for name, each in found.items()}
    ratio = median(us["tcpsbed"]) / median(us["bare"])
    shares = [a / b for a, b in zip(us["tcpsbed"], us["bare"], strict=True)]
    row = Row(
        f"sample of {PAYLOAD} B to the board and back, p50",
        f"{spread(us['tcpsbed'], 0)} µs",
        f"bare loop, tcpsbed's firmware: {spread(us['bare'], 0)} µs",
        f"{ratio:.2f} (by round {spread(shares)})",
        "at most 1.3 times",
        bool(ratio <= 1.3),
    )
    alone = Row(
        "bare loop, firmware that only returns bytes, p50",
        f"{spread(us['bytes'], 0)} µs",
        "bare loop, tcpsbed's firmware",
        f"{median(us['bytes']) / median(us['bare']):.2f}",
        "",
    )
    upper, lost_by_rate = highest(seconds)
    return Result("board", TITLE, [row, alone, upper], {**found, "lost_by_rate_hz": lost_by_rate})
