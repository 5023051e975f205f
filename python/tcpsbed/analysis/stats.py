"""Confidence intervals of means, paired comparisons, and tests: each with the size of its effect.

```text
d = a - b of each pair (a seed, a subject)      mean(d) ± t s / sqrt(n), and its bootstrap interval (BCa)
paired t     Hedges' g of d = J mean(d) / sd(d), J = 1 - 3 / (4 (n - 1) - 1)
Wilcoxon     rank-biserial correlation = (W+ - W-) / (W+ + W-)
Friedman     Kendall's W = chi² / (n (k - 1))
```
Distributions and bootstrap are those of scipy (extra `stats`); without it there are intervals and effects, and no p.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcpsbed._tcps import t975 as t975

REMEDY = "p-values and bootstrap intervals need scipy: pip install 'tcpsbed[stats]'"
"""What is said where it is missing."""
FEWEST_TESTED = 3
"""Differences of which there is a t-test: of two hardly any is shown."""
FEWEST_RESAMPLED = 5
"""Values of which a bootstrap interval is made: of fewer there are hardly any different resamples."""
_RESAMPLES, _SEED = 9999, 1
BIN = 1 / 1024
"""Width of the bins that percentiles are read from, as a share of the value (`tcps-analysis/src/histogram.rs`)."""
_SAME = 1e-12
"""Deviation, relative to the largest value, below which values are taken as equal: what remains is rounding."""
HEDGES_G, RANK_BISERIAL, KENDALLS_W = "Hedges' g", "rank-biserial correlation", "Kendall's W"


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % interval (none for fewer than two values)."""

    n: int
    mean: float
    half: float | None

    def __str__(self) -> str:
        half = "" if self.half is None else f" ± {self.half:.4g}"
        return f"{self.mean:.6g}{half} (n = {self.n})"


@dataclass(frozen=True)
class Test:
    """A two-sided test with the size of its effect.

    Attributes
    ----------
    name : str
        `paired t`, `Wilcoxon` or `Friedman`.
    effect_name : str
        Which effect size it has.
    effect : float
        Its value.
    statistic, p : float or None
        t, the smaller sum of ranks, or chi²; the p-value. None without scipy, and where t is not defined.
    p_holm : float or None
        Corrected for the number of tests, once they are known (`corrected`).
    """

    name: str
    effect_name: str
    effect: float
    statistic: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Paired:
    """Differences of pairs.

    Attributes
    ----------
    difference : Interval
        Their mean with its t interval.
    bootstrap : tuple of float or None
        Ends of its 95 % bootstrap interval (BCa); None for fewer than `FEWEST_RESAMPLED` pairs or equal differences.
    t, wilcoxon : Test or None
        Tests of whether it is 0; None where all differences are equal, or there are too few for an effect size.
    """

    difference: Interval
    bootstrap: tuple[float, float] | None
    t: Test | None
    wilcoxon: Test | None


