"""Real runs on loopback: every way of waiting, both families of addresses, what a run says about itself."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from again import in_time
from real_run import chain, whole

ECHO = '[measure]\necho = { points = "all", period = "5 ms" }\n'
SLEEPER = '''
import time


class Sleeper:
    """Passes samples on; every 200th takes 5 ms of somebody else's time."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t_ns, index, x, other, y):
        self.calls += 1
        if self.calls % 200 == 0:
            time.sleep(0.005)
        y[: len(x)] = x
        return len(x)
'''


def has_ipv6() -> bool:
    """Whether there is an IPv6 loopback address."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
            s.bind(("::1", 0))
    except OSError:
        return False
    return True


def told(summary: dict[str, Any], key: str) -> list[Any]:
    """What each node says of something."""
    return [node[key] for node in summary["nodes"]]


@pytest.mark.parametrize(
    ("waiting", "ipv6"), [("timer", False), ("blocking", False), ("hybrid", False), ("timer", True)]
)
def test_all_that_is_sent_arrives(tmp_path: Path, waiting: str, ipv6: bool) -> None:
    if ipv6 and not has_ipv6():
        pytest.skip("needs an IPv6 loopback address (::1)")
    # Three loops that spin would be refused on two cores.
    settings = f"ipv6 = {str(ipv6).lower()}\ncrowded = {str(waiting == 'hybrid').lower()}\n"
    text = chain("2 s", waiting=waiting, more=settings + ECHO)
    found, screen = whole(tmp_path, text)
    for flow in found["flows"].values():
        missed = sum(told(found, "missed_ticks"))
        assert 2000 - missed <= flow["sent"] <= 2000
        # Samples in flight at the end arrive in the time that loops go on after it, unless one of them stalls for as long.
        with in_time(found["disturbances"]):
            assert flow["delivered"] == flow["sent"] - flow["in_flight"] and flow["lost"] == 0
        assert 0 < flow["delay_ms"]["p50"] < 5
    assert found["errors"] == []
    assert_echoes(found)
    assert "kinematic" in screen and "0.00 %" in screen
    assert told(found, "waiting") == [waiting] * 3
    assert_tells_of_itself(found)


def assert_echoes(found: dict[str, Any]) -> None:
    """Echo commands have measured every point, and differences are made."""
    echo = found["echo"]["kinematic"]
    points = {point["point"]: point for point in echo["points"]}
    assert {"ms-com.exit", "srv.entry", "srv.exit", "ss-com.entry"} <= set(points)
    with in_time(found["disturbances"]):
        assert all(point["n"] >= 5 for point in points.values())
        assert sum(point["lost"] for point in points.values()) == 0
    assert points["srv.entry"]["forward_ms"]["p50"] > 0 and points["srv.entry"]["return_ms"]["p50"] > 0
    assert points["srv.entry"]["round_trip_ms"]["p50"] < points["ss-com.entry"]["round_trip_ms"]["p50"]
    assert [part["name"] for part in echo["components"]] and [part["name"] for part in echo["links"]]


def assert_tells_of_itself(found: dict[str, Any]) -> None:
    """Every node reports lateness, missed ticks, gaps, overflows and privileges."""
    for node in found["nodes"]:
        for key in ("late_ns", "stamp_to_loop_ns"):
            assert 0 <= node[key]["p50"] <= node[key]["p99"] <= node[key]["max"]
        # A node that only relays wakes up for datagrams and has no ticks of its own.
        assert (node["ticks"] > 0) == (node["name"] != "edge")
        for key in ("missed_ticks", "gaps_over_1ms", "strangers", "unsent", "clock_steps"):
            assert node[key] >= 0
        with in_time(found["disturbances"]):
            assert (node["ring_overflows"], node["socket_drops"]) == (0, 0)
        named = " ".join(node["privileges"])
        assert "SCHED_FIFO: " in named and "memory lock: " in named and "timer slack" in named
        assert all(text.endswith(": yes") or "refused" in text for text in node["privileges"])
        assert "interpreter_wait_ns" not in node, "no node runs Python here"


@pytest.mark.beside
def test_a_hook_that_sleeps_disturbs_the_run_and_every_view_says_so(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    hook = '[hooks]\nkinematics = "./sleeper.py:Sleeper"\n'
    found, screen = whole(tmp_path, chain("2 s", more=hook))
    edge = next(node for node in found["nodes"] if node["name"] == "edge")
    assert edge["interpreter_wait_ns"]["p50"] >= 0
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    assert stage["calls"] > 400 and stage["failures"] == 0
    # The sleeps are seen: in the time of calls, or as samples that waited behind them.
    assert found["flows"]["kinematic"]["delay_ms"]["max"] > 4
    said = [text for text in found["disturbances"] if "edge" in text or "srv" in text]
    assert said, f"sleeps of 5 ms are not told: {found['disturbances']}"
    page = (tmp_path / "out" / "report.html").read_text()
    for text in said:
        assert f"DISTURBED: {text}" in screen
        assert text.replace(">", "&gt;") in page or text in page
    assert "Disturbed run: check this before trusting the numbers" in page
    series = json.loads((tmp_path / "out" / "series.json").read_text())
    assert series["disturbed"], "plots have no band to mark"
