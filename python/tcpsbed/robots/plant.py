"""Plant `mujoco` of the step experiment: one actuator and one sensor of a model in MuJoCo.

```text
control = rest + gain (k - 1)            y = 1 + scale (sensor - sensor at rest)
```
The model starts in its initial state with the actuator at `rest`, and should stay there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tcpsbed.door import Param
from tcpsbed.errors import HookError
from tcpsbed.robots.scene import Scene

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MujocoPlant:
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
        self.scene = Scene(file)
        self._control = self.scene.number("actuator", actuator)
        self._felt = self.scene.sensor(sensor)
        if len(self._felt) != 1:
            allowed = "a sensor of one value, such as a jointpos"
            raise HookError(f'found "{sensor}" of {len(self._felt)} values', key="sensor", allowed=allowed)
        self._rest, self._gain, self._scale = rest, gain, scale
        self._command(1.0)
        self._zero = float(self._felt[0])

    def __call__(
        self, t_ns: int, index: int, x: NDArray[np.float64], other: Any, y: NDArray[np.float64]
    ) -> int:
        """Lets time pass in whole steps of the model, and answers the command x[0]."""
        self.scene.advance(t_ns)
        self._command(float(x[0]))
        y[0] = 1 + self._scale * (float(self._felt[0]) - self._zero)
        return 1

    def _command(self, k: float) -> None:
        self.scene.data.ctrl[self._control] = self._rest + self._gain * (k - 1)
        self.scene.mj.mj_forward(self.scene.model, self.scene.data)
