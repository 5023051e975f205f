"""The rule that says how many echoes are enough, intervals, and the table of latencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from analysis_run import write

from tcpsbed import Run
from tcpsbed.analysis import Confidence, stats


# [Hill 1970]
@pytest.mark.parametrize(
    ("freedom", "printed"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (4, 2.77645),
        (9, 2.26216),
        (19, 2.09302),
        (29, 2.04523),
        (99, 1.98422),
    ],
)
def test_t_is_that_of_the_printed_tables(freedom: int, printed: float) -> None:
    assert stats.t975(freedom) == pytest.approx(printed, rel=5e-5)


def test_an_interval_of_five_seeds() -> None:
    found = stats.interval([8.0, 9.0, 10.0, 11.0, 12.0])
    assert (found.n, found.mean) == (5, 10)
    assert found.half == pytest.approx(2.77645 * 2.5**0.5 / 5**0.5, rel=1e-4)
    assert stats.interval([3.0]).half is None and stats.interval([]).n == 0


# [Polachan 2022: echoes] [Polachan 2022]
def test_the_rule_stops_when_the_half_width_is_5_percent_of_the_mean() -> None:
    """Deviation half of the mean: 1.96 * 0.5 / sqrt(n) = 0.05 at n = 384."""
    values = np.random.default_rng(1).normal(10, 5, 2000).tolist()
    rule, n = Confidence(), 30
    for _ in range(20):
        found = stats.interval(values[:n])
        assert found.half is not None
        if (wanted := rule.needed(n, found.mean, found.half)) == n:
            break
        n = wanted
    assert 300 < n < 480


@pytest.mark.parametrize(
    ("n", "half", "wanted"),
    [
        (10, 0.0, 30),
        (30, 0.5, 30),
        (30, 1.0, 120),
        (100, 0.6, 150),
        (5000, 2.0, 20_000),
        (20_000, 9.0, 20_000),
    ],
)
def test_what_a_mean_of_10_needs(n: int, half: float, wanted: int) -> None:
    assert Confidence().needed(n, 10.0, half) == wanted


def test_a_share_that_no_number_of_echoes_reaches_asks_for_the_cap() -> None:
    assert Confidence(rel=1e-300).needed(30, 10.0, 1.0) == 20_000


def test_the_table_has_a_row_for_each_number_and_says_where_it_is_from(tmp_path: Path) -> None:
    run = Run(write(tmp_path))
    table = run.latency
    assert table["srv"]["mean"] == 0.5
    found = [(row["what"], row["name"], row["mean"], row["from"]) for row in table]
    assert ("delay", "kinematic", 5.5, "samples") in found
    assert ("echo", "robot.entry", 10.5, "round trip") in found
    assert ("link", "srv -> robot", 3.0, "round trip / 2") in found
    lines = repr(table).splitlines()
    assert len(lines) == len(table) + 1
    assert lines[0].split()[:3] == ["flow", "what", "name"]
    assert "<td>srv.exit</td>" in table._repr_html_()
    with pytest.raises(KeyError):
        table["nowhere"]
