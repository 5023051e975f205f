"""Abdullah and Monnet 2023: RTP over an LTE-like access, by the short sweep of `tcpsbed reproduce`."""

from __future__ import annotations

import pytest

from tcpsbed.reproduce.study import Row, Study
from tcpsbed.reproduce.works import find

EXTREMES = {"up-max", "down-max", "trip-max"}
"""Largest values: the model's tails are lighter than those of the measurement."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """All experiments of the paper, short."""
    return find("abdullah2023").reproduce(tmp_path_factory.mktemp("figures"), full=False)


@pytest.fixture(scope="module")
def rows(study: Study) -> dict[str, Row]:
    """The rows by key."""
    return {row.key: row for row in study.rows}


# [PROTOCOLS 5]
def test_delays_up_down_and_both_are_the_published_ones(rows: dict[str, Row]) -> None:
    assert all(rows[f"{way}-{what}"].within for way in ("up", "down", "trip") for what in ("mean", "min"))
    assert rows["duration"].within and rows["loss"].within


# [PROTOCOLS 5]
def test_what_is_not_within_are_extremes(study: Study) -> None:
    assert {row.key for row in study.rows if row.within is False} == EXTREMES
    assert {row.key for row in study.rows if row.within is None} == {"stream-mean"}
    assert len(study.figures) == 8


# [PROTOCOLS 5]
@pytest.mark.needs("ns3")
def test_the_lte_of_ns3_takes_as_long_on_the_air(rows: dict[str, Row]) -> None:
    assert all(rows[f"ns3-{what}"].within for what in ("up", "down", "loss"))
    # Streamed packets are granted with the ones before: no request, and less than half of the delay.
    assert (rows["ns3-stream"].ours or 0.0) < 0.5 * (rows["ns3-up"].ours or 0.0)


def test_without_ns3_its_rows_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpsbed.reproduce.abdullah2023 import over_ns3
    from tcpsbed.worlds import ns3_program

    monkeypatch.setattr(ns3_program, "MODULES", ("ns3-that-is-not-there",))
    alone = Study("abdullah2023", None)
    over_ns3(alone, 1000)
    assert len(alone.rows) == 4
    assert all(row.within is None and "libns3-dev" in row.reason for row in alone.rows)
