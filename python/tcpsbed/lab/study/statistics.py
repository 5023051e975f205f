"""Means of ratings, and paired t-tests between conditions.

```text
d = a - b of each subject who rated both      t = mean(d) / (sd(d) / sqrt(n)), n - 1 degrees of freedom
effect size d_z = mean(d) / sd(d)             p of all tests corrected together by Holm's step-down rule
```
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tcpsbed.analysis.stats import t975
from tcpsbed.lab.study.ratings import SCALES, Rating


@dataclass(frozen=True)
class Mean:
    """Mean and deviation of the grades of a condition on a scale."""

    condition: str
    scale: str
    n: int
    mean: float
    sd: float | None
    """Standard deviation, n - 1; none of fewer than two."""


@dataclass(frozen=True)
class Comparison:
    """A paired t-test of two conditions on a scale."""

    first: str
    second: str
    scale: str
    n: int
    """Subjects who rated both."""
    difference: float
    """Mean of first minus second."""
    half: float | None
    """Half width of its 95 % interval."""
    t: float | None
    """None where all subjects differ by the same, or fewer than two rated both."""
    p: float | None
    """Two-sided."""
    p_holm: float | None
    """Corrected for the number of tests."""
    effect: float | None
    """Cohen's d_z."""


def means(ratings: Sequence[Rating], conditions: Sequence[str]) -> list[Mean]:
    """Each condition on each scale, without unrated ones."""
    found = []
    for condition, scale in itertools.product(conditions, SCALES):
        grades = [rating.grades[scale] for rating in ratings if rating.condition == condition]
        if grades:
            sd = stdev(grades) if len(grades) > 1 else None
            found.append(Mean(condition, scale, len(grades), fmean(grades), sd))
    return found


# [Gokhale 2017] paired t-test over subjects
def comparisons(ratings: Sequence[Rating], conditions: Sequence[str]) -> list[Comparison]:
    """Each pair of conditions on each scale, with the p of all of them corrected together."""
    grades = {(r.subject, r.condition): r.grades for r in ratings}
    subjects = sorted({r.subject for r in ratings})
    found = []
    for scale, (first, second) in itertools.product(SCALES, itertools.combinations(conditions, 2)):
        both = [s for s in subjects if (s, first) in grades and (s, second) in grades]
        if both:
            differences = [float(grades[s, first][scale] - grades[s, second][scale]) for s in both]
            found.append(_compared(first, second, scale, differences))
    corrected = iter(holm([pair.p for pair in found if pair.p is not None]))
    return [_with(pair, None if pair.p is None else next(corrected)) for pair in found]


def _with(pair: Comparison, p_holm: float | None) -> Comparison:
    return Comparison(**(vars(pair) | {"p_holm": p_holm}))


def _compared(first: str, second: str, scale: str, d: Sequence[float]) -> Comparison:
    n, mean = len(d), fmean(d)
    sd = stdev(d) if n > 1 else 0.0
    if sd == 0.0:
        return Comparison(first, second, scale, n, mean, None, None, None, None, None)
    error = sd / math.sqrt(n)
    t = mean / error
    return Comparison(
        first, second, scale, n, mean, t975(n - 1) * error, t, two_sided(t, n - 1), None, mean / sd
    )


# [Holm 1979]
def holm(p: Sequence[float]) -> list[float]:
    """Values of p, each times the number of tests that are not smaller, never falling with p, at most 1."""
    corrected = [0.0] * len(p)
    most = 0.0
    for rank, number in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        most = max(most, min(1.0, p[number] * (len(p) - rank)))
        corrected[number] = most
    return corrected


def two_sided(t: float, freedom: int) -> float:
    """The probability of a Student's t at least as far from zero: I_x(freedom / 2, 1 / 2), x = freedom / (freedom + t²)."""
    square = t * t
    return _beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function I_x(a, b); `rest` is 1 - x, which may be too small to be had from x."""
    if x <= 0.0 or rest <= 0.0:
        return float(rest <= 0.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by the method of Lentz."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    h = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        h *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return h
