"""Delay and loss of each service over time, from what an emulated network says while it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tcpsbed import proxy
from tcpsbed.cli import emulated
from tcpsbed.proxy import seconds
from tcpsbed.proxy.seconds import Seconds

WAY = "near -> far"
RECENT = ("rate_pps", "rate_bps", "recent_lost", "recent_delay_ns")
NOTHING = dict(zip(RECENT, (0.0, 0.0, 0, {"p50": 0, "p99": 0}), strict=True))


def recent(ms: float, lost: int = 0, pps: float = 100.0) -> dict[str, Any]:
    """What a row says of its last second; no two are alike."""
    delay = {"p50": ms * 1e6, "p99": 2e6 * ms}
    return dict(zip(RECENT, (pps, 8e3 * ms, lost, delay), strict=True))


def row(
    delivered: int, lost: int, more: dict[str, Any], door: str = "udp :5005", **of: Any
) -> dict[str, Any]:
    return {"door": door, "way": WAY, "delivered": delivered, "lost": lost, "unsent": 0} | more | of


def said(t_s: float, *rows: dict[str, Any]) -> dict[str, Any]:
    return {"t_s": t_s, "services": rows}


def over(found: Seconds, end_s: float, *rows: dict[str, Any]) -> dict[str, Any]:
    ends = {"packets": 1, "refused": 0, "unreached": 0}
    doors = [{"door": "ip", "way": way, **ends} for way in (WAY, "far -> near")]
    return found.over({"duration_s": end_s, "doors": doors, "services": [one | ends for one in rows]})


def test_a_point_has_the_delay_of_its_second_and_the_packets_since_the_one_before() -> None:
    found = Seconds()
    found.note(said(0.5, row(3, 0, NOTHING)))
    for t_s in (1.5, 1.75, 2.0):
        found.note(said(t_s, row(90, 10, recent(20, 10))))
    found.note(said(2.5, row(190, 10, recent(40), "udp :5005 camera")))
    told = over(found, 3.1, row(200, 15, recent(40), "udp :5005 camera"))
    assert told == {
        "span_s": 1.0,
        "paths": {
            "udp :5005 camera to far": {
                "t_s": [1.0, 2.0, 2.8],
                "p50_ms": [20.0, 40.0, None],
                "p99_ms": [40.0, 80.0, None],
                "packets": [100, 100, 15],
                "lost": [10, 0, 5],
            }
        },
    }


def test_seconds_without_packets_have_no_point_and_those_that_lost_all_no_delay() -> None:
    found = Seconds()
    found.note(said(1.0, row(10, 0, recent(20))))
    for t_s in (2.0, 3.0, 4.0):
        found.note(said(t_s, row(10, 0, NOTHING)))
    found.note(said(5.0, row(10, 7, NOTHING | {"recent_lost": 7})))
    curve = over(found, 5.0, row(10, 7, NOTHING))["paths"]["udp :5005 to far"]
    assert (curve["packets"], curve["lost"], curve["p50_ms"]) == ([10, 7], [0, 7], [20.0, None])


def test_what_the_kernel_refused_is_lost() -> None:
    found = Seconds()
    found.note(said(1.0, row(10, 0, recent(20))))
    found.note(said(2.0, row(15, 1, recent(21), unsent=4)))
    curve = over(found, 2.0, row(15, 1, NOTHING, unsent=4))["paths"]["udp :5005 to far"]
    assert (curve["packets"], curve["lost"]) == ([10, 10], [0, 5])


def test_a_long_run_has_no_more_points_than_a_short_one_and_all_its_packets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seconds, "MOST", 8)
    found = Seconds()
    for n in range(1, 31):
        found.note(said(n, row(100 * n, n, recent(90 if n == 7 else 20 + n / 100))))
    told = over(found, 30.0, row(3000, 30, NOTHING))
    curve = told["paths"]["udp :5005 to far"]
    assert len(curve["t_s"]) <= 8 and told["span_s"] == 4.0
    assert (sum(curve["packets"]), sum(curve["lost"])) == (3030, 30)
    assert max(curve["p99_ms"]) == 180.0, "the worst second stays"
    assert 20 < max(curve["p50_ms"]) < 45, "of four seconds, one of which had 90 ms"
    assert curve["t_s"] == sorted(curve["t_s"]) and curve["t_s"][-1] < 30


def test_without_services_there_is_nothing() -> None:
    assert over(Seconds(), 1.0) == {}


class Still:
    """In place of an emulated network at work."""

    profile = proxy.load("direct")

    def snapshot(self) -> dict[str, Any]:
        return said(1.5, row(9, 1, recent(20, 1)))


def test_a_command_whose_run_is_kept_notes_what_the_network_says() -> None:
    record = emulated.Record()
    record.recorder = SimpleNamespace(seconds=Seconds())
    session = emulated.Session(Still(), [], told=None, talks=False, record=record)
    session.look(emulated.Screen(False, lambda _: ""))
    told = over(record.recorder.seconds, 2.0, row(9, 1, recent(20, 1)))
    assert told["paths"]["udp :5005 to far"]["p50_ms"] == [20.0]
