"""A measured surface as a hand feels it that goes over it line by line, through models of it that arrive late.

```text
height map ─► path of the hand, 1 kHz ─► measurements, late ─► plane │ warped plane │ feel patches ─► felt map, RMS error
```
The map is one of a scanning-probe microscope. Lengths in nm. (Hudson et al. 2001)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.datasets import builtin
from tcpsbed.lab.reproduce import surface
from tcpsbed.robots.feel import Patch

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Map = NDArray[np.float64]

MAP, PIXEL_NM = builtin.DATA / "grating.npy", 10_000 / 128
"""Grooves in silicon under a scanning-probe microscope: heights in nm, 10 um over 128 points (see NOTICE)."""
LINES, SPEED_NM_S, RATE_HZ, PATCH_HZ = 32, 2000.0, 300.0, 2.0
"""Lines that the hand feels, how fast it goes, measurements a second, and feel patches a second."""
TICK_S = 0.001


@dataclass(frozen=True)
class Relief:
    """Some lines of a height map, and the path of a hand over them, one point a millisecond."""

    heights: Map
    pixel_nm: float

    @classmethod
    def measured(cls) -> Relief:
        """Evenly spaced lines of the measured map."""
        heights = np.load(MAP, allow_pickle=False).astype(np.float64)
        rows = np.linspace(0, len(heights) - 1, LINES).astype(np.int64)
        return cls(heights[rows] - heights.min(), PIXEL_NM)

    @property
    def length_nm(self) -> float:
        """Of a line."""
        return float((self.heights.shape[1] - 1) * self.pixel_nm)

    def line(self, i: int) -> tuple[Map, Map]:
        """Places along a line, and their heights."""
        return np.arange(self.heights.shape[1], dtype=np.float64) * self.pixel_nm, np.asarray(self.heights[i])

    # Hudson et al. 2001
    def felt(self, delay_s: float, jitter_s: float, *, warped: bool) -> tuple[Map, Map]:
        """Felt and true heights on each line: one row per line, one column per millisecond."""
        pairs = [
            surface.sweep(*self.line(i), SPEED_NM_S, RATE_HZ, delay_s, jitter_s, seed=i + 1, warped=warped)[
                2:
            ]
            for i in range(len(self.heights))
        ]
        got, true = zip(*pairs, strict=True)
        return np.array(got), np.array(true)

    # Hudson et al. 2001
    def patched(self, delay_s: float) -> tuple[Map, Map]:
        """The same by patches of 3 x 3 points around where the hand was when it asked, as wide as it goes until the next."""
        spacing = SPEED_NM_S * (1.0 / PATCH_HZ + delay_s)
        step_nm = self.length_nm / (len(self.heights) - 1)
        now = np.arange(0.0, self.length_nm / SPEED_NM_S, TICK_S)
        got, true = [], []
        for i in range(len(self.heights)):
            patch, asked = Patch(spacing), -1
            row = np.full(len(now), np.nan)
            for tick, t in enumerate(now):
                due = int((t - delay_s) * PATCH_HZ)
                if t >= delay_s and due > asked:
                    asked = due
                    centre = asked / PATCH_HZ * SPEED_NM_S
                    patch.learn(0, self._grid(centre, i * step_nm, spacing), [0, 1, 2], None)
                known = patch.at(0, np.array([t * SPEED_NM_S, i * step_nm, 0.0]))
                row[tick] = np.nan if known is None else known[0]
            got.append(row)
            true.append(np.interp(now * SPEED_NM_S, *self.line(i)))
        return np.array(got), np.array(true)

    def _grid(self, x: float, y: float, spacing: float) -> Map:
        """A measured patch: its middle and nine heights, row by row along y."""
        step_nm = self.length_nm / (len(self.heights) - 1)
        around = spacing * np.array([-1.0, 0.0, 1.0])
        rows = np.clip(np.round((y + around) / step_nm), 0, len(self.heights) - 1).astype(int)
        nine = [np.interp(x + around, *self.line(row)) for row in rows]
        return np.concatenate(([x, y], np.concatenate(nine)))


def shapes(relief: Relief) -> tuple[dict[str, tuple[Map, float]], Map]:
    """Felt maps with their RMS error by name, and the map itself."""
    cases = {
        "plane, 100 ms": (0.1, 0.0, False),
        "warped plane, 100 ms": (0.1, 0.0, True),
        "warped plane, 100 ms and 30 ms of jitter": (0.1, 0.03, True),
    }
    found = {}
    for name, (delay_s, jitter_s, warped) in cases.items():
        got, true = relief.felt(delay_s, jitter_s, warped=warped)
        found[name] = (got, surface.rms(got, true))
    got, true = relief.patched(0.1)
    found[f"feel patches, {PATCH_HZ:g} a second, 100 ms"] = (got, surface.rms(got, true))
    return found, true


def draw(figure: Figure, found: dict[str, tuple[Map, float]], true: Map) -> None:
    """The map and what is felt of it, side by side."""
    figure.set_size_inches(12, 7)
    panels = figure.subplots(2, 3).flat
    shown = {"measured": (true, None)} | found
    for axes, (name, (heights, error)) in zip(panels, shown.items(), strict=False):
        axes.imshow(heights, aspect="auto", vmin=true.min(), vmax=true.max(), cmap="gray")
        axes.set_title(name if error is None else f"{name}\nRMS error {error:.2f} nm", fontsize=8)
        axes.set_axis_off()
    figure.axes[-1].set_axis_off()
