"""Curves of what hand and robot do, where a run records it (`measure.signals`): their way from the start, and forces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tcpsbed.studio.sinks import values

WAY, FORCE = "way", "force"


class Motion:
    """Lines of charts, from rows of values as they come.

    Parameters
    ----------
    plan : dict
        The compiled scenario.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.points = values.points(plan)
        kinds = [
            (point, kind)
            for point in self.points
            for kind, first in ((WAY, point.at), (FORCE, point.force))
            if first is not None
        ]
        self.lines = [{"kind": kind, "name": point.name} for point, kind in kinds]
        """What each line shows: `way` (mm from the first place) or `force` (N), and of which point."""
        self._numbers = {(point.number, kind): number for number, (point, kind) in enumerate(kinds)}
        self._begun: dict[int, np.ndarray[Any, Any]] = {}

    def read(self, rows: np.ndarray[Any, Any]) -> Iterator[tuple[int, int, float]]:
        """Line, moment (ns) and value of some of the new rows."""
        for point in self.points if self.lines else ():
            for t_ns, found in values.of_point(rows, point):
                if point.at is not None and len(found) >= point.at + 3:
                    here = np.array(found[point.at : point.at + 3])
                    way = np.linalg.norm(here - self._begun.setdefault(point.number, here))
                    yield self._numbers[point.number, WAY], t_ns, float(way) * 1e3
                if point.force is not None and len(found) >= point.force + 3:
                    size = np.linalg.norm(found[point.force : point.force + 3])
                    yield self._numbers[point.number, FORCE], t_ns, float(size)
