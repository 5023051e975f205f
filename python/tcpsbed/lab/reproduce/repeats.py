"""Repeats: precision of means and differences, and runs as long as a precision needs.

A difference counts as above zero if the lower end of its 95 % interval is, and as below if the upper end is: a sign that
repeats do not settle is none. A mean is known well enough by the rule of `tcpsbed latency`: half width of the 95 % interval
at most 5 % of it (Polachan 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from tcpsbed.analysis import Confidence
from tcpsbed.analysis.stats import Interval, interval, t975

T = TypeVar("T")
RULE = Confidence()
GROWTH = 4.0
"""The next run is at most this many times as long: a rare late value makes a short one ask for too much."""


def low(mean: Interval) -> float:
    """Lower end of an interval; minus infinity for a single value, whose sign is not certain."""
    return mean.mean - (math.inf if mean.half is None else mean.half)


def high(mean: Interval) -> float:
    """Upper end of an interval; infinity for a single value."""
    return mean.mean + (math.inf if mean.half is None else mean.half)


# [Welch 1947] two means of unequal variance
def apart(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Mean of `first` less that of `second`, by the interval of Welch 1947 (Biometrika 34).

    Examples
    --------
    >>> apart([3.0, 3.0], [1.0, 1.0])
    Interval(n=4, mean=2.0, half=0.0)
    """
    one, two = interval(first), interval(second)
    mean, n = one.mean - two.mean, one.n + two.n
    if one.half is None or two.half is None:
        return Interval(n, mean, None)
    squares = [(part.half or 0.0) / t975(part.n - 1) for part in (one, two)]
    a, b = (square * square for square in squares)
    if a + b == 0:
        return Interval(n, mean, 0.0)
    freedom = (a + b) ** 2 / (a * a / (one.n - 1) + b * b / (two.n - 1))
    return Interval(n, mean, t975(max(1, math.floor(freedom))) * math.sqrt(a + b))


def settled(
    run: Callable[[float], T], means: Callable[[T], Iterable[Interval]], seconds: float, longest_s: float
) -> T:
    """The last of ever longer runs: every mean is known by the rule, or there is no time left (see `margin`).

    Parameters
    ----------
    run
        Runs for so many seconds.
    means
        The means of a run with their intervals.
    seconds, longest_s
        Length of the first run, and of the longest.
    """
    while True:
        found = run(seconds)
        more = max((longer(mean) for mean in means(found)), default=math.inf)
        if more <= 1.0 or seconds >= longest_s:
            return found
        seconds = min(seconds * min(max(1.15 * more, 1.5), GROWTH), longest_s)


def margin(means: Iterable[Interval]) -> str:
    """Whether means are known by the rule, in words."""
    wide = [longer(mean) > 1.0 for mean in means]
    return (
        f"NOT every mean known within 5 % ({sum(wide)} of {len(wide)})"
        if any(wide)
        else "every mean known within 5 %"
    )


def longer(mean: Interval) -> float:
    """How many times as many values a mean needs; 1 or less if it has enough."""
    if mean.n == 0 or mean.half is None:
        return math.inf
    return RULE.needed(mean.n, mean.mean, mean.half) / mean.n
