"""Device `spacemouse`: a 3Dconnexion SpaceMouse by its HID reports (/dev/hidraw…), or a recording by `hid-recorder`.

```text
report 1   x, y, z      i16 little-endian each, ±350 at the stops      x right, y towards the user, z down
report 2   rx, ry, rz   the same; newer devices send all six in report 1 (13 B)
report 3   buttons      a bit each
```
A cap that is pushed is a speed: the hook adds it up, within the reach. One that says nothing for half a second is not
pushed any more. `hid-recorder /dev/hidraw2 > cap.hid` makes a recording.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from tcpsbed.devices.device import Device, Floats, Line, when_s
from tcpsbed.door import Param

TRANSLATION, ROTATION, BUTTONS = 1, 2, 3
OTHERS = (0x04, 0x17)
"""Reports without motion: light, battery."""
FULL = 350.0
"""What an axis says at its stop."""
STALE_NS = 500_000_000
"""A push older than this has ended."""
AXES = (1, 0, 2)
"""To the front is minus y, to the left minus x, up minus z; the same for turns about these."""
_THREE, _SIX = struct.Struct("<3h"), struct.Struct("<6h")
_LINE = re.compile(rb"E: (\d+)\.(\d{6}) (\d+)((?: [0-9a-fA-F]{2})+)\s*")


class SpaceMouseReports:
    """Speeds of the cap, -1 to 1: to the front, to the left, up, and about these; and its buttons."""

    def __init__(self) -> None:
        self.refused = 0
        self.push, self.turn = np.zeros(3), np.zeros(3)
        self.buttons = 0

    def take(self, content: bytes) -> None:
        """Takes a report."""
        kind, body = content[:1], content[1:]
        if kind == bytes([TRANSLATION]) and len(body) in (_THREE.size, _SIX.size):
            self.push = _speeds(body[:6])
            if len(body) == _SIX.size:
                self.turn = _speeds(body[6:])
        elif kind == bytes([ROTATION]) and len(body) == _THREE.size:
            self.turn = _speeds(body)
        elif kind == bytes([BUTTONS]) and 1 <= len(body) <= 8:
            self.buttons = int.from_bytes(body, "little")
        elif not kind or kind[0] not in OTHERS:
            self.refused += 1

    def rest(self) -> None:
        """Nobody pushes."""
        self.push, self.turn, self.buttons = np.zeros(3), np.zeros(3), 0


def _speeds(body: bytes) -> Floats:
    raw = np.array(_THREE.unpack(body), dtype=np.float64)
    return np.clip(-raw[list(AXES)] / FULL, -1.0, 1.0)


def recorded(path: Path) -> Iterator[tuple[float, bytes]]:
    """The reports of a recording by `hid-recorder`: lines `E: seconds.micros length bytes`; other lines are headers."""
    for line in path.read_bytes().splitlines():
        if not line.startswith(b"E:"):
            continue
        found = _LINE.fullmatch(line)
        report = bytes.fromhex(found[4].decode()) if found else b""
        if found is None or len(report) != int(found[3]):
            yield 0.0, b""  # counted as refused
            continue
        yield min(int(found[1]) + int(found[2]) / 1e6, 86_400.0), report


class SpaceMouse(Device):
    """The hand that the cap pushes: x, y, z (m), button, wheel (0), when (s), roll, pitch, yaw (rad)."""

    params: ClassVar[dict[str, Param]] = {
        "path": Param("file", doc="device such as `/dev/hidraw2`, or a recording"),
        "rest": Param({"array": [3, "number"]}, default="[0, 0, 0]", doc="x, y, z (m) of the hand at rest"),
        "reach": Param("number", 0, default="0.1", doc="how far the hand can go from `rest`, in m"),
        "speed_m_s": Param("number", default="0.1", doc="speed at full deflection, in m/s"),
        "speed_rad_s": Param("number", default="0.5", doc="turning speed at full deflection, in rad/s"),
        "dead": Param("number", 0, 0.999, "0.05", "dead zone, as a share of the deflection"),
    }

    def __init__(
        self,
        path: str,
        rest: list[float],
        reach: float,
        speed_m_s: float,
        speed_rad_s: float,
        dead: float,
    ) -> None:
        self.middle, self.reach = np.array(rest, dtype=np.float64), reach
        self.dead, self.speeds = dead, (speed_m_s, speed_rad_s)
        self.place, self.angles, self.then_ns = np.zeros(3), np.zeros(3), 0
        self.reports = SpaceMouseReports()
        self.line = Line(Path(path), self.reports, recorded)

    def _start(self) -> None:
        self.line.start()

    def _gone(self) -> str | None:
        return None if self.line.present else f"spacemouse: {self.line.path}"

    def _refused(self) -> int:
        return self.reports.refused

    def _state(self, t_ns: int) -> list[float]:
        step_s = min(max(t_ns - self.then_ns, 0), STALE_NS) / 1e9 if self.then_ns else 0.0
        self.then_ns = t_ns
        at_s = when_s(t_ns, self.line.at_ns)
        if self.line.at_ns and t_ns / 1e9 - at_s <= STALE_NS / 1e9:
            moved = self._pushed(self.reports.push) * self.speeds[0] * step_s
            self.place = np.clip(self.place + moved, -self.reach, self.reach)
            turned = self._pushed(self.reports.turn) * self.speeds[1] * step_s
            self.angles = np.clip(self.angles + turned, -np.pi, np.pi)
        button = float(self.reports.buttons & 1)
        return [*(self.middle + self.place).tolist(), button, 0.0, at_s, *self.angles.tolist()]

    def _pushed(self, share: Floats) -> Floats:
        return np.where(np.abs(share) < self.dead, 0.0, share)
