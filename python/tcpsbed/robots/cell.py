"""The newest values of one writer for readers in other processes: a file in memory, without locks.

```text
header   newest (u64)
slot     sequence (u64) | t_ns (i64) | number of values (u64) | values (f64 ...) | sequence (u64)      8 slots in turn
```
The writer fills the next slot and then says that it is the newest. A reader copies the newest slot and tries again if
its two sequence numbers differ: the writer went round seven other slots meanwhile.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.errors import HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

SLOTS = 8
_HEAD = 8
_AROUND = 32
_TRIES = 100


class Cell:
    """A cell over a file descriptor; `create` and `open` make one of a path.

    Parameters
    ----------
    descriptor
        An open file, as long as the cell needs.
    room
        Most values that it holds.
    """

    def __init__(self, descriptor: int, room: int) -> None:
        self.room, self._inode = room, os.fstat(descriptor).st_ino
        slot_bytes = _AROUND + 8 * room
        os.ftruncate(descriptor, _HEAD + SLOTS * slot_bytes)
        self._memory = mmap.mmap(descriptor, _HEAD + SLOTS * slot_bytes)
        self._newest = np.frombuffer(self._memory, np.uint64, 1)
        slots = [_HEAD + i * slot_bytes for i in range(SLOTS)]
        self._heads = [np.frombuffer(self._memory, np.int64, 3, at) for at in slots]
        self._values = [np.frombuffer(self._memory, np.float64, room, at + 24) for at in slots]
        self._tails = [np.frombuffer(self._memory, np.int64, 1, at + 24 + 8 * room) for at in slots]

    @classmethod
    def create(cls, path: str | Path, room: int) -> Cell:
        """A new cell in a file (such as in /dev/shm), which replaces an existing one."""
        if Path(path).exists():
            cls.open(path)  # anything else is somebody's
        fresh = f"{path}.{os.getpid()}"
        try:
            descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise HookError(
                f"{path} cannot be written ({error.strerror})", allowed="a file in a folder that exists"
            ) from None
        try:
            cell = cls(descriptor, room)
            Path(fresh).replace(path)  # a reader of the one before keeps its memory
        finally:
            os.close(descriptor)
        return cell

    @classmethod
    def open(cls, path: str | Path) -> Cell:
        """The cell that another process keeps in a file."""
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError as error:
            raise HookError(
                f"{path} cannot be read ({error.strerror})",
                allowed="the file that a running robot publishes its state in",
            ) from None
        try:
            size = os.fstat(descriptor).st_size
            slot_bytes, rest = divmod(size - _HEAD, SLOTS)
            if not (rest or slot_bytes < _AROUND or slot_bytes % 8):
                cell = cls(descriptor, (slot_bytes - _AROUND) // 8)
                if any(
                    cell._whole() >= SLOTS - 1 for _ in range(_TRIES)
                ):  # a writer is at one, or passes a second
                    return cell
            raise HookError(f"{path} holds no state of a robot ({size} B)")
        finally:
            os.close(descriptor)

    def _whole(self) -> int:
        return sum(bool(head[0] == tail[0]) for head, tail in zip(self._heads, self._tails, strict=True))

    def write(self, t_ns: int, values: Values) -> None:
        """Puts new values in; there must be room for them."""
        sequence = int(self._newest[0]) + 1
        slot = sequence % SLOTS
        self._tails[slot][0] = 0
        self._heads[slot][:] = sequence, t_ns, len(values)
        self._values[slot][: len(values)] = values
        self._tails[slot][0] = sequence
        self._newest[0] = sequence

    def stands_for(self, path: str | Path) -> bool:
        """Whether it is still the one in the file."""
        try:
            return Path(path).stat().st_ino == self._inode
        except OSError:
            return False

    @property
    def sequence(self) -> int:
        """How often it has been written."""
        return int(self._newest[0])

    def read(self) -> tuple[int, int, Values] | None:
        """The newest values.

        Returns
        -------
        tuple
            Sequence number, time in ns, a copy of the values; None before the first.
        """
        for _ in range(_TRIES):
            newest = int(self._newest[0])
            if newest == 0:
                return None
            slot = newest % SLOTS
            sequence, t_ns, n = self._heads[slot].tolist()
            values = self._values[slot][: min(max(n, 0), self.room)].copy()
            if sequence == newest == int(self._heads[slot][0]) == int(self._tails[slot][0]):
                return sequence, t_ns, values
        return None


class Followed:
    """The cell in a file for a reader, also when its writer is made again and puts another in its place.

    Parameters
    ----------
    path
        Its file.

    Raises
    ------
    HookError
        If there is none, also later.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self._cell = path, Cell.open(path)

    def read(self) -> tuple[int, int, Values] | None:
        """The newest values, as `Cell.read` gives them."""
        if not self._cell.stands_for(self.path):
            self._cell = Cell.open(self.path)
        return self._cell.read()
