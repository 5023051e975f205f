"""Plant `mujoco` of the step experiment: actuators and sensors of a model in MuJoCo, a pair for each axis.

```text
control = rest + gain (k - 1)            y = 1 + scale (sensor - sensor at rest)
```
The model starts in its initial state with its actuators at `rest`, and should stay there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tcpsbed.door import Param
from tcpsbed.errors import HookError
from tcpsbed.robots.scene import Scene

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MujocoAxes:
    """Several actuators and sensors of a model, or one of each."""

    params: ClassVar[dict[str, Param]] = {
        "file": Param("file", doc="the model, in MJCF or URDF"),
        "actuator": Param({"list": "text"}, doc="the actuators that the commands move"),
        "sensor": Param({"list": "text"}, doc="the sensors that answer, one for each, of one value"),
        "rest": Param({"list": "number"}, default="[0]", doc="control of each actuator at k = 1, or of all"),
        "gain": Param({"list": "number"}, default="[1]", doc="control for each 1 of k above that"),
        "scale": Param({"list": "number"}, default="[1]", doc="y for each 1 of each sensor"),
    }

    def __init__(
        self,
        file: str,
        actuator: Sequence[str],
        sensor: Sequence[str],
        rest: Sequence[float],
        gain: Sequence[float],
        scale: Sequence[float],
    ) -> None:
        self.scene = Scene(file)
        axes = len(actuator)
        if len(sensor) != axes:
            found = f"found {len(sensor)} sensors and {axes} actuators"
            raise HookError(found, key="sensor", allowed="a sensor for each actuator")
        self._controls = [self.scene.number("actuator", one) for one in actuator]
        self._felt = [self._one(name) for name in sensor]
        self._rest, self._gain, self._scale = (
            _each(of, axes, key) for of, key in ((rest, "rest"), (gain, "gain"), (scale, "scale"))
        )
        self._command([1.0] * axes)
        self._zero = [float(felt[0]) for felt in self._felt]

    def _one(self, name: str) -> NDArray[np.float64]:
        felt = self.scene.sensor(name)
        if len(felt) != 1:
            allowed = "a sensor of one value, such as a jointpos"
            raise HookError(f'found "{name}" of {len(felt)} values', key="sensor", allowed=allowed)
        return felt

    def __call__(
        self, t_ns: int, index: int, x: NDArray[np.float64], other: Any, y: NDArray[np.float64]
    ) -> int:
        """Lets time pass in whole steps of the model, and answers the commands x."""
        self.scene.advance(t_ns)
        self._command([float(k) for k in x[: len(self._felt)]])
        for axis, felt in enumerate(self._felt):
            y[axis] = 1 + self._scale[axis] * (float(felt[0]) - self._zero[axis])
        return len(self._felt)

    def _command(self, k: Sequence[float]) -> None:
        for axis, control in enumerate(self._controls):
            self.scene.data.ctrl[control] = self._rest[axis] + self._gain[axis] * (k[axis] - 1)
        self.scene.mj.mj_forward(self.scene.model, self.scene.data)


def _each(values: Sequence[float], axes: int, key: str) -> Sequence[float]:
    """A value for each axis; one is that of all."""
    if len(values) not in (1, axes):
        raise HookError(
            f"found {len(values)} values", key=key, allowed=f"one, or one for each of {axes} actuators"
        )
    return values if len(values) == axes else [*values] * axes


class MujocoPlant(MujocoAxes):
    """One actuator and one sensor of a model."""

    params: ClassVar[dict[str, Param]] = {
        "file": Param("file", doc="the model, in MJCF or URDF"),
        "actuator": Param("text", doc="the actuator that the command moves"),
        "sensor": Param("text", doc="the sensor that answers, of one value, such as a jointpos"),
        "rest": Param("number", default="0", doc="control of the actuator at k = 1"),
        "gain": Param("number", default="1", doc="control for each 1 of k above that"),
        "scale": Param("number", default="1", doc="y for each 1 of the sensor"),
    }

    def __init__(self, file: str, actuator: str, sensor: str, rest: float, gain: float, scale: float) -> None:
        super().__init__(file, [actuator], [sensor], [rest], [gain], [scale])
