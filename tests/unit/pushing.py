"""A hand at the browser by a script: it goes to the right from 0.5 s on, into the wall of the demonstration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tcpsbed.console.hooks import Hand

BEGIN_S, END_S = 0.5, 1.5
START, WALL = 0.2, 0.54
"""Where the pointer is before and behind the wall's face, from the middle of the picture to its edge."""


class Pushing(Hand):
    """The pointer moves from `START` to `wall` and stays there."""

    def __init__(self, wall: float = WALL, **params: Any) -> None:
        super().__init__(**params)
        self.wall = wall
        self.console.newest = lambda: (self.right, 0.0, 0.0, 0.0, 0.0)  # type: ignore[method-assign]

    def __call__(self, t_ns: int, index: int, x: Any, other: Any, y: Any) -> int:
        """As of the hand."""
        done = min(max((t_ns / 1e9 - BEGIN_S) / (END_S - BEGIN_S), 0.0), 1.0)
        self.right = START + (self.wall - START) * 0.5 * (1 - math.cos(math.pi * done))
        return super().__call__(t_ns, index, x, other, y)


class Grey:
    """A camera without a robot."""

    def __init__(self, width: int, height: int, **_: Any) -> None:
        self.picture = np.full((height, width, 3), 128, np.uint8)

    def frame(self, t_ns: int, index: int) -> Any:
        """A grey picture."""
        return self.picture
