"""The rule that says how many echoes are enough, intervals, and the table of latencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from analysis_run import recorded, write
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.analysis import Confidence, Run, stats
from tcpsbed.analysis.latency import Moments, processor_rows, spacing_rows


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


def test_an_interval_across_seeds() -> None:
    runs = [{"flows": {"haptic": {"delay_ms": {"p99": value}}}} for value in (8.0, 9.0, 10.0, 11.0, 12.0)]
    found = stats.across(runs, "flows", "haptic", "delay_ms", "p99")
    assert (found.n, found.mean) == (5, 10)
    assert found.half == pytest.approx(2.77645 * 2.5**0.5 / 5**0.5, rel=1e-4)
    assert stats.across(runs, "flows", "audio").n == 0
    assert stats.interval([3.0]).half is None


def test_percentiles_of_values() -> None:
    found = stats.distribution(list(range(1, 1001)))
    assert (found["p50"], found["p95"], found["p99"], found["p999"], found["max"]) == (
        500,
        950,
        990,
        999,
        1000,
    )


# [PROTOCOLS 6.1] [Polachan 2022]
def test_the_rule_stops_when_the_half_width_is_5_percent_of_the_mean() -> None:
    # Deviation half of the mean: 1.96 * 0.5 / sqrt(n) = 0.05 at n = 384.
    values = np.random.default_rng(1).normal(10, 5, 2000).tolist()
    rule = Confidence()
    while not rule.satisfied:
        n = rule.means["srv.exit"].n if rule.means else 0
        rule.add("srv.exit", values[n : n + 10])
    assert 300 < rule.means["srv.exit"].n < 480
    assert rule.means["srv.exit"].n % rule.check_every == 0


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


def test_a_constant_stops_at_the_floor_and_noise_at_the_cap() -> None:
    rule = Confidence(rel=0.01, cap=100)
    rule.add("still", [4.0] * 30)
    assert rule.satisfied
    rule.add("noise", [0.0, 100.0] * 49)
    assert (rule.satisfied, rule.open) == (False, ["noise"])
    rule.add("noise", [0.0, 100.0])
    assert (rule.satisfied, rule.capped) == (True, ["noise"])


def test_rows_of_successive_chunks_feed_the_rule_by_point() -> None:
    rule = Confidence()
    for chunk in np.array_split(recorded(), 5):
        rule.add_rows(chunk)
    assert {key: m.n for key, m in rule.means.items()} == {(0, 2): 67, (0, 3): 67, (0, 4): 66}
    assert rule.means[0, 4].mean == pytest.approx(10.5)
    assert rule.satisfied


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_moments_are_those_of_numpy(values: list[float]) -> None:
    moments = Moments()
    for value in values:
        moments.add(value)
    assert moments.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    half = stats.interval(values).half
    assert half is not None
    assert moments.half_width() == pytest.approx(half, rel=1e-6, abs=1e-6)


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


def test_spacing_has_a_row_for_arrivals_and_one_for_their_variation(tmp_path: Path) -> None:
    arrivals, variation = spacing_rows(Run(write(tmp_path)).summary)
    assert (arrivals["what"], arrivals["min"], arrivals["max"]) == ("interarrival", 1.0, 2.0)
    assert arrivals["gumbel"]["scale"] == pytest.approx(arrivals["sd"] * 6**0.5 / np.pi)
    assert arrivals["gaussian"]["distance"] > 0.4
    assert (variation["what"], variation["max"]) == ("ipdv", 0.0)


def test_processor_time_adds_up_by_component(tmp_path: Path) -> None:
    run = Run(write(tmp_path))
    hook, whole = processor_rows(run.summary)
    assert (hook["hook"], hook["mean_us"], hook["p99_us"]) == ("wrist", 1.3, 2.1)
    assert (whole["component"], whole["hook"], whole["core_share"]) == ("srv", "all", hook["core_share"])
