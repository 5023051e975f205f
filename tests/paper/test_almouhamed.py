"""Al-Mouhamed: force and stereo pictures over a campus, by the short runs of `tcpsbed reproduce`."""

from __future__ import annotations

import pytest

from tcpsbed.reproduce.almouhamed import crossing
from tcpsbed.reproduce.study import Row, Study

WORK = "almouhamed"
NOT_WITHIN = {"copy-reading", "force-commands"}
"""Threads that take equal turns double the time of a copy, in the paper it grows by 2.5; and the sockets of the paper
give the thread of the force more turns than ours."""


# [PROTOCOLS 7]
def test_copies_take_longer_as_threads_compete(rows: dict[str, Row]) -> None:
    alone, sending, reading = (rows[f"copy-{name}"].ours or 0.0 for name in ("alone", "sending", "reading"))
    assert 1.2 < sending / alone < 1.5 and 1.9 < reading / alone < 2.2


# [PROTOCOLS 7]
def test_one_buffer_adds_the_copy_and_two_hide_it(rows: dict[str, Row]) -> None:
    one, two, copy = (rows[key].ours or 0.0 for key in ("serial", "double", "copy-alone"))
    assert one - two == pytest.approx(copy, abs=4.0)
    assert rows["serial-gaussian"].within and rows["double-gumbel"].within


# [PROTOCOLS 7]
def test_surges_hold_up_pictures_more_than_forces(rows: dict[str, Row]) -> None:
    assert rows["surge"].within and rows["route-a-busy-force"].within
    assert (rows["route-a-busy-high"].ours or 0.0) > (rows["double-high"].ours or 99.0)


# [PROTOCOLS 7]
def test_bursts_spread_the_times_between_frames_to_twice_the_least(rows: dict[str, Row]) -> None:
    low, high = (rows[f"route-c-bursts-{end}"].ours or 0.0 for end in ("low", "high"))
    assert rows["route-c-bursts-low"].within and rows["route-c-bursts-high"].within
    assert high > 1.6 * low


def test_what_is_not_within_is_known(study: Study) -> None:
    assert {row.key for row in study.rows if row.within is not True} == NOT_WITHIN
    assert study.out is not None
    assert all((study.out / f"{name}.png").stat().st_size > 10_000 for name, _ in study.figures)


# [PROTOCOLS 7]
def test_real_pictures_arrive_as_they_were_taken(rows: dict[str, Row]) -> None:
    assert rows["double-real-whole"].ours == pytest.approx(1.0)
    assert rows["double-real"].ours == pytest.approx(rows["double"].ours, rel=0.02)


# [PROTOCOLS 7]
def test_raw_pictures_win_where_the_link_is_fast_enough() -> None:
    rates, raw, coded = (10.0, 100.0, 1000.0), (500.0, 50.0, 5.0), (40.0, 8.0, 6.0)
    assert crossing(rates, raw, coded) == pytest.approx(812.0, rel=0.005)
    assert crossing(rates, raw, raw) is None
