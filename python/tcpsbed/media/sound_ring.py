"""Sound through a ring buffer in memory, between a run and another program on this machine: `"ring:/dev/shm/NAME"`.

```text
header   "tcpsring" | samples a second (u32) | channels (u32) | room (u64, samples of all channels) | written (u64)
ring     int16, channels in turns: sample n of all channels is at n modulo room             (little-endian)
```
Who writes puts samples in and then says how many there have been in all; who reads copies, and looks whether they were still
there. Nobody waits for who is at the other end: a reader that is too late goes on with the newest.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError

Samples = NDArray[np.int16]

RING = "ring:"
MAGIC = b"tcpsring"
HEAD = np.dtype([("magic", "S8"), ("hz", "<u4"), ("channels", "<u4"), ("room", "<u8"), ("written", "<u8")])
ROOM_S = 2.0
"""Length of a ring that is made here."""
MOST_WAITING = 3
"""Frames that may wait for a reader; of more the oldest are left out, so that sound does not grow old."""
LOOK_S = 0.0005
"""Polling interval of a ring that lacks a part of a frame."""


class Ring:
    """A ring buffer over a file in memory.

    Parameters
    ----------
    path
        Its file.
    descriptor
        That file, open for reading and writing.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        if size < HEAD.itemsize:
            raise HookError(f'"{RING}{path}": found {size} B', allowed="a ring (tcpsbed docs media)")
        self.memory = mmap.mmap(descriptor, size)
        self.head = np.frombuffer(self.memory, HEAD, 1)
        self.hz, self.channels, self.room = (int(self.head[name][0]) for name in ("hz", "channels", "room"))
        whole = HEAD.itemsize + 2 * self.channels * self.room
        if self.head["magic"][0] != MAGIC or min(self.hz, self.channels, self.room) < 1 or size < whole:
            raise HookError(
                f'"{RING}{path}": found a file that is not a ring', allowed="a ring (tcpsbed docs media)"
            )
        flat = np.frombuffer(self.memory, "<i2", self.room * self.channels, HEAD.itemsize)
        self.samples = flat.reshape(self.room, self.channels)

    @classmethod
    def create(cls, path: Path, hz: int, channels: int, room: int) -> Ring:
        """A new ring, also in place of another one, with room for so many samples of all channels."""
        refuse_other_files(path)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        head = np.zeros(1, HEAD)
        head[0] = (MAGIC, hz, channels, room, 0)
        try:
            fresh.write_bytes(head.tobytes() + bytes(2 * channels * room))
            fresh.replace(path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise HookError(
                f'"{RING}{path}": cannot be made ({error.strerror})', allowed="a file in a folder that exists"
            ) from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Ring:
        """The ring that is in a file."""
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError as error:
            raise HookError(
                f'"{RING}{path}": {error.strerror}',
                allowed="a ring that another program has made (tcpsbed docs media)",
            ) from None
        try:
            return cls(path, descriptor)
        finally:
            os.close(descriptor)

    @property
    def written(self) -> int:
        """Samples of all channels that have been written in all."""
        return int(self.head["written"][0])

    def write(self, samples: Samples) -> None:
        """Appends samples, shape (n, channels) with n up to the room."""
        places = (self.written + np.arange(len(samples))) % self.room
        self.samples[places] = samples
        self.head["written"][0] = self.written + len(samples)

    def read(self, begin: int, count: int) -> Samples | None:
        """A copy of `count` samples from `begin` on; none if they are not there yet, or no more."""
        if self.written < begin + count:
            return None
        copy = self.samples[(begin + np.arange(count)) % self.room]
        return copy if self.written <= begin + self.room else None


def refuse_other_files(path: Path) -> None:
    """Raises what keeps a ring from being made at a place: no folder, or something there that is no ring."""
    if not path.parent.is_dir():
        raise HookError(
            f'"{RING}{path}": cannot be made (no folder)', allowed="a file in a folder that exists"
        )
    try:
        if not path.exists() or (path.is_file() and _magic(path) == MAGIC):
            return
    except OSError as error:
        raise HookError(f'"{RING}{path}": {error.strerror}', allowed="a ring, or a new file") from None
    raise HookError(f'"{RING}{path}": found something that is not a ring', allowed="a ring, or a new file")


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(MAGIC))


class RingMicrophone:
    """What another program puts into a ring, a frame at a time; one that is not whole yet is waited for."""

    def __init__(self, name: str, sampling_hz: float, channels: int, samples: int) -> None:
        self.name, self.path = name, Path(name.removeprefix(RING))
        self.wanted, self.count = (round(sampling_hz), channels), samples
        self.patience_s = samples / sampling_hz
        self.ring: Ring | None = None
        self.at = 0

    def frame(self, t_ns: int, index: int) -> Samples:
        """The oldest waiting frame, after the oldest excess frames were dropped."""
        ring = self._opened()
        if ring.written - self.at > MOST_WAITING * self.count or ring.written < self.at:
            self.at = max(ring.written - self.count, 0)
        until = time.monotonic() + self.patience_s
        while (taken := ring.read(self.at, self.count)) is None:
            if time.monotonic() > until:
                self.ring = None  # it may have been made again
                raise HookError(f'"{self.name}": nobody writes into it', allowed="a program that does")
            time.sleep(LOOK_S)
        self.at += self.count
        return taken

    def _opened(self) -> Ring:
        if self.ring is None:
            ring = Ring.open(self.path)
            if (ring.hz, ring.channels) != self.wanted:
                raise HookError(
                    f'"{self.name}": found {ring.hz} Hz, {ring.channels} channels',
                    allowed=f"{self.wanted[0]} Hz, "
                    f"{self.wanted[1]} channels, or sampling and channels of the ring",
                )
            if ring.room < self.count:
                raise HookError(
                    f'"{self.name}": found room for {ring.room} samples, less than a frame',
                    allowed=f"{self.count} or more",
                )
            self.ring, self.at = ring, max(ring.written - self.count, 0)
        return self.ring


class RingSpeaker:
    """A ring that another program may read; it is created with its first frame."""

    def __init__(self, name: str, sampling_hz: float, channels: int) -> None:
        self.path, self.hz, self.channels = Path(name.removeprefix(RING)), round(sampling_hz), channels
        self.ring: Ring | None = None
        refuse_other_files(self.path)

    def play(self, samples: Samples, t_ns: int, index: int) -> None:
        """Appends a frame."""
        if self.ring is None:
            self.ring = Ring.create(self.path, self.hz, self.channels, round(ROOM_S * self.hz))
        self.ring.write(samples[-self.ring.room :])
