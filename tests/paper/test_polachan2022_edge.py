"""Polachan et al. 2022, prediction at the edge and the step experiment, by the short sweep of `tcpsbed reproduce`."""

from __future__ import annotations

import pytest

from tcpsbed.reproduce.study import Row, Study
from tcpsbed.reproduce.works import find


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """All experiments, short."""
    return find("polachan2022-edge").reproduce(tmp_path_factory.mktemp("figures"), full=False)


@pytest.fixture(scope="module")
def rows(study: Study) -> dict[str, Row]:
    """The rows by key."""
    return {row.key: row for row in study.rows}


# [PROTOCOLS 6.3] [Polachan 2022]
def test_no_toggle_is_lost_at_half_of_the_packets(rows: dict[str, Row]) -> None:
    assert rows["lost-with"].ours == 0 and rows["lost-without"].within


# [PROTOCOLS 6.3] the n-th copy is the first to come with 2^-n; intervals within 3 ms of 100 ms for 90 % of toggles
def test_delays_are_geometric_and_the_rhythm_is_kept(rows: dict[str, Row]) -> None:
    assert all(rows[f"delay-{n}"].within for n in range(1, 6)), [rows[f"delay-{n}"].ours for n in range(1, 6)]
    assert rows["delay-mean"].within and rows["interval-p90"].within


def test_an_edge_behind_the_last_mile_restores_nothing(rows: dict[str, Row]) -> None:
    behind, without = rows["lost-behind"].ours, rows["lost-without"].ours
    assert behind is not None and without is not None and abs(behind - without) < 10


# [PROTOCOLS 6.2] [Polachan 2022]
def test_thirty_percent_of_drops_cost_twenty_percent_of_overshoot(rows: dict[str, Row]) -> None:
    assert all(rows[f"{what}-{rtt}"].within for what in ("overshoot", "beyond") for rtt in (2, 5, 10, 20))


def test_figures_are_drawn_and_what_is_not_known_is_said(study: Study, rows: dict[str, Row]) -> None:
    assert [name for name, _ in study.figures] == ["figure5", "figure15", "figure16"]
    assert rows["figure5"].within is None and "not known" in rows["figure5"].reason
