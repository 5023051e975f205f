"""Theory of the step experiment's loop: margins and Nyquist curve from its difference equations.

```text
L(z) = C(z) G(z) z^-d / c         after the step; d ticks of delay around the loop; C of the controller, G of the plant
C(z) = Kp + Ki T z / (z - 1), or that of a linear controller
```
Of the built-in controller C = Kp + g/2 - j g/2 cot(x/2), g = Ki T, x = omega T. With the static plant, G = 1, the gain
crossing follows from |C| = c in closed form, because delay changes no magnitude.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

BEYOND = 1e-9
"""How far outside the unit circle a loop is followed for its stability: what grows by less in a tick counts as stable."""
_AT_ONCE = 4096
"""Frequencies that are solved for at a time."""


@dataclass(frozen=True)
class LoopModel:
    """A loop: gains (Ki per ms), period and delay around it in ms, what divides its gain after the step (`Step.divisor`),
    plant, and linear controller in place of the gains, as a plan has them.
    """

    kp: float
    ki_per_ms: float
    period_ms: float
    delay_ms: float
    c: float = 2.0
    plant: dict[str, Any] | None = None
    controller: dict[str, Any] | None = None

    @property
    def ticks(self) -> int:
        """Delay around the loop in ticks, at least one."""
        return max(1, math.ceil(self.delay_ms / self.period_ms - 1e-9))

    @property
    def g(self) -> float:
        """What a tick adds to the integral for an error of 1."""
        return self.ki_per_ms * self.period_ms


@dataclass(frozen=True)
class Margins:
    """How far a loop is from instability.

    Attributes
    ----------
    gain : float
        Factor by which the gain may grow; below 1 the loop is unstable, and 0 where no lower gain makes it stable.
    delay_ms : float
        Delay that may be added; negative where the loop is unstable, infinite where no delay makes it so.
    crossing_hz : float
        Frequency at which the loop's gain is 1 (the highest); not a number where it never is.
    phase_deg : float
        Smallest phase margin, in degrees; not a number where the loop's gain is never 1, or the loop unstable.
    """

    gain: float
    delay_ms: float
    crossing_hz: float
    phase_deg: float = math.nan

    @property
    def stable(self) -> bool:
        """Whether the loop is stable."""
        return self.gain > 1

    def __str__(self) -> str:
        if not self.stable:
            return "unstable"
        parts = [f"gain margin {self.gain:.2f}" if math.isfinite(self.gain) else "any gain"]
        if math.isfinite(self.phase_deg):
            parts.append(f"phase margin {self.phase_deg:.1f}°")
        parts.append(f"delay margin {self.delay_ms:.1f} ms" if math.isfinite(self.delay_ms) else "any delay")
        return ", ".join(parts)


# [Polachan 2022] loop theory: unstable for g > pi / 2 with integral action alone
def margins(loop: LoopModel) -> Margins:
    """Gain, phase and delay margin of the loop after the step.

    Examples
    --------
    >>> found = margins(LoopModel(0.0, 0.01, 0.01, 10.0))  # integral action alone, Ki theta / 2 = 0.05
    >>> round(found.gain, 1)  # pi / 2 divided by 0.05
    31.4
    """
    if loop.plant is not None or loop.controller is not None:
        return _sampled(loop)
    real, half = loop.kp + loop.g / 2, loop.g / 2
    gain = _gain_margin(loop, real, half)
    if half < sys.float_info.min or real >= loop.c:
        endless = math.inf if real < loop.c else -loop.delay_ms
        return Margins(gain, endless, math.nan)
    cotangent = math.sqrt(loop.c * loop.c - real * real) / half
    x = 2 * math.atan(1 / cotangent)
    phase = math.atan2(half * cotangent, real)
    spare = (math.pi - phase) / x - loop.ticks
    crossing_hz = x / (2 * math.pi * loop.period_ms) * 1e3
    return Margins(
        gain, spare * loop.period_ms, crossing_hz, math.degrees(spare * x) if gain > 1 else math.nan
    )


def _gain_margin(loop: LoopModel, real: float, half: float) -> float:
    """C / |C| where the phase is -180 degrees, by bisection: the phase falls with x."""

    def lag(x: float) -> float:
        return math.atan2(half / math.tan(x / 2), real) + x * loop.ticks

    if real == 0 and half == 0:
        return math.inf
    low, high = 1e-12, math.pi
    if lag(high) < math.pi:
        return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if lag(middle) < math.pi else (low, middle)
    return loop.c / math.hypot(real, half / math.tan(low / 2))


def _sampled(loop: LoopModel) -> Margins:
    """Margins by where the curve of the loop crosses the negative real axis and the unit circle."""
    import numpy as np

    model = _Open(loop)
    x = model.grid()
    curve = model.at(np.exp(1j * x))
    curve[-1] = curve[-1].real  # at half the rate
    crosses = np.diff(np.abs(curve) >= 1).nonzero()[0]
    at = _roots(lambda x: np.abs(model.at(np.exp(1j * x))) - 1, x[crosses], x[crosses + 1])
    crossing_hz = float(at[-1]) / (2 * math.pi * loop.period_ms) * 1e3 if len(at) else math.nan
    turns = ((curve.imag[1:] * curve.imag[:-1] <= 0) & (curve.real[1:] < 0)).nonzero()[0]
    size = np.abs(curve[turns + 1])

    def factor(place: np.intp) -> float:
        [x0] = _roots(lambda x: model.at(np.exp(1j * x)).imag, x[[place]], x[[place + 1]])
        return float(1 / np.abs(model.at(np.exp(1j * np.array([x0]))))[0])

    if not model.stable(x):
        quick = margins(replace(loop, delay_ms=0.0)) if loop.ticks > 1 else None
        spare_ms = quick.delay_ms + (1 - loop.ticks) * loop.period_ms if quick and quick.stable else -math.inf
        lower = (factor(place) for place in turns[size > 1][np.argsort(size[size > 1])])
        calm = (one for one in lower if _Open(replace(loop, c=loop.c / (0.999 * one))).stable(x))
        return Margins(next(calm, 0.0), spare_ms, crossing_hz)
    spare = (np.angle(model.at(np.exp(1j * at))) + np.pi) % (2 * np.pi)  # until -180 degrees
    return Margins(
        factor(turns[size < 1][np.argmax(size[size < 1])]) if (size < 1).any() else math.inf,
        float((spare / at).min(initial=math.inf)) * loop.period_ms,
        crossing_hz,
        math.degrees(float(spare.min())) if len(at) else math.nan,
    )


class _Open:
    """The open loop L(z), with its poles."""

    def __init__(self, loop: LoopModel) -> None:
        self.loop = loop
        parts = [(loop.plant, False), (loop.controller, True)]
        self.systems = [
            sampled(one, loop.period_ms, controls=controls) for one, controls in parts if one is not None
        ]

    def at(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """L at these z."""
        import numpy as np

        loop = self.loop
        found = np.ones_like(z) if loop.controller is not None else loop.kp + loop.g * z / (z - 1)
        for system in self.systems:
            found = found * _transfer(system, z)
        return found * z ** -float(loop.ticks) / loop.c

    def grid(self) -> NDArray[np.float64]:
        """Angles up to half the rate of the controller, close together where L turns fast."""
        import numpy as np

        fine = max(20_000, 20 * self.loop.ticks)
        near = np.geomspace(1e-11, 1e-2, 600)
        around = [abs(angle) + side * near for angle in np.angle(self._poles()) for side in (-1, 1)]
        every = np.concatenate([np.geomspace(1e-11, 1e-2, 5000), np.linspace(1e-2, np.pi, fine), *around])
        return np.unique(every[(every > 0) & (every <= np.pi)])

    def _poles(self) -> NDArray[np.complex128]:
        import numpy as np

        return np.concatenate([np.linalg.eigvals(a).astype(complex) for a, *_ in self.systems])

    def stable(self, x: NDArray[np.float64]) -> bool:
        """Whether the closed loop is stable: 1 + L winds about 0 once for each pole outside the circle. [Nyquist 1932]"""
        import numpy as np

        curve = 1 + self.at(np.exp(1j * np.concatenate([np.zeros(1), x]) + math.log1p(BEYOND)))
        turns = float(np.angle(curve[1:] / curve[:-1]).sum()) / np.pi
        return round(turns) == int((np.abs(self._poles()) > 1 + BEYOND).sum())


def _transfer(system: tuple[Any, Any, Any, float], z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """G(z) of a system from tick to tick."""
    import numpy as np

    a, b, c, d = system
    if not len(b):
        return np.full_like(z, d)

    def solved(some: NDArray[np.complex128]) -> NDArray[np.complex128]:
        right = np.broadcast_to(b, (len(some), len(b)))[..., None]
        found: NDArray[np.complex128] = (
            d + np.linalg.solve(some[:, None, None] * np.eye(len(a)) - a, right)[..., 0] @ c
        )
        return found

    return np.concatenate([solved(z[i : i + _AT_ONCE]) for i in range(0, len(z), _AT_ONCE)] or [z])


def _roots(of: Curve, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a function changes its sign between each pair of ends, by bisection."""
    import numpy as np

    low, high = low.copy(), high.copy()
    first = np.sign(of(low))
    for _ in range(60):
        middle = (low + high) / 2
        left = np.sign(of(middle)) == first
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return (low + high) / 2


