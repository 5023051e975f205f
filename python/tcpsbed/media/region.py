"""A region of interest: a part of the picture in better quality; the rest is sent less often.

```text
 flags | x | y | width | height | bytes of the background | background | region
   1   | 2 | 2 |   2   |   2    |            4            |            |          (network order)
```
Flag 1: the region is raw. Without a background in it, a frame is laid over the last background that came, which may be coded
smaller than it is. The size of the region is the knob between raw and compressed that Al-Mouhamed et al. leave open; an
operator may mark another one, which comes as a flow to the hook `Mark` at the node that encodes. (Al-Mouhamed et al.)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media.codecs import LEAST_BPS, Bytes, Codec, Frame, Jpeg

HEAD = struct.Struct("!BHHHHI")
RAW = 1
CELL = 16
"""Side of the cells in which motion is looked for, in picture elements; no region is smaller."""


class Mark:
    """A hook on a flow of marks: x, y, width, height as shares of the picture, and when (s); without a size, its middle.

    Parameters
    ----------
    name
        What the key `marks` of a region calls it.
    """

    def __init__(self, name: str) -> None:
        self.newest: tuple[float, float, float, float] | None = None
        self.moment_s = 0.0
        MARKS[name] = self

    def __call__(
        self, t_ns: int, index: int, x: NDArray[np.float64] | None, other: object, y: NDArray[np.float64]
    ) -> int:
        """Takes a mark and passes it on; one that is no part of a picture is dropped."""
        if x is None or len(x) < 4 or not bool(np.isfinite(x[:5]).all()):
            return 0
        left, top, width, height = (min(max(float(v), 0.0), 1.0) for v in x[:4])
        self.newest = (left, top, width, height)
        self.moment_s = float(x[4]) if len(x) > 4 else 0.0
        y[: len(x)] = x
        return len(x)


MARKS: WeakValueDictionary[str, Mark] = WeakValueDictionary()
"""The hooks that take marks in this process, by the name of the marks; those of a run go with it."""


class Regions:
    """A codec around another one that codes the background."""

    def __init__(
        self, background: Codec, width: int, height: int, region: Mapping[str, Any], rate_hz: float
    ) -> None:
        self.background, self.rate_hz = background, rate_hz
        self.marks: str | None = region.get("marks")
        self.mark: Mark | None = None
        self.marked: tuple[float, ...] | None = None
        self.shrink = int(region.get("shrink", 1))
        self.inside_bytes = 0
        self.shape = (height, width)
        self.box = (int(region["x"]), int(region["y"]), int(region["width"]), int(region["height"]))
        self.every, self.raw = int(region["every"]), int(region["quality"]) == 100
        self.inside = Jpeg(self.box[2], self.box[3], 1.0, int(region["quality"]))
        self.tracker = Tracker(self.box, self.shape) if region["track"] else None
        self.count = 0
        self.last: Frame | None = None

    def encode(self, frame: Frame) -> bytes:
        """The region, and with every so many frames the background."""
        if self.marks is not None:
            self._obey(self.marks)
        if self.tracker is not None:
            self.box = self.tracker.follow(frame)
        x, y, width, height = self.box
        part = frame[y : y + height, x : x + width]
        inside = part.tobytes() if self.raw else self.inside.encode(part)
        self.inside_bytes = len(inside)
        around = bytes(self.background.encode(self._smaller(frame))) if self.count % self.every == 0 else b""
        self.count += 1
        return HEAD.pack(RAW if self.raw else 0, x, y, width, height, len(around)) + around + inside

    def _obey(self, marks: str) -> None:
        """Goes to where the operator has marked, if there is a new mark."""
        self.mark = self.mark or MARKS.get(marks)
        if self.mark is None:
            raise HookError(
                f'region: found no mark "{marks}" at this node',
                allowed=f'a hook tcpsbed.media.region:Mark with name = "{marks}" at the node that encodes',
            )
        newest = self.mark.newest
        if newest is None or (*newest, self.mark.moment_s) == self.marked:
            return
        self.marked = (*newest, self.mark.moment_s)
        self.box = _box(newest, self.box, self.shape)
        if self.tracker is not None:
            self.tracker.box = self.box

    def _smaller(self, frame: Frame) -> Frame:
        """The background as it is coded: the mean of each square of `shrink` elements."""
        s = self.shrink
        if s == 1:
            return frame
        height, width = self.shape
        squares = frame.reshape(height // s, s, width // s, s, 3)
        small: Frame = (squares.sum(axis=(1, 3), dtype=np.uint32) // (s * s)).astype(np.uint8)
        return small

    def _larger(self, frame: Frame | None) -> Frame | None:
        """The background as it is shown."""
        if frame is None or self.shrink == 1:
            return frame
        return np.repeat(np.repeat(frame, self.shrink, axis=0), self.shrink, axis=1)

    def decode(self, data: Bytes) -> Frame | None:
        """The region laid over the newest background; none before the first of these."""
        if len(data) < HEAD.size:
            raise HookError(f"region: found {len(data)} B", allowed=f"{HEAD.size} or more")
        flags, x, y, width, height, size = HEAD.unpack(data[: HEAD.size].tobytes())
        rest = data[HEAD.size :]
        fits = x + width <= self.shape[1] and y + height <= self.shape[0]
        if size > len(rest) or not fits or min(width, height) < CELL:
            raise HookError(
                f"region: found {width} x {height} at {x}, {y} with {size} of {len(rest)} B",
                allowed=f"a part of {self.shape[1]} x {self.shape[0]}",
            )
        self.box = (x, y, width, height)
        if size:
            self.last = self._larger(self.background.decode(rest[:size]))
        inside = self._part(rest[size:], flags & RAW != 0)
        if self.last is None:
            return None
        frame = np.array(self.last)
        frame[y : y + height, x : x + width] = inside
        return frame

    def _part(self, data: Bytes, raw: bool) -> Frame:
        width, height = self.box[2:]
        if not raw:
            self.inside.shape = (height, width, 3)
            return self.inside.decode(data)
        if len(data) != 3 * width * height:
            raise HookError(f"region: found {len(data)} B", allowed=f"{3 * width * height} B")
        return data.reshape(height, width, 3)

    def aim(self, bitrate_bps: float) -> None:
        """The background takes what the last region leaves, all that is left between two of its pictures at once."""
        left_bps = bitrate_bps - 8.0 * self.inside_bytes * self.rate_hz
        self.background.aim(max(left_bps * self.every, LEAST_BPS))


def _box(
    mark: tuple[float, float, float, float], box: tuple[int, int, int, int], shape: tuple[int, int]
) -> tuple[int, int, int, int]:
    """The region that a mark asks for, in picture elements; one without a size has that of the last one."""
    (rows, columns), (x, y, width, height) = shape, mark
    if width * columns < CELL or height * rows < CELL:
        wide, high = box[2:]
        left, top = round(x * columns - wide / 2), round(y * rows - high / 2)
    else:
        wide, high = min(round(width * columns), columns), min(round(height * rows), rows)
        left, top = round(x * columns), round(y * rows)
    return max(min(left, columns - wide), 0), max(min(top, rows - high), 0), wide, high


class Tracker:
    """Moves a box of constant size to where the picture changes most, a cell at a time so that it does not tremble."""

    def __init__(self, box: tuple[int, int, int, int], shape: tuple[int, int]) -> None:
        self.box, self.shape = box, shape
        self.before: NDArray[np.float64] | None = None

    def follow(self, frame: Frame) -> tuple[int, int, int, int]:
        """The box for this frame."""
        cells = _cells(frame)
        if self.before is not None:
            change = np.abs(cells - self.before)
            change[change < 4.0] = 0.0  # noise of a camera
            if change.sum() > 0.0:
                self._move(change)
        self.before = cells
        return self.box

    def _move(self, change: NDArray[np.float64]) -> None:
        """Moves half of the distance to the centre of the change, within the picture."""
        x, y, width, height = self.box
        rows, columns = np.indices(change.shape)
        total = change.sum()
        middle = (columns * change).sum() / total, (rows * change).sum() / total
        wanted = [(m + 0.5) * CELL - side / 2 for m, side in zip(middle, (width, height), strict=True)]
        most = (self.shape[1] - width, self.shape[0] - height)
        moved = [
            int(np.clip(round((a + 0.5 * (b - a)) / CELL) * CELL, 0, limit))
            for a, b, limit in zip((x, y), wanted, most, strict=True)
        ]
        self.box = (moved[0], moved[1], width, height)


def _cells(frame: Frame) -> NDArray[np.float64]:
    """Mean brightness of square cells; a rest at the right and lower edge is ignored."""
    rows, columns = frame.shape[0] // CELL, frame.shape[1] // CELL
    part = frame[: rows * CELL, : columns * CELL].mean(axis=2)
    cells: NDArray[np.float64] = part.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3))
    return cells
