"""A zero-order hold on ss-ei, by echo points on loopback: what it adds to the round trip to the entry of ss-com.

On arrival, with the timer only filling gaps: in ss-com's node, where it may add 15 microseconds, and in a node of its own,
where one more relay of bare C is added to these. By its timer alone a sample waits for the next tick: the wait is uniform
between 0 and a period where the two clocks do not run in step (a flow at 990 Hz under a hold at 1 kHz).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from measure import HERE, Result, Row, compile_c, median, run_program, spread, summary_of, tcpsbed

TITLE = "Zero-order hold at the edge, by echo points on loopback"
SCENARIOS = HERE / "scenarios"
POINT = "ss-com.entry"
BAR_US = 15.0
ECHO = 6
"""Kind of the rows of echoes."""
DECILES = range(10, 100, 10)
AWAY = 0.1
"""How far the waits may be from uniform, as the largest difference of the two distributions."""


def window(
    scenario: str, seconds: float, folder: Path, keys: dict[str, str] | None = None
) -> dict[str, float]:
    """Median round trip of one run, in microseconds, and whether it was disturbed."""
    set_ = {"duration": f'"{seconds} s"', "measure.pcapng": '"off"', "real.crowded": "true"} | (keys or {})
    file = SCENARIOS / f"{scenario}.toml"
    tcpsbed("run", file, "--world", "real", "--out", str(folder), "--no-report", keys=set_)
    read = summary_of(folder)
    trip = next(p for p in read["echo"]["kinematic"]["points"] if p["point"] == POINT)
    return {"p50_us": trip["round_trip_ms"]["p50"] * 1e3, "disturbed": float(bool(read["disturbances"]))}


def relay_us(returns: str, seconds: float) -> float:
    """Median round trip over the chain of bare C relays."""
    fifo = "10" if os.geteuid() == 0 else "0"
    words = ["--seconds", f"{seconds}", "--waiting", "timer", "--fifo", fifo, "--return", returns]
    return float(run_program([compile_c("relay_chain"), *words, "--bytes", "64"]).json()["kernel_us"]["p50"])


def waits_ms(seconds: float, folder: Path) -> tuple[np.ndarray, float]:
    """How much longer each round trip is by the timer than the median without a hold, and that median."""
    from tcpsbed.analysis.records import open_records

    keys = {"flows.kinematic.rate": '"990 Hz"'}
    base = window("edge", seconds, folder / "base", keys)["p50_us"] / 1e3
    window("edge-hold", seconds, folder / "timer", keys | {"hooks.hold.answers": '"ticks"'})
    rows = open_records(folder / "timer" / "records.bin")
    return rows["value"][rows["kind"] == ECHO] / 1e6 - base, base


def from_uniform(waits: np.ndarray) -> float:
    """Largest difference between the distribution of waits and the uniform one on 0 to 1 ms."""
    ordered = np.sort(waits)
    truth = np.clip(ordered, 0, 1)
    return float(np.max(np.abs(truth - (np.arange(len(ordered)) + 0.5) / len(ordered))))


def measure(quick: bool) -> Result:
    """Windows in turns without the hold, with it beside ss-com, and with it in a node of its own."""
    windows, seconds = (2, 2.0) if quick else (6, 5.0)
    found: dict[str, list[dict[str, float]]] = {"without": [], "beside": [], "own": []}
    hops = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for i in range(windows):
            found["without"].append(window("edge", seconds, folder / f"w{i}"))
            found["beside"].append(window("edge-hold", seconds, folder / f"b{i}"))
            own = {"components.ss-ei": '"edge"'}
            found["own"].append(window("edge-hold", seconds, folder / f"o{i}", own))
            hops.append(relay_us("through", seconds) - relay_us("direct", seconds))
        waits, base = waits_ms(seconds, folder)
    base_us = [w["p50_us"] for w in found["without"]]
    rows = [_added("in ss-com's node", found["beside"], base_us, 0.0)]
    rows.append(_added("in a node of its own", found["own"], base_us, median(hops)))
    away = from_uniform(waits)
    deciles = ", ".join(f"{np.percentile(waits, p):.2f}" for p in DECILES)
    rows.append(
        Row(
            "timer alone, flow at 990 Hz: deciles of the wait",
            f"{deciles} ms",
            "uniform: 0.10 to 0.90 ms",
            f"{away:.3f} from uniform",
            f"{AWAY:g}",
            away <= AWAY,
        )
    )
    return Result("edge_hold", TITLE, rows, {"windows": found, "hops_us": hops, "base_ms": base})


def _added(where: str, found: list[dict[str, Any]], base_us: list[float], hop_us: float) -> Row:
    """What a place adds, window by window, against its target."""
    added = [mine["p50_us"] - without for mine, without in zip(found, base_us, strict=True)]
    bar = hop_us + BAR_US
    disturbed = sum(int(w["disturbed"]) for w in found)
    return Row(
        f"added p50, {where} ({disturbed} of {len(found)} windows disturbed)",
        f"{spread(added, 1)} µs",
        f"a hop of bare C: {hop_us:.1f} µs" if hop_us else f"without: {spread(base_us, 1)} µs",
        "",
        f"{bar:.1f} µs",
        median(added) <= bar,
    )
