"""Effective time offset and effective value offset of a received signal: its error, parted by time warping.

```text
reference  ──╮  ╭──    dynamic time warping finds which value of the received signal belongs to which of the
received   ────╮  ╭─   reference; how far apart in time they are is the one, how far apart in value the other
```
After the idea of ETVO (2021); the warping path is that of Sakoe and Chiba 1978 with a band of 100 ms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BAND_MS = 100.0


@dataclass(frozen=True)
class Offsets:
    """Mean of the time offsets in ms (positive: later), and root mean square of the value offsets."""

    time_ms: float
    value: float


# ETVO-like offsets (arXiv:2107.05343) by dynamic time warping with a band of 100 ms
def offsets(
    reference: Sequence[float], received: Sequence[float], period_ms: float, band_ms: float = BAND_MS
) -> Offsets:
    """The offsets of a received signal.

    Parameters
    ----------
    reference, received
        Values at the same moments, `period_ms` apart.
    period_ms
        Time between values.
    band_ms
        Largest time offset that is looked for.

    Examples
    --------
    >>> ramp = [0.0, 0.0, 0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    >>> found = offsets(ramp, [0.0, 0.0, *ramp[:-2]], 1.0, 4.0)
    >>> found.value
    0.0
    """
    n = min(len(reference), len(received))
    if n == 0:
        return Offsets(math.nan, math.nan)
    path = _path(reference[:n], received[:n], max(1, round(band_ms / period_ms)))
    moving = [(i, j) for i, j in path if _moves(reference, i) or _moves(received, j)] or path
    time = sum(j - i for i, j in moving) / len(moving)
    value = math.sqrt(sum((received[j] - reference[i]) ** 2 for i, j in path) / len(path))
    return Offsets(time * period_ms, value)


def _moves(values: Sequence[float], i: int) -> bool:
    """Whether the signal changes here: where it rests, time has no meaning."""
    return i > 0 and values[i] != values[i - 1]


# [Sakoe and Chiba 1978] dynamic time warping in a band
def _path(a: Sequence[float], b: Sequence[float], band: int) -> list[tuple[int, int]]:
    """Pairs of places that belong together, with the least sum of squared differences."""
    n, width = len(a), 2 * band + 1
    steps = [bytearray(width) for _ in range(n)]
    before = [math.inf] * width
    for i in range(n):
        row = [math.inf] * width
        for place in range(max(0, band - i), min(width, n - i + band)):
            j = i + place - band
            options = (
                before[place],
                before[place + 1] if place + 1 < width else math.inf,
                row[place - 1] if place > 0 else math.inf,
            )
            least = 0.0 if i == j == 0 else min(options)
            steps[i][place] = 0 if i == j == 0 else options.index(least)
            row[place] = least + (a[i] - b[j]) ** 2
        before = row
    return _walked(steps, n, band)


def _walked(steps: Sequence[bytearray], n: int, band: int) -> list[tuple[int, int]]:
    i = j = n - 1
    path = [(i, j)]
    while i or j:
        step = steps[i][j - i + band]
        i, j = (i - (step != 2), j - (step != 1))
        path.append((i, j))
    return path[::-1]
