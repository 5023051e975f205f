"""Theory of the step experiment's loop: margins and Nyquist curve from its difference equations.

```text
L(z) = C(z) G(z) z^-d / c         after the step; d ticks of delay around the loop; C of the controller, G of the plant
C(z) = Kp + Ki T z / (z - 1), or that of a linear controller
```
Of the built-in controller C = Kp + g/2 - j g/2 cot(x/2), g = Ki T, x = omega T. With the static plant, G = 1, the gain
crossing follows from |C| = c in closed form, because delay changes no magnitude.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpsbed import linear

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]
    Opened = Callable[[NDArray[np.complex128]], NDArray[np.complex128]]

BEYOND = 1e-9
"""How far outside the unit circle a loop is followed for its stability: what grows by less in a tick counts as stable."""
UNIT = 1e-6
"""How near to 1 a gain is at a crossing, and where it tends to 1."""
LEAST_FACTOR = 1e-9
"""Factor of a gain below which a crossing is rounding: of a pole on the circle the curve comes from beyond."""
MOST_ASKED = 8
"""Crossings of the negative real axis that are asked whether the loop becomes unstable there: a delay has many."""
_AT_ONCE = 4096
"""Frequencies that are solved for at a time."""


@dataclass(frozen=True)
class LoopModel:
    """A loop: gains (Ki per ms), period and delay around it in ms, what divides its gain after the step (`Step.divisor`),
    plant, and linear controller in place of the gains, as a plan has them. Of several axes the place of the one that jumps.
    """

    kp: float
    ki_per_ms: float
    period_ms: float
    delay_ms: float
    c: float = 2.0
    plant: dict[str, Any] | None = None
    controller: dict[str, Any] | None = None
    axis: int = 0

    @property
    def axes(self) -> int:
        """How many axes it has."""
        size = None if self.plant is None else linear.shape(self.plant)
        return 1 if size is None else size[0]

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
        Delay that may be added; negative where the loop is unstable, infinite where no delay makes it so; not a number, not
        defined, where the loop's gain tends to 1 at frequency 0 and is 1 nowhere else.
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
        if math.isnan(self.delay_ms):
            parts.append("phase and delay margin not defined (the loop's gain tends to 1 at frequency 0)")
        else:
            parts.append(
                f"delay margin {self.delay_ms:.1f} ms" if math.isfinite(self.delay_ms) else "any delay"
            )
        return ", ".join(parts)


# [Polachan 2022] loop theory: unstable for g > pi / 2 with integral action alone
def margins(loop: LoopModel) -> Margins:
    """Gain, phase and delay margin of the loop after the step, which has one axis.

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

    model = Open(loop)
    x = model.grid()
    if model.stable(x):
        return beside(model.at, x, loop.period_ms)
    crossed = _Crossed(model.at, x)
    quick = margins(replace(loop, delay_ms=0.0)) if loop.ticks > 1 else None
    spare_ms = quick.delay_ms + (1 - loop.ticks) * loop.period_ms if quick and quick.stable else -math.inf
    lower = np.sort(crossed.factors[crossed.factors < 1])[::-1]
    calm = (float(one) for one in lower if Open(replace(loop, c=loop.c / (0.999 * one))).stable(x))
    return Margins(next(calm, 0.0), spare_ms, crossed.hz(loop.period_ms))


# [Ziegler and Nichols 1942] ultimate gain
def ultimate(loop: LoopModel) -> float:
    """The smallest factor of the gain at which a loop of one axis, stable with a little less, becomes unstable.

    Other than the gain margin it asks nothing of the loop itself, which may be unstable. 0 if no such factor is found.

    Examples
    --------
    >>> round(ultimate(LoopModel(1.0, 0.0, 1.0, 10.0, 1.0)), 6)  # proportional action on the static plant
    1.0
    >>> integrator = {"kind": "transfer-function", "num": [1.0], "den": [1.0, 0.0]}
    >>> [ultimate(LoopModel(0.0, 1.0, 1.0, rtt_ms, 1.0, integrator)) for rtt_ms in (0.0, 1.0, 2.0)]  # no integral holds it
    [0.0, 0.0, 0.0]
    """
    import numpy as np

    model = Open(loop)
    x = model.grid()
    factors = np.sort(_Crossed(model.at, x).factors)
    factors = factors[factors > LEAST_FACTOR][:MOST_ASKED]
    below = (float(one) for one in factors if Open(replace(loop, c=loop.c / (0.999 * one))).stable(x))
    return next(below, 0.0)


