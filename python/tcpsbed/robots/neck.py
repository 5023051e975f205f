"""The neck of a robot: the pose of a headset turns and moves the cameras, no faster than a neck of motors could.

```text
headset ── flow of poses ──► Neck (hook at the robot) ── cell ──► CameraSource, RobotCamera (look = the same file)
x, y, z, quaternion          pan, tilt, roll, right, up, back     draw by it
```
The hook turns a pose into that of the cameras: pan about the vertical, counted from where the wearer looked at first; tilt
and roll against gravity; the way of the head from its first place. What it gives out is where the cameras are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LOOK = 6
"""Values of a look: pan (to the left), tilt (up), roll (to the left), in rad; right, up, back, in m."""
FARTHEST_M = 100.0
"""A head is nowhere beyond."""
LONGEST_S = 0.1
"""A longer time between two poses counts as this one: motors rest while nothing comes."""


class Neck:
    """The hook; a pose is x, y, z (m; right, up, back) and a quaternion x, y, z, w, as WebXR has them.

    Parameters
    ----------
    publish
        A file that holds the newest look, for a process that draws pictures.
    speed_rad_s, speed_m_s
        Highest speed of each angle, and of the way along each axis.
    reach_rad
        Farthest pan, tilt and roll, either way.
    reach_m
        Farthest way to the right, up and back, either way.
    """

    def __init__(
        self,
        publish: str,
        speed_rad_s: float = 3.0,
        speed_m_s: float = 0.5,
        reach_rad: Sequence[float] = (1.6, 1.0, 0.5),
        reach_m: Sequence[float] = (0.15, 0.15, 0.15),
    ) -> None:
        speeds, reach = [speed_rad_s, speed_m_s], [*reach_rad, *reach_m]
        if len(reach) != LOOK or not all(math.isfinite(v) and v >= 0 for v in (*speeds, *reach)):
            raise HookError(
                f"neck: found speeds {speeds}, reaches {reach}",
                allowed="numbers from 0 on; three in reach_rad, three in reach_m",
            )
        self._most = np.repeat(speeds, 3)
        self._reach = np.array(reach, dtype=np.float64)
        self._look, self._goal = np.zeros(LOOK), np.zeros(LOOK)
        self._yaw: float | None = None
        self._turned = 0.0
        self._first_m = np.zeros(3)
        self._first_yaw = 0.0
        self._last_ns: int | None = None
        self._cell = Cell.create(publish, LOOK)

    def __call__(self, t_ns: int, index: int, x: Values | None, other: Values, y: Values) -> int:
        """Moves towards the newest pose; a pose that is not finite, or whose quaternion is zero, moves nothing."""
        if x is not None and len(x) >= 7 and bool(np.isfinite(x[:7]).all()):
            self._aim(np.clip(x[:3], -FARTHEST_M, FARTHEST_M), x[3:7])
        since_ns = 0 if self._last_ns is None else max(t_ns - self._last_ns, 0)
        self._last_ns = t_ns
        most = self._most * min(since_ns * 1e-9, LONGEST_S)
        self._look += np.clip(self._goal - self._look, -most, most)
        self._cell.write(t_ns, self._look)
        y[:LOOK] = self._look
        return LOOK

    def _aim(self, place: Values, quaternion: Values) -> None:
        norm = math.hypot(*quaternion)
        if not 0.5 < norm < 2.0:
            return
        yaw, pitch, roll = angles(quaternion / norm)
        if self._yaw is None:
            self._yaw = self._first_yaw = yaw
            self._first_m = place.copy()
        self._turned += math.remainder(yaw - self._yaw, math.tau)  # past the back of the wearer, too
        self._yaw = yaw
        right, up, back = place - self._first_m
        c, s = math.cos(self._first_yaw), math.sin(self._first_yaw)
        moved = (c * right - s * back, up, s * right + c * back)
        self._goal[:] = np.clip((self._turned, pitch, roll, *moved), -self._reach, self._reach)


def angles(quaternion: Values) -> tuple[float, float, float]:
    """Yaw, pitch, roll (rad) of a unit quaternion x, y, z, w: in this order about y (up), x (right), z (back)."""
    x, y, z, w = (float(v) for v in quaternion)
    yaw = math.atan2(2 * (x * z + w * y), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(max(2 * (w * x - y * z), -1.0), 1.0))
    roll = math.atan2(2 * (x * y + w * z), 1 - 2 * (x * x + z * z))
    return yaw, pitch, roll


def turned(rest: Values, look: Values) -> Values:
    """Axes of a camera (columns: right, up, back) that looked along `rest`, turned by a look; `z` is the vertical."""
    pan, tilt, roll = look[:3]
    about_z = [[math.cos(pan), -math.sin(pan), 0], [math.sin(pan), math.cos(pan), 0], [0, 0, 1]]
    about_right = [[1, 0, 0], [0, math.cos(tilt), -math.sin(tilt)], [0, math.sin(tilt), math.cos(tilt)]]
    about_back = [[math.cos(roll), -math.sin(roll), 0], [math.sin(roll), math.cos(roll), 0], [0, 0, 1]]
    axes: Values = np.array(about_z) @ rest @ np.array(about_right) @ np.array(about_back)
    return axes


def moved(rest: Values, look: Values) -> Values:
    """The displacement of a look in the world, for a camera with axes `rest`: to its right, up, and level to its back."""
    right = np.array([rest[0, 0], rest[1, 0], 0.0])
    norm = float(np.linalg.norm(right))
    right = right / norm if norm > 1e-9 else np.array([1.0, 0.0, 0.0])
    up = np.array([0.0, 0.0, 1.0])
    way: Values = look[3] * right + look[4] * up + look[5] * np.cross(right, up)
    return way
