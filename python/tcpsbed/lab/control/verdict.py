"""Verdicts of runs by limits, and the reliability over runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from tcpsbed.lab.control.response import Response

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Limits:
    """What a good response keeps: rise time in ms, the others in percent of the step."""

    rise_ms: float = math.inf
    overshoot: float = 20.0
    undershoot: float = math.inf

    # [Polachan 2022] good iff t_r <= T_max and overshoot <= O_max; a rise time that is never reached is bad
    def good(self, response: Response) -> bool:
        """Whether a response keeps all of them; one that never rises does not."""
        return (
            response.rise_ms <= self.rise_ms
            and response.overshoot <= self.overshoot
            and response.undershoot <= self.undershoot
        )

    def __str__(self) -> str:
        parts = [f"overshoot ≤ {self.overshoot:g} %"]
        if math.isfinite(self.rise_ms):
            parts.insert(0, f"rise time ≤ {self.rise_ms:g} ms")
        if math.isfinite(self.undershoot):
            parts.append(f"undershoot ≤ {self.undershoot:g} %")
        return ", ".join(parts)


@dataclass(frozen=True)
class Reliability:
    """The share of good runs with its 95 % interval."""

    good: int
    runs: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share."""
        return self.good / self.runs if self.runs else math.nan


def reliability(responses: Sequence[Response], limits: Limits) -> Reliability:
    """The share of good responses, with the interval of Wilson 1927 (JASA 22)."""
    return wilson(sum(limits.good(response) for response in responses), len(responses))


# [Wilson 1927] score interval of a proportion
def wilson(good: int, runs: int) -> Reliability:
    """The 95 % score interval of a share.

    Examples
    --------
    >>> found = wilson(9, 10)
    >>> round(found.low, 4), round(found.high, 4)
    (0.5958, 0.9821)
    """
    if runs == 0:
        return Reliability(0, 0, 0.0, 1.0)
    p, z2 = good / runs, _Z * _Z
    centre = (p + z2 / (2 * runs)) / (1 + z2 / runs)
    half = _Z / (1 + z2 / runs) * math.sqrt(p * (1 - p) / runs + z2 / (4 * runs * runs))
    return Reliability(good, runs, max(0.0, centre - half), min(1.0, centre + half))
