"""A camera whose pictures the console shows at once, too: the robot's own side, which no network delays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tcpsbed.media import picture_code
from tcpsbed.media.line import NEAR, Screen
from tcpsbed.robots.camera import CameraSource

if TYPE_CHECKING:
    from tcpsbed.robots.camera import Picture


class NearCamera(CameraSource):
    """`CameraSource` beside whose flow each picture goes straight to the console, with the time of its state."""

    shown = 0
    """Pictures so far."""

    @cached_property
    def screen(self) -> Screen:
        """The robot's own side at the console."""
        return Screen(kind=NEAR)

    def __next__(self) -> tuple[int, Picture]:
        t_ns, picture = super().__next__()
        own = picture.copy()  # the flow draws a code of its own
        picture_code.draw(own, t_ns, self.shown)
        self.screen.show(own, t_ns, self.shown)
        self.shown += 1
        return t_ns, picture
