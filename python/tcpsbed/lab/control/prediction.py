"""Predictors compared on recorded motion and force: errors at horizons, jumps, cost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.network import Model

HAND = "builtin:hand"
MODEL = ".onnx"
"""Ending of a learned model's file, which is compared like a predictor's name."""
LEARNING_MS = 500.0
"""Time at the beginning in which nothing counts."""
BLEND_MS = 3.0
"""Time over which a correction is blended in: its jump is spread over so many ms."""
WRIST = """
name = "wrist"
duration = "20 s"
[components]
tactile-operator = "desk"
srv = "desk"
ss-com = "desk"
[flows.kinematic]
source = { recording = "builtin:hand" }
codec = "f64"
[hooks]
kinematics = "imu_wrist"
[measure]
signals = ["srv.exit"]
"""
"""The wrist's position, as the built-in kinematics find it from the built-in recording."""


@dataclass(frozen=True)
class Recorded:
    """Samples of motion or force.

    Attributes
    ----------
    name : str
        What they are.
    values : numpy.ndarray
        Shape (n, columns).
    period_ms : float
        Time between two.
    """

    name: str
    values: NDArray[np.float64]
    period_ms: float


@dataclass(frozen=True)
class Score:
    """A predictor at a horizon: errors in the recording's unit, costs in nanoseconds a call."""

    predictor: str
    horizon_ms: float
    rms: float
    worst: float
    update_ns: float
    predict_ns: float

    @property
    def blended(self) -> float:
        """The worst jump in a millisecond once it is blended in."""
        return self.worst / BLEND_MS


def wrist() -> Recorded:
    """The wrist's position over the built-in recording of a hand, in m."""
    from tcpsbed.analysis import signals
    from tcpsbed.runs import session
    from tcpsbed.runs.given import given

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder, given(WRIST) as asked:
        if session.execute(asked.scenario, world="virtual", out=Path(folder)).stopped:
            raise KeyboardInterrupt
        found = signals.read(Path(folder), "srv.exit", "kinematic")
    return Recorded("wrist of builtin:hand, m", found.values[:, :3], 1.0)


def recorded(spec: dict[str, Any], rate_hz: float) -> Recorded:
    """A recording at a rate; the built-in hand as the wrist's position."""
    if spec["recording"] == HAND:
        return wrist()
    from tcpsbed.datasets import recordings

    values = recordings.open_values(spec, rate_hz, Path())
    return Recorded(Path(spec["recording"]).name, values, 1e3 / rate_hz)


# RMS error at horizons 5, 10, 20, 50 ms, and the largest jump when a sample replaces a guess
def compare(found: Recorded, horizons_ms: Sequence[float], predictors: Sequence[str]) -> list[Score]:
    """Every predictor at every horizon.

    Raises
    ------
    ConfigError
        If a predictor is not known, or a horizon is shorter than a period.
    DataError
        If the recording is too short, or has values that are not finite.
    """
    import numpy as np

    steps = [round(ms / found.period_ms) for ms in horizons_ms]
    if min(steps, default=0) < 1:
        raise ConfigError(
            f"found {min(horizons_ms):g} ms", key="--horizons", allowed=f"at least {found.period_ms:g} ms"
        )
    known = _tcps.builtins()["predictors"]
    for name in predictors:
        if name not in known and not name.endswith(MODEL):
            allowed = f"{close_match(name, known)}, or a learned model such as hand{MODEL}"
            raise ConfigError(f'found "{name}"', key="--predictors", allowed=allowed)
    seconds = len(found.values) * found.period_ms / 1e3
    if seconds * 1e3 < 500 + 2 * max(horizons_ms):
        raise DataError(f"found {seconds:.2f} s in {found.name}", allowed="a longer recording")
    if not np.isfinite(found.values).all():
        raise DataError(f"found values that are not finite in {found.name}", allowed="finite values")
    rows = np.ascontiguousarray(found.values, dtype=float).ravel().tolist()
    return [
        score
        for name in predictors
        for score in (
            _learned(found, name, steps) if name.endswith(MODEL) else _scores(found, name, rows, steps)
        )
    ]


def _scores(found: Recorded, name: str, rows: list[float], steps: Sequence[int]) -> list[Score]:
    period_ns = round(found.period_ms * 1e6)
    params = {"period_ms": found.period_ms} if name == "ar" else {}
    errors, update_ns, predict_ns = _tcps.replay_predictor(
        name, json.dumps(params), rows, found.values.shape[1], period_ns, steps
    )
    return [
        Score(name, step * found.period_ms, rms, worst, update_ns, cost)
        for step, (rms, worst), cost in zip(steps, errors, predict_ns, strict=True)
    ]


def _learned(found: Recorded, name: str, steps: Sequence[int]) -> list[Score]:
    """The scores of a learned model; its cost is that of a call for one sample, which answers for all horizons."""
    import numpy as np

    from tcpsbed.lab.control.network import Model

    model = Model(name)
    if abs(model.period_ms - found.period_ms) > 1e-6:
        found_hz, wanted_hz = 1e3 / found.period_ms, 1e3 / model.period_ms
        raise DataError(
            f"found samples every {found.period_ms:g} ms ({found_hz:g} Hz)",
            file=Path(name),
            allowed=f"every {model.period_ms:g} ms ({wanted_hz:g} Hz), which this model was trained for",
        )
    if steps[-1] * found.period_ms > model.horizons_ms[-1]:
        raise DataError(
            f"found {steps[-1] * found.period_ms:g} ms",
            key="--horizons",
            allowed=f"up to {model.horizons_ms[-1]:g} ms, the model's farthest",
        )
    windows = np.lib.stride_tricks.sliding_window_view(found.values, model.window, axis=0)
    n, columns, w = windows.shape
    guessed = model.guess(np.ascontiguousarray(windows.reshape(n * columns, w)))
    knots = np.concatenate([windows.reshape(-1, w)[:, -1:], guessed], axis=1).reshape(n, columns, -1)
    spent_ns = _cost_ns(model, np.ascontiguousarray(windows[-1]))
    scores = []
    for step in steps:
        error = _errors(found, model.horizons_ms, knots, step)
        rms, worst = float(np.sqrt(np.mean(error**2))), float(np.max(error))
        scores.append(Score(Path(name).name, step * found.period_ms, rms, worst, spent_ns, 0.0))
    return scores


def _errors(
    found: Recorded, horizons_ms: Sequence[float], knots: NDArray[np.float64], step: int
) -> NDArray[np.float64]:
    """Lengths of the errors at a horizon, between whose neighbours a line is drawn."""
    import numpy as np

    at = np.array([0.0, *horizons_ms])
    ms = step * found.period_ms
    right = max(1, int(np.searchsorted(at, ms)))
    share = (ms - at[right - 1]) / (at[right] - at[right - 1])
    guess = knots[:, :, right - 1] * (1 - share) + knots[:, :, right] * share
    first = len(found.values) - len(knots)
    skipped = max(0, round(LEARNING_MS / found.period_ms) - first)
    truth = found.values[first + skipped + step :]
    lengths: NDArray[np.float64] = np.linalg.norm(guess[skipped:][: len(truth)] - truth, axis=1)
    return lengths


def _cost_ns(model: Model, sample: NDArray[np.float64]) -> float:
    """Median time of a call, in ns."""
    from statistics import median
    from time import perf_counter_ns

    spent = []
    for _ in range(200):
        begun = perf_counter_ns()
        model.guess(sample)
        spent.append(perf_counter_ns() - begun)
    return float(median(spent))
