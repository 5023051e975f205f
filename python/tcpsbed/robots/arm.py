"""Robot `mujoco-arm`: a five-joint arm of the PhantomX Reactor class with a gripper, in MuJoCo.

```text
command   j1 .. j5 (rad), opening of the gripper (m); what is left out stays as it was
sense     fx, fy, fz (N) of all contacts on gripper and wings, left and right wing (N), tip x, y, z (m), opening (m),
          object x, y, z (m; zeros where the scene has none)
```
Servos are those of `data/robots/reactor.xml`: a saturated voltage against the voltage that the turning motor induces.
A way of 1 cm forth and back, until within 1 mm, takes the published 110 ms: near its goal the turning arm is an
inertia of 0.017 kg m^2 on a spring of 25 N m/rad with damping 0.66 N m s/rad, which comes within a tenth of its way after
56 ms; measured with friction 58 ms each. (Polachan 2022)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tcpsbed.door import Param
from tcpsbed.robots.scene import Scene
from tcpsbed.robots.staged import Staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

JOINTS = ("j1", "j2", "j3", "j4", "j5")
ARRIVED_M = 0.001
OPEN_M = 0.032


class Arm(Staged):
    """The arm in one of its scenes. Cameras: `left`, `right` (a stereo pair, 64 mm apart), `side`."""

    params: ClassVar[dict[str, Param]] = {
        "scene": Param(
            "file", default="pick", doc="`pick`, `explore`, `reactor`, or a file that includes the arm"
        ),
        "start_rad": Param(
            {"array": [5, "number"]}, default="[0, 0.207, -0.305, 1.669, 0]", doc="angles at the start"
        ),
        "publish": Param(
            "output",
            default=None,
            doc="file in which the robot publishes its newest state, for a process that draws pictures",
        ),
    }

    def __init__(self, scene: str, start_rad: Sequence[float], publish: str | None) -> None:
        self.scene = Scene(scene)
        model, data = self.scene.model, self.scene.data
        self._joints = [self.scene.number("joint", name) for name in JOINTS]
        self._motors = [self.scene.number("actuator", name) for name in (*JOINTS, "wings")]
        self._tip = self.scene.number("site", "tip")
        self._hand = self._below("gripper")
        self._object = self.scene.mj.mj_name2id(model, self.scene.mj.mjtObj.mjOBJ_BODY, "object")
        self._left, self._right = self.scene.sensor("left_pad"), self.scene.sensor("right_pad")
        self._wing = int(model.jnt_qposadr[self.scene.number("joint", "left_wing")])
        self._goal_data = self.scene.mj.MjData(model)
        self._goal = np.array([*start_rad, OPEN_M])
        for joint, angle in zip(self._joints, self._goal, strict=False):
            data.qpos[model.jnt_qposadr[joint]] = angle
        self._open(data, OPEN_M)
        self.scene.mj.mj_forward(model, data)
        self._tip_goal = data.site_xpos[self._tip].copy()
        self._publish(publish)

    @property
    def tick_ns(self) -> int:
        """The step of its physics."""
        return self.scene.timestep_ns

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves to `t_ns`; writes the sensed values and returns their number."""
        n = min(len(command), 6)
        if n and bool(np.isfinite(command[:n]).all()):
            self._aim(command[:n])
        self.scene.data.ctrl[self._motors] = self._goal
        self._advance(t_ns)
        return self._feel(sense)

    def hold(self) -> None:
        """Its goal is where it is."""
        data, model = self.scene.data, self.scene.model
        angles = [float(data.qpos[model.jnt_qposadr[joint]]) for joint in self._joints]
        self._aim(np.array([*angles, float(data.qpos[self._wing])]))

    def arrived(self) -> bool:
        """Whether the tip is within 1 mm of where the commanded angles put it."""
        off = self.scene.data.site_xpos[self._tip] - self._tip_goal
        return bool(off @ off <= ARRIVED_M**2)

    def _aim(self, command: Values) -> None:
        """A new goal, within the limits of the joints."""
        limits = self.scene.model.actuator_ctrlrange[self._motors[: len(command)]]
        goal = np.clip(command, limits[:, 0], limits[:, 1])
        if np.array_equal(goal, self._goal[: len(goal)]):
            return
        self._goal[: len(goal)] = goal
        data, model = self._goal_data, self.scene.model
        for joint, angle in zip(self._joints, self._goal, strict=False):
            data.qpos[model.jnt_qposadr[joint]] = angle
        self.scene.mj.mj_kinematics(model, data)
        self._tip_goal = data.site_xpos[self._tip].copy()

    def _open(self, data: object, opening_m: float) -> None:
        for name in ("left_wing", "right_wing"):
            joint = self.scene.number("joint", name)
            data.qpos[self.scene.model.jnt_qposadr[joint]] = opening_m  # type: ignore[attr-defined]

    def _feel(self, sense: Values) -> int:
        data = self.scene.data
        values = np.zeros(12)
        values[:3] = self._contact_n()
        values[3], values[4] = self._left[0], self._right[0]
        values[5:8] = data.site_xpos[self._tip]
        values[8] = data.qpos[self._wing]
        if self._object >= 0:
            values[9:12] = data.xpos[self._object]
        n = min(len(values), len(sense))
        sense[:n] = values[:n]
        return n

    def _contact_n(self) -> Values:
        """The sum of the forces that everything else puts on the hand, in the frame of the world."""
        total, one = np.zeros(3), np.zeros(6)
        model, data = self.scene.model, self.scene.data
        for i in range(data.ncon):
            contact = data.contact[i]
            first, second = (int(model.geom_bodyid[g]) in self._hand for g in contact.geom)
            if first == second:
                continue
            self.scene.mj.mj_contactForce(model, data, i, one)
            # The force on the second body, in the contact's frame whose rows are its axes.
            on_second = np.asarray(contact.frame).reshape(3, 3).T @ one[:3]
            total += on_second if second else -on_second
        return total

    def _below(self, name: str) -> frozenset[int]:
        """A body and all that hang on it."""
        model = self.scene.model
        bodies = {self.scene.number("body", name)}
        for i in range(model.nbody):  # parents come before their children
            if int(model.body_parentid[i]) in bodies:
                bodies.add(i)
        return frozenset(bodies)
