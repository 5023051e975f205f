"""Predictor by a learned model: `run = "./hand.onnx"` of a `predict` hook.

```text
window   the newest samples, a period apart; what was lost is drawn as a line between its neighbours
guess    the model at its horizons, a line between them, for: time since the newest sample came + ahead_ms
```
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.lab.control.network import Model

MOST_LOST = 1000
"""Samples lost in a row that are bridged; after more the window begins anew."""


class Learned:
    """The hook.

    Parameters
    ----------
    model
        File of the model.
    provider
        What runs it: an execution provider of onnxruntime by its name.
    ahead_ms
        How far ahead of the moment it guesses.
    """

    def __init__(self, model: str, provider: str = "CPUExecutionProvider", ahead_ms: float = 0.0) -> None:
        self.model = Model(model, provider)
        if not 0 <= ahead_ms <= self.model.horizons_ms[-1]:
            raise HookError(
                f"ahead_ms = {ahead_ms}: from 0 to {self.model.horizons_ms[-1]:g}, the farthest horizon"
            )
        self.ahead_ms = ahead_ms
        self.knots_ms = np.array([0.0, *self.model.horizons_ms])
        self.window: NDArray[np.float64] = np.zeros((0, self.model.window))
        self.knots: NDArray[np.float64] = np.zeros((0, len(self.knots_ms)))
        self.newest = 0
        self.came_ns = 0

    def __call__(
        self, t_ns: int, index: int, x: NDArray[np.float64] | None, other: object, y: NDArray[np.float64]
    ) -> int:
        """Guesses for now; nothing before the first sample."""
        if x is not None and not self._take(index, x):
            raise HookError(f"needs values, all finite; found {len(x)} of them")
        if x is not None:
            self.came_ns = t_ns
            guessed = self.model.guess(self.window)
            self.knots = np.concatenate([self.window[:, -1:], guessed], axis=1)
        ahead_ms = (t_ns - self.came_ns) / 1e6 + self.ahead_ms
        for n, knots in enumerate(self.knots):
            y[n] = np.interp(ahead_ms, self.knots_ms, knots)
        return len(self.knots)

    def _take(self, index: int, x: NDArray[np.float64]) -> bool:
        if len(x) == 0 or not np.isfinite(x).all():
            return False
        lost = index - self.newest - 1
        if len(x) != len(self.window) or not 0 <= lost <= MOST_LOST:
            self.window = np.repeat(x[:, None], self.model.window, axis=1)
        else:
            share = np.arange(1, lost + 2) / (lost + 1)
            between = self.window[:, -1:] + (x[:, None] - self.window[:, -1:]) * share
            self.window = np.concatenate([self.window, between], axis=1)[:, -self.model.window :]
        self.newest = index
        return True
