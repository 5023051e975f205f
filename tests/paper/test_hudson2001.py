"""Hudson 2001: repetition, queue monitoring and felt surfaces, by the short sweeps of `tcpsbed reproduce`."""

from __future__ import annotations

import numpy as np
import pytest

from tcpsbed.lab.reproduce import hudson2001, relief, surface
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK, LONG = "hudson2001", True


# [Hudson 2001: results] [model: acceptance tests] [Hudson 2001]
def test_copies_bring_loss_down_and_cost_bandwidth(rows: dict[str, Row]) -> None:
    assert all(rows[key].within for key in ("loss-udp", "loss-fec-1", "loss-fec-3", "rate-udp", "rate-fec-1"))
    conditional = (rows["loss-fec-1"].ours or 0.0) / (rows["loss-udp"].ours or 1.0)
    assert conditional == pytest.approx(0.117, abs=0.03), (
        "losses hang together: independent ones would give 0.018"
    )


# [Hudson 2001: results] [model: acceptance tests] [Hudson 2001]
def test_gaps_are_losses_and_drops_and_monitoring_ends_the_drops(rows: dict[str, Row]) -> None:
    assert rows["gap-none"].within and rows["drop-none"].within
    ours = {key: rows[key].ours or 0.0 for key in ("drop-none", "drop-qm30", "gap-none", "gap-qm30")}
    assert ours["drop-none"] > 10.0 * ours["drop-qm30"]
    assert ours["gap-none"] - ours["gap-qm30"] == pytest.approx(
        ours["drop-none"] - ours["drop-qm30"], abs=1.0
    )


def test_what_is_said_to_be_set_was_set(not_set: list[str]) -> None:
    assert not_set == []


def test_what_is_set_does_not_count_as_reproduced(rows: dict[str, Row]) -> None:
    read_back = ("loss-udp", "loss-fec-1", "loss-fec-3", "rate-udp", "rate-fec-1", "gap-qm150")
    assert {rows[key].verdict for key in read_back} == {"no evidence (input)"}
    assert rows["latency-udp"].verdict == rows["gap-none"].verdict == "no evidence (fitted)"


# [Hudson 2001: results]
def test_beside_users_of_the_web_tcp_pays_with_latency_and_a_copy_saves_messages(
    rows: dict[str, Row],
) -> None:
    keys = ("web-latency", "web-jitter", "web-tcp-loss", "web-loss")
    assert [key for key in keys if not rows[key].within] == []
    entry = rows["web-fec"].expected
    assert entry.published is not None and rows["web-fec"].ours is not None
    assert rows["web-fec"].ours <= entry.published + entry.tolerance, (
        "a copy saves as many as it may; the other end a short run cannot tell, which loses 0 to 2 messages beside a copy"
    )


# [Hudson 2001: surfaces]
def test_a_measured_surface_is_felt_like_the_generated_one(rows: dict[str, Row]) -> None:
    if not relief.MAP.exists():
        pytest.skip(f"needs {relief.MAP}")
    assert rows["relief-delay-shape"].within and rows["relief-jitter"].within
    assert (rows["relief-delay"].ours or 0.0) > 1.0, "where the hand is it feels another place"
    own = relief.Relief(np.array([np.linspace(0.0, 40.0, 41)] * 4), 50.0)
    got, true = own.patched(0.0)
    assert surface.rms(got, true) < 1e-9, "patches lose nothing of a slope"


# [Hudson 2001: surfaces] [Hudson 2001]
def test_the_warped_plane_keeps_shapes_under_delay_and_not_under_jitter() -> None:
    alone = Study(WORK, None, full=False)
    hudson2001.surfaces(alone)
    rows = {row.key: row for row in alone.rows}
    assert rows["warp-delay-shape"].within and rows["warp-jitter"].within
    assert (rows["warp-delay"].ours or 0.0) > 1.0, "where the hand is it feels another place"
    x, height = surface.profile()
    at = np.linspace(480.0, 520.0, 9)
    assert surface.patch(x, height, 500.0, 20.0, at)[4] == pytest.approx(float(np.interp(500.0, x, height)))


def test_what_is_not_within_is_known(study: Study, unexplained: list[str]) -> None:
    assert set(unexplained) <= {"web-fec"}, "too few losses in a short run"
    there = relief.MAP.exists()
    missing = {row.key for row in study.rows if row.within is None}
    assert missing == (set() if there else {"relief-delay", "relief-delay-shape", "relief-jitter"})
    drawn = {name for name, _ in study.figures}
    assert drawn == {"table2", "errors", "surface", "web"} | ({"relief"} if there else set())