def interval(values: Sequence[float], bin: float = 0.0) -> Interval:
    """Mean of independent values, for example one of each seed, with its interval.

    Parameters
    ----------
    values
        In any unit.
    bin
        Width of the bins that they are read from, in the same unit: an interval is never narrower than one of them.
    """
    n = len(values)
    if n == 0:
        return Interval(0, math.nan, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(1, mean, None)
    return Interval(n, mean, max(t975(n - 1) * _deviation(values, mean) / math.sqrt(n), bin / 2))


def _deviation(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def paired(differences: Sequence[float], bin: float = 0.0) -> Paired:
    """Compares two conditions by the differences of their pairs, in any unit; `bin` as of `interval`."""
    return Paired(
        interval(differences, bin), bootstrap(differences), t_test(differences), wilcoxon(differences)
    )


def t_test(differences: Sequence[float]) -> Test | None:
    """The paired t-test, n - 1 degrees of freedom; None of fewer than three differences, or equal ones."""
    n = len(differences)
    if n < FEWEST_TESTED or _equal(differences):
        return None
    mean = math.fsum(differences) / n
    deviation = _deviation(differences, mean)
    t = mean / (deviation / math.sqrt(n))
    found = Test("paired t", HEDGES_G, small_sample(n - 1) * mean / deviation, t)
    scipy = _scipy()
    return found if scipy is None else replace(found, p=float(2 * scipy.t.sf(abs(t), n - 1)))


# [Hedges 1981] the correction of a standardised mean difference in small samples
def small_sample(freedom: int) -> float:
    """J, which takes the bias from a standardised mean difference: 1 - 3 / (4 m - 1) for m degrees of freedom."""
    return 1 - 3 / (4 * freedom - 1)


# [Wilcoxon 1945] signed ranks; [Kerby 2014] their effect: the share of ranks for less the share against
def wilcoxon(differences: Sequence[float]) -> Test | None:
    """The signed-rank test, without differences of 0; None if there are no others.

    The p-value is that of `scipy.stats.wilcoxon`: exact for few values without ties.
    """
    known = [value for value in differences if value != 0]
    if not known:
        return None
    ranks = _ranks([abs(value) for value in known])
    plus = math.fsum(rank for rank, value in zip(ranks, known, strict=True) if value > 0)
    minus = math.fsum(ranks) - plus
    found = Test("Wilcoxon", RANK_BISERIAL, (plus - minus) / (plus + minus), min(plus, minus))
    scipy = _scipy()
    return found if scipy is None else replace(found, p=float(scipy.wilcoxon(known).pvalue))


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 on; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]


# [Friedman 1937] ranks within blocks
def friedman(blocks: Sequence[Sequence[float]]) -> Test | None:
    """Friedman's test of three conditions or more; None of fewer, of one block, without scipy, or if all values are equal.

    Parameters
    ----------
    blocks
        Of each subject a value for each condition, shape (n, k).
    """
    scipy = _scipy()
    if scipy is None or len(blocks) < 2 or len(blocks[0]) < 3 or all(len(set(row)) == 1 for row in blocks):
        return None
    found = scipy.friedmanchisquare(*zip(*blocks, strict=True))
    effect = float(found.statistic) / (len(blocks) * (len(blocks[0]) - 1))
    return Test("Friedman", KENDALLS_W, effect, float(found.statistic), float(found.pvalue))


# [Efron 1987] bias-corrected and accelerated
def bootstrap(values: Sequence[float]) -> tuple[float, float] | None:
    """Ends of the 95 % bootstrap interval of the mean, the same at each call; None without scipy, or as of `Paired`."""
    scipy = _scipy()
    if scipy is None or len(values) < FEWEST_RESAMPLED or _equal(values):
        return None
    import numpy as np

    drawn = np.random.default_rng(_SEED)
    found = scipy.bootstrap(
        (np.asarray(values, dtype=np.float64),), np.mean, n_resamples=_RESAMPLES, random_state=drawn
    ).confidence_interval
    return float(found.low), float(found.high)


# [Holm 1979]
def holm(p: Sequence[float]) -> list[float]:
    """Values of p, each times the number of tests that are not smaller, never falling with p, at most 1."""
    corrected = [0.0] * len(p)
    most = 0.0
    for rank, number in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        most = max(most, min(1.0, p[number] * (len(p) - rank)))
        corrected[number] = most
    return corrected


def corrected(tests: Sequence[Test | None]) -> list[Test | None]:
    """The same tests with the p of all of them corrected together."""
    values = iter(holm([one.p for one in tests if one is not None and one.p is not None]))
    return [one if one is None or one.p is None else replace(one, p_holm=next(values)) for one in tests]


def _equal(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= _SAME * max(map(abs, values))


def available() -> bool:
    """Whether scipy is installed."""
    return _scipy() is not None


def _scipy() -> Any:
    """`scipy.stats`; None where it is not installed."""
    try:
        from scipy import stats
    except ImportError:
        return None
    return stats
