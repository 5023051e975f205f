"""Curves of what hand and robot do, where a run records it (`measure.signals`): their way from the start, and forces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tcpsbed.studio.sinks import values

Numbers = np.ndarray[Any, Any]
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
        self._begun: dict[int, Numbers] = {}

    def read(self, rows: Numbers) -> Iterator[tuple[int, Numbers, Numbers]]:
        """Lines, each with the moments (ns) and values of all its new rows."""
        for point in self.points if self.lines else ():
            t_ns, found = values.all_of_point(rows, point)
            whole = np.isfinite(found).all(axis=1)
            t_ns, found = t_ns[whole], found[whole]
            if not len(found):
                continue
            if point.at is not None and found.shape[1] >= point.at + 3:
                places = found[:, point.at : point.at + 3]
                begun = self._begun.setdefault(point.number, places[0])
                yield self._numbers[point.number, WAY], t_ns, np.linalg.norm(places - begun, axis=1) * 1e3
            if point.force is not None and found.shape[1] >= point.force + 3:
                sizes = np.linalg.norm(found[:, point.force : point.force + 3], axis=1)
                yield self._numbers[point.number, FORCE], t_ns, sizes