def beside(at: Opened, x: NDArray[np.float64], period_ms: float) -> Margins:
    """Margins of a loop that is stable when it is closed, by its curve at angles of z."""
    import numpy as np

    crossed = _Crossed(at, x)
    spare = (np.angle(at(np.exp(1j * crossed.at))) + np.pi) % (2 * np.pi)  # until -180 degrees
    return Margins(
        float(crossed.factors[crossed.factors > 1].min(initial=math.inf)),
        delay_margin(spare, crossed.at, crossed.flat) * period_ms,
        crossed.hz(period_ms),
        math.degrees(float(spare.min())) if len(crossed.at) else math.nan,
    )


def flat(size: NDArray[np.float64], x: NDArray[np.float64]) -> float:
    """The angle up to which a gain is 1, from frequency 0 on; 0 where it tends to another. A crossing there is rounding."""
    import numpy as np

    other = (np.abs(size - 1) >= UNIT).nonzero()[0]
    until = int(other[0]) if len(other) else len(x)
    return float(x[until - 1]) if until else 0.0


def delay_margin(spare: NDArray[np.float64], at: NDArray[np.float64], flat: float) -> float:
    """The ticks that phases at crossings leave; not a number without a crossing where the gain is `flat`."""
    return math.nan if flat and not len(at) else float((spare / at).min(initial=math.inf))


class _Crossed:
    """Where the curve of a loop crosses the unit circle (`at`), and the factors of the gain with which its crossings of the
    negative real axis are at -1. Up to the angle `flat` its gain is 1.
    """

    def __init__(self, of: Opened, x: NDArray[np.float64]) -> None:
        import numpy as np

        curve = of(np.exp(1j * x))
        curve[-1] = curve[-1].real  # at half the rate
        self.flat = flat(np.abs(curve), x)
        crosses = np.diff(np.abs(curve) >= 1).nonzero()[0]
        crosses = crosses[x[crosses] > self.flat]
        self.at = roots(lambda x: np.abs(of(np.exp(1j * x))) - 1, x[crosses], x[crosses + 1])
        turns = ((curve.imag[1:] * curve.imag[:-1] <= 0) & (curve.real[1:] < 0)).nonzero()[0]
        turned = roots(lambda x: of(np.exp(1j * x)).imag, x[turns], x[turns + 1])
        self.factors = 1 / np.abs(of(np.exp(1j * turned)))

    def hz(self, period_ms: float) -> float:
        """The highest frequency of a crossing of the circle."""
        return float(self.at[-1]) / (2 * math.pi * period_ms) * 1e3 if len(self.at) else math.nan


