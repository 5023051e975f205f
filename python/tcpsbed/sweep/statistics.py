"""Means across seeds with their 95 % confidence intervals, plain and paired."""

from __future__ import annotations

import math
from collections.abc import Sequence

_T975 = (
    12.7062,
    4.3027,
    3.1824,
    2.7764,
    2.5706,
    2.4469,
    2.3646,
    2.3060,
    2.2622,
    2.2281,
    2.2010,
    2.1788,
    2.1604,
    2.1448,
    2.1314,
    2.1199,
    2.1098,
    2.1009,
    2.0930,
    2.0860,
    2.0796,
    2.0739,
    2.0687,
    2.0639,
    2.0595,
    2.0555,
    2.0518,
    2.0484,
    2.0452,
    2.0423,
)
_Z975 = 1.959963985


def t975(freedom: int) -> float:
    """The 0.975 quantile of Student's t: a table to 30 degrees of freedom, then the expansion in 1/freedom.

    [Abramowitz 1964 §26.7.5]
    """
    if freedom < 1:
        raise ValueError("Student's t needs one degree of freedom or more")
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z, n = _Z975, freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % interval; no half-width for fewer than two values."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, None
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, t975(n - 1) * spread / math.sqrt(n)


def paired(values: Sequence[float], first: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of the differences of runs with the same seeds."""
    return interval([value - base for value, base in zip(values, first, strict=True)])
