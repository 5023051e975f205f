"""Theory of the step experiment's loop: margins and Nyquist curve from its difference equations.

```text
L(z) = (Kp + Ki T z / (z - 1)) G(z) / c · z^-d     after the step; d ticks of delay around the loop; G of the plant
C    = Kp + g/2 - j g/2 cot(x/2),  g = Ki T,  x = omega T
```
Of the static plant, G = 1, the gain crossing follows from |C| = c in closed form, because delay changes no magnitude.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LoopModel:
    """A loop: gains (Ki per ms), period and delay around it in ms, the step's c, and the plant as a plan has it."""

    kp: float
    ki_per_ms: float
    period_ms: float
    delay_ms: float
    c: float = 2.0
    plant: dict[str, Any] | None = None

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
        Factor by which both gains may grow; below 1 the loop is unstable.
    delay_ms : float
        Delay that may be added; negative where the loop is unstable, infinite where no delay makes it so.
    crossing_hz : float
        Frequency at which the loop's gain is 1; not a number where it never is.
    """

    gain: float
    delay_ms: float
    crossing_hz: float

    @property
    def stable(self) -> bool:
        """Whether the loop is stable."""
        return self.gain > 1


# [Polachan 2022] loop theory: unstable for g > pi / 2 with integral action alone
def margins(loop: LoopModel) -> Margins:
    """Gain and delay margin of the loop after the step; with a plant that has a memory, of one that is stable.

    Examples
    --------
    >>> found = margins(LoopModel(0.0, 0.01, 0.01, 10.0))  # integral action alone, Ki theta / 2 = 0.05
    >>> round(found.gain, 1)  # pi / 2 divided by 0.05
    31.4
    """
    if loop.plant is not None:
        return _sampled(loop)
    real, half = loop.kp + loop.g / 2, loop.g / 2
    gain = _gain_margin(loop, real, half)
    if half == 0 or real >= loop.c:
        endless = math.inf if real < loop.c else -loop.delay_ms
        return Margins(gain, endless, math.nan)
    cotangent = math.sqrt(loop.c * loop.c - real * real) / half
    x = 2 * math.atan(1 / cotangent)
    phase = math.atan2(half * cotangent, real)
    spare = (math.pi - phase) / x - loop.ticks
    return Margins(gain, spare * loop.period_ms, x / (2 * math.pi * loop.period_ms) * 1e3)


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
    """Margins of a stable loop, by where its curve crosses the negative real axis and the unit circle."""
    import numpy as np

    f_hz, curve = nyquist(loop, 100_000)
    turns = (curve.imag[1:] * curve.imag[:-1] <= 0) & (curve.real[1:] < 0)
    below = np.abs(curve[1:])[turns]
    crosses = np.diff(np.abs(curve) >= 1).nonzero()[0]
    spare = (np.angle(curve[crosses]) + np.pi) % (2 * np.pi)  # until -180 degrees
    delays_ms = 1e3 * spare / (2 * np.pi * f_hz[crosses])
    return Margins(
        float(1 / below[below < 1].max(initial=0)) if (below < 1).any() else math.inf,
        float(delays_ms.min(initial=math.inf)),
        float(f_hz[crosses[-1]]) if len(crosses) else math.nan,
    )


def held(plant: dict[str, Any], period_ms: float) -> tuple[Any, Any, Any, float]:
    """A, B, C and D of a plant from tick to tick."""
    import numpy as np

    found = json.loads(_tcps.held_plant(json.dumps(plant), round(period_ms * 1e6)))
    n = len(found["a"])
    return np.array(found["a"]).reshape(n, n), np.array(found["b"]), np.array(found["c"]), found["d"]


def _answer(loop: LoopModel, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """G(z) of the plant."""
    import numpy as np

    if loop.plant is None:
        return np.ones_like(z)
    a, b, c, d = held(loop.plant, loop.period_ms)
    far = np.linalg.solve(
        z[:, None, None] * np.eye(len(a)) - a, np.broadcast_to(b, (len(z), len(b)))[..., None]
    )
    answer: NDArray[np.complex128] = d + (far[..., 0] @ c)
    return answer


def nyquist(loop: LoopModel, points: int = 2000) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies in Hz and the open loop L there, up to half the rate of the controller."""
    import numpy as np

    x = np.geomspace(1e-3 * min(1.0, loop.g + 1e-9), np.pi, points)
    controller = loop.kp + loop.g / (1 - np.exp(-1j * x))
    answer = _answer(loop, np.exp(1j * x))
    return x / (2 * np.pi * loop.period_ms) * 1e3, controller * answer * np.exp(-1j * x * loop.ticks) / loop.c


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
