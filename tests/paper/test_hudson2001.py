"""Hudson 2001: repetition, queue monitoring and felt surfaces, by the short sweeps of `tcpsbed reproduce`."""

from __future__ import annotations

import numpy as np
import pytest

from tcpsbed.reproduce import relief, surface
from tcpsbed.reproduce.study import Row, Study

WORK = "hudson2001"
NOT_WITHIN = {"latency-qm30", "latency-qm3600", "rate-fec-3"}
"""One sample more in the queue costs 22 ms where delays are independent; the measured ones hung together. A copy costs a
whole message here, less in the measurement."""


# [PROTOCOLS 4.6] [PROTOCOLS 13.3]
def test_copies_bring_loss_down_and_cost_bandwidth(rows: dict[str, Row]) -> None:
    assert all(rows[key].within for key in ("loss-udp", "loss-fec-1", "loss-fec-3", "rate-udp", "rate-fec-1"))
    conditional = (rows["loss-fec-1"].ours or 0.0) / (rows["loss-udp"].ours or 1.0)
    assert conditional == pytest.approx(0.117, abs=0.03), (
        "losses hang together: independent ones would give 0.018"
    )


# [PROTOCOLS 4.6] [PROTOCOLS 13.3]
def test_gaps_are_losses_and_drops_and_monitoring_ends_the_drops(rows: dict[str, Row]) -> None:
    assert all(rows[key].within for key in ("gap-none", "gap-qm150", "drop-none", "drop-ratio-30"))
    assert rows["drop-ratio-150"].within and rows["drop-ratio-3600"].within


# [PROTOCOLS 4.6]
def test_beside_users_of_the_web_tcp_pays_with_latency_and_a_copy_saves_messages(
    rows: dict[str, Row],
) -> None:
    keys = ("tcp", "web-latency", "web-jitter", "web-tcp-loss", "web-loss", "web-fec", "web-loss-98")
    assert [key for key in keys if not rows[key].within] == []


# [PROTOCOLS 4.5]
def test_a_measured_surface_is_felt_like_the_generated_one(rows: dict[str, Row]) -> None:
    if not relief.MAP.exists():
        pytest.skip(f"needs {relief.MAP}")
    assert rows["relief-delay"].within and rows["relief-jitter"].within
    own = relief.Relief(np.array([np.linspace(0.0, 40.0, 41)] * 4), 50.0)
    got, true = own.patched(0.0)
    assert surface.rms(got, true) < 1e-9, "patches lose nothing of a slope"


# [PROTOCOLS 4.5]
def test_the_warped_plane_bears_delay_and_not_jitter(rows: dict[str, Row]) -> None:
    assert rows["warp-delay"].within and rows["warp-jitter"].within
    x, height = surface.profile()
    at = np.linspace(480.0, 520.0, 9)
    assert surface.patch(x, height, 500.0, 20.0, at)[4] == pytest.approx(float(np.interp(500.0, x, height)))


def test_what_is_not_within_is_known(study: Study) -> None:
    assert {row.key for row in study.rows if row.within is False} == NOT_WITHIN
    there = relief.MAP.exists()
    missing = {row.key for row in study.rows if row.within is None}
    assert missing == (set() if there else {"relief-delay", "relief-jitter"})
    drawn = {name for name, _ in study.figures}
    assert drawn == {"table2", "errors", "surface", "web"} | ({"relief"} if there else set())