def sampled(
    system: dict[str, Any], period_ms: float, *, controls: bool = False
) -> tuple[Any, Any, Any, float]:
    """A, B, C and D of a plant from tick to tick, its command held; or of a controller, by the bilinear rule."""
    import numpy as np

    found = json.loads(_tcps.sampled_system(json.dumps(system), round(period_ms * 1e6), controls))
    n = len(found["a"])
    return np.array(found["a"]).reshape(n, n), np.array(found["b"]), np.array(found["c"]), found["d"]


def nyquist(loop: LoopModel, points: int = 2000) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies in Hz and the open loop L there, up to half the rate of the controller."""
    import numpy as np

    x = np.geomspace(1e-3 * min(1.0, loop.g + 1e-9) if loop.controller is None else 1e-6, np.pi, points)
    return x / (2 * np.pi * loop.period_ms) * 1e3, _Open(loop).at(np.exp(1j * x))


def largest_root(loop: LoopModel) -> float:
    """Largest magnitude among the roots of the closed loop: z^d (z - 1) + ((Kp + g) z - Kp) / c = 0."""
    import numpy as np

    polynomial = np.zeros(loop.ticks + 2)
    polynomial[0], polynomial[1] = 1.0, -1.0
    polynomial[-2] += (loop.kp + loop.g) / loop.c
    polynomial[-1] -= loop.kp / loop.c
    return float(np.abs(np.roots(polynomial)).max())


# [Polachan 2022] drops act as extra delay p / (1 - p) T per direction
def delay_of_drops_ms(loss: float, period_ms: float) -> float:
    """Mean extra delay around the loop that losses in both directions cause, in ms."""
    return math.inf if loss >= 1 else 2 * loss / (1 - loss) * period_ms
