"""The surface at the operator, in three dimensions: the part scanned so far, with hand and tip.

```text
rows of the grid, from near to far: a row shows above the horizon of those before it
pixel (v, u) shows the first row whose horizon is at or above v: counted from a histogram of horizons in each column
```
As a `feedback` hook on the flow of a scan it publishes its state in a cell, and `CameraSource` draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

MARK_PIXELS, RIM_PIXELS = 4, 1.5
"""Radius of the balls of tip and hand, and the width of the light rim that parts them from the surface."""
TIP, HAND, RIM = (210, 40, 40), (40, 60, 200), (250, 250, 250)
"""Their colours: red, blue, white."""


class SurfaceView:
    """A square of the surface, seen from the front and above.

    Parameters
    ----------
    corner_nm
        Where the square begins.
    side_nm
        Its side.
    cells
        Heights along a side.
    point
        Where x, y and the height are in the samples of the scan.
    hand
        Where x, y and z of the hand are in the samples of the other direction.
    publish
        A file that holds the newest state, for a process that draws pictures; absent: none.
    """

    def __init__(
        self,
        corner_nm: tuple[float, float] = (0.0, 0.0),
        side_nm: float = 1000.0,
        cells: int = 64,
        point: tuple[int, int, int] = (0, 1, 2),
        hand: tuple[int, int, int] = (2, 3, 4),
        publish: str | None = None,
    ) -> None:
        if not (side_nm > 0 and 2 <= cells <= 512):
            raise HookError(f"found side_nm = {side_nm}, cells = {cells}", allowed="above 0; 2 to 512")
        self.corner_nm, self.side_nm, self.cells = np.array(corner_nm, dtype=np.float64), side_nm, cells
        self._point, self._hand_at = list(point), list(hand)
        self.heights = np.full((cells, cells), np.nan)
        self.hand, self.tip = np.full(3, np.nan), np.full(3, np.nan)
        self._cell = Cell.create(publish, cells * cells + 6) if publish else None

    def __call__(self, t_ns: int, index: int, x: Values, other: Values, y: Values) -> int:
        """Takes a measurement on its path to the operator and passes it on."""
        if len(x) > max(self._point):
            self.learn(*(float(value) for value in x[self._point]))
        if len(other) > max(self._hand_at):
            self.hand = other[self._hand_at].copy()
        if self._cell is not None:
            self._cell.write(t_ns, np.concatenate((self.heights.ravel(), self.hand, self.tip)))
        y[: len(x)] = x
        return len(x)

    def learn(self, x_nm: float, y_nm: float, height_nm: float) -> None:
        """A measured height; the cells beside it that know nothing yet take it too."""
        self.tip = np.array([x_nm, y_nm, height_nm])
        place = (self.tip[:2] - self.corner_nm) / self.side_nm * (self.cells - 1)
        if not (np.isfinite(self.tip).all() and (place >= 0).all() and (place <= self.cells - 1).all()):
            return
        i, j = (int(value) for value in np.rint(place))
        beside = self.heights[max(j - 1, 0) : j + 2, max(i - 1, 0) : i + 2]
        beside[np.isnan(beside)] = height_nm
        self.heights[j, i] = height_nm

    def show(self, state: Values) -> None:
        """Takes on a published state, in a process that draws."""
        n = self.cells**2
        if len(state) != n + 6:
            raise HookError(
                f"found a state of {len(state)} values", allowed=f"{n + 6}: the same number of cells"
            )
        self.heights = state[:n].reshape(self.cells, self.cells).copy()
        self.hand, self.tip = state[n : n + 3].copy(), state[n + 3 :].copy()

    def render(self, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """A picture (any name of a camera): height x width x 3 bytes. Red ball: tip; blue: hand; grey: not known yet."""
        known = ~np.isnan(self.heights)
        low = float(np.nanmin(self.heights)) if known.any() else 0.0
        span = max(float(np.nanmax(self.heights)) - low, 1e-9) if known.any() else 1.0
        level = np.where(known, (self.heights - low) / span, 0.0)
        columns = np.linspace(0, self.cells - 1, width).astype(np.int64)
        base = height * (0.92 - 0.55 * np.linspace(0, 1, self.cells))
        tops = np.rint(base[:, None] - 0.3 * height * level[:, columns]).astype(np.int64)
        horizons = np.clip(np.minimum.accumulate(tops, axis=0), 0, height)
        flat = horizons * width + np.arange(width)
        counts = np.bincount(flat.ravel(), minlength=(height + 1) * width).reshape(-1, width)
        row = self.cells - np.cumsum(counts, axis=0)[:height]
        colours = np.vstack(
            (_coloured(level, known)[:, columns], np.full((1, width, 3), (225, 230, 238), np.uint8))
        )
        picture = colours[row, np.arange(width)]
        for place, colour in ((self.tip, TIP), (self.hand, HAND)):
            self._mark(picture, place, low, span, colour)
        return picture

    def _mark(
        self, picture: NDArray[np.uint8], place: Values, low: float, span: float, colour: tuple[int, int, int]
    ) -> None:
        part = (place[:2] - self.corner_nm) / self.side_nm
        if not (np.isfinite(place).all() and (part >= 0).all() and (part <= 1).all()):
            return
        height, width = picture.shape[:2]
        u = part[0] * (width - 1)
        v = height * (0.92 - 0.55 * part[1]) - 0.3 * height * (place[2] - low) / span
        y, x = np.ogrid[:height, :width]
        away = np.hypot(x - u, y - v)
        picture[away <= MARK_PIXELS + RIM_PIXELS] = RIM
        picture[away <= MARK_PIXELS] = colour


def _coloured(level: Values, known: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Colours by height, with light from the left; grey where nothing is known."""
    light = np.clip(1.0 + 4.0 * np.gradient(level, axis=1), 0.5, 1.3)[..., None]
    colour = np.stack((90 + 150 * level, 60 + 120 * level, 40 + 60 * level), axis=-1) * light
    return np.where(known[..., None], np.clip(colour, 0, 255), 150).astype(np.uint8)
