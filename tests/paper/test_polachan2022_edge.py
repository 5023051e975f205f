"""Polachan et al. 2022, prediction at the edge and the step experiment, by the short sweep of `tcpsbed reproduce`."""

from __future__ import annotations

import numpy as np
import pytest

from tcpsbed.lab.reproduce import polachan2022_edge as edge
from tcpsbed.lab.reproduce import polachan2022_step as step
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK = "polachan2022-edge"


# [Polachan 2022]
def test_no_toggle_is_lost_at_half_of_the_packets(rows: dict[str, Row]) -> None:
    assert rows["lost-with"].ours == 0 and rows["lost-without"].within


# [Polachan 2022] the n-th copy is the first to come with 2^-n; intervals within 3 ms of 100 ms for 90 % of toggles
def test_delays_are_geometric_and_the_rhythm_is_kept(rows: dict[str, Row]) -> None:
    assert rows["delays"].within and rows["delays"].told.count("%") == 6, rows["delays"].told
    assert rows["delay-mean"].within and rows["interval-p90"].within


def test_an_edge_behind_the_last_mile_restores_nothing(rows: dict[str, Row]) -> None:
    behind, without = rows["lost-behind"].ours, rows["lost-without"].ours
    assert behind is not None and without is not None and abs(behind - without) < 10


# [Polachan 2022]
def test_every_toggle_takes_place_where_nothing_is_lost(rows: dict[str, Row]) -> None:
    assert rows["lost-lossless"].ours == 0


# [Polachan 2022]
def test_one_controller_overshoots_more_with_drops_and_with_the_round_trip(rows: dict[str, Row]) -> None:
    assert rows["figure16-overshoot"].within and rows["figure16-drops"].within
    assert {rows[f"figure16-{what}"].expected.basis for what in ("overshoot", "rise", "drops")} == {"outcome"}


# [Polachan 2022]
def test_the_drops_that_cost_twenty_percent_fall_with_the_round_trip(rows: dict[str, Row]) -> None:
    """One controller keeps the statement of 30 % at one round trip only; the one that never reaches 20 % is named."""
    bound = rows["figure16-bound"]
    assert bound.expected.basis == "unknown" and bound.told.startswith(
        "RTT 15 ms (of all: RTT 10 ms (more than): 60, "
    )
    assert bound.ours is not None and bound.ours < 60.0 and bound.within is not None


def test_where_values_cross_a_level() -> None:
    assert step.crossing((0, 10, 20), [0.0, 10.0, 30.0], 20.0) == 15.0
    assert step.crossing((0, 10), [25.0, 30.0], 20.0) == 0.0
    assert step.crossing((0, 10), [1.0, 2.0], 20.0) is None


def test_figures_are_drawn(study: Study) -> None:
    assert [name for name, _ in study.figures] == ["figure15", "figure5", "figure16"]


def on_the_clock(late_ms: float, noise_ms: float) -> Row:
    """The row of intervals whose commands were obeyed late by chance, in a run that reports a lateness."""
    chance = np.random.default_rng(1)
    given, copies = 100.0 * np.arange(1800), chance.geometric(0.5, 1800)
    obeyed = given + copies + noise_ms * chance.random(1800)
    study = Study("polachan2022-edge", None)
    edge.clock(study, edge.Toggles(given, obeyed, copies, given, given), late_ms)
    return study.rows[-1]


def test_intervals_on_the_clock_are_judged_by_a_lateness_that_is_not_their_own() -> None:
    assert on_the_clock(0.3, 0.2).within is True
    assert on_the_clock(0.3, 20.0).within is False, "lateness of the intervals is no excuse for them"
    busy = on_the_clock(1.5, 0.2)
    assert busy.within is None and "the machine was busy" in busy.reason


def test_lateness_is_that_of_the_latest_loop_and_of_the_emulator() -> None:
    nodes = [{"late_ns": {"p99": 200_000}}, {"late_ns": {"p99": 300_000}}, {"late_ns": None}]
    summary = {"nodes": nodes, "emulator": [{"error_ms": {"p99": 0.1}}, {"error_ms": None}]}
    assert edge.late_ms(summary) == pytest.approx(0.4)
    assert edge.late_ms({"nodes": [], "emulator": []}) == 0


def test_a_full_study_that_is_not_to_take_the_clock_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `tcpsbed reproduce all` asks for it: no run on the clock, and every row of it with the reason."""
    monkeypatch.setattr(Study, "run", lambda *_, **kind: pytest.fail("a run on the clock") if kind else None)
    monkeypatch.setattr(edge, "gripper", lambda *_: None)
    monkeypatch.setattr(step, "reproduce", lambda *_: None)
    study = Study("polachan2022-edge", None, clock=False)
    edge.reproduce(study)
    left_out = [row for row in study.rows if row.key.endswith("-real")]
    assert len(left_out) == 4
    assert all(row.ours is None and "tcpsbed reproduce polachan2022-edge" in row.reason for row in left_out)
