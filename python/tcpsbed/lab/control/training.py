"""Training of a small network on recorded motion, with numpy alone.

```text
windows of all recordings and values, some with gaps ─► A by least squares ─► B, b, C by Adam on what is left
                                                                         ─► the best on the last fifth
```
The squared error counts in the unit of the recording, each recording divided by its own spread, so that none outweighs the
others by its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import DataError
from tcpsbed.lab.control.network import Network, scaled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.prediction import Recorded

HELD_BACK = 0.2
"""Share of each recording, at its end, that only says when to stop."""
GAPPED = 2
"""For each so many windows, one more is made with a gap in it, which is filled as the hook fills gaps."""
BATCH, RATE, RIDGE = 512, 2e-3, 1e-6
MOST_WINDOWS = 200_000
"""Most windows that are used for training; of longer recordings every n-th window is used."""


@dataclass(frozen=True)
class Plan:
    """What is trained.

    Attributes
    ----------
    window : int
        Samples that the network looks at.
    units : int
        Hidden units.
    horizons_ms : tuple of float
        Moments ahead that it guesses.
    epochs : int
        Passes over all windows.
    seed : int
        Of the first weights and of the order of windows.
    """

    window: int = 32
    units: int = 32
    horizons_ms: tuple[float, ...] = (5.0, 10.0, 20.0, 50.0)
    epochs: int = 20
    seed: int = 1


@dataclass(frozen=True)
class _Examples:
    """Scaled windows, scaled displacements to each horizon, and weights."""

    z: NDArray[np.float64]
    way: NDArray[np.float64]
    weight: NDArray[np.float64]

    def loss(self, out: NDArray[np.float64]) -> float:
        return float((self.weight * (out - self.way) ** 2).mean())


def train(
    recordings: Sequence[Recorded], plan: Plan, progress: Callable[[float], object] | None = None
) -> Network:
    """Trains a network.

    Raises
    ------
    DataError
        If recordings differ in their period, a horizon is no whole number of periods, or a recording is too short.
    """
    import numpy as np

    period_ms = recordings[0].period_ms
    if any(abs(found.period_ms - period_ms) > 1e-9 for found in recordings):
        raise DataError("found recordings at several rates", key="--rate", allowed="one rate for all")
    steps = [_steps(ms, period_ms) for ms in plan.horizons_ms]
    learned, kept = (_joined(recordings, plan, steps, late=late) for late in (False, True))
    draw = np.random.default_rng(plan.seed)
    linear = _least_squares(learned)
    shape = (plan.window - 1, plan.units)
    weights = {
        "first": draw.normal(0, 1 / np.sqrt(shape[0]), shape),
        "bias": np.zeros(plan.units),
        "second": np.zeros((plan.units, len(steps))),
    }
    best = _adam(learned, kept, linear, weights, plan, draw, progress)
    return Network(period_ms, plan.horizons_ms, linear, **best)


def _steps(horizon_ms: float, period_ms: float) -> int:
    """Samples to a horizon, which are whole: the model has no others to guess."""
    steps = round(horizon_ms / period_ms)
    if steps < 1 or abs(steps * period_ms - horizon_ms) > 1e-6:
        allowed = f"whole multiples of the recording's period, {period_ms:.9g} ms"
        raise DataError(f"found {horizon_ms:.9g} ms", key="--horizons", allowed=allowed)
    return steps


def _joined(recordings: Sequence[Recorded], plan: Plan, steps: Sequence[int], *, late: bool) -> _Examples:
    import numpy as np

    parts = [_examples(found, plan, steps, late=late) for found in recordings]
    every = max(1, sum(len(part.z) for part in parts) // MOST_WINDOWS)
    return _Examples(
        *(np.concatenate([getattr(part, name)[::every] for part in parts]) for name in ("z", "way", "weight"))
    )


def _examples(found: Recorded, plan: Plan, steps: Sequence[int], *, late: bool) -> _Examples:
    import numpy as np

    draw = np.random.default_rng(plan.seed)
    cut = int(len(found.values) * (1 - HELD_BACK))
    values = found.values[cut:] if late else found.values[:cut]
    if len(values) < plan.window + steps[-1] + 100:
        seconds = len(found.values) * found.period_ms / 1e3
        raise DataError(f"found {seconds:.1f} s in {found.name}", allowed="a longer recording")
    z, way, weight = [], [], []
    for column in np.ascontiguousarray(values.T):
        every = np.lib.stride_tricks.sliding_window_view(column, plan.window)[: -steps[-1]]
        gaps = np.arange(0, len(every), GAPPED)
        windows = np.concatenate([every, _bridged(every[gaps], draw)])
        here, scale = scaled(windows)
        last = plan.window - 1 + np.concatenate([np.arange(len(every)), gaps])
        ahead = np.stack([column[last + step] for step in steps], axis=1)
        moved = (ahead - column[last][:, None]) / scale
        spread = np.std(ahead[:, -1] - column[last]) + 1e-12
        still = scale[:, 0] > 1e-9 * spread  # a signal at rest has nothing to be scaled by
        z.append(here[still])
        way.append(moved[still])
        weight.append((scale[still] / spread) ** 2)
    return _Examples(*map(np.concatenate, (z, way, weight)))


def _bridged(windows: NDArray[np.float64], draw: Any) -> NDArray[np.float64]:
    """Windows with lost samples, as the hook sees them: a gap is filled by a line between its neighbours."""
    import numpy as np

    count, w = windows.shape
    begin = draw.integers(0, w - 2, count)[:, None]
    end = np.minimum(begin + draw.integers(2, w, count)[:, None], w - 1)
    at, row = np.arange(w)[None, :], np.arange(count)[:, None]
    left, right = windows[row, begin], windows[row, end]
    line = left + (right - left) * (at - begin) / (end - begin)
    return np.where((at > begin) & (at < end), line, windows)


def _least_squares(of: _Examples) -> NDArray[np.float64]:
    """A, by weighted least squares with a little ridge."""
    import numpy as np

    heavy = of.z * of.weight
    square = heavy.T @ of.z
    ridge = RIDGE * np.trace(square) / len(square) * np.eye(len(square))
    found: NDArray[np.float64] = np.linalg.solve(square + ridge, heavy.T @ of.way)
    return found


def _adam(
    learned: _Examples,
    kept: _Examples,
    linear: NDArray[np.float64],
    weights: dict[str, NDArray[np.float64]],
    plan: Plan,
    draw: Any,
    progress: Callable[[float], object] | None,
) -> dict[str, NDArray[np.float64]]:
    """The weights that were best on what was kept back (Kingma and Ba 2015)."""
    import numpy as np

    mean = {name: np.zeros_like(array) for name, array in weights.items()}
    square = {name: np.zeros_like(array) for name, array in weights.items()}
    best, least, step = dict(weights), kept.loss(kept.z @ linear), 0
    total = float(learned.weight.mean())
    for epoch in range(plan.epochs):
        order = draw.permutation(len(learned.z))
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / plan.epochs))
        for begin in range(0, len(order), BATCH):
            step += 1
            slopes = _slopes(learned, order[begin : begin + BATCH], linear, weights, total)
            for name, slope in slopes.items():
                mean[name] = 0.9 * mean[name] + 0.1 * slope
                square[name] = 0.999 * square[name] + 0.001 * slope**2
                up, down = mean[name] / (1 - 0.9**step), square[name] / (1 - 0.999**step)
                weights[name] = weights[name] - rate * up / (np.sqrt(down) + 1e-8)
        loss = kept.loss(_out(kept.z, linear, weights)[0])
        if loss < least:
            best, least = dict(weights), loss
        if progress is not None:
            progress((epoch + 1) / plan.epochs)
    return best


def _out(
    z: NDArray[np.float64], linear: NDArray[np.float64], weights: dict[str, NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    hidden = np.tanh(z @ weights["first"] + weights["bias"])
    return z @ linear + hidden @ weights["second"], hidden


def _slopes(
    of: _Examples,
    chosen: NDArray[np.int64],
    linear: NDArray[np.float64],
    weights: dict[str, NDArray[np.float64]],
    total: float,
) -> dict[str, NDArray[np.float64]]:
    """Derivatives of the mean weighted squared error over some windows."""
    z = of.z[chosen]
    out, hidden = _out(z, linear, weights)
    error = of.weight[chosen] / total * (out - of.way[chosen]) / len(chosen)
    back = (error @ weights["second"].T) * (1 - hidden**2)
    return {"first": z.T @ back, "bias": back.sum(axis=0), "second": hidden.T @ error}
