"""Paired comparisons: published worked examples, scipy itself, and that no p-value comes without the size of its effect."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as theirs

from tcpsbed.analysis import stats

# [Student 1908] additional hours of sleep by two drugs, ten patients.
SLEEP = (
    (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0),
    (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4),
)
# Darwin's 15 pairs of cross- and self-fertilised maize, eighths of an inch, as Fisher 1935 has them.
MAIZE = (49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0)
# Three ways to round first base, 22 players (Hollander and Wolfe 1973, table 7.1; `friedman.test` of R).
BASES = (
    (5.40, 5.50, 5.55), (5.85, 5.70, 5.75), (5.20, 5.60, 5.50), (5.55, 5.50, 5.40), (5.90, 5.85, 5.70),
    (5.45, 5.55, 5.60), (5.40, 5.40, 5.35), (5.45, 5.50, 5.35), (5.25, 5.15, 5.00), (5.85, 5.80, 5.70),
    (5.25, 5.20, 5.10), (5.65, 5.55, 5.45), (5.60, 5.35, 5.45), (5.05, 5.00, 4.95), (5.50, 5.50, 5.40),
    (5.45, 5.55, 5.50), (5.55, 5.55, 5.35), (5.45, 5.50, 5.55), (5.50, 5.45, 5.25), (5.65, 5.60, 5.40),
    (5.70, 5.65, 5.55), (6.30, 6.30, 6.25),
)  # fmt: skip

DIFFERENCES = [a - b for a, b in zip(*SLEEP, strict=True)]


def test_the_paired_t_test_of_student() -> None:
    """R's `t.test(extra ~ group, paired = TRUE)`: t = -4.0621, p = 0.002833, 95 % from -2.4598858 to -0.7001142."""
    found = stats.paired(DIFFERENCES)
    mean, test = found.difference, found.t
    assert mean.mean == pytest.approx(-1.58)
    assert (mean.mean - mean.half, mean.mean + mean.half) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)
    assert test.statistic == pytest.approx(-4.0621, abs=5e-5) and test.p == pytest.approx(0.002833, abs=5e-7)


def test_hedges_correction() -> None:
    """[Hedges 1981] As Borenstein et al. 2009, chapter 4, compute it: J = 0.9923 of 98, 0.9846 of 49 degrees of freedom."""
    assert stats.small_sample(98) == pytest.approx(0.9923, abs=5e-5)
    assert stats.small_sample(49) == pytest.approx(0.9846, abs=5e-5)
    deviation = np.std(DIFFERENCES, ddof=1)
    assert stats.t_test(DIFFERENCES).effect == pytest.approx(-1.58 / deviation * (1 - 3 / 35))


@pytest.mark.parametrize("freedom", [4, 9, 30])
def test_hedges_correction_takes_the_bias_away(freedom: int) -> None:
    """[Hedges 1981] The exact one is made of gamma functions."""
    exact = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    assert stats.small_sample(freedom) == pytest.approx(exact, abs=0.006)


def test_the_signed_ranks_of_maize() -> None:
    """[Wilcoxon 1945] Negative ranks sum to 24, p = 0.0413; [Kerby 2014] 96 of 120 for, 24 against: r = 0.60."""
    found = stats.wilcoxon(MAIZE)
    assert (found.statistic, found.effect) == (24.0, pytest.approx(0.6))
    assert found.p == pytest.approx(0.0413, abs=5e-5)
    assert stats.wilcoxon([-one for one in MAIZE]).effect == pytest.approx(-0.6)


def test_the_ranks_of_base_runners() -> None:
    """[Friedman 1937] Corrected for ties: chi² = 11.143, p = 0.003805; Kendall's W = chi² / 44."""
    found = stats.friedman(BASES)
    assert found.statistic == pytest.approx(11.143, abs=5e-4) and found.p == pytest.approx(0.003805, abs=5e-7)
    assert found.effect == pytest.approx(11.142857 / 44)
    alike = stats.friedman([(1, 2, 3), (4, 5, 6), (0, 7, 9)])
    assert alike.effect == pytest.approx(1.0)


