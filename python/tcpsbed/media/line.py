"""The line between the stages of a run and the console: datagrams over Unix sockets in one folder.

```text
node of the operator                                    console
  screen, feel ──► pictures, forces ──► FOLDER/console ──► browsers
  camera ──► the robot's own side  ──► FOLDER/console
  hand ◄── newest state of the hand ◄── FOLDER/hand    ◄── browsers
  head ◄── newest pose of the head  ◄── FOLDER/head    ◄── headsets
  mark ◄── newest mark              ◄── FOLDER/mark    ◄── browsers
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
PICTURE, FORCE, TOOK, NEAR, HELD = 1, 2, 3, 4, 5
"""First byte of what stages send; `NEAR` is a picture of the robot's own side, `HELD` where force has moved the hand."""
HEAD = struct.Struct("<BBxxIq")
"""Kind, eyes that a picture is for, number of the sample, and CLOCK_MONOTONIC minus the run's time in nanoseconds."""
STATE = struct.Struct("<5dq")
"""What a hand does: x, y, z in m, its button (0 to 1), the wheel in notches; when, on CLOCK_MONOTONIC."""
PLACE = struct.Struct("<3d")
"""A hand as the page counts it: right, up, further, each -1 to 1 from edge to edge; beyond it where force pushes it."""
FELT = struct.Struct("<4d")
"""A force x, y, z in N, and the age in ms of what it was predicted from; not a number: it came."""
POSE = struct.Struct("<7dq")
"""Where a head is: x, y, z in m, quaternion x, y, z, w; when, on CLOCK_MONOTONIC."""
MARK = struct.Struct("<4dq")
"""A part of the picture: corner x, y, width, height as shares of it; when, on CLOCK_MONOTONIC."""
AWAY = b"away"
"""Sent in place of a state while nobody is at the console any more."""
QUALITY = 80
MOST_BYTES = 180_000
"""Largest datagram: Linux gives a Unix socket 212,992 bytes unless told otherwise, with some of them for itself."""


def folder() -> Path | None:
    """The folder of the console that runs, if one does."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def leave(place: Path) -> None:
    """Tells hand and head of the run in this folder that nobody is at the console any more."""
    for hook in ("hand", "head"):
        with _open() as line, suppress(OSError):  # no such hook in this run, or it has not read the last ones
            line.sendto(AWAY, str(place / hook))


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

    def send(self, kind: int, index: int, t_ns: int, content: bytes, eyes: int = 1) -> None:
        """Sends a picture or a force of the run's time `t_ns`, if there is somebody and room."""
        if self.to is not None and len(content) <= MOST_BYTES:
            head = HEAD.pack(kind, eyes, index & 0xFFFFFFFF, time.monotonic_ns() - t_ns)
            with suppress(OSError):  # the console has gone, or has not read the last ones
                self.line.sendto(head + content, self.to)


class Screen:
    """A display that gives frames to the console as JPEG, pairs of eyes side by side."""

    def __init__(self, stereo: bool = False, kind: int = PICTURE) -> None:
        self.eyes, self.kind = 2 if stereo else 1, kind
        self.turbo: Any = need("simplejpeg", 'display "console"', "media")
        self.line = ToConsole()
        self.quality = QUALITY

    def show(self, frame: NDArray[np.uint8], t_ns: int, index: int) -> None:
        """Shows a frame; one that is too large for a datagram makes the next ones coarser."""
        coded = self.turbo.encode_jpeg(np.ascontiguousarray(frame), self.quality, "RGB", "420", True)
        if len(coded) > MOST_BYTES:
            self.quality = max(self.quality - 10, 20)
        self.line.send(self.kind, index, t_ns, coded, self.eyes)


class FromConsole:
    """The newest state that the console has sent to a name in its folder.

    Parameters
    ----------
    name
        `hand`, `head` or `mark`.
    form
        How a state is packed: floats, then when it was.
    """

    def __init__(self, name: str = "hand", form: struct.Struct = STATE) -> None:
        self.line, self.form = _open(), form
        place = folder()
        if place is not None:
            path = place / name
            path.unlink(missing_ok=True)
            try:
                self.line.bind(str(path))
            except OSError as error:
                raise HookError(
                    f"console: {path} cannot be opened ({error})",
                    allowed="a running console: start the scenario with tcpsbed console",
                ) from None
        self.state: tuple[float, ...] = (0.0,) * ((form.size - 8) // 8)
        self.at_ns = 0
        self.away = False
        """Whether the operator has gone away."""

    def newest(self) -> tuple[float, ...]:
        """The newest state without its time, which is `at_ns`; zeros before the first."""
        with suppress(BlockingIOError):
            while True:
                content = self.line.recv(256)
                if len(content) == self.form.size:
                    *state, self.at_ns = self.form.unpack(content)
                    self.state, self.away = tuple(state), False
                elif content == AWAY:
                    self.away = True
        return self.state
