"""Al-Mouhamed's routes in Mininet, by the short runs of `tcpsbed reproduce`: what holds on any machine that has it."""

from __future__ import annotations

import pytest

from tcpsbed.lab.reproduce import almouhamed_mininet
from tcpsbed.lab.reproduce.study import WHOLE, Study
from tcpsbed.lab.reproduce.works import find
from tcpsbed.worlds import registry


# [Al-Mouhamed]
@pytest.mark.needs("root", "tun", "mininet")
@pytest.mark.slow
@pytest.mark.realtime
def test_other_traffic_makes_frames_wait_and_forces_hardly() -> None:
    study = find("almouhamed-mininet").reproduce(None, full=False)
    rows = {row.key: row.ours or 0.0 for row in study.rows}
    assert set(rows) == set(study.expected), "what a short run leaves out is named"
    left = {row.key for row in study.rows if row.reason == WHOLE}
    assert left == {"route-c-high", "route-c-tail"}
    # A raw frame takes 52 ms at 100 Mbit/s without headers: no network gives it sooner.
    assert 52 < rows["route-a"] < rows["route-a-busy-frames"]
    assert rows["route-c-bursts-high"] > 1.3 * rows["route-c-bursts-low"]
    assert rows["surge"] < 0


def test_without_mininet_every_row_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.named("mininet").hosting, "missing", classmethod(lambda cls: "Mininet"))
    study = Study("almouhamed-mininet", None, world="mininet")
    almouhamed_mininet.reproduce(study)
    assert {row.key for row in study.rows} == set(study.expected)
    assert all("needs Mininet" in row.reason for row in study.rows)
