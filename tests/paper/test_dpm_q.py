"""`dpm-q` by its aims, in the short sweep of `tcpsbed reproduce dpm-q`."""

from __future__ import annotations

import pytest

from tcpsbed.reproduce.study import Row, Study
from tcpsbed.reproduce.works import find


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """All settings, short."""
    return find("dpm-q").reproduce(tmp_path_factory.mktemp("figures"), full=False)


@pytest.fixture(scope="module")
def rows(study: Study) -> dict[str, Row]:
    """The rows by key."""
    return {row.key: row for row in study.rows}


def test_nothing_is_lost_and_clocks_do_not_matter(rows: dict[str, Row]) -> None:
    assert rows["loss"].ours == 0.0
    assert rows["clocks"].within


def test_up_to_540_bytes_it_stays_near_the_oracle_and_comes_back(rows: dict[str, Row]) -> None:
    assert rows["oracle"].within
    assert (rows["return"].ours or 9.0) < 0.6
    assert (rows["low-rates"].ours or 0.0) > 1060.0


def test_both_figures_are_drawn(study: Study) -> None:
    assert {name for name, _ in study.figures} == {"trade", "readings"}
