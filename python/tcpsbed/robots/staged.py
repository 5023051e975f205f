"""Shared parts of robots in MuJoCo: pictures are drawn here, or by a process that receives the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpsbed.robots.cell import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.robots.scene import Scene

    Values = NDArray[np.float64]


class Staged:
    """A robot in a scene."""

    own_process = True
    scene: Scene

    def render(self, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """A picture: height x width x 3 bytes. Cameras are those of the model; `""` is the free one."""
        return self.scene.render(camera, width, height)

    def look(self, cameras: Sequence[str], look: Values) -> None:
        """Turns cameras as one head: pan, tilt, roll (rad), right, up, back (m), of `tcpsbed.robots.neck`."""
        self.scene.look(cameras, look)

    def show(self, state: Values) -> None:
        """Takes on a published state, in a process that draws."""
        self.scene.show(state)

    def _publish(self, file: str | None) -> None:
        """From now on the newest state is in a file, if one is named."""
        self._cell = Cell.create(file, len(self.scene.state())) if file else None

    def _advance(self, t_ns: int) -> None:
        """Moves the scene on, and publishes its state."""
        self.scene.advance(t_ns)
        if self._cell is not None:
            self._cell.write(t_ns, self.scene.state())