class Open:
    """The open loop L(z), with its poles."""

    def __init__(self, loop: LoopModel) -> None:
        self.loop, self.axes = loop, loop.axes
        parts = [(loop.plant, False), (loop.controller, True)]
        self.systems = [
            linear.sampled(one, round(loop.period_ms * 1e6), controls=controls)
            for one, controls in parts
            if one is not None
        ]

    @property
    def states(self) -> int:
        """States of the closed loop with its delay line."""
        return sum(len(one.a) for one in self.systems) + self.axes * self.loop.ticks

    @property
    def outside(self) -> int:
        """Poles outside the unit circle."""
        import numpy as np

        return int((np.abs(self._poles()) > 1 + BEYOND).sum())

    def at(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """L of a loop with one axis at these z."""
        return self.matrix(z)[:, 0, 0]

    def matrix(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """L at these z, shape (n, axes, axes)."""
        import numpy as np

        loop, one = self.loop, (slice(None), None, None)
        found = np.ones_like(z) if loop.controller is not None else loop.kp + loop.g * z / (z - 1)
        several = found[one]
        for system in self.systems:
            several = _times(several, _transfer(system, z))
        late = several * (z ** -float(loop.ticks))[one]
        late[:, loop.axis] = late[:, loop.axis] / loop.c
        return late

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

        every = [np.linalg.eigvals(one.a).astype(complex) for one in self.systems]
        return np.concatenate([np.zeros(0, complex), *every])

    @property
    def integrates(self) -> bool:
        """Whether plant or linear controller has a pole at 1, and so no error stays in a stable loop."""
        import numpy as np

        return bool((np.abs(self._poles() - 1) < UNIT).any())

    def stable(self, x: NDArray[np.float64]) -> bool:
        """Whether the closed loop is stable: 1 + L winds about 0 once for each pole outside the circle. [Nyquist 1932]"""
        import numpy as np

        curve = 1 + self.at(np.exp(1j * np.concatenate([np.zeros(1), x]) + math.log1p(BEYOND)))
        turns = float(np.angle(curve[1:] / curve[:-1]).sum()) / np.pi
        return round(turns) == self.outside


def _times(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """The product at each z; of one entry it is a product of numbers."""
    return one * other if (1, 1) in (one.shape[1:], other.shape[1:]) else one @ other


def _transfer(system: linear.Sampled, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """G(z) of a system from tick to tick, shape (n, outputs, inputs)."""
    import numpy as np

    a, b, c, d = system.a, system.b, system.c, system.d
    if not len(a):
        return np.broadcast_to(d.astype(complex), (len(z), *d.shape))

    def solved(some: NDArray[np.complex128]) -> NDArray[np.complex128]:
        right = np.broadcast_to(b, (len(some), *b.shape))
        x = np.linalg.solve(some[:, None, None] * np.eye(len(a)) - a, right)
        found = np.empty((len(some), *d.shape), complex)
        for i, j in np.ndindex(*d.shape):
            found[:, i, j] = d[i, j] + x[..., j] @ c[i]
        return found

    pieces = [solved(z[i : i + _AT_ONCE]) for i in range(0, len(z), _AT_ONCE)]
    return np.concatenate(pieces or [np.zeros((0, *d.shape), complex)])


def roots(of: Curve, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a function changes its sign between each pair of ends, by bisection."""
    import numpy as np

    low, high = low.copy(), high.copy()
    first = np.sign(of(low))
    for _ in range(60):
        middle = (low + high) / 2
        left = np.sign(of(middle)) == first
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return (low + high) / 2


def response(loop: LoopModel, ticks: int) -> NDArray[np.float64]:
    """The share of a step that a stable loop has made up at each tick from the step on; shape (ticks,).

    The loop answers on the axis that jumps.

    What is left is the step times 1 / (1 + L), found by its values on a circle around that of its poles: what lies beyond
    the ticks comes back into them as less than 1e-8 of it.
    """
    import numpy as np

    size = 2 * ticks
    radius = 10 ** (8 / size)
    z = radius * np.exp(2j * np.pi * np.arange(ticks + 1) / size)
    opened = Open(loop).matrix(z)
    left = np.linalg.inv(np.eye(opened.shape[1]) + opened)[:, loop.axis, loop.axis] * z / (z - 1)
    found: NDArray[np.float64] = 1 - np.fft.irfft(left, size)[:ticks] * radius ** np.arange(ticks)
    return found


def nyquist(loop: LoopModel, points: int = 2000) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies in Hz and the open loop L there, up to half the rate of the controller."""
    import numpy as np

    x = np.geomspace(1e-3 * min(1.0, loop.g + 1e-9) if loop.controller is None else 1e-6, np.pi, points)
    return x / (2 * np.pi * loop.period_ms) * 1e3, Open(loop).at(np.exp(1j * x))


# [Polachan 2022] drops act as extra delay p / (1 - p) T per direction
def delay_of_drops_ms(loss: float, period_ms: float) -> float:
    """Mean extra delay around the loop that losses in both directions cause, in ms."""
    return math.inf if loss >= 1 else 2 * loss / (1 - loss) * period_ms
