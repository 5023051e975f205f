"""Confidence intervals of means, within a run and across seeds, with the standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_Z975 = NormalDist().inv_cdf(0.975)


def t975(freedom: int) -> float:
    """The 0.975 quantile of Student's t: exact for 1 and 2 degrees of freedom, six digits beyond.

    Hill 1970, algorithm 396 (Comm. ACM 13).
    """
    # [Hill 1970]
    if freedom < 1:
        return math.inf
    p = 0.05
    if freedom == 1:
        return 1 / math.tan(p * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (p * (2 - p)) - 2)
    n = float(freedom)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * p) ** (2 / n)
    if y > 0.05 + a:
        return math.sqrt(n * _near(n, a, b, c, d))
    tail = 1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3)
    return math.sqrt(n * (((tail + 0.5 / (n + 4)) * y - 1) * (n + 1) / (n + 2) + 1 / y))


def _near(n: float, a: float, b: float, c: float, d: float) -> float:
    """Hill's expansion about the normal quantile."""
    x = -_Z975
    y = x * x
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.expm1(a * y * y)


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % interval (none for fewer than two values)."""

    n: int
    mean: float
    half: float | None

    def __str__(self) -> str:
        half = "" if self.half is None else f" ± {self.half:.4g}"
        return f"{self.mean:.6g}{half} (n = {self.n})"


def interval(values: Sequence[float]) -> Interval:
    """Mean of independent values, for example one of each seed, with its interval."""
    n = len(values)
    if n == 0:
        return Interval(0, math.nan, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(1, mean, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Interval(n, mean, t975(n - 1) * sd / math.sqrt(n))
