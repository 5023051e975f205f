"""Figure 15 of Polachan 2022 on the machine's clock: a gripper over a last mile that loses half, with ss-ei at 1 kHz."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from again import in_time

import tcpsbed
from tcpsbed.lab.reproduce import polachan2022_edge as edge

pytestmark = pytest.mark.realtime
SCENARIO = Path(__file__).parents[2] / "scenarios" / "polachan-gripper-hold.toml"
SECONDS = 21
INTERVAL_MS, SHARE = 3.0, 11 / 12
"""Share of the intervals that are so near to 100 ms, without lateness: the difference of two geometric delays."""
BOTH = sum(2.0**-g * sum(2.0**-h for h in range(max(1, g - 3), g + 4)) ** 2 for g in range(1, 60))
"""Share of the pairs of neighbours that both are: they have a delay in common, so that one late toggle spoils two."""
VARIANCE = SHARE * (1 - SHARE) + 2 * (BOTH - SHARE**2)


def test_a_hold_before_a_lossy_last_mile_restores_the_rhythm(tmp_path: Path) -> None:
    """[Polachan 2022: edge] No toggle is lost; copies come with 2^-n; the rhythm is kept but for lateness."""
    run = tcpsbed.run(SCENARIO, world="real", out=tmp_path / "out", set=[f'duration="{SECONDS} s"'])
    held, late = edge.on_the_clock(run)
    assert len(held.given_ms) >= 10 * (SECONDS - 2)
    assert held.lost == 0, held.lost
    n = len(held.came)
    for copy in range(1, 4):
        share = 2.0**-copy
        off = abs(float((held.came == copy).mean()) - share)
        assert off <= 4 * np.sqrt(share * (1 - share) / n), (copy, off)
    within = float((held.off_ms <= INTERVAL_MS + late).mean())
    with in_time((text for text in run.summary["disturbances"] if "(p99" in text), edge.LATE_MS):
        assert within >= SHARE - 3 * np.sqrt(VARIANCE / n), within