def test_holm_by_hand() -> None:
    # [Holm 1979] 0.01 x 4, 0.02 x 3, then never below what came before
    assert stats.holm([0.04, 0.01, 0.02, 0.03]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    tests = [stats.Test("t", "g", 1.0, 2.0, p) for p in (0.04, 0.01)]
    assert [one.p_holm for one in stats.corrected([tests[0], None, tests[1]]) if one] == pytest.approx(
        [0.04, 0.02]
    )


finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@pytest.mark.slow
@given(st.lists(finite, min_size=3, max_size=30))
def test_everything_is_as_scipy_has_it(values: list[float]) -> None:
    found = stats.paired(values)
    if found.t is not None:
        assert found.t.p == pytest.approx(theirs.ttest_1samp(values, 0).pvalue, rel=1e-6, abs=1e-12)
    known = [value for value in values if value]
    if known:
        ours = theirs.wilcoxon(known)
        assert (found.wilcoxon.statistic, found.wilcoxon.p) == pytest.approx((ours.statistic, ours.pvalue))
        assert -1 <= found.wilcoxon.effect <= 1


def test_the_bootstrap_interval_is_that_of_scipy_and_stays() -> None:
    """[Efron 1987] BCa; other resamples give nearly the same ends."""
    low, high = stats.bootstrap(DIFFERENCES)
    assert (low, high) == stats.bootstrap(DIFFERENCES)
    other = theirs.bootstrap(
        (DIFFERENCES,), np.mean, random_state=np.random.default_rng(9)
    ).confidence_interval
    assert (low, high) == pytest.approx((other.low, other.high), abs=0.08)
    assert stats.bootstrap(DIFFERENCES[:4]) is None


def test_bootstrap_and_t_hold_the_mean_as_often_as_they_say() -> None:
    """200 samples of 20 values of a skewed law: 95 % each, less what so few skewed values cost (Efron 1987, section 4)."""
    drawn = np.random.default_rng(7)
    held = {"t": 0, "bootstrap": 0}
    for _ in range(200):
        values = drawn.exponential(1.0, 20).tolist()
        mean = stats.interval(values)
        low, high = stats.bootstrap(values)
        held["t"] += abs(mean.mean - 1) <= mean.half
        held["bootstrap"] += low <= 1 <= high
    assert all(0.86 * 200 <= count <= 0.98 * 200 for count in held.values()), held


@pytest.mark.parametrize("n", [2, 5, 20])
def test_intervals_of_the_same_law_are_rarely_apart(n: int) -> None:
    """Fewer than one pair in a hundred, as docs/archive.md says."""
    drawn = np.random.default_rng(n).normal(size=(2, 20_000, n))
    half = stats.t975(n - 1) * drawn.std(axis=2, ddof=1) / math.sqrt(n)
    apart = np.abs(drawn[0].mean(axis=1) - drawn[1].mean(axis=1)) > half.sum(axis=0)
    assert apart.mean() < 0.01


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0], [0.0] * 6, [0.1 + 0.2, 0.3, 0.3]])
def test_equal_and_few_differences_have_no_t(values: list[float]) -> None:
    found = stats.paired(values)
    assert found.t is None and found.bootstrap is None
    assert stats.friedman([[1, 1, 1], [2, 2, 2]]) is None and stats.friedman([[1, 2], [2, 3]]) is None


def test_no_p_without_an_effect() -> None:
    """By the type: a test cannot be made without it."""
    required = [one.name for one in dataclasses.fields(stats.Test) if one.default is dataclasses.MISSING]
    assert required == ["name", "effect_name", "effect"]


def test_without_scipy_intervals_and_effects_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stats.paired(DIFFERENCES)
    monkeypatch.setitem(sys.modules, "scipy", None)
    found = stats.paired(DIFFERENCES)
    assert found.difference == whole.difference and found.bootstrap is None and not stats.available()
    assert (found.t.effect, found.t.statistic, found.t.p) == (whole.t.effect, whole.t.statistic, None)
    assert found.wilcoxon.effect == whole.wilcoxon.effect and stats.friedman(BASES) is None
    assert stats.corrected([found.t]) == [found.t]
