"""Device `evdev`: a mouse, tablet, stick or gamepad as the kernel reports it (linux/input.h), or a recording of one.

```text
struct input_event, 24 B: seconds i64, microseconds i64, type u16, code u16, value i32     (the machine's byte order)
 2 REL  0 x  1 y  8 wheel    adds up          right and down are positive
 3 ABS  0 x  1 y  2 z        a place between the ends of the axis
 1 KEY  0x110 left, 0x130 south, 0x14a touch, 0x120 trigger        0 up, 1 down, 2 held
 0 SYN  0 report: what came before counts now    3 dropped: what comes until the next report does not
```
`cat /dev/input/event5 > hand.evdev` makes a recording.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np

from tcpsbed.devices.device import Device, Line, when_s
from tcpsbed.door import Param
from tcpsbed.errors import HookError

EVENT = struct.Struct("=qqHHi")
SYN, KEY, REL, ABS = 0, 1, 2, 3
MOST_CODES = {SYN: 0x0F, KEY: 0x2FF, REL: 0x0F, ABS: 0x3F}
"""Largest code of the types that are used."""
MOST_TYPE = 0x1F
REPORT, DROPPED = 0, 3
REL_X, REL_Y, REL_WHEEL = 0, 1, 8
BUTTONS = (0x110, 0x120, 0x130, 0x14A)
MOST_COUNTS = 10_000
"""Largest step of a relative axis in a report: more is no hand."""
_ABSINFO = struct.Struct("=6i")
_EVIOCGABS = 0x80184540
"""Asks for value, least, most, fuzz, flat, resolution of an absolute axis, whose number is added."""


class EvdevReports:
    """The hand out of a stream of events.

    Parameters
    ----------
    count
        Share of the way from the middle to the edge for a count of a relative axis.
    ends
        Least and most of each absolute axis.
    """

    def __init__(self, count: float = 0.001, ends: dict[int, tuple[int, int]] | None = None) -> None:
        self.count, self.ends = count, ends or {}
        self.refused = 0
        self.right, self.up, self.further = 0.0, 0.0, 0.0
        self.button, self.wheel = 0.0, 0.0
        self._left = b""
        self._pending: list[tuple[int, int, int]] = []
        self._lost = False

    def take(self, content: bytes) -> None:
        """Takes the next bytes of the stream."""
        content = self._left + content
        whole = len(content) - len(content) % EVENT.size
        for _, _, kind, code, value in EVENT.iter_unpack(content[:whole]):
            self._event(kind, code, value)
        self._left = content[whole:]

    def rest(self) -> None:
        """Lets go of the button and forgets what was not complete."""
        self.refused += bool(self._left)
        self.button, self._left, self._pending, self._lost = 0.0, b"", [], False

    def _event(self, kind: int, code: int, value: int) -> None:
        if kind > MOST_TYPE or code > MOST_CODES.get(kind, 0xFFFF) or not _sane(kind, value):
            self.refused += 1
        elif kind == SYN and code == DROPPED:
            self._lost = True
        elif kind == SYN and code == REPORT:
            for event in () if self._lost else self._pending:
                self._apply(*event)
            self._pending, self._lost = [], False
        elif kind in (KEY, REL, ABS) and len(self._pending) < 64:
            self._pending.append((kind, code, value))

    def _apply(self, kind: int, code: int, value: int) -> None:
        if kind == KEY:
            if code in BUTTONS:
                self.button = float(value > 0)
        elif kind == REL and code == REL_WHEEL:
            self.wheel += value
        elif kind == REL:
            self._move(code, value * self.count)
        elif code in self.ends:
            least, most = self.ends[code]
            self._place(code, 2.0 * (value - least) / (most - least) - 1.0)

    def _move(self, code: int, share: float) -> None:
        """A relative axis; with the button held, up and down is further and nearer."""
        if code == REL_X:
            self.right = _bounded(self.right + share)
        elif code == REL_Y and self.button:
            self.further = _bounded(self.further - share)
        elif code == REL_Y:
            self.up = _bounded(self.up - share)

    def _place(self, code: int, share: float) -> None:
        """An absolute axis: x to the right, y down, z away."""
        if code == 0:
            self.right = _bounded(share)
        elif code == 1:
            self.up = _bounded(-share)
        else:
            self.further = _bounded(share)


def _sane(kind: int, value: int) -> bool:
    if kind == KEY:
        return 0 <= value <= 2
    return kind != REL or abs(value) <= MOST_COUNTS


def _bounded(share: float) -> float:
    return min(max(share, -1.0), 1.0)


def recorded(path: Path) -> Iterator[tuple[float, bytes]]:
    """The events of a recording, with seconds since the first."""
    content = path.read_bytes()
    first = None
    for at in range(0, len(content), EVENT.size):
        event = content[at : at + EVENT.size]
        if len(event) == EVENT.size:
            seconds, micros = EVENT.unpack(event)[:2]
            first = seconds + micros / 1e6 if first is None else first
            yield min(max(seconds + micros / 1e6 - first, 0.0), 86_400.0), event
        else:
            yield 0.0, event


def ends_of(path: Path) -> dict[int, tuple[int, int]]:
    """Least and most of the absolute axes of a device that has some; empty for a recording."""
    ends = {}
    with suppress(OSError):
        line = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            for axis in range(3):
                with suppress(OSError):
                    answer = fcntl.ioctl(line, _EVIOCGABS + axis, bytes(_ABSINFO.size))
                    _, least, most, *_ = _ABSINFO.unpack(answer)
                    if most > least:
                        ends[axis] = (least, most)
        finally:
            os.close(line)
    return ends


class Evdev(Device):
    """The hand on such a device, as x, y, z (m), button, wheel, when (s): what `tcpsbed.console.hooks:Hand` gives."""

    params: ClassVar[dict[str, Param]] = {
        "path": Param("file", doc="device such as `/dev/input/event5`, or a recording"),
        "rest": Param({"array": [3, "number"]}, default="[0, 0, 0]", doc="x, y, z (m) of the hand at rest"),
        "reach": Param("number", 0, default="0.1", doc="how far the hand can go from `rest`, in m"),
        "count": Param("number", default="0.001", doc="share of `reach` for each count of a mouse"),
        "ends": Param(
            {"list": {"array": [2, "count"]}},
            default="[]",
            doc="lowest and highest value of absolute axes, `[[0, 1023], [0, 1023]]`. An empty list asks the device",
        ),
    }

    def __init__(
        self, path: str, rest: list[float], reach: float, count: float, ends: list[tuple[int, int]]
    ) -> None:
        self.middle, self.reach = np.array(rest, dtype=np.float64), reach
        given = dict(enumerate((low, high) for low, high in ends))
        if any(high <= low for low, high in given.values()):
            raise HookError(f"evdev: found ends = {ends}", allowed="the least, then more")
        self.reports = EvdevReports(count, given)
        self.line = Line(Path(path), self.reports, recorded)
        self.reports.ends = given or ends_of(self.line.path)

    def _start(self) -> None:
        self.line.start()

    def _gone(self) -> str | None:
        return None if self.line.present else f"evdev: {self.line.path}"

    def _refused(self) -> int:
        return self.reports.refused

    def _state(self, t_ns: int) -> list[float]:
        hand = self.reports
        moved = (hand.further, -hand.right, hand.up)
        place = [rest + self.reach * share for rest, share in zip(self.middle, moved, strict=True)]
        return [*place, hand.button, hand.wheel, when_s(t_ns, self.line.at_ns)]
