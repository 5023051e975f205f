"""Robot `microscope`: a virtual scanning-probe microscope, whose tip is on a height map. Lengths in nm, forces in nN.

```text
command   number, kind, x, y, a, b, ...           (28 B as 7 floats of 4 B)                              [Hudson 2001]
          kind 0 scan       x, y: corner, a: side, b: lines (0 holds still)
               1 point      x, y: measure there
               2 patch      x, y: centre, a: spacing: 3 x 3 points around it
               3 modify     x, y: go there under the force a: what is softer gives way, a particle is pushed
               4 path       pairs x, y from the third value on: the tip follows them with no network in the loop
sense     0..3   scan       x, y, height, number of the measurement
          4..17  response   number, kind, x, y, height, friction, adhesion, compliance, then slopes x, y of the surface
                            there, tip x, y, height, requests replaced                                   (56 B, 14 floats)
          18..26 patch      9 heights, row by row
```
A new number is a new request. Requests wait in a queue where one replaces an older one of its kind and goes to the
tail, so that a fast hand never runs ahead of a slow device.                                             [Hudson 2001]
Every measurement is kept in `archive`, whatever becomes of the stream.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tcpsbed.door import ABOVE_ZERO, Param
from tcpsbed.errors import HookError
from tcpsbed.robots.sample import Sample

if TYPE_CHECKING:
    from io import FileIO

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Channels = tuple[float, float, float, float]

SCAN, POINT, PATCH, MODIFY, PATH = range(5)
SENSES = 27
ROW = np.dtype(
    [("t_s", "<f8"), *((name, "<f4") for name in ("x", "y", "height", "friction", "adhesion", "compliance"))]
)
"""A row of the archive."""


class Microscope:
    """The device: a tip that moves at its own speed, and a queue of requests."""

    params: ClassVar[dict[str, Param]] = {
        "surface": Param(
            "file",
            default=None,
            doc="square `.npy` file with the heights of the surface in nm; without it the surface is generated",
        ),
        "pixel_nm": Param("number", ABOVE_ZERO, default="10", doc="width of a pixel of the height map"),
        "scan_hz": Param("number", ABOVE_ZERO, default="300", doc="measurements per second of a scan"),
        "speed_nm_s": Param("number", ABOVE_ZERO, default="20000", doc="speed of the tip"),
        "settle_s": Param(
            "number", 0, default="0.005", doc="mean time that one measurement takes once the tip is in place"
        ),
        "settle_sd_s": Param("number", 0, default="0.001", doc="standard deviation of that time"),
        "noise_nm": Param("number", 0, default="0.3", doc="standard deviation of a measured height"),
        "archive": Param(
            "output",
            default=None,
            doc="file to which each measurement is written, as one record of the numpy type `ROW` in "
            "`tcpsbed/robots/microscope.py`",
        ),
        "seed": Param(
            "count", 0, default="1", doc="seed of the noise, of the durations and of the generated surface"
        ),
    }

    own_process = True

    def __init__(
        self,
        surface: str | None,
        pixel_nm: float,
        scan_hz: float,
        speed_nm_s: float,
        settle_s: float,
        settle_sd_s: float,
        noise_nm: float,
        archive: str | None,
        seed: int,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self.sample = Sample.read(surface, pixel_nm) if surface else Sample.generated(pixel_nm, seed=seed)
        self.scan_hz, self.speed_nm_s, self.noise_nm = scan_hz, speed_nm_s, noise_nm
        self._settle_s, self._settle_sd_s = settle_s, settle_sd_s
        self._queue: OrderedDict[int, Values] = OrderedDict()
        self._number = 0.0
        self._now_s: float | None = None
        self._tip = np.array([self.sample.side_nm / 2] * 2)
        self._scan: tuple[float, float, float, int] | None = None
        self._measured = 0
        self._row = np.zeros(SENSES)
        self._free_s = self._scan_s = 0.0
        self._work: list[tuple[float, float]] = []
        self._bound: Values | None = None
        self._job: Values = np.zeros(0)
        self._patch = np.zeros(9)
        self._middle: tuple[Values, Channels] = (self._tip, (0.0, 0.0, 0.0, 0.0))
        self.replaced = 0
        self._archive = _opened(archive)

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Works up to `t_ns`; writes the last measured values and returns their number."""
        now_s = t_ns * 1e-9
        if self._now_s is None:
            self._free_s = self._scan_s = now_s
        self._now_s = now_s
        if len(command) >= 4 and bool(np.isfinite(command).all()) and command[0] != self._number:
            self._accept(command.copy())
        while (self._bound is None or self._free_s <= now_s) and self._serve():
            pass
        while self._scan and self._bound is None and self._scan_s <= now_s:
            self._scan_on()
        if not self._scan or self._bound is not None:
            self._scan_s = now_s
        n = min(SENSES, len(sense))
        sense[:n] = self._row[:n]
        return n

    def arrived(self) -> bool:
        """Whether every request has been served."""
        return not self._queue and self._bound is None

    # [Hudson 2001]
    def _accept(self, request: Values) -> None:
        """Queues a request in place of one of its kind."""
        self._number = float(request[0])
        kind = int(request[1])
        if kind == SCAN:
            side = float(request[4]) if len(request) > 4 else 0.0
            lines = int(request[5]) if len(request) > 5 else 0
            self._scan = (
                (float(request[2]), float(request[3]), side, lines) if lines > 0 and side > 0 else None
            )
            self._measured = 0
        elif kind in (POINT, PATCH, MODIFY, PATH):
            self.replaced += self._queue.pop(kind, None) is not None
            self._queue[kind] = request

    def _serve(self) -> bool:
        """Measures at the tip's place and starts for the next place; false if there is none."""
        begin_s = self._free_s
        if self._bound is None:
            begin_s = self._now_s or 0.0
        else:
            at, self._bound = self._bound, None
            self._visit(int(self._job[1]), at)
        if not self._work and self._queue:
            kind, self._job = self._queue.popitem(last=False)
            self._work = _places(kind, self._job)
        if not self._work:
            return False
        self._bound = self.sample.inside(*self._work.pop(0))
        way_nm = float(np.hypot(*(self._bound - self._tip)))
        self._free_s = begin_s + way_nm / self.speed_nm_s + self._settle()
        return True

    def _visit(self, kind: int, at: Values) -> None:
        """What happens at one place of a request; a patch is answered when it is whole, about its middle."""
        if kind == MODIFY and len(self._job) > 4:
            self.sample.modify(self._tip, at, force_nn=float(self._job[4]))
        self._tip = at
        channels = self._measure(at, self._free_s)
        if kind != PATCH:
            return self._answer(kind, at, channels)
        self._patch[8 - len(self._work)] = channels[0]
        if len(self._work) == 4:
            self._middle = (at, channels)
        elif not self._work:
            self._row[18:27] = self._patch
            self._answer(kind, *self._middle)

    def _answer(self, kind: int, at: Values, channels: Channels) -> None:
        slopes = self.sample.slopes(*at)
        self._row[4:18] = (
            self._job[0],
            kind,
            *at,
            *channels,
            *slopes,
            *self._tip,
            channels[0],
            self.replaced,
        )

    # [Hudson 2001]
    def _scan_on(self) -> None:
        """The next measurement of a scan at constant speed: forth and back, line by line, then again."""
        assert self._scan is not None
        x, y, side, lines = self._scan
        line, column = divmod(self._measured, lines)
        along = column if line % 2 == 0 else lines - 1 - column
        step = side / max(lines - 1, 1)
        self._tip = self.sample.inside(x + along * step, y + line % lines * step)
        height = self._measure(self._tip, self._scan_s)[0]
        self._measured += 1
        self._row[:4] = (*self._tip, height, self._measured)
        self._scan_s += 1.0 / self.scan_hz

    def _measure(self, at: Values, t_s: float) -> Channels:
        """Height (with noise), friction, adhesion and compliance; kept in the archive."""
        height, friction, adhesion, compliance = self.sample.channels(*at)
        height += self.noise_nm * float(self._rng.standard_normal())
        if self._archive is not None:
            row = (t_s, *at, height, friction, adhesion, compliance)
            self._archive.write(np.array([row], ROW).tobytes())
        return height, friction, adhesion, compliance

    def _settle(self) -> float:
        return max(self._settle_s + self._settle_sd_s * float(self._rng.standard_normal()), 1e-4)


def _places(kind: int, request: Values) -> list[tuple[float, float]]:
    """The places that a request goes to, in order."""
    x, y = float(request[2]), float(request[3])
    if kind == PATCH:
        d = float(request[4]) if len(request) > 4 else 10.0
        return [(x + i * d, y + j * d) for j in (-1, 0, 1) for i in (-1, 0, 1)]
    if kind == PATH:
        pairs = request[2 : 2 + (len(request) - 2) // 2 * 2].reshape(-1, 2)
        return [(float(px), float(py)) for px, py in pairs]
    return [(x, y)]


def _opened(archive: str | None) -> FileIO | None:
    if archive is None:
        return None
    try:
        return Path(archive).open("wb", buffering=0)
    except OSError as error:
        raise HookError(
            f"{archive} cannot be written ({error.strerror})", allowed="a file in a folder that exists"
        ) from None
