"""Predictor `tcpsbed.robots.feel:Feel`: a surface that an operator's hand feels at 1 kHz, from a few measurements a second.

```text
plane    through the last two measured points, level across the motion (nearer than `least_nm` they keep the old slope);
         a hand inside a new plane is let out of it over one update
warped   the same, shifted to where the hand is now: the newest known shape is felt here, whatever the delay
patch    3 x 3 heights around a point, bilinear between them, level beyond
F        k max(0, depth) n - b v_n inside the surface                                          (nN, along x, y, z)
```
The hand is the newest sample of the other direction at this component: its place in nm (`hand` says where x, y and z
are among its values). [Hudson 2001]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.errors import HookError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

MODELS = ("plane", "warped", "patch")


class Feel:
    """The model of the surface, and the force of it.

    Parameters
    ----------
    model
        `plane`, `warped` or `patch`.
    hand
        Where x, y and z of the hand are in the samples of the other direction.
    point
        Where x, y and the height are in what has been measured.
    stiffness_nn_nm, damping_nn_s_nm
        Of the surface as it is felt.
    most_nn
        Highest force.
    spacing_nm
        Of a feel patch.
    least_nm
        Points nearer to each other than this say nothing about the slope.
    """

    def __init__(
        self,
        model: str = "plane",
        hand: tuple[int, int, int] = (2, 3, 4),
        point: tuple[int, int, int] = (2, 3, 4),
        stiffness_nn_nm: float = 1.0,
        damping_nn_s_nm: float = 0.001,
        most_nn: float = 50.0,
        spacing_nm: float = 30.0,
        least_nm: float = 1.0,
    ) -> None:
        if model not in MODELS:
            raise HookError(f'found model = "{model}"', allowed=close_match(str(model), MODELS))
        self.model, self.hand, self.point = model, list(hand), list(point)
        self.stiffness, self.damping, self.most_nn = stiffness_nn_nm, damping_nn_s_nm, most_nn
        self.surface: Plane | Patch = (
            Patch(spacing_nm) if model == "patch" else Plane(model == "warped", least_nm)
        )
        self._before: tuple[int, float] | None = None

    def __call__(self, t_ns: int, index: int, x: Values | None, other: Values, y: Values) -> int:
        """Learns the received surface, and writes the force on the hand; nothing while hand or surface is unknown."""
        if x is not None and bool(np.isfinite(x).all()):
            self.surface.learn(t_ns, x, self.point, self._place(other))
        hand = self._place(other)
        if hand is None:
            return 0
        felt = self.surface.at(t_ns, hand)
        if felt is None:
            return 0
        y[:3] = self._force(t_ns, hand[2] - felt[0], felt[1:])
        return 3

    def _place(self, other: Values) -> Values | None:
        known = len(other) > max(self.hand) and bool(np.isfinite(other[self.hand]).all())
        return other[self.hand].copy() if known else None

    # [Hudson 2001]
    def _force(self, t_ns: int, above_nm: float, slopes: Values) -> Values:
        """Along the normal of the surface, never pulling."""
        normal = np.array([-slopes[0], -slopes[1], 1.0])
        normal /= math.sqrt(float(normal @ normal))
        depth = -above_nm * normal[2]
        before, self._before = self._before, (t_ns, depth)
        if depth <= 0 or before is None:
            return np.zeros(3)
        speed = (depth - before[1]) / max((t_ns - before[0]) * 1e-9, 1e-6) if before[1] > 0 else 0.0
        push = self.stiffness * depth + self.damping * speed
        return np.asarray(min(max(push, 0.0), self.most_nn) * normal)


class Plane:
    """The plane through two points, held until the next one; `warped` follows the hand."""

    def __init__(self, warped: bool, least_nm: float) -> None:
        self.warped, self.least_nm = warped, least_nm
        self._points: list[Values] = []
        self._new = self._old = np.zeros(5)
        self._since_ns, self._period_ns = 0, 0

    # [Hudson 2001]
    def learn(self, t_ns: int, x: Values, point: list[int], hand: Values | None) -> None:
        """Adds a measured point; a repeated point is ignored."""
        at = x[point].copy()
        if self._points and np.array_equal(at, self._points[-1]):
            return
        self._points = [*self._points[-1:], at]
        if len(self._points) < 2:
            return
        p0, p1 = self._points
        run = float(np.hypot(*(p1 - p0)[:2]))
        far = run > self.least_nm
        slopes = (p1[2] - p0[2]) * (p1 - p0)[:2] / run**2 if far else self._new[3:]
        centre = hand[:2] if self.warped and hand is not None else p1[:2]
        first = not self._period_ns
        self._old = self._blend(t_ns)
        self._new = np.array([*centre, p1[2], *slopes])
        self._period_ns = max(t_ns - self._since_ns, 1) if self._since_ns else 1
        self._since_ns = t_ns
        if first:
            self._old = self._new

    def at(self, t_ns: int, hand: Values) -> Values | None:
        """Height under the hand, and the slopes; None before the second point."""
        if not self._period_ns:
            return None
        old, new = self._value(self._old, hand), self._value(self._new, hand)
        # A hand inside the new plane is let out over one update, otherwise the new plane holds at once.
        if hand[2] >= new[0]:
            return new
        part = min((t_ns - self._since_ns) / self._period_ns, 1.0)
        return np.asarray(old + part * (new - old))

    def _blend(self, t_ns: int) -> Values:
        part = min((t_ns - self._since_ns) / self._period_ns, 1.0) if self._period_ns else 1.0
        return np.asarray(self._old + part * (self._new - self._old))

    @staticmethod
    def _value(plane: Values, hand: Values) -> Values:
        return np.array([plane[2] + plane[3:] @ (hand[:2] - plane[:2]), *plane[3:]])


class Patch:
    """Heights on a grid of 3 x 3 around a point."""

    def __init__(self, spacing_nm: float) -> None:
        self.spacing_nm = spacing_nm
        self._centre: Values | None = None
        self._heights = np.zeros((3, 3))

    # [Hudson 2001]
    def learn(self, t_ns: int, x: Values, point: list[int], hand: Values | None) -> None:
        """A measured patch: its middle, and nine heights from the last index of `point` on."""
        start = point[2]
        if len(x) >= start + 9:
            self._centre, self._heights = x[point[:2]].copy(), x[start : start + 9].reshape(3, 3).copy()

    def at(self, t_ns: int, hand: Values) -> Values | None:
        """Height under the hand, and the slopes; None before the first patch."""
        if self._centre is None:
            return None
        u, v = np.clip((hand[:2] - self._centre) / self.spacing_nm, -1.0, 1.0) + 1.0
        i, j = min(int(u), 1), min(int(v), 1)
        a, b = u - i, v - j
        (h00, h01), (h10, h11) = self._heights[j : j + 2, i : i + 2]
        height = (1 - b) * ((1 - a) * h00 + a * h01) + b * ((1 - a) * h10 + a * h11)
        across = ((1 - b) * (h01 - h00) + b * (h11 - h10)) / self.spacing_nm
        along = ((1 - a) * (h10 - h00) + a * (h11 - h01)) / self.spacing_nm
        return np.array([height, across, along])
