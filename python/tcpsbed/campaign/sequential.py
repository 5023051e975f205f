"""The sequential test of whether something holds in more than half of all seeds, after any number of them.

```text
k of the first n seeds hold; p is the share of all seeds

M(n, k) = 1/2 2^n [k = n]  +  1/2 sum(C(n + 1, i), i = 0 … k) / ((n + 1) C(n, k))
```
M is the likelihood of p > 1/2 over that of p = 1/2: half for p = 1, half averaged over p from 1/2 to 1. For p ≤ 1/2 it
is a nonnegative supermartingale from 1, so that it ever reaches 40 with a probability of at most 1/40 (Ville 1939). The
test may therefore look after every seed, assumes no distribution of the metric, and for p ≠ 1/2 decides at last (a test of
power one, Robbins 1970). The other direction is M(n, n - k).
"""

from __future__ import annotations

from functools import cache
from math import comb

ONE_IN = 40
"""A decision is wrong with a probability of at most one in so many: two ends of an interval make 95 %."""
FEWEST = 6
"""Seeds that decide where all agree: 2^6 / 2 with the average part is above 40, 2^5 is not."""


# [Robbins 1970] mixtures of likelihood ratios
@cache
def decided(seeds: int, holding: int) -> bool | None:
    """Whether more than half of all seeds hold; `None`: these do not say yet."""
    if _sure(seeds, holding):
        return True
    return False if _sure(seeds, seeds - holding) else None


def _sure(n: int, k: int) -> bool:
    """Whether M(n, k) ≥ 40, in whole numbers."""
    scale = (n + 1) * comb(n, k)
    agreed = 2**n * scale if k == n else 0
    return agreed + sum(comb(n + 1, i) for i in range(k + 1)) >= 2 * ONE_IN * scale
