"""Questions that the papers leave open, by the short sweep of `tcpsbed reproduce questions`."""

from __future__ import annotations

import numpy as np
import pytest

from tcpsbed.lab.reproduce import task
from tcpsbed.lab.reproduce.questions import TRACES, jain
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK = "questions"


def ours(rows: dict[str, Row], key: str) -> float:
    """What came out."""
    value = rows[key].ours
    assert value is not None
    return value


@pytest.mark.slow
def test_a_loss_based_tcp_fills_the_buffer_whatever_merging_does(rows: dict[str, Row]) -> None:
    for kind in ("reno", "cubic"):
        for transport in ("no-merge", "fixed-k", "dpm-g", "dpm-q"):
            assert ours(rows, f"tcp-{kind}-{transport}") > 60.0, "the buffer is one of 80 ms"


def test_sessions_share_a_link_evenly(rows: dict[str, Row]) -> None:
    assert min(ours(rows, f"share-{count}-jain") for count in (2, 4)) > 0.98
    assert ours(rows, "share-3-jain") > 0.978, "over 15 s; over 60 s it is 0.983"
    assert jain([1.0, 1.0]) == 1.0 and jain([1.0, 0.0]) == 0.5


def test_traces_of_lte_give_rows_where_they_are_there(rows: dict[str, Row]) -> None:
    if not TRACES.exists():
        pytest.skip(f"needs {TRACES}")
    assert all(
        ours(rows, f"lte-{transport}") > 15.0 for transport in ("no-merge", "fixed-k", "dpm-g", "dpm-q")
    )


def test_a_simulated_operator_goes_round_where_pictures_come(rows: dict[str, Row]) -> None:
    """Over udp hardly any does: nobody closes the circle, the rows of it say so, and there is no error of one."""
    for name in task.CASES:
        if name == "udp":
            assert "task-udp-error" not in rows
        else:
            assert 0.2 < ours(rows, f"task-{name}-error") < 6.0
        closed = "closed no circle" not in rows[f"task-{name}-turns"].told
        assert closed == (name != "udp") == (ours(rows, f"task-{name}-turns") > 4.0), name
        assert 0.9 < ours(rows, f"task-{name}-peak") < 5.0
        there = "less that of the quiet network" in rows[f"task-{name}-peak"].beside
        assert there == (name != "quiet")


def test_the_signal_gets_worse_with_the_network_and_the_task_follows_the_delay(rows: dict[str, Row]) -> None:
    """What the load costs is large in the signal; in the task it is what a full buffer takes, not what a deadband does."""
    assert ours(rows, "task-no-merge-snr") + 6.0 < ours(rows, "task-dpm-g-snr")
    assert ours(rows, "task-no-merge-delay") > 2.0 * ours(rows, "task-dpm-g-delay")
    assert ours(rows, "task-no-merge-turns") < ours(rows, "task-dpm-g-turns")


def test_a_deadband_has_the_worst_signal_and_not_the_worst_task(rows: dict[str, Row]) -> None:
    assert ours(rows, "task-weber-snr") < ours(rows, "task-no-merge-snr") - 1.0
    assert ours(rows, "task-weber-turns") > ours(rows, "task-no-merge-turns") + 0.5
    assert ours(rows, "task-weber-peak") > ours(rows, "task-dpm-g-peak") + 0.05, (
        "what a deadband costs is force"
    )
    assert ours(rows, "task-delay-and-turns") < -0.5
    assert task.rank_correlation(np.array([1.0, 2.0, 4.0]), np.array([3.0, 3.5, 9.0])) == pytest.approx(1.0)


def test_nothing_is_judged_and_figures_are_drawn(study: Study) -> None:
    assert {row.verdict for row in study.rows} <= {"nothing published", "not reproducible here"}
    traced = {"lte"} if TRACES.exists() else set()
    assert {name for name, _ in study.figures} == {"tcp", "sharing", "asymmetric", "task", *traced}


def test_a_difference_to_the_quiet_network_has_the_sign_of_ours_less_that(rows: dict[str, Row]) -> None:
    for key in ("task-no-merge-delay", "task-no-merge-turns"):
        quiet = ours(rows, key.replace("no-merge", "quiet"))
        less = rows[key].beside["less that of the quiet network"]
        assert less == pytest.approx(ours(rows, key) - quiet)
