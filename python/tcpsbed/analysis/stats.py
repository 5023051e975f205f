"""Confidence intervals of means, within a run and across seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcpsbed._tcps import t975 as t975


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
