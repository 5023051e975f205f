"""Set against delivered: whether an emulated network kept its settings, in a run and in a proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis.units import NS_PER_MS

LEAST = 100
"""Packets below which a way says nothing about percentiles."""


@dataclass(frozen=True)
class Margin:
    """How far delivered may be from set before a run is not called good."""

    p50_ms: float = 0.05
    p99_ms: float = 0.3
    loss: float = 0.005
    rate: float = 0.01


LATE, SLOW, LOSES = "late", "slow", "loses"
"""Causes: the emulation error, a rate below the set one, a loss above the set one."""


def beyond(name: str, told: Mapping[str, Any], margin: Margin) -> Iterator[tuple[str, str]]:
    """Why a path is beyond the margin: causes, each with its sentence."""
    error = told["error_ns"] if told["delivered"] >= LEAST else {}
    for key, most_ms in (("p50", margin.p50_ms), ("p99", margin.p99_ms)):
        late_ms = error.get(key, 0) / NS_PER_MS
        if late_ms > most_ms:
            yield LATE, f"{name}: emulation error {late_ms:.3f} ms ({key}; margin {most_ms:g} ms)"
    set_bps, delivered_bps = told.get("set_rate_bps"), told.get("delivered_rate_bps")
    if set_bps and delivered_bps is not None and abs(delivered_bps / set_bps - 1) > margin.rate:
        rates = f"delivered {delivered_bps / 1e3:.1f} kbit/s, set {set_bps / 1e3:.1f} kbit/s"
        yield SLOW, f"{name}: {rates} (margin {margin.rate:.0%})"
    set_loss, delivered_loss = told.get("set_loss"), told.get("delivered_loss")
    if set_loss is not None and delivered_loss is not None and abs(delivered_loss - set_loss) > margin.loss:
        yield LOSES, f"{name}: lost {delivered_loss:.2%}, set {set_loss:.2%} (margin {margin.loss:.1%})"
