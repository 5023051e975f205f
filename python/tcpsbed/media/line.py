"""The line between the stages of a run and the console: datagrams over Unix sockets in one folder.

```text
node of the operator                                    console
  screen, feel ──► pictures, forces ──► FOLDER/console ──► browsers
  hand ◄── newest state of the hand ◄── FOLDER/hand    ◄── browsers
```
The environment variable `TCPSBED_CONSOLE` names the folder. Nobody waits for anybody: what finds no room is dropped,
and without a console, or with one that has gone, a run goes on.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media.packages import need

VARIABLE = "TCPSBED_CONSOLE"
PICTURE, FORCE = 1, 2
"""First byte of what stages send."""
HEAD = struct.Struct("<BxxxIq")
"""Kind, number of the sample, and CLOCK_MONOTONIC minus the run's time in nanoseconds."""
STATE = struct.Struct("<5dq")
"""What a hand does: x, y, z in m, its button (0 to 1), the wheel in notches; when, on CLOCK_MONOTONIC."""
QUALITY = 80
MOST_BYTES = 180_000
"""Largest datagram: Linux gives a Unix socket 212,992 bytes unless told otherwise, with some of them for itself."""


def folder() -> Path | None:
    """The folder of the console that runs, if one does."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def _open() -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.setblocking(False)
    return line


class ToConsole:
    """Sends to the console, or to nobody."""

    def __init__(self) -> None:
        place = folder()
        self.to = str(place / "console") if place else None
        self.line = _open()

    def send(self, kind: int, index: int, t_ns: int, content: bytes) -> None:
        """Sends a picture or a force of the run's time `t_ns`, if there is somebody and room."""
        if self.to is not None and len(content) <= MOST_BYTES:
            head = HEAD.pack(kind, index & 0xFFFFFFFF, time.monotonic_ns() - t_ns)
            with suppress(OSError):  # the console has gone, or has not read the last ones
                self.line.sendto(head + content, self.to)


class Screen:
    """A display that gives frames to the console as JPEG."""

    def __init__(self) -> None:
        self.turbo: Any = need("simplejpeg", 'display "console"', "media")
        self.line = ToConsole()
        self.quality = QUALITY

    def show(self, frame: NDArray[np.uint8], t_ns: int, index: int) -> None:
        """Shows a frame; one that is too large for a datagram makes the next ones coarser."""
        coded = self.turbo.encode_jpeg(np.ascontiguousarray(frame), self.quality, "RGB", "420", True)
        if len(coded) > MOST_BYTES:
            self.quality = max(self.quality - 10, 20)
        self.line.send(PICTURE, index, t_ns, coded)


class FromConsole:
    """The newest state of the hand that the console has sent."""

    def __init__(self) -> None:
        self.line = _open()
        place = folder()
        if place is not None:
            path = place / "hand"
            path.unlink(missing_ok=True)
            try:
                self.line.bind(str(path))
            except OSError as error:
                raise HookError(
                    f"console: {path} cannot be opened ({error}); allowed: a console that runs"
                ) from None
        self.state: tuple[float, ...] = (0.0,) * 5
        self.at_ns = 0

    def newest(self) -> tuple[float, ...]:
        """x, y, z, button, wheel; zeros before the first."""
        with suppress(BlockingIOError):
            while True:
                content = self.line.recv(256)
                if len(content) == STATE.size:
                    *state, self.at_ns = STATE.unpack(content)
                    self.state = tuple(state)
        return self.state
