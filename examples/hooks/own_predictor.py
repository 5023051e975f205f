"""A predictor of your own: goes on in a straight line for a while, then stands. Scenario: own_predictor.toml."""

import numpy as np


class Straight:
    """Position plus speed times the time since the last sample, at most `horizon`."""

    def __init__(self, horizon_ns: int = 20_000_000, interval_ns: int = 1_000_000) -> None:
        self.horizon_ns = horizon_ns  # `horizon = "20 ms"` in the scenario
        self.interval_ns = interval_ns  # between samples as they were made: told to a predictor that takes it
        self.last: np.ndarray | None = None
        self.speed = np.zeros(0)  # per ns
        self.at_ns = self.index = 0

    def __call__(self, t_ns: int, index: int, x: np.ndarray | None, other: np.ndarray, y: np.ndarray) -> int:
        """Called in every period; `x` is a new sample, or None."""
        if x is not None:
            self._learn(t_ns, index, x)
        if self.last is None:
            return 0  # nothing to say yet
        ahead_ns = min(t_ns - self.at_ns, self.horizon_ns)
        y[: len(self.last)] = self.last + self.speed * ahead_ns
        return len(self.last)

    def _learn(self, t_ns: int, index: int, x: np.ndarray) -> None:
        since_ns = self.interval_ns * max(index - self.index, 1)  # some are lost on the way
        self.speed = np.zeros(len(x)) if self.last is None else (x - self.last) / since_ns
        self.last, self.at_ns, self.index = x.copy(), t_ns, index  # x is used again for the next sample
