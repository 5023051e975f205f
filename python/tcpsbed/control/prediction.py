"""Predictors compared on recorded motion and force: how wrong they are at horizons, how they jump, what they cost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HAND = "builtin:hand"
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
    from tcpsbed import session
    from tcpsbed.analysis import signals

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        session.run(WRIST, out=folder)
        found = signals.read(Path(folder), "srv.exit", "kinematic")
    return Recorded("wrist of builtin:hand, m", found.values[:, :3], 1.0)


def recorded(spec: dict[str, Any], rate_hz: float) -> Recorded:
    """A recording at a rate; the built-in hand as the wrist's position."""
    if spec["recording"] == HAND:
        return wrist()
    from tcpsbed.datasets import recordings

    values = recordings.open_values(spec, rate_hz, Path())
    return Recorded(Path(spec["recording"]).name, values, 1e3 / rate_hz)


# [PROTOCOLS 10] RMS error at horizons 5, 10, 20, 50 ms, and the largest jump when a sample replaces a guess
def compare(found: Recorded, horizons_ms: Sequence[float], predictors: Sequence[str]) -> list[Score]:
    """Every predictor at every horizon.

    Raises
    ------
    DataError
        If a predictor is not known, a horizon is shorter than a period, or the recording is too short.
    """
    import numpy as np

    steps = [round(ms / found.period_ms) for ms in horizons_ms]
    if min(steps, default=0) < 1:
        raise DataError(
            f"found {min(horizons_ms):g} ms", key="--horizons", allowed=f"at least {found.period_ms:g} ms"
        )
    seconds = len(found.values) * found.period_ms / 1e3
    if seconds * 1e3 < 500 + 2 * max(horizons_ms):
        raise DataError(f"found {seconds:.2f} s in {found.name}", allowed="a longer recording")
    if not np.isfinite(found.values).all():
        raise DataError(f"found values that are no numbers in {found.name}", allowed="finite values")
    rows = np.ascontiguousarray(found.values, dtype=float).ravel().tolist()
    return [score for name in predictors for score in _scores(found, name, rows, steps)]


def _scores(found: Recorded, name: str, rows: list[float], steps: Sequence[int]) -> list[Score]:
    period_ns = round(found.period_ms * 1e6)
    params = {"period_ms": found.period_ms} if name == "ar" else {}
    try:
        errors, update_ns, predict_ns = _tcps.replay_predictor(
            name, json.dumps(params), rows, found.values.shape[1], period_ns, steps
        )
    except ValueError as error:
        raise DataError(str(error), key="--predictors") from None
    return [
        Score(name, step * found.period_ms, rms, worst, update_ns, cost)
        for step, (rms, worst), cost in zip(steps, errors, predict_ns, strict=True)
    ]
