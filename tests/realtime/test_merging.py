"""A controller that merges, in virtual time and on sockets through the emulator: k as often the same, delays alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from again import in_time
from numpy.typing import NDArray
from real_run import whole

import tcpsbed
from tcpsbed.analysis.records import KINDS, open_records, plan_of

MERGING = 1 + KINDS.index("merging")
SLACK_MS = 0.2
"""What may lie between medians beside what the run says of its own lateness."""
LARGEST_DISTANCE = 0.2
"""Of the cumulative shares of k (Kolmogorov): congestion is three cycles of k, and where one ends is chance."""
LONGEST_K = 7
SECONDS = 6.0
SCENARIO = """
name = "merging"
duration = "6 s"
warmup = "1 s"
[components]
tactile-operator = "op"
tactile-teleoperator = "top"
[channels.session]
flows = ["kinematic", "haptic"]
transport = { kind = "dpm-g", bottleneck = "1.2 Mbit/s" }
[flows.kinematic]
sample = "24 B"
[flows.haptic]
sample = "70 B"
[topology]
routers = ["n1", "n2"]
[links.access]
from = "op"
to = "n1"
delay = "5 ms"
[links.l1]
from = "n1"
to = "n2"
rate = "1.2 Mbit/s"
delay = "5 ms"
queue = "15000 B"
[links.egress]
from = "n2"
to = "top"
delay = "5 ms"
[traffic.cbr]
on = "l1.backward"
rate = "300 kbit/s"
packet = "50 B"
start = "1 s"
stop = "4 s"
"""
"""Merging is needed on the way back from 1 to 4 s: 1.1 Mbit/s at k = 1 and 0.3 beside it, on 1.2 Mbit/s."""


def held(folder: Path) -> NDArray[np.float64]:
    """Share of the run in which packets of the way back held k fragments, by k from 0."""
    names = [flow["name"] for flow in plan_of(folder)["flows"]]
    rows = open_records(folder / "records.bin")
    rows = rows[(rows["kind"] == MERGING) & (rows["flow"] == names.index("haptic"))]
    at = np.append(rows["time"] / 1e9, SECONDS)
    shares = np.zeros(LONGEST_K + 1)
    for k, span in zip(rows["value"], np.diff(at), strict=True):
        shares[int(k)] += span / SECONDS
    return shares


# [model: DPM-G]
def test_k_is_as_often_the_same_and_medians_are_alike(tmp_path: Path) -> None:
    real, _ = whole(tmp_path, SCENARIO)
    virtual = tcpsbed.run(tmp_path / "scenario.toml", world="virtual", out=tmp_path / "virtual").summary
    simulated, measured = held(tmp_path / "virtual"), held(tmp_path / "out")
    assert simulated[1] > 0.3 and simulated[2:].sum() > 0.3, (
        "k is 1 where it can be, and larger where it must"
    )
    apart = np.abs(np.cumsum(simulated) - np.cumsum(measured)).max()
    with in_time(real["disturbances"]):
        assert apart < LARGEST_DISTANCE, f"virtual {simulated.round(3)}, real {measured.round(3)}"
    late_ms = sum(statistic_ms(node, "late_ns") for node in real["nodes"])
    for name, flow in virtual["flows"].items():
        other = real["flows"][name]
        assert flow["lost"] == 0
        with in_time(real["disturbances"]):
            assert other["lost"] == 0
        assert other["delay_ms"]["p50"] == pytest.approx(flow["delay_ms"]["p50"], abs=SLACK_MS + late_ms), (
            name
        )


def statistic_ms(node: dict[str, Any], key: str) -> float:
    """Median of what a node measured of itself."""
    return float((node.get(key) or {}).get("p50") or 0.0) / 1e6
