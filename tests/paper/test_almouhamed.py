"""Al-Mouhamed: force and stereo pictures over a campus, by the short runs of `tcpsbed reproduce`."""

from __future__ import annotations

import numpy as np
import pytest

from tcpsbed.lab.reproduce.almouhamed import crossing, during
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK, LONG = "almouhamed", True


# [Al-Mouhamed]
def test_copies_take_longer_as_threads_compete(rows: dict[str, Row]) -> None:
    alone, sending, reading = (rows[f"copy-{name}"].ours or 0.0 for name in ("alone", "sending", "reading"))
    assert 1.2 < sending / alone < 1.5 and 1.9 < reading / alone < 2.2


# [Al-Mouhamed]
def test_one_buffer_adds_the_copy_and_two_hide_it(rows: dict[str, Row]) -> None:
    one, two, copy = (rows[key].ours or 0.0 for key in ("serial", "double", "copy-alone"))
    assert one - two == pytest.approx(copy, abs=4.0)
    assert rows["serial-gaussian"].within and rows["double-gumbel"].within


# [Al-Mouhamed]
def test_surges_hold_up_pictures_more_than_forces(rows: dict[str, Row]) -> None:
    assert rows["surge"].within
    assert (rows["route-a-busy-frames"].ours or 0.0) > (rows["double-high"].ours or 99.0)


# [Al-Mouhamed]
def test_bursts_spread_the_times_between_frames_to_twice_the_least(rows: dict[str, Row]) -> None:
    low, high = (rows[f"route-c-bursts-{end}"].ours or 0.0 for end in ("low", "high"))
    assert rows["route-c-bursts-low"].within and rows["route-c-bursts-high"].within
    assert high > 1.6 * low


# [Al-Mouhamed]
def test_force_is_told_apart_by_what_the_processor_does_meanwhile(rows: dict[str, Row]) -> None:
    copied_ms, sent_ms = 1e3 / (rows["force-video-rate"].ours or 1.0), rows["force-sent"].ours or 99.0
    assert sent_ms < 0.5 * copied_ms, "only a copy takes turns from the force"


def test_a_moment_lies_in_a_span_or_between_two() -> None:
    at, begun, ended = (np.array(times) for times in ([0, 5, 10, 12, 20, 31], [5, 20], [10, 30]))
    assert during(at, begun, ended).tolist() == [False, True, True, False, True, False]


# [Al-Mouhamed]
def test_the_busy_force_is_judged_at_both_ends_of_the_published_scatter(rows: dict[str, Row]) -> None:
    entry = rows["route-a-busy-force"].expected
    assert entry.holds(8.0) and entry.holds(30.0)
    assert not entry.holds(7.9) and not entry.holds(30.1)


def test_what_is_said_to_be_set_was_set(not_set: list[str]) -> None:
    assert not_set == []


def test_what_is_not_within_says_why(study: Study) -> None:
    assert {row.key for row in study.rows} == set(study.expected)
    wrong = {row.key for row in study.rows if row.within is not True}
    assert wrong == {
        row.key for row in study.rows if row.ours is not None and row.expected.explains(row.ours)
    }
    assert study.out is not None
    assert all((study.out / f"{name}.png").stat().st_size > 10_000 for name, _ in study.figures)


# [Al-Mouhamed]
def test_real_pictures_arrive_as_they_were_taken(rows: dict[str, Row]) -> None:
    assert rows["double-real-whole"].ours == pytest.approx(1.0)


# [Al-Mouhamed]
def test_raw_pictures_win_where_the_link_is_fast_enough() -> None:
    rates, raw, coded = (10.0, 100.0, 1000.0), (500.0, 50.0, 5.0), (40.0, 8.0, 6.0)
    assert crossing(rates, raw, coded) == pytest.approx(812.0, rel=0.005)
    assert crossing(rates, raw, raw) is None
