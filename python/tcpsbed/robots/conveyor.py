"""Robot `mujoco-conveyor`: a belt whose speed is the command, with a glass on it and a stop at each end, in MuJoCo.

```text
command   speed of the belt (m/s); of several values the last one, which is where the hook `mouse` puts its wheel
sense     fx (N) of the stops on the glass, 0, 0, x, y, z of the glass (m), its speed (m/s), speed of the belt (m/s)
```
The motor of the belt reaches a new speed with a time constant.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tcpsbed.door import ABOVE_ZERO, Param
from tcpsbed.errors import HookError
from tcpsbed.robots.scene import Scene
from tcpsbed.robots.staged import Staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


class Conveyor(Staged):
    """The belt. Cameras: `left`, `right` (a stereo pair, 64 mm apart)."""

    params: ClassVar[dict[str, Param]] = {
        "most_m_s": Param(
            "number", ABOVE_ZERO, default="0.3", doc="highest speed of the belt in either direction"
        ),
        "lag_s": Param("number", ABOVE_ZERO, default="0.02", doc="time constant of the motor of the belt"),
        "publish": Param(
            "output",
            default=None,
            doc="file in which the robot publishes its newest state, for a process that draws pictures",
        ),
    }

    def __init__(self, most_m_s: float, lag_s: float, publish: str | None) -> None:
        self.most_m_s, self.lag_s = most_m_s, lag_s
        self.scene = Scene("conveyor")
        self._belt = self.scene.number("geom", "belt")
        if not hasattr(self.scene.model, "geom_surfacevel"):
            raise HookError(
                f"MuJoCo {self.scene.mj.__version__} has no belts", allowed="mujoco 3.11 or newer"
            )
        self._wanted_m_s = self._speed_m_s = 0.0
        self._last_ns: int | None = None
        self._set(0.0)
        names = ("front_stop", "back_stop", "object", "object_velocity")
        self._front, self._back, self._glass, self._velocity = map(self.scene.sensor, names)
        self._publish(publish)

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves to `t_ns`; writes the sensed values and returns their number."""
        if len(command) and math.isfinite(command[-1]):
            self._wanted_m_s = min(max(float(command[-1]), -self.most_m_s), self.most_m_s)
        dt_s = 0.0 if self._last_ns is None else max(t_ns - self._last_ns, 0) * 1e-9
        self._last_ns = t_ns
        self._set(self._speed_m_s + (self._wanted_m_s - self._speed_m_s) * (1 - math.exp(-dt_s / self.lag_s)))
        self._advance(t_ns)
        push_n = self._back[0] - self._front[0]
        values = (push_n, 0.0, 0.0, *self._glass, self._velocity[0], self._speed_m_s)
        n = min(len(values), len(sense))
        sense[:n] = values[:n]
        return n

    def arrived(self) -> bool:
        """Whether the belt has the commanded speed, to 1 mm/s."""
        return abs(self._speed_m_s - self._wanted_m_s) < 0.001

    def _set(self, speed_m_s: float) -> None:
        self._speed_m_s = speed_m_s
        self.scene.model.geom_surfacevel[self._belt, 0] = speed_m_s
