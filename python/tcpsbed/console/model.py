"""A predictor for the force at a browser: a spring behind a surface on each axis, learned from what comes back.

```text
robot    Answered   force F, and the commanded position c that it answers        whatever the delay, they belong together
operator Model      F_i = -k_i (c_i - p_i) beyond the surface, 0 before it        k, p: weighted least squares over contact
                    at the hand's own position now: no delay in the loop, which therefore stays stable
```
A force that is not mostly along one axis teaches nothing: the friction of a surface is no surface of its own.
After model-mediated teleoperation (Xu et al. 2014: the model is rendered locally and updated from afar).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcpsbed.door import Param

Floats = NDArray[np.float64]

TOUCH_N = 0.1
"""Least force that counts as contact."""
ALONG = 2.0
"""A force is along an axis if it is this many times that on the others: friction is at most the force into a surface."""
FORGET = 0.995
"""Weight of a sample when the next one has come."""
SPREAD_M = 5e-4
"""Standard deviation of positions in contact from which a stiffness can be told."""
STIFF_N_M = (20.0, 800.0)
"""Stiffnesses that are believed, N/m."""
ALIVE_S = 0.2
"""Longest time since the switch's last sample while it counts as on."""


class Answered:
    """A force with the position that was commanded when it was sensed, which comes from the other direction."""

    def __call__(self, t_ns: int, index: int, x: Floats, other: Floats, y: Floats) -> int:
        """Three values of force, then three of position; nothing before the first command."""
        if len(x) < 3 or len(other) < 3:
            return 0
        y[:3], y[3:6] = x[:3], other[:3]
        return 6


class Switch:
    """The time in s: a flow that an event starts and stops switches what looks at it on and off."""

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """The time."""
        y[0] = t_ns / 1e9
        return 1


class Spring:
    """Force over position on one axis, from samples in contact."""

    def __init__(self) -> None:
        self.sums = np.zeros(5)
        """Weighted: samples, position, force, position squared, position times force."""
        self.last_m = np.nan
        self.stiff_n_m, self.at_m, self.side = 0.0, 0.0, 0.0

    # [Xu 2014] recursive least squares with forgetting; at rest nothing is learned, or it would forget what it knows
    def learn(self, at_m: float, force_n: float) -> None:
        """Takes a sample in contact; others say nothing."""
        if abs(force_n) < TOUCH_N or abs(at_m - self.last_m) < SPREAD_M / 25:
            return
        if force_n * self.side < 0:  # another surface, on the other side
            self.sums[:] = 0.0
        self.last_m, self.side = at_m, float(np.sign(force_n))
        self.sums = FORGET * self.sums + (1.0, at_m, force_n, at_m * at_m, at_m * force_n)
        n, x, f, xx, xf = self.sums
        spread = xx / n - (x / n) ** 2
        if spread > SPREAD_M**2:
            slope = (xf / n - x * f / n**2) / spread
            if slope < 0:  # a surface pushes back
                self.stiff_n_m = float(np.clip(-slope, *STIFF_N_M))
        if self.stiff_n_m:
            self.at_m = x / n + f / n / self.stiff_n_m

    def force(self, at_m: float) -> float:
        """The force at a position, N; 0 before a surface is known."""
        force_n = -self.stiff_n_m * (at_m - self.at_m)
        return force_n if force_n * self.side > 0 else 0.0


class Model:
    """The force that comes back, or that of the model while the switch is on.

    Parameters
    ----------
    stale_ms
        Age from which nothing counts as coming back: then the force is 0 without the model.
    most_n
        Highest force of the model on an axis, N.
    """

    params = {  # noqa: RUF012 - as every table of parameters
        "stale_ms": Param(
            "number", 1.0, 10_000.0, "100", "age from which a force is no longer passed on, in ms"
        ),
        "most_n": Param("number", 0.0, 1000.0, "15", "highest force of the model on an axis, in N"),
    }

    def __init__(self, stale_ms: float, most_n: float) -> None:
        self.stale_ns, self.most_n = stale_ms * 1e6, most_n
        self.axes = [Spring() for _ in range(3)]
        self.force, self.came_ns = np.zeros(3), 0

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """Three forces. `x`: force and position, of `Answered`; `other`: the hand (x, y, z first), the switch last."""
        if x is not None and len(x) >= 6:
            self.force, self.came_ns = x[:3].copy(), t_ns
            sizes = np.abs(self.force)
            along = int(np.argmax(sizes))
            if sizes[along] >= ALONG * np.delete(sizes, along).max():
                self.axes[along].learn(float(x[3 + along]), float(x[along]))
        if len(other) > 3 and t_ns / 1e9 - other[-1] < ALIVE_S:
            modelled = [axis.force(at_m) for axis, at_m in zip(self.axes, other[:3].tolist(), strict=True)]
            y[:3] = np.clip(modelled, -self.most_n, self.most_n)
        else:
            y[:3] = self.force if t_ns - self.came_ns < self.stale_ns else 0.0
        return 3
