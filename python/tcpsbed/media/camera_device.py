"""Cameras of the machine, through Video4Linux and PyAV: `camera = "/dev/video0"`.

```text
thread: device ── picture ──► newest          frame(): the newest that has not been taken yet
```
A camera is opened by its first frame. One that is not there, or goes away, loses the frames that it is asked for, with
the remedy in the report; it is looked for again every second, and all other flows go on.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media.packages import need

Frame = NDArray[np.uint8]

FOLDER = "/dev/"
AGAIN_S = 1.0
"""Time until a camera that could not be opened is tried again."""
PATIENCE_S = 1.0
"""Longest time that a picture is waited for."""


class CameraDevice:
    """A camera that gives its newest picture.

    Parameters
    ----------
    path
        Its file.
    width, height
        Of the whole frame; of two eyes side by side where the camera gives those.
    form
        What FFmpeg reads the file as.
    """

    repeatable = False

    def __init__(self, path: str, width: int, height: int, form: str = "v4l2") -> None:
        self.av: Any = need("av", f"the camera {path}", "av")
        self.path, self.size, self.form = path, (width, height), form
        self.taken_ns: int | None = None
        self._reader: threading.Thread | None = None
        self._fresh = threading.Condition()
        self._newest: tuple[int, Frame] | None = None
        self._refused, self._again_s = "", 0.0

    def frame(self, t_ns: int, index: int) -> Frame:
        """The newest picture; `taken_ns` is when the device had handed it over, on the clock of `t_ns`.

        Raises
        ------
        HookError
            If there is none; names the remedy.
        """
        self._read()
        with self._fresh:
            self._fresh.wait_for(lambda: self._newest or self._refused, PATIENCE_S)
            newest, self._newest = self._newest, None
        if newest is None:
            raise HookError(self._refused or f"camera {self.path}: gave no picture for {PATIENCE_S:g} s")
        at_ns, picture = newest
        self.taken_ns = t_ns - max(time.monotonic_ns() - at_ns, 0)
        return picture

    def _read(self) -> None:
        """Sees to it that somebody reads the device."""
        if self._reader is not None and self._reader.is_alive():
            return
        if time.monotonic() < self._again_s:
            return
        self._again_s, self._refused = time.monotonic() + AGAIN_S, ""
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        """Keeps the newest picture until the device fails."""
        width, height = self.size
        try:
            with self.av.open(
                self.path, format=self.form, options={"video_size": f"{width}x{height}"}
            ) as device:
                for picture in device.decode(video=0):
                    at_ns = time.monotonic_ns()
                    taken = picture.reformat(width=width, height=height, format="rgb24").to_ndarray()
                    with self._fresh:
                        self._newest = at_ns, taken
                        self._fresh.notify()
            why = "it has no more pictures"
        except (self.av.error.FFmpegError, IndexError, ValueError) as error:
            why = str(error)
        with self._fresh:
            self._refused = f"camera {self.path}: {why}; allowed: {known()}"
            self._fresh.notify()


def known() -> str:
    """The available cameras, as text."""
    found = sorted(str(path) for path in Path(FOLDER).glob("video*"))
    return ", ".join(found) or f'a camera ({FOLDER} has none), a video file, "test"'
