"""A MuJoCo model that is stepped in time and drawn through its cameras.

```text
advance(t_ns)   physics in whole steps of the model, up to t_ns          render(camera, ...)   a picture of the state
                                                                         look(cameras, look)   turns cameras as one head
```
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.errors import HookError
from tcpsbed.nearest import close_match
from tcpsbed.robots import neck

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

SCENES = Path(__file__).resolve().parent.parent / "data" / "robots"
"""The models that ship with tcpsbed."""
LONGEST_S = 1.0
"""A longer gap between two moments is bridged as if it were this long, so that a late call ends."""


DRAWING = (
    "MUJOCO_GL=egl with the packages libegl1 and libgl1-mesa-dri, MUJOCO_GL=osmesa with libosmesa6, "
    "or MUJOCO_GL=glfw with libglfw3 and a display"
)
"""What pictures can be drawn by."""


def mujoco() -> ModuleType:
    """The simulator, imported where it is first needed.

    Raises
    ------
    HookError
        If it is not installed, or what is to draw is unknown to it; names the packages.
    """
    if "DISPLAY" not in os.environ:  # which library draws is settled when MuJoCo is imported
        os.environ.setdefault("MUJOCO_GL", "egl")
    try:
        import mujoco
    except ImportError as error:
        raise HookError(
            f"MuJoCo cannot be imported ({error})", allowed="pip install 'tcpsbed[robot]' first"
        ) from None
    except RuntimeError as error:  # MUJOCO_GL has a value that it does not know
        raise HookError(f"MuJoCo cannot be imported ({error})", allowed=DRAWING) from None
    return mujoco  # type: ignore[no-any-return]


def open_model(file: str) -> Any:
    """A model from one of the shipped scenes by its name, or from an MJCF or URDF file.

    Raises
    ------
    HookError
        If there is no such file, or MuJoCo refuses it; says what it said.
    """
    mj = mujoco()
    path = SCENES / f"{file}.xml" if "/" not in file and "." not in file else Path(file).expanduser()
    if not path.is_file():
        shipped = ", ".join(sorted(p.stem for p in SCENES.glob("*.xml")))
        raise HookError(
            f'found "{file}", but there is no such model',
            allowed=f"an MJCF or URDF file, looked for at {path}, or one of {shipped}",
        )
    try:
        return mj.MjModel.from_xml_path(str(path))
    except ValueError as error:
        said = " ".join(str(error).split())
        raise HookError(
            f'found "{file}", which MuJoCo cannot load: {said}',
            allowed="a model that `python -m mujoco.viewer --mjcf=FILE` opens, with its meshes",
        ) from None


class Scene:
    """A model and its state.

    Parameters
    ----------
    file
        The name of a shipped scene, or the path of an MJCF or URDF file.
    """

    def __init__(self, file: str) -> None:
        self.mj = mujoco()
        self.model = open_model(file)
        self.data = self.mj.MjData(self.model)
        self.mj.mj_forward(self.model, self.data)
        self._last_ns: int | None = None
        self._spare_ns = 0
        self._renderers: dict[tuple[int, int], Any] = {}
        self._eyes = self.model.cam_pos.copy(), self.model.cam_quat.copy()

    @property
    def timestep_ns(self) -> int:
        """Length of a step of the physics."""
        return round(float(self.model.opt.timestep) * 1e9)

    def advance(self, t_ns: int) -> int:
        """Steps the physics up to `t_ns`; what is less than a step is left to the next call.

        Returns
        -------
        int
            The number of steps taken.
        """
        if self._last_ns is None:
            self._last_ns = t_ns
            return 0
        gap_ns = min(max(t_ns - self._last_ns, 0), int(LONGEST_S * 1e9)) + self._spare_ns
        self._last_ns = max(t_ns, self._last_ns)
        steps, self._spare_ns = divmod(gap_ns, self.timestep_ns)
        if steps:
            self.mj.mj_step(self.model, self.data, nstep=steps)
        return steps

    def number(self, kind: str, name: str) -> int:
        """The number of a `body`, `joint`, `site`, `geom`, `camera`, `actuator` or `sensor`.

        Raises
        ------
        HookError
            If the model has none of that name; names those that it has.
        """
        object_type = getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}")
        found = int(self.mj.mj_name2id(self.model, object_type, name))
        if found < 0:
            count = getattr(self.model, {"body": "nbody", "joint": "njnt", "camera": "ncam"}.get(kind, ""), 0)
            names = [self.mj.mj_id2name(self.model, object_type, i) or "" for i in range(count)]
            known = close_match(name, filter(None, names)) if any(names) else "none with a name"
            raise HookError(f'found "{name}", but the model has no such {kind}', allowed=known)
        return found

    def sensor(self, name: str) -> Values:
        """A view of the values of a sensor of the model."""
        i = self.number("sensor", name)
        start = int(self.model.sensor_adr[i])
        values: Values = self.data.sensordata[start : start + int(self.model.sensor_dim[i])]
        return values

    def state(self) -> Values:
        """What a picture needs: positions, then velocities, of all degrees of freedom."""
        return np.concatenate((self.data.qpos, self.data.qvel))

    def show(self, state: Values) -> None:
        """Takes on a state that another scene of the same model gave."""
        nq, nv = self.model.nq, self.model.nv
        if len(state) < nq + nv:
            raise HookError(
                f"found a state of {len(state)} values for a model that has {nq + nv}",
                allowed="a state of the same model",
            )
        self.data.qpos[:], self.data.qvel[:] = state[:nq], state[nq : nq + nv]
        self.mj.mj_forward(self.model, self.data)

    def look(self, cameras: Sequence[str], look: Values) -> None:
        """Turns and moves cameras as one head, from where the model has them.

        Parameters
        ----------
        cameras
            Names of cameras of the model; the middle between them is what they are turned about.
        look
            Six values of `tcpsbed.robots.neck.LOOK`: pan, tilt, roll (rad), right, up, back (m).

        Raises
        ------
        HookError
            If there is no such camera.
        """
        numbers = [self.number("camera", name) for name in cameras]
        places, axes = self._eyes[0][numbers], np.zeros((len(numbers), 9))
        for one, quaternion in zip(axes, self._eyes[1][numbers], strict=True):
            self.mj.mju_quat2Mat(one, quaternion)
        rests = axes.reshape(-1, 3, 3)
        middle = places.mean(axis=0)
        for number, place, rest in zip(numbers, places, rests, strict=True):
            now = neck.turned(rest, look)
            offset = now @ rest.T @ (place - middle)
            self.model.cam_pos[number] = middle + neck.moved(rests[0], look) + offset
            self.mj.mju_mat2Quat(self.model.cam_quat[number], now.flatten())
        self.mj.mj_camlight(self.model, self.data)

    def render(
        self, camera: str, width: int, height: int, add: Callable[[Any], None] | None = None
    ) -> NDArray[np.uint8]:
        """A picture of the state.

        Parameters
        ----------
        camera
            The name of a camera of the model; `""` is the free one.
        width, height
            Its size in pixels.
        add
            Called with what MuJoCo will draw (an `mjvScene`), to add to it.

        Returns
        -------
        numpy.ndarray
            Height x width x 3 bytes: red, green, blue.

        Raises
        ------
        HookError
            If there is no such camera, or nothing that can draw.
        """
        which = -1 if camera == "" else self.number("camera", camera)
        if (width, height) not in self._renderers:
            self._renderers[width, height] = self._renderer(width, height)
        renderer = self._renderers[width, height]
        renderer.update_scene(self.data, camera=which)
        if add is not None:
            add(renderer.scene)
        return np.asarray(renderer.render(), dtype=np.uint8)

    def _renderer(self, width: int, height: int) -> Any:
        size = self.model.vis.global_
        if not (0 < width <= size.offwidth and 0 < height <= size.offheight):
            size.offwidth, size.offheight = max(size.offwidth, width), max(size.offheight, height)
        try:
            renderer = self.mj.Renderer(self.model, height=height, width=width)
        except Exception as error:  # each library that draws fails in its own way
            raise HookError(
                f"no picture can be drawn with MUJOCO_GL={os.environ.get('MUJOCO_GL', 'glfw')} "
                f"({type(error).__name__}: {error})",
                allowed=DRAWING,
            ) from None
        atexit.register(renderer.close)  # while the library that draws is still there
        return renderer

    def close(self) -> None:
        """Releases the resources of pictures."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
