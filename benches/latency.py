"""The latency method: a block of known length in srv, found again by echo points at its entry and its exit.

As in the published validation (Polachan 2022): blocks of 1 to 15 ms, without traffic and with 500 and
750 kbit/s between every pair of hosts of `usnet9`, a flow at 50 Hz. In virtual time the block is exact.
On the machine's clock it spins on the thread clock, and the yardstick is the mean that the stage itself
recorded.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measure import HERE, Result, Row, summary_of, tcpsbed

TITLE = "Latency method"
SCENARIO = HERE / "scenarios" / "latency.toml"
BLOCKS_MS = [1, 3, 5, 10, 15]
TRAFFIC_KBPS = [0, 500, 750]


def cell(world: str, block_ms: float, traffic_kbps: float, echoes: int) -> dict[str, float]:
    """One cell: latency of srv by its echo points, and the block as set or as recorded."""
    keys = {
        "components.srv.cost": f'"{block_ms} ms"',
        "traffic.pairs.rate": f'"{traffic_kbps} kbit/s"',
        "duration": f'"{2 * echoes / 50 + 2:g} s"',
    }
    with tempfile.TemporaryDirectory() as place:
        tcpsbed("run", SCENARIO, "--world", world, "--out", place, "--no-report", keys=keys)
        read = summary_of(Path(place))
    return {"found_ms": found(read), "block_ms": block_ms if world == "virtual" else recorded(read)}


def found(read: dict[str, Any]) -> float:
    """Mean latency of srv, from the difference of its echo points."""
    parts = read["echo"]["kinematic"]["components"]
    return float(next(part for part in parts if part["name"] == "srv")["latency_ms"]["mean"])


def recorded(read: dict[str, Any]) -> float:
    """The block's own mean."""
    stages = [s for s in read["stages"] if s["component"] == "srv" and s["kind"] == "work"]
    return float(stages[0]["cpu_ns"]["mean"]) / 1e6


def judged(world: str, traffic_kbps: float, cells: list[dict[str, float]]) -> Row:
    """The worst of a row's cells against its target."""
    worst_us, at_ms = max((abs(c["found_ms"] - c["block_ms"]) * 1e3, c["block_ms"]) for c in cells)
    worst, share_ms = max((abs(c["found_ms"] / c["block_ms"] - 1), c["block_ms"]) for c in cells)
    if world == "virtual":
        bar, holds = "1 µs", worst_us <= 1
    else:
        bar = "1 % or 20 µs"
        holds = all(abs(c["found_ms"] - c["block_ms"]) <= max(0.01 * c["block_ms"], 0.02) for c in cells)
    means = ", ".join(f"{c['found_ms']:.3f}" for c in cells)
    against = ", ".join(f"{c['block_ms']:.3f}" for c in cells)
    what = f"{world}, {traffic_kbps} kbit/s between pairs"
    return Row(
        what,
        f"{means} ms",
        f"{against} ms",
        f"worst {worst_us:.2f} µs (at {at_ms:.0f} ms), {worst:.2%} (at {share_ms:.0f} ms)",
        bar,
        holds,
    )


def measure(quick: bool) -> Result:
    """Every cell in virtual time; every cell for real, or two of them."""
    rows, raw = [], {}
    for world in ("virtual", "real"):
        short = quick and world == "real"
        for traffic_kbps in [0] if short else TRAFFIC_KBPS:
            blocks = [1, 5] if short else BLOCKS_MS
            cells = [cell(world, block, traffic_kbps, 100 if quick else 1000) for block in blocks]
            raw[f"{world} {traffic_kbps}"] = cells
            rows.append(judged(world, traffic_kbps, cells))
    return Result("latency", TITLE, rows, raw)
