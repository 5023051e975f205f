"""The page on the real world shows sentences as the analysis writes them, settings that are right, margins that hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sample_run

from tcpsbed import scenarios
from tcpsbed.analysis import disturbances
from tcpsbed.analysis.delivered import LEAST, Margin, beyond
from tcpsbed.views import text
from tcpsbed.views.folder import open_folder
from tcpsbed.views.sections import banners

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "real-world.md").read_text(encoding="utf-8")
MS = 1_000_000
NODE = {
    "name": "home",
    **dict.fromkeys(("missed_ticks", "ring_overflows", "socket_drops", "clock_steps"), 3),
    "late_ns": {"p99": 1.4 * MS},
    "interpreter_wait_ns": {"p99": 2 * MS},
}
ROBOT = {"component": "tactile-teleoperator", "missed_ticks": 12, "late_ns": {"p99": 1.4 * MS}}
GAP = {"name": "home", "gaps": 3, "first_gaps": [{"t_s": 7.2, "length_ns": MS}], "longest_gap_ns": 2 * MS}
STAGE = {
    "name": "predict",
    "kind": "predict",
    "component": "srv",
    "flow": "kinematic",
    "cpu_ns": {"p99": 0.6 * MS},
}
HOST = {"name": "lab2", "lost": None, "clock_error_ns": 0.3 * MS, "clock_drift_ns": 0.01 * MS}


def sentences(lost_rows=3):
    """What the analysis says of a run in which everything went wrong."""
    touched = {"n": 12, "longest_ms": 34.0, "flows": {"kinematic": {"samples": 4, "share": 0.004}}}
    info = {"world": "real", "flows": {"kinematic": {"period_s": 1e-3}}, "stalls": touched}
    rates = {"delivered": LEAST, "set_rate_bps": 500e3, "delivered_rate_bps": 480e3}
    emulator = [{"path": "home -> edge", "error_ns": {"p50": 0.08 * MS, "p99": MS}} | rates]
    result = {
        "interrupted": True,
        "nodes": [NODE | {"strangers": 5, "ring_overflows": lost_rows}],
        "robots": [ROBOT],
        "emulator": emulator,
        "stages": [STAGE],
        "hosts": [HOST],
        "fallback": "plain network namespaces",
    }
    flow = {
        "name": "kinematic",
        "beyond_window": 0,
        "undated": 5,
        "sent": 90,
        "delivered": 90,
        "superseded": 4,
    }
    flow |= {"duplicated": 5, "duplicates_dropped": 2}
    analysis = {"end_ns": 3_200 * MS, "nodes": [GAP], "clocks": [], "flows": [flow]}
    analysis |= {"torn_bytes": 0, "strange_rows": 900, "unordered_rows": 0}
    return [bare(text) for text in disturbances.disturbances(info, result, analysis)]


def bare(text):
    """The words of a sentence, without numbers and how often."""
    return set(re.findall(r"[a-z>-]+", text)) - {"once", "times", "time"}


def test_sentences_are_those_of_the_analysis():
    table = PAGE[PAGE.index("| sentence |") :]
    shown = re.findall(r"^\| `(.+?)` \|", table[: table.index("\n\n")], re.M)
    found = [*sentences(), *sentences(lost_rows=0)]
    for one in shown:
        assert any(bare(one) <= sentence for sentence in found), one
    assert len(shown) == 20


@pytest.mark.parametrize("lost", [{}, {"ring": 1}, {"torn_bytes": 7}])
def test_more_samples_than_were_sent_are_told_only_where_no_row_was_lost(lost):
    flow = {"name": "a", "sent": 9, "delivered": 12} | dict.fromkeys(
        ("superseded", "beyond_window", "undated"), 0
    )
    flow |= {"duplicated": 0, "duplicates_dropped": 0}
    analysis = dict.fromkeys(("torn_bytes", "strange_rows", "unordered_rows"), 0) | lost
    analysis |= {"nodes": [], "clocks": [], "flows": [flow]}
    result = {"nodes": [{"name": "n", "ring_overflows": lost.get("ring", 0)}]}
    told = disturbances.disturbances({"world": "virtual", "flows": {}}, result, analysis)
    assert any("delivered 3 samples more" in line for line in told) == (not lost), told


def test_margins_are_those_of_the_analysis():
    assert Margin() == Margin(p50_ms=0.05, p99_ms=0.3, loss=0.005, rate=0.01)
    words = " ".join(PAGE.split())
    assert "50 µs at the median, or 0.3 ms at p99 (from 100 packets on)" in words
    assert (
        "1 % between delivered and set rate, or 0.5 percentage points between delivered and set loss" in words
    )
    assert disturbances.HOOK_SHARE == 0.5 and disturbances.LATE_P99_MS == 1.0


def test_settings_are_right(shipped_scenarios, tmp_path):
    (block,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.S | re.M)
    path = tmp_path / "shown.toml"
    path.write_text(f'include = "{shipped_scenarios / "real-loopback.toml"}"\n{block}')
    assert scenarios.load(path).real.waiting == "hybrid"


def test_a_disturbed_run_says_what_that_means_for_a_mean_and_a_p99(tmp_path):
    for world in ("real", "virtual"):
        sample_run.write(tmp_path / world, world=world)
        run = open_folder(tmp_path / world)
        run.summary["disturbances"] = ["node a stalled"]
        assert (disturbances.MEANING in text.headline(run)) == (world == "real")
        assert (disturbances.MEANING[3:] in banners(run.summary)) == (world == "real")
    for flow in run.summary["flows"].values():
        flow["delivered"] = 0
    run.summary["world"] = "real"
    assert disturbances.MEANING not in text.headline(run) and "mean or median" not in banners(run.summary)
    assert disturbances.MEANING.partition(", ")[2] in " ".join(PAGE.split()), "as the page says it"


def test_percentiles_are_judged_from_a_hundred_packets_on():
    """A single late packet of a thin path says nothing about its 99th percentile."""
    late = {"error_ns": {"p50": 0.01 * MS, "p99": 4 * MS}}
    assert list(beyond("a -> b", {"delivered": LEAST - 1} | late, Margin())) == []
    assert len(list(beyond("a -> b", {"delivered": LEAST} | late, Margin()))) == 1
    assert f"from {LEAST} packets on" in " ".join(PAGE.split())


def test_what_an_emulator_between_own_programs_did_late_is_judged_by_its_packets_alone():
    node = NODE | dict.fromkeys(("missed_ticks", "ring_overflows", "socket_drops", "clock_steps"), 0)
    info = {"world": "proxy", "flows": {}}
    analysis = {"end_ns": MS, "nodes": [GAP], "clocks": [], "flows": []}
    analysis |= dict.fromkeys(("torn_bytes", "strange_rows", "unordered_rows"), 0)
    result = {"nodes": [node]}
    assert len(disturbances.disturbances(info, result, analysis)) == 3
    assert disturbances.disturbances(info, result | {"world": "proxy"}, analysis) == []
