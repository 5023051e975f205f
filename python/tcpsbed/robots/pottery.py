"""Robot `pottery`: clay that turns on a wheel and is shaped by a tool which follows the operator's hand.

```text
tool      m x'' = kp (x_d - x) + kd (x_d' - x') + F        the two devices, coupled by a PD controller
clay      radii r over the height; where the tool is deeper than a radius, F = -k depth outwards, and friction drags
flow      r gives way by depth / yield_s; what it loses, the rows beside it gain: the sum of r^2, the volume, stays
sound     of filing, only in contact: its loudness grows with force and with the speed of the clay under the tool
command   x, y, z (m), speed (m/s; may be left out)
sense     fx, fy, fz (N), x, y, z (m), contact (0 or 1), loudness (0 to 1)
```
[Gokhale 2017]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tcpsbed.door import ABOVE_ZERO, Param
from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

ROWS = 80
HEIGHT_M = 0.2
LEAST_M = 0.01
TOOL_M = 0.008
STEP_S = 5e-4
LONGEST_S = 0.1
LOUD_N = 2.0
ARRIVED_M = 0.001


class Pottery:
    """The wheel with its clay, and the tool."""

    params: ClassVar[dict[str, Param]] = {
        "radius_m": Param("number", ABOVE_ZERO, default="0.05", doc="initial radius of the clay"),
        "turns_s": Param("number", default="2", doc="turns of the wheel per second"),
        "stiffness_n_m": Param("number", ABOVE_ZERO, default="800", doc="stiffness of the clay"),
        "yield_s": Param("number", ABOVE_ZERO, default="0.3", doc="time constant of yielding clay"),
        "friction": Param("number", 0, default="0.3", doc="friction of the tool on the clay"),
        "mass_kg": Param("number", ABOVE_ZERO, default="0.1", doc="mass of the tool"),
        "kp_n_m": Param("number", 0, default="400", doc="stiffness of the tool's coupling to the hand"),
        "kd_n_s_m": Param("number", 0, default="12", doc="damping of the tool's coupling to the hand"),
        "publish": Param(
            "output",
            default=None,
            doc="file in which the robot publishes its newest state, for a process that draws pictures",
        ),
    }

    own_process = True

    def __init__(
        self,
        radius_m: float,
        turns_s: float,
        stiffness_n_m: float,
        yield_s: float,
        friction: float,
        mass_kg: float,
        kp_n_m: float,
        kd_n_s_m: float,
        publish: str | None,
    ) -> None:
        fastest = max(math.sqrt((kp_n_m + stiffness_n_m) / mass_kg), kd_n_s_m / mass_kg)
        if fastest * STEP_S > 0.5:
            raise HookError(
                f"stiffness, damping and mass give the tool a rate of {fastest:.0f} 1/s, too fast for the integration",
                allowed=f"at most {0.5 / STEP_S:.0f} 1/s",
            )
        self.turns_s, self.stiffness, self.yield_s, self.friction = turns_s, stiffness_n_m, yield_s, friction
        self.mass_kg, self.kp, self.kd = mass_kg, kp_n_m, kd_n_s_m
        self.heights = (np.arange(ROWS) + 0.5) * HEIGHT_M / ROWS
        self.radii = np.full(ROWS, radius_m)
        self.place = np.array([radius_m + 0.05, 0.0, HEIGHT_M / 2])
        self.velocity = np.zeros(3)
        self.goal, self.goal_velocity = self.place.copy(), np.zeros(3)
        self.force = np.zeros(3)
        self.angle = self.loudness = 0.0
        self._last_ns: int | None = None
        self._cell = Cell.create(publish, ROWS + 4) if publish else None

    @property
    def volume_m3(self) -> float:
        """The volume of the clay."""
        return float(math.pi * HEIGHT_M / ROWS * (self.radii @ self.radii))

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves to `t_ns`; writes the sensed values and returns their number."""
        if len(command) >= 3 and bool(np.isfinite(command).all()):
            self.goal = command[:3].copy()
            self.goal_velocity = command[3:6].copy() if len(command) >= 6 else np.zeros(3)
        gap_s = 0.0 if self._last_ns is None else min(max(t_ns - self._last_ns, 0) * 1e-9, LONGEST_S)
        self._last_ns = t_ns
        steps = math.ceil(gap_s / STEP_S - 1e-9)
        for _ in range(steps):
            self._move(gap_s / steps)
        if self._cell is not None:
            self._cell.write(t_ns, self.state())
        contact = float(self.loudness > 0)
        values = (*self.force, *self.place, contact, self.loudness)
        n = min(len(values), len(sense))
        sense[:n] = values[:n]
        return n

    def arrived(self) -> bool:
        """Whether the tool is where the hand is, to 1 mm."""
        off = self.goal - self.place
        return bool(off @ off <= ARRIVED_M**2)

    def state(self) -> Values:
        """What a picture needs: radii, place of the tool, angle of the wheel."""
        return np.concatenate((self.radii, self.place, [self.angle]))

    def show(self, state: Values) -> None:
        """Takes on a published state, in a process that draws."""
        self.radii, self.place = state[:ROWS].copy(), state[ROWS : ROWS + 3].copy()
        self.angle = float(state[ROWS + 3])

    def render(self, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """A picture from the front (any name of a camera): height x width x 3 bytes."""
        scale = 1.25 * HEIGHT_M / height
        x = (np.arange(width) - (width - 1) / 2) * scale
        z = 1.1 * HEIGHT_M - np.arange(height) * scale
        rows = np.clip((z / HEIGHT_M * ROWS).astype(np.int64), 0, ROWS - 1)
        clay = (z >= 0) & (z < HEIGHT_M)
        radius = np.where(clay, self.radii[rows], np.where(z < 0, 0.09, 0.0))[:, None]
        across = x / np.maximum(radius, 1e-6)
        solid = np.abs(across) < 1.0
        facing = np.sqrt(np.maximum(1.0 - across**2, 0.0))
        grain = 0.85 + 0.15 * np.sin(7.0 * (np.arcsin(np.clip(across, -1, 1)) - self.angle))
        shade = np.where(solid, (0.25 + 0.75 * facing) * grain, 0.0)
        colour = np.where(clay[:, None, None], (170, 100, 70), (90, 90, 95))
        picture = np.where(solid[..., None], shade[..., None] * colour, (205, 215, 225))
        tool = np.hypot(x - self.place[0], (z - self.place[2])[:, None]) <= TOOL_M
        picture[tool] = (40, 60, 160)
        return picture.astype(np.uint8)

    # [Gokhale 2017]
    def _move(self, dt_s: float) -> None:
        """Semi-implicit Euler of the tool; then the clay yields."""
        self._touch(dt_s)
        drive = self.kp * (self.goal - self.place) + self.kd * (self.goal_velocity - self.velocity)
        self.velocity += (drive + self.force) / self.mass_kg * dt_s
        self.place += self.velocity * dt_s
        self.angle = (self.angle + 2 * math.pi * self.turns_s * dt_s) % (2 * math.pi)

    def _touch(self, dt_s: float) -> None:
        self.force, self.loudness = np.zeros(3), 0.0
        off = self.heights - self.place[2]
        near = np.abs(off) < TOOL_M
        out_m = math.hypot(self.place[0], self.place[1])
        if not near.any() or out_m < 1e-6:
            return
        reach = out_m - np.sqrt(TOOL_M**2 - off[near] ** 2)
        depth = np.maximum(self.radii[near] - reach, 0.0)
        deepest = float(depth.max())
        if deepest <= 0.0:
            return
        outwards = np.array([self.place[0], self.place[1], 0.0]) / out_m
        along = np.array([-outwards[1], outwards[0], 0.0])
        push_n = self.stiffness * deepest
        drag_n = self.friction * push_n * math.copysign(1.0, self.turns_s) * (self.turns_s != 0)
        self.force = push_n * outwards + drag_n * along
        speed = abs(2 * math.pi * self.turns_s) * out_m
        self.loudness = min(push_n / LOUD_N * speed, 1.0)
        self._give_way(near, depth, dt_s)

    def _give_way(self, near: NDArray[np.bool_], depth: Values, dt_s: float) -> None:
        """What the rows under the tool lose, the rows beside it gain."""
        before = self.radii[near] ** 2
        less = np.maximum(self.radii[near] - depth * (1.0 - math.exp(-dt_s / self.yield_s)), LEAST_M)
        self.radii[near] = np.minimum(less, self.radii[near])
        lost = float((before - self.radii[near] ** 2).sum())
        weights = np.exp(-0.5 * ((self.heights - self.place[2]) / 0.025) ** 2)
        weights[near] = 0.0
        if weights.sum() > 0 and lost > 0:
            self.radii = np.sqrt(self.radii**2 + lost * weights / weights.sum())


class Filing:
    """Sound of filing for a flow from the robot, as a `code` hook: 8-bit mu-law at 8 kHz, nothing out of contact.

    Parameters
    ----------
    frame
        Samples of sound in a frame.
    seed
        Of the noise.
    """

    def __init__(self, frame: int = 160, seed: int = 1) -> None:
        self.frame = frame
        self._rng = np.random.default_rng(seed)

    # [Gokhale 2017]
    def __call__(self, t_ns: int, index: int, x: Values, other: Values, y: NDArray[np.uint8]) -> int:
        """Writes a frame; out of contact none, and the frame counts as suppressed."""
        if len(x) < 8 or x[6] < 0.5:
            return 0
        noise = (
            np.diff(self._rng.standard_normal(self.frame + 1)) * 0.25
        )  # filing is bright: differences of noise
        y[: self.frame] = _mu_law(np.clip(noise * x[7], -1.0, 1.0))
        return self.frame


def _mu_law(sound: Values) -> NDArray[np.uint8]:
    """Samples between -1 and 1 as bytes of ITU-T G.711 mu-law."""
    magnitude = np.minimum((np.abs(sound) * 8159).astype(np.int64), 8158) + 33
    exponent = np.floor(np.log2(magnitude)).astype(np.int64) - 5
    mantissa = (magnitude >> (exponent + 1)) & 0x0F
    coded = np.where(sound < 0, 0x80, 0) | exponent << 4 | mantissa
    return np.asarray(~coded & 0xFF, dtype=np.uint8)
