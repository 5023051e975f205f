"""Robot `mujoco-model`: any model in MJCF or URDF, in MuJoCo.

```text
command   the controls of its actuators, in their order; without actuators, the wanted positions of its joints, which
          springs and dampers of `stiffness` and `damping` follow
sense     what its sensors say, in their order; without sensors, the positions of its joints
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell
from tcpsbed.robots.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]


class Model:
    """A model of the user's.

    Parameters
    ----------
    file
        MJCF or URDF.
    stiffness, damping
        Of the drive that each joint has in a model without actuators (a URDF): N m/rad or N/m, and per speed.
    tolerance
        How near joints must be to where they were sent (rad or m) to have arrived.
    publish
        A file that holds the newest state, for a process that draws pictures; absent: none.
    """

    own_process = True

    def __init__(
        self,
        file: str,
        stiffness: float = 25.0,
        damping: float = 0.5,
        tolerance: float = 0.01,
        publish: str | None = None,
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
        state = self.scene.state()
        self._cell = Cell.create(publish, len(state)) if publish else None

    @property
    def tick_ns(self) -> int:
        """The step of its physics."""
        return self.scene.timestep_ns

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves to `t_ns`; writes what is sensed and says how many values these are."""
        n = min(len(command), len(self._goal))
        if bool(np.isfinite(command[:n]).all()):
            self._goal[:n] = command[:n]
        self._drive()
        self.scene.advance(t_ns)
        if self._cell is not None:
            self._cell.write(t_ns, self.scene.state())
        felt = (
            self.scene.data.sensordata
            if self.scene.model.nsensordata
            else self.scene.data.qpos[self._positions]
        )
        n = min(len(felt), len(sense))
        sense[:n] = felt[:n]
        return n

    def hold(self) -> None:
        """The goal of driven joints is where they are; what actuators of the model were told stays."""
        if not self.scene.model.nu:
            self._goal = self.scene.data.qpos[self._positions].copy()

    def arrived(self) -> bool:
        """Whether driven joints are where they were sent; a model with actuators of its own counts as there."""
        if self.scene.model.nu:
            return True
        off = self.scene.data.qpos[self._positions] - self._goal
        return bool(np.abs(off).max() <= self.tolerance)

    def render(self, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """A picture: height x width x 3 bytes; `""` is the free camera."""
        return self.scene.render(camera, width, height)

    def look(self, cameras: Sequence[str], look: Values) -> None:
        """Turns cameras as one head: pan, tilt, roll (rad), right, up, back (m), of `tcpsbed.robots.neck`."""
        self.scene.look(cameras, look)

    def show(self, state: Values) -> None:
        """Takes on a published state, in a process that draws."""
        self.scene.show(state)

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
