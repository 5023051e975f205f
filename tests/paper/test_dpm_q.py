"""`dpm-q` by its aims, in the short sweep of `tcpsbed reproduce dpm-q`."""

from __future__ import annotations

from tcpsbed.lab.reproduce import dpm_q
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study

WORK, LONG = "dpm-q", True


def test_nothing_is_lost(rows: dict[str, Row]) -> None:
    assert rows["loss"].within and rows["loss-held"].within


def test_clocks_do_not_matter_to_delays() -> None:
    alone = Study(WORK, None, full=False)
    dpm_q.clocks(alone)
    rows = {row.key: row for row in alone.rows}
    assert rows["clocks"].within and rows["clocks-back"].within
    assert rows["clocks-rate"].within


def test_up_to_540_bytes_it_stays_near_the_oracle(rows: dict[str, Row]) -> None:
    assert rows["late"].within and rows["oracle"].within


def test_a_second_step_is_answered_as_the_first_is(rows: dict[str, Row]) -> None:
    assert rows["late-again"].within and rows["return-again"].within


def test_it_comes_back_within_half_a_second_and_lone_packets_cost_little(rows: dict[str, Row]) -> None:
    assert rows["return"].within and rows["return-1054"].within and rows["return-held"].within
    assert rows["low-rates"].within and rows["low-rates-1054"].within


def test_what_is_not_within_is_known(study: Study, unexplained: list[str]) -> None:
    assert unexplained == [] and all(row.within is not None for row in study.rows)


def test_what_misses_an_aim_misses_it_by_no_more_than_it_did(rows: dict[str, Row]) -> None:
    for key, bound in (
        ("late-1054", 2),
        ("oracle-1054", 4.93),
        ("late-held", 1),
        ("clocks-return", 129.1),
        ("oracle-held", 2.27),
        ("oracle-again", 3.27),
    ):
        ours = rows[key].ours
        assert ours is not None and ours <= bound, key
    noisy = rows["low-rates-noisy"].ours
    assert noisy is not None and noisy >= 970.0


def test_all_figures_are_drawn(study: Study) -> None:
    assert {name for name, _ in study.figures} == {"trade", "readings", "held-out"}
