"""Margins of a loop with several axes, whose packets carry all of them, from its difference equations.

```text
L(z) = E G(z) C(z) z^-d            at the answers h; E: 1, but 1/c on the axis of the step; d ticks for all axes
stable          eigenvalues of the closed loop with its delay line; where that is very long, winding of det(I + L)
gain, delay     of all axes alike: det(I + g L) = prod (1 + g l_i), l_i the eigenvalues of L            [MacFarlane 1977]
one at a time   L_i = (1 - S_ii) / S_ii with the others closed, S = (I + L)^-1
disk            alpha = 1 / max mu((S - T) / 2), for a factor of its own on each axis                    [Seiler 2020]
```
mu is its upper bound by diagonal scaling, min over D of the largest singular value of D M D^-1: it is mu itself up to three
axes, and not below it for more, so that the disk margin is never too large. [Doyle 1982]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tcpsbed import linear
from tcpsbed.lab.control import theory
from tcpsbed.lab.control.theory import (
    BEYOND,
    UNIT,
    LoopModel,
    Margins,
    Open,
    beside,
    delay_margin,
    flat,
    roots,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Real = NDArray[np.float64]
    Complex = NDArray[np.complex128]
    Opened = Callable[[Complex], Complex]

LARGEST = 800
"""States of the closed loop up to which its eigenvalues are computed."""
UNSURE = 1e-6
"""Eigenvalues that are farther than `BEYOND` outside the circle, but not farther than this, may be rounding: of several
integrators in a row, they are moved by the root of it. There det(I + L) decides.
"""
LASTING, SLOW = 0.05, 1e-7
"""Share of a step that is told where it stays for ever, found at this angle a tick."""
GAINS = 1e4
"""Gains up to this factor, and down to its inverse, are looked at."""
TRIED = 160
NEAR = 0.9
"""Share of the largest first bound of mu from which on a frequency is a candidate for its peak."""
CANDIDATES = 64


@dataclass(frozen=True)
class Disk:
    """The disk margin of all axes at once: each may have a factor of its own within it, and the loop stays stable.

    Attributes
    ----------
    alpha : float
        Size of the disk: 0 where the loop is at its limit, 2 for any gain of 0 or more.
    hz : float
        Frequency at which it is the smallest.
    """

    alpha: float
    hz: float

    @property
    def gain(self) -> tuple[float, float]:
        """Factors that the gain of every axis may have, independently: from and to."""
        most = (2 + self.alpha) / (2 - self.alpha) if self.alpha < 2 else math.inf
        return (0.0 if math.isinf(most) else 1 / most), most

    @property
    def phase_deg(self) -> float:
        """Phase by which every axis may turn, independently and in either direction, in degrees."""
        return math.degrees(2 * math.atan(self.alpha / 2))

    def __str__(self) -> str:
        low, high = self.gain
        return f"disk margin {self.alpha:.2f} (each axis: gain {low:.2f} to {high:.2f}, phase {self.phase_deg:.1f}°)"


@dataclass(frozen=True)
class AxesMargins(Margins):
    """Margins of a loop with several axes: those of `Margins` are of all axes alike.

    Attributes
    ----------
    disk : Disk, optional
        Of a stable loop: what each axis may have, independently of the others.
    one_at_a_time : tuple of Margins
        Of a stable loop: those of each axis, while the others stay as they are.
    left : tuple of float
        Of a stable loop: the share of a step of each axis that stays as an error, as of a plant that cannot reach it.
    """

    disk: Disk | None = None
    one_at_a_time: tuple[Margins, ...] = ()
    left: tuple[float, ...] = ()

    @property
    def lasting(self) -> list[str]:
        """What a loop that is stable does not reach, by axis."""
        return [
            f"axis {n} keeps {100 * left:.0f} % of a step as an error"
            for n, left in enumerate(self.left, 1)
            if left > LASTING
        ]

    def __str__(self) -> str:
        disk = [] if self.disk is None else [str(self.disk)]
        return ", ".join([super().__str__(), *disk, *self.lasting])


def margins(loop: LoopModel) -> Margins:
    """Margins of a loop after the step: those of one axis, or `AxesMargins`."""
    if loop.plant is None or linear.shape(loop.plant) is None:
        return theory.margins(loop)
    return _of_axes(loop)


def _of_axes(loop: LoopModel) -> AxesMargins:
    import numpy as np

    model = Open(loop)
    x = model.grid()
    every = _eigenvalues(model.matrix(np.exp(1j * x)))
    gain = _gain(model, x)
    at, until, crossing_hz = _crossings(model, x, every, loop)
    if not stable(model, x):
        quick = _of_axes(replace(loop, delay_ms=0.0)) if loop.ticks > 1 else None
        spare_ms = quick.delay_ms + (1 - loop.ticks) * loop.period_ms if quick and quick.stable else -math.inf
        return AxesMargins(min(gain, math.nextafter(1, 0)), spare_ms, crossing_hz)
    sizes = _eigenvalues(model.matrix(np.exp(1j * at)))
    places, which = (np.abs(np.abs(sizes) - 1) < UNIT).nonzero()  # of the same size several
    phases, spare = (np.angle(sizes[places, which]) + np.pi) % (2 * np.pi), at[places]
    return AxesMargins(
        max(gain, math.nextafter(1, 2)),
        delay_margin(phases, spare, until) * loop.period_ms,
        crossing_hz,
        math.degrees(float(phases.min())) if len(phases) else math.nan,
        _disk(model, x, loop.period_ms),
        tuple(beside(_alone(model, axis), x, loop.period_ms) for axis in range(model.axes)),
        _left(model),
    )


def stable(model: Open, x: Real) -> bool:
    """Whether the closed loop is stable."""
    if model.states <= LARGEST:
        beyond = largest_root(model.loop) - 1
        if beyond <= BEYOND or beyond > UNSURE:
            return beyond <= BEYOND
    return _winds(_eigenvalues(_outside(model, x)), model, 1.0)


def largest_root(loop: LoopModel) -> float:
    """Largest magnitude of the eigenvalues of the closed loop, by its whole state: controller, plant, delay line of h."""
    import numpy as np

    g, c = Open(loop).systems
    scale = np.ones(g.shape[0])
    scale[loop.axis] /= loop.c
    cg, dg = scale[:, None] * g.c, scale[:, None] * g.d
    ng, nc, p = len(g.a), len(c.a), g.shape[0]
    n = ng + nc + p * loop.ticks
    full = np.zeros((n, n))
    plant, law, first = slice(0, ng), slice(ng, ng + nc), ng + nc
    last = slice(n - p, n)  # what the controller sees: h of `ticks` before
    full[law, law], full[law, last] = c.a, -c.b
    full[plant, plant], full[plant, law], full[plant, last] = g.a, g.b @ c.c, -g.b @ c.d
    entry = slice(first, first + p)
    full[entry, plant], full[entry, law] = cg, dg @ c.c
    full[entry, last] += -dg @ c.d
    for tick in range(1, loop.ticks):
        at = first + tick * p
        full[at : at + p, at - p : at] = np.eye(p)
    return float(np.abs(np.linalg.eigvals(full)).max())


def _eigenvalues(matrices: Complex) -> Complex:
    import numpy as np

    return np.linalg.eigvals(matrices).astype(complex)


def _outside(model: Open, x: Real) -> Complex:
    """L shortly outside the unit circle."""
    import numpy as np

    return model.matrix(np.exp(1j * np.concatenate([np.zeros(1), x]) + math.log1p(BEYOND)))


def _winds(every: Complex, model: Open, gain: float) -> bool:
    """Whether a loop is stable with its gain multiplied: det(I + g L) winds once for each pole outside. [Nyquist 1932]"""
    import numpy as np

    curve = np.prod(1 + gain * every, axis=1)
    turns = float(np.angle(curve[1:] / curve[:-1]).sum()) / np.pi
    return round(turns) == model.outside


def _gain(model: Open, x: Real) -> float:
    """The factor of all gains from which on the loop is unstable; of an unstable one that below which it is stable."""
    import numpy as np

    every = _eigenvalues(_outside(model, x))
    well = _winds(every, model, 1.0)
    factors: list[float] = np.geomspace(1, GAINS if well else 1 / GAINS, TRIED).tolist()
    for first, second in pairwise(factors):
        if _winds(every, model, second) is not well:
            low, high = first, second
            for _ in range(50):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if _winds(every, model, middle) is well else (low, middle)
            return high
    return math.inf if well else 0.0


def _crossings(model: Open, x: Real, every: Complex, loop: LoopModel) -> tuple[Real, float, float]:
    """Angles where an eigenvalue of L has the size 1; up to which one has it from 0 on; and the highest such frequency."""
    import numpy as np

    sizes, found, until = np.sort(np.abs(every), axis=1), [np.zeros(0)], 0.0
    for n in range(model.axes):
        near = flat(sizes[:, n], x)
        until = max(until, near)
        crosses = np.diff(sizes[:, n] >= 1).nonzero()[0]
        crosses = crosses[x[crosses] > near]

        def off(some: Real, n: int = n) -> Real:
            return np.sort(np.abs(_eigenvalues(model.matrix(np.exp(1j * some)))), axis=1)[:, n] - 1

        if len(crosses):
            found.append(roots(off, x[crosses], x[crosses + 1]))
    at = np.unique(np.concatenate(found))
    highest = float(at.max()) / (2 * math.pi * loop.period_ms) * 1e3 if len(at) else math.nan
    return at, until, highest


def _alone(model: Open, axis: int) -> Opened:
    """The loop of an axis, with the others closed, at some z."""
    import numpy as np

    def at(z: Complex) -> Complex:
        matrix = model.matrix(z)
        s = np.linalg.inv(np.eye(model.axes) + matrix)[:, axis, axis]
        found: Complex = (1 - s) / s
        return found

    return at


def _left(model: Open) -> tuple[float, ...]:
    """The share of a step of each axis that its loop leaves in the end."""
    import numpy as np

    opened = model.matrix(np.exp(1j * np.array([SLOW])))[0]
    return tuple(float(size) for size in np.abs(np.diagonal(np.linalg.inv(np.eye(model.axes) + opened))))


def _disk(model: Open, x: Real, period_ms: float) -> Disk:
    """The disk margin: the peak of mu over all frequencies."""
    import numpy as np

    def half(some: Real) -> Complex:
        opened = model.matrix(np.exp(1j * some))
        # (S - T) / 2, for S + T = 1
        return (np.linalg.inv(np.eye(model.axes) + opened) - np.eye(model.axes) / 2).astype(complex)

    first = _balanced(half(x))[1]
    high = (first >= NEAR * first.max()).nonzero()[0]
    chosen = np.unique(high[np.linspace(0, len(high) - 1, min(CANDIDATES, len(high))).astype(int)])
    chosen = np.unique(np.append(chosen, first.argmax()))
    exact = mu(half(x[chosen]))
    best = int(exact.argmax())
    ends = chosen[max(best - 1, 0)], chosen[min(best + 1, len(chosen) - 1)]
    low, top = x[max(ends[0] - 1, 0)], x[min(ends[1] + 1, len(x) - 1)]
    peak, at = float(exact[best]), float(x[chosen[best]])
    for _ in range(4):
        some = np.geomspace(low, top, 12)
        sizes = mu(half(some))
        n = int(sizes.argmax())
        if sizes[n] > peak:
            peak, at = float(sizes[n]), float(some[n])
        low, top = some[max(n - 1, 0)], some[min(n + 1, len(some) - 1)]
    return Disk(1 / peak, at / (2 * math.pi * period_ms) * 1e3)


def _balanced(matrices: Complex, sweeps: int = 20) -> tuple[Real, Real]:
    """Logarithms of diagonal scalings with equal rows and columns, shape (n, p), and the bounds of mu. [Osborne 1960]"""
    import numpy as np

    size = np.abs(matrices) ** 2
    logs = np.zeros(size.shape[:2])
    p = size.shape[1]
    for _ in range(sweeps):
        for i in range(p):
            weight = np.exp(2 * (logs[:, :, None] - logs[:, None, :])) * size
            rows, columns = weight[:, i].sum(1) - weight[:, i, i], weight[:, :, i].sum(1) - weight[:, i, i]
            with np.errstate(divide="ignore", invalid="ignore"):
                change = 0.25 * np.log(columns / rows)
            logs[:, i] += np.clip(np.nan_to_num(change, nan=0.0, posinf=5.0, neginf=-5.0), -5, 5)
    return logs, _scaled(matrices, logs)[1][:, 0]


def _scaled(matrices: Complex, logs: Real) -> tuple[Complex, Real, Complex]:
    """Singular vectors and values of D M D^-1."""
    import numpy as np

    return np.linalg.svd(np.exp(logs[:, :, None] - logs[:, None, :]) * matrices)


def mu(matrices: Complex) -> Real:
    """The upper bound of mu for independent complex factors, by the best diagonal scaling of each matrix.

    The logarithm of the largest singular value is convex in those of D. It is approached from smooth norms, by descent with
    the slope |u|^2 - |v|^2 of each singular value.

    Parameters
    ----------
    matrices : numpy.ndarray
        Shape (n, p, p).

    Returns
    -------
    numpy.ndarray
        Shape (n,).
    """
    import numpy as np

    logs, best = _balanced(matrices)
    if matrices.shape[1] == 1:
        return best
    for power in (2, 8, 32, 128, 512):
        step = np.full(len(logs), 1.0)
        value, slope, most = _smooth(matrices, logs, power)
        best = np.minimum(best, most)
        for _ in range(25):
            trial = logs - (step / power**0.5)[:, None] * slope
            after, steeper, most = _smooth(matrices, trial, power)
            better = after <= value
            logs = np.where(better[:, None], trial, logs)
            slope = np.where(better[:, None], steeper, slope)
            value = np.where(better, after, value)
            step = np.where(better, 1.3 * step, 0.4 * step)
            best = np.minimum(best, most)
    return best


def _smooth(matrices: Complex, logs: Real, power: int) -> tuple[Real, Real, Real]:
    """A smooth bound of the logarithm of the largest singular value, its slope, and the largest singular value."""
    import numpy as np

    u, s, vh = _scaled(matrices, logs)
    share = (s / np.maximum(s[:, :1], 1e-300)) ** (2 * power)
    total = share.sum(1)
    weight = share / total[:, None]
    slope = np.einsum("ni,nji->nj", weight, np.abs(u) ** 2) - np.einsum("ni,nij->nj", weight, np.abs(vh) ** 2)
    value = np.log(np.maximum(s[:, 0], 1e-300)) + np.log(total) / (2 * power)
    return value, slope, s[:, 0]
