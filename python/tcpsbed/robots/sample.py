"""The sample under a probe: a height map with materials, and the effect of forces. Lengths in nm, forces in nN.

```text
friction    mu (load + adhesion) of the material                    the map is given; material 1 is what is higher than
adhesion    nN, of the material                                     the middle between its 5th and 95th percentile
compliance  nm/nN, of the material
modify      a force above the strength of the material presses it down by (force - strength) x compliance;
            a particle (a cap on top of the map) is pushed along by any force above its hold
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed import inputs
from tcpsbed.errors import DataError, HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LOAD_NN = 5.0
FRICTION = (0.12, 0.35)
ADHESION_NN = (2.0, 6.0)
COMPLIANCE_NM_NN = (0.02, 0.15)
STRENGTH_NN = (60.0, 25.0)
HOLD_NN = 10.0
TIP_NM = 20.0
MAP_BYTES = 1 << 28
"""Largest file of a map: 5,700 x 5,700 heights."""


class Sample:
    """A square height map and one particle on it.

    Parameters
    ----------
    height_nm
        Rows along y, columns along x.
    pixel_nm
        Width of a pixel.
    particle
        x, y and radius of a particle; none without.
    """

    def __init__(
        self, height_nm: Values, pixel_nm: float, particle: tuple[float, float, float] | None = None
    ) -> None:
        self.height_nm = np.array(height_nm, dtype=np.float64)
        self.pixel_nm = pixel_nm
        self.particle = particle
        low, high = np.percentile(self.height_nm, (5, 95))
        self._material = (self.height_nm > (low + high) / 2).astype(np.int64)

    @classmethod
    def read(cls, file: str, pixel_nm: float) -> Sample:
        """A map from a `.npy` file.

        Raises
        ------
        HookError
            If there is no such file, or it holds no map.
        """
        try:
            read = np.load(inputs.regular(Path(file), "a height map", MAP_BYTES), allow_pickle=False)
            if not isinstance(read, np.ndarray):
                raise ValueError("an archive of several arrays")
        except (OSError, ValueError, MemoryError, EOFError, DataError) as error:
            raise HookError(
                f"{file} cannot be read ({error})", allowed="a height map in nm, saved by numpy.save"
            ) from None
        if read.ndim != 2 or min(read.shape) < 4 or not np.isfinite(read).all():
            raise HookError(
                f"{file} holds values of shape {read.shape}", allowed="at least 4 x 4 finite heights in nm"
            )
        side = min(read.shape)
        heights = read[:side, :side].astype(np.float64)
        return cls(heights - heights.min(), pixel_nm)

    @classmethod
    def generated(cls, pixel_nm: float, pixels: int = 256, seed: int = 1) -> Sample:
        """A grating of 25 nm with slow waves and grains, and a particle of 60 nm on it."""
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[0:pixels, 0:pixels] * pixel_nm
        waves = 8.0 * np.sin(x / 310.0) + 6.0 * np.sin(y / 230.0 + rng.uniform(0, 6.28))
        grating = 12.5 * np.tanh(4.0 * np.sin(2 * np.pi * x / 640.0))
        grains = rng.standard_normal((pixels, pixels))
        for axis in (0, 1):
            grains = (np.roll(grains, 1, axis) + 2 * grains + np.roll(grains, -1, axis)) / 4
        heights = waves + grating + 2.0 * grains
        middle = pixels * pixel_nm / 2
        return cls(heights - heights.min(), pixel_nm, particle=(middle + 200.0, middle, 60.0))

    @property
    def side_nm(self) -> float:
        """Length of a side."""
        return float((len(self.height_nm) - 1) * self.pixel_nm)

    def inside(self, x: float, y: float) -> Values:
        """The nearest place on the map."""
        return np.clip(np.array([x, y], dtype=np.float64), 0.0, self.side_nm)

    def height(self, x: float, y: float) -> float:
        """Height at a place, bilinear between pixels, with the particle."""
        (i, u), (j, v) = self._cell(x), self._cell(y)
        patch = self.height_nm[j : j + 2, i : i + 2]
        ground = float(np.array([1 - v, v]) @ patch @ np.array([1 - u, u]))
        return ground + self._cap(x, y)

    def slopes(self, x: float, y: float) -> tuple[float, float]:
        """Slope of the surface along x and along y, over two pixels."""
        d = self.pixel_nm
        return (
            (self.height(x + d, y) - self.height(x - d, y)) / (2 * d),
            (self.height(x, y + d) - self.height(x, y - d)) / (2 * d),
        )

    def channels(self, x: float, y: float) -> tuple[float, float, float, float]:
        """Height, friction, adhesion and compliance at a place."""
        material = self._at(x, y)
        adhesion = ADHESION_NN[material]
        friction = FRICTION[material] * (LOAD_NN + adhesion)
        return self.height(x, y), friction, adhesion, COMPLIANCE_NM_NN[material]

    def modify(self, start: Values, end: Values, force_nn: float) -> None:
        """The tip goes straight from one place to another under a force."""
        steps = max(int(np.hypot(*(end - start)) / self.pixel_nm), 1)
        places = [start + k / steps * (end - start) for k in range(steps + 1)]
        floors = [self._floor(at, force_nn) for at in places]
        for at, floor in zip(places, floors, strict=True):
            if not self._push(at, end - start, force_nn) and floor is not None:
                self._press(at, floor)

    def _floor(self, at: Values, force_nn: float) -> float | None:
        """How deep a force presses the ground at a place; None where the material withstands it."""
        material = self._at(*at)
        deeper = (force_nn - STRENGTH_NN[material]) * COMPLIANCE_NM_NN[material]
        return self.height(*at) - self._cap(*at) - deeper if deeper > 0 else None

    def _push(self, at: Values, way: Values, force_nn: float) -> bool:
        """Moves the particle out of the tip's path; true if it was in it."""
        length = float(np.hypot(*way))
        if self.particle is None or length == 0.0:
            return False
        x, y, radius = self.particle
        if np.hypot(x - at[0], y - at[1]) >= radius:
            return False
        if force_nn > HOLD_NN:
            x, y = self.inside(*(at + radius * way / length))
            self.particle = (float(x), float(y), radius)
        return True

    def _press(self, at: Values, floor_nm: float) -> None:
        """Lowers what is under the tip to the floor."""
        (i, _), (j, _) = self._cell(at[0]), self._cell(at[1])
        reach, size = int(TIP_NM / self.pixel_nm) + 1, len(self.height_nm)
        rows = slice(max(j - reach, 0), min(j + reach + 2, size))
        columns = slice(max(i - reach, 0), min(i + reach + 2, size))
        y, x = np.meshgrid(np.arange(size)[rows], np.arange(size)[columns], indexing="ij")
        under = np.hypot(x * self.pixel_nm - at[0], y * self.pixel_nm - at[1]) <= TIP_NM
        part = self.height_nm[rows, columns]
        part[under] = np.minimum(part[under], floor_nm)

    def _cap(self, x: float, y: float) -> float:
        if self.particle is None:
            return 0.0
        px, py, radius = self.particle
        inside = radius**2 - (x - px) ** 2 - (y - py) ** 2
        return float(np.sqrt(inside)) if inside > 0 else 0.0

    def _at(self, x: float, y: float) -> int:
        (i, u), (j, v) = self._cell(x), self._cell(y)
        return int(self._material[j + (v > 0.5), i + (u > 0.5)])

    def _cell(self, along: float) -> tuple[int, float]:
        place = min(max(along / self.pixel_nm, 0.0), len(self.height_nm) - 1.000001)
        whole = int(place)
        return whole, place - whole
