"""Means of ratings, and comparisons of conditions over the subjects who rated them.

```text
two conditions     d = a - b of each subject who rated both: paired t-test and Wilcoxon's signed ranks
three and more     Friedman's test over the subjects who rated all
```
The p of all t-tests are corrected together by Holm's step-down rule, and so are those of Wilcoxon and of Friedman
(`tcpsbed.analysis.stats`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from tcpsbed.analysis import stats
from tcpsbed.analysis.stats import Test
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
    """Two conditions on a scale."""

    first: str
    second: str
    scale: str
    n: int
    """Subjects who rated both."""
    difference: float
    """Mean of first minus second."""
    half: float | None
    """Half width of its 95 % interval; None where all subjects differ by the same, or fewer than two rated both."""
    bootstrap: tuple[float, float] | None
    """Its 95 % bootstrap interval."""
    t: Test | None
    """None where all subjects differ by the same, or fewer than three rated both."""
    wilcoxon: Test | None
    """None where nobody gave another grade."""


@dataclass(frozen=True)
class Overall:
    """All conditions on a scale."""

    scale: str
    n: int
    """Subjects who rated all."""
    friedman: Test | None


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
    """Each pair of conditions on each scale, with the p of all of them corrected together, test by test."""
    grades = {(r.subject, r.condition): r.grades for r in ratings}
    subjects = sorted({r.subject for r in ratings})
    found = []
    for scale, (first, second) in itertools.product(SCALES, itertools.combinations(conditions, 2)):
        both = [s for s in subjects if (s, first) in grades and (s, second) in grades]
        if both:
            differences = [float(grades[s, first][scale] - grades[s, second][scale]) for s in both]
            found.append(_compared(first, second, scale, differences))
    t = stats.corrected([pair.t for pair in found])
    ranks = stats.corrected([pair.wilcoxon for pair in found])
    return [replace(pair, t=a, wilcoxon=b) for pair, a, b in zip(found, t, ranks, strict=True)]


def _compared(first: str, second: str, scale: str, differences: Sequence[float]) -> Comparison:
    found = stats.paired(differences)
    mean = found.difference
    half = mean.half or None
    return Comparison(
        *(first, second, scale, mean.n, mean.mean, half, found.bootstrap, found.t, found.wilcoxon)
    )


def overall(ratings: Sequence[Rating], conditions: Sequence[str]) -> list[Overall]:
    """Friedman's test on each scale, of three conditions or more."""
    if len(conditions) < 3:
        return []
    grades = {(r.subject, r.condition): r.grades for r in ratings}
    subjects = sorted({r.subject for r in ratings})
    whole = [s for s in subjects if all((s, name) in grades for name in conditions)]
    found = {
        scale: stats.friedman([[float(grades[s, name][scale]) for name in conditions] for s in whole])
        if whole
        else None
        for scale in SCALES
    }
    tests = stats.corrected(list(found.values()))
    return [Overall(scale, len(whole), test) for scale, test in zip(found, tests, strict=True)]
