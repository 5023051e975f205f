"""Round trips of echo commands from the records of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.analysis.records import KINDS, plan_of
from tcpsbed.analysis.stats import Interval, interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpsbed import Run

    Floats = NDArray[np.float64]

ECHO = 1 + KINDS.index("echo")


# [Polachan 2022]
def trips(run: Run, point: str) -> Floats:
    """Round trips of the echoes of a point after the warm-up, in ms, in the order of their return."""
    names = [component["name"] for component in plan_of(run.folder)["components"]]
    component, side = point.rsplit(".", 1)
    number = 2 * names.index(component) + (side == "exit")
    rows = run.records
    rows = rows[(rows["kind"] == ECHO) & (rows["point"] == number)]
    rows = rows[rows["time"] >= run.summary["warmup_s"] * 1e9]
    return np.asarray(rows["value"], dtype=np.float64) / 1e6


def at_points(points: Sequence[str]) -> Callable[[Run], dict[str, Floats]]:
    """What reads the round trips of several points off a run, by point."""
    return lambda run: {point: trips(run, point) for point in points}


def means(found: Mapping[str, Floats]) -> Iterator[Interval]:
    """The mean of each point with its interval."""
    return (interval(values.tolist()) for values in found.values())


def asked(points: Sequence[str]) -> str:
    """The override that asks for echoes of these points."""
    return f"measure.echo.points=[{', '.join(repr(point) for point in points)}]"
