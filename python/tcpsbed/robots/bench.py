"""The arm of `mujoco-arm` on a table, for demonstrations: the force at its tool is drawn, and drawing keeps its time.

```text
arrow    from the tip along the force that the surroundings put on the tool, `arrow_m_n` for each N; the ball turns red
shadows  are drawn while pictures take less than `budget_ms` on average, and left out from then on
```
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tcpsbed.door import Param
from tcpsbed.robots.arm import Arm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LEAST_N = 0.3
"""Least force that is drawn."""
FULL_N = 8.0
"""Force at which the ball is quite red."""
COLD, HOT = np.array([0.20, 0.23, 0.28, 1.0]), np.array([0.93, 0.16, 0.10, 1.0])
"""Colour of the ball at the tip, and of the arrow."""
THICK_M = 0.006
FIRST = 10
"""Pictures that say nothing about the time that drawing takes: the library that draws compiles its programs."""


class Bench(Arm):
    """The arm, drawn with the force at its tool. Camera: `side`."""

    params: ClassVar[dict[str, Param]] = Arm.params | {
        "scene": Param("file", default="demo", doc="a scene of the arm whose tool has a geom `ball`"),
        "arrow_m_n": Param("number", 0.0, 1.0, "0.012", "length of the arrow for each N of force, in m"),
        "budget_ms": Param(
            "number", 1.0, 1000.0, "36", "mean time of a picture from which shadows are left out, in ms"
        ),
    }

    def __init__(
        self, scene: str, start_rad: Sequence[float], publish: str | None, arrow_m_n: float, budget_ms: float
    ) -> None:
        super().__init__(scene, start_rad, publish)
        self.arrow_m_n, self.budget_s = arrow_m_n, budget_ms / 1e3
        self._ball = self.scene.number("geom", "ball")
        self.mean_s, self.drawn, self.shadows = 0.0, 0, True

    def render(self, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """A picture: height x width x 3 bytes."""
        force = self._contact_n()
        hot = min(float(np.linalg.norm(force)) / FULL_N, 1.0)
        self.scene.model.geom_rgba[self._ball] = COLD + hot * (HOT - COLD)
        begun = time.perf_counter()
        picture = self.scene.render(camera, width, height, lambda made: self._draw(made, force))
        self.drawn += 1
        if self.drawn > FIRST:
            self.mean_s += 0.05 * (time.perf_counter() - begun - self.mean_s)
            self.shadows = self.shadows and self.mean_s < self.budget_s
        return picture

    def _draw(self, made: Any, force: Values) -> None:
        """Adds the arrow to what MuJoCo will draw."""
        mj = self.scene.mj
        made.flags[mj.mjtRndFlag.mjRND_SHADOW] = self.shadows
        if float(np.linalg.norm(force)) < LEAST_N or made.ngeom >= made.maxgeom:
            return
        arrow, tip = made.geoms[made.ngeom], self.scene.data.site_xpos[self._tip]
        mj.mjv_initGeom(
            arrow,
            mj.mjtGeom.mjGEOM_ARROW,
            np.zeros(3),
            np.zeros(3),
            np.eye(3).ravel(),
            HOT.astype(np.float32),
        )
        mj.mjv_connector(arrow, mj.mjtGeom.mjGEOM_ARROW, THICK_M, tip, tip + self.arrow_m_n * force)
        arrow.emission = 0.6
        made.ngeom += 1
