"""Robot `mujoco-model`: any model in MJCF or URDF, in MuJoCo.

```text
command   the controls of its actuators, in their order; without actuators, the wanted positions of its joints, which
          springs and dampers of `stiffness` and `damping` follow
sense     what its sensors say, in their order; without sensors, the positions of its joints
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tcpsbed.door import Param
from tcpsbed.errors import HookError
from tcpsbed.robots.scene import Scene
from tcpsbed.robots.staged import Staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


class Model(Staged):
    """A model of the user's."""

    params: ClassVar[dict[str, Param]] = {
        "file": Param("file", doc="the model, in MJCF or URDF"),
        "stiffness": Param(
            "number",
            0,
            default="25",
            doc="stiffness of joint drives in a model without actuators, N m/rad or N/m",
        ),
        "damping": Param("number", 0, default="0.5", doc="damping of these drives, N m s/rad or N s/m"),
        "tolerance": Param(
            "number",
            0,
            default="0.01",
            doc="distance from the target (rad or m) at which joints have arrived",
        ),
        "publish": Param(
            "output",
            default=None,
            doc="file in which the robot publishes its newest state, for a process that draws pictures",
        ),
    }

    def __init__(
        self,
        file: str,
        stiffness: float,
        damping: float,
        tolerance: float,
        publish: str | None,
    ) -> None:
        self.scene = Scene(file)
        self.tolerance = tolerance
        model, data = self.scene.model, self.scene.data
        simple = [j for j in range(model.njnt) if model.jnt_type[j] in (2, 3)]  # slides and hinges
        self._positions = model.jnt_qposadr[simple]
        self._speeds = model.jnt_dofadr[simple]
        if not model.nu and not simple:
            raise HookError(
                f'found "{file}", which has neither actuators nor joints', allowed="a model that can move"
            )
        self._goal = data.ctrl.copy() if model.nu else data.qpos[self._positions].copy()
        if not model.nu:
            self._give_drives(simple, stiffness, damping)
        self._publish(publish)

    @property
    def tick_ns(self) -> int:
        """The step of its physics."""
        return self.scene.timestep_ns

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves to `t_ns`; writes the sensed values and returns their number."""
        n = min(len(command), len(self._goal))
        if bool(np.isfinite(command[:n]).all()):
            self._goal[:n] = command[:n]
        self._drive()
        self._advance(t_ns)
        felt = (
            self.scene.data.sensordata
            if self.scene.model.nsensordata
            else self.scene.data.qpos[self._positions]
        )
        n = min(len(felt), len(sense))
        sense[:n] = felt[:n]
        return n

    def hold(self) -> None:
        """Sets the goal of driven joints to their position; commands of the model's actuators stay."""
        if not self.scene.model.nu:
            self._goal = self.scene.data.qpos[self._positions].copy()

    def arrived(self) -> bool:
        """Whether driven joints are where they were sent; a model with actuators of its own counts as there."""
        if self.scene.model.nu:
            return True
        off = self.scene.data.qpos[self._positions] - self._goal
        return bool(np.abs(off).max() <= self.tolerance)

    def _give_drives(self, joints: list[int], stiffness: float, damping: float) -> None:
        """Springs to the goal and dampers, with the inertia of a rotor that keeps them stable at the model's step."""
        model = self.scene.model
        model.opt.integrator = self.scene.mj.mjtIntegrator.mjINT_IMPLICITFAST
        model.jnt_stiffness[joints] = stiffness
        model.dof_damping[self._speeds] = damping
        least = 10 * stiffness * model.opt.timestep**2
        model.dof_armature[self._speeds] = np.maximum(model.dof_armature[self._speeds], least)

    def _drive(self) -> None:
        model, data = self.scene.model, self.scene.data
        if model.nu:
            data.ctrl[:] = self._goal
            return
        model.qpos_spring[self._positions] = self._goal
        data.qfrc_applied[self._speeds] = data.qfrc_bias[self._speeds]  # carries its own weight
