"""Values of samples and robots among new rows (`measure.signals`), and which of them are places of the hand and the tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpsbed.analysis import signals
from tcpsbed.analysis.records import HELD

MOST_AT_ONCE = 5
"""Of the rows of values that come together, about 20 times a second, so many are passed on, evenly spaced."""
SENSES = {"arm": 3, "tcpsbed.robots.arm": 5, "tcpsbed.robots.bench": 5, "tcpsbed.robots.pottery": 3}
"""Number of the first of the tool's x, y, z (m) in what a robot senses. All of these sense a force, x, y, z (N), first."""


@dataclass(frozen=True)
class Point:
    """A point whose values are recorded.

    Attributes
    ----------
    number, name
        As rows and `measure.signals` have it.
    at
        Number of the first of x, y, z (m) among its values; `None` if they are no place.
    force
        Number of the first of a force, x, y, z (N); `None` if there is none.
    flow
        Number of the flow whose values these are; `None`: of all that pass.
    """

    number: int
    name: str
    at: int | None
    force: int | None
    flow: int | None = None


def points(plan: dict[str, Any]) -> list[Point]:
    """The points whose values a run records."""
    poses = _poses(plan)
    found = []
    for number in plan["signals"]:
        if number & HELD:
            component = plan["components"][number & ~HELD]
            at = SENSES.get(component["robot"]["run"]["name"]) if component["robot"] else None
            found.append(Point(number, f"{component['name']}.sense", at, None if at is None else 0))
        else:
            end = "exit" if number % 2 else "entry"
            name = f"{plan['components'][number // 2]['name']}.{end}"
            found.append(Point(number, name, 0 if number in poses else None, None, poses.get(number)))
    return found


def _poses(plan: dict[str, Any]) -> dict[int, int]:
    """Points at which commands begin with x, y, z (m), each with the number of their flow: behind `kinematics`, if there is
    any, up to `inverse_kinematics`.
    """
    found: dict[int, int] = {}
    for number, flow in enumerate(plan["flows"]):
        steps = [[step["kind"] for step in stop["steps"]] for stop in flow["path"]]
        kinds = [kind for stop in steps for kind in stop]
        if flow["direction"] != "forward" or "inverse_kinematics" not in kinds:
            continue
        is_pose = "kinematics" not in kinds
        for stop, did in zip(flow["path"], steps, strict=True):
            found |= {2 * stop["component"]: number} if is_pose else {}
            is_pose = (is_pose or "kinematics" in did) and "inverse_kinematics" not in did
            found |= {2 * stop["component"] + 1: number} if is_pose else {}
            if "inverse_kinematics" in did:
                break
    return found


def of_point(rows: np.ndarray[Any, Any], point: Point) -> Iterator[tuple[int, list[float]]]:
    """Moments, ns, and values at a point among new rows, at most `MOST_AT_ONCE`, without torn rows of values."""
    t_ns, found = all_of_point(rows, point)
    step = max(-(-len(t_ns) // MOST_AT_ONCE), 1)
    for at_ns, values in zip(t_ns[::step], found[::step], strict=True):
        if np.isfinite(values).all():
            yield int(at_ns), values.tolist()


def all_of_point(
    rows: np.ndarray[Any, Any], point: Point
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All moments, ns, and the values of each at a point among new rows; NaN where a row of values is torn."""
    is_here = (rows["kind"] == signals.SIGNAL) & (rows["point"] == point.number)
    chosen = rows[is_here if point.flow is None else is_here & (rows["flow"] == point.flow)]
    begins = np.flatnonzero(chosen["detail"] == 0)
    if not len(begins):
        return np.zeros(0, np.int64), np.zeros((0, 0))
    found = signals.table(chosen[begins[0] :])
    return found.t_ns, found.values
