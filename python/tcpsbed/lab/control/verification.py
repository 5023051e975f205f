"""Points of a stability map beside runs of the scenario with packets: both answers, each with its interval.

```text
boundary of the map, a loss each ─► its cell ─┬─ the map's runs, from difference equations  ─► mean overshoot ± , good
                                              └─ seeds 1, 2, .. of the scenario, with packets ─► the same
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.lab.control import experiment
from tcpsbed.lab.control.lanes import worst
from tcpsbed.lab.control.setting import loops_of
from tcpsbed.lab.control.verdict import Reliability, wilson
from tcpsbed.lab.control.verdict import reliability as share_of
from tcpsbed.views import text as tables
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE
from tcpsbed.views.tables import Table

if TYPE_CHECKING:
    from tcpsbed.lab.control.stability import Grid, StabilityMap
    from tcpsbed.scenarios import Scenario

AGREE = "agree: the 95 % intervals of the map and of the testbed overlap"
SAME = 1e-6
"""Overshoots in percent that are nearer to each other than this are equal."""


@dataclass(frozen=True)
class Answer:
    """The mean overshoot in percent of the step with its 95 % interval, none if h overflows; and the share of good runs."""

    overshoot: Interval | None
    good: Reliability


@dataclass(frozen=True)
class Point:
    """A cell of the map, and what the map and the testbed say of it.

    Attributes
    ----------
    rtt_ms, loss
        The cell.
    mapped, tested : Answer
        Of the map and of runs with packets.
    """

    rtt_ms: float
    loss: float
    mapped: Answer
    tested: Answer

    @property
    def agrees(self) -> bool:
        """Whether the 95 % intervals of both overlap: of the mean overshoot and of the share of good runs."""
        mine, theirs = self.mapped, self.tested
        near = mine.good.low <= theirs.good.high and theirs.good.low <= mine.good.high
        if mine.overshoot is None or theirs.overshoot is None:
            return near and mine.overshoot is theirs.overshoot
        room = (mine.overshoot.half or 0.0) + (theirs.overshoot.half or 0.0) + SAME
        return near and abs(mine.overshoot.mean - theirs.overshoot.mean) <= room

    @property
    def verdict(self) -> str:
        """Whether runs with packets confirm what the map says of the cell, as the end of a sentence."""
        if self.agrees:
            return f"runs with packets at {self.rtt_ms:.1f} ms agree"
        found = f"overshoot {_shown(self.tested)} where the map has {_shown(self.mapped)}"
        return f"runs with packets at {self.rtt_ms:.1f} ms CONTRADICT the map: {found}"

    @property
    def figures(self) -> dict[str, Any]:
        """Its numbers."""

        def told(answer: Answer) -> dict[str, Any]:
            found, good = answer.overshoot, answer.good
            return {
                "overshoot": None if found is None else found.mean,
                "ci95": None if found is None else found.half,
                "good": good.good,
                "runs": good.runs,
            }

        both = {"map": told(self.mapped), "testbed": told(self.tested)}
        return {"rtt_ms": self.rtt_ms, "loss": self.loss, **both, "agrees": self.agrees}


def verified(
    scenario: Scenario,
    link: str,
    found: StabilityMap,
    reliability: float | None,
    points: int,
    runs: int,
    progress: Callable[[float], object],
    executor: Executor | None = None,
) -> list[Point]:
    """Runs a scenario at cells at the boundary of its map.

    Parameters
    ----------
    scenario
        The map's, with one loop. Its link gets the delay, loss and jitter of the cell; everything else stays.
    link
        The link to change.
    found
        The map.
    reliability
        As of the map.
    points
        How many cells, at losses at equal distances.
    runs
        Runs with packets of each.
    progress
        Called with the share done.
    executor
        As of `experiment.every`.
    """
    grid = found.grid
    jumps = _jumps(scenario, found)
    places = _places(found, reliability, points)
    cells = [replace(grid, rtt_ms=[grid.rtt_ms[column]], loss=[grid.loss[row]]) for row, column in places]
    tried = [scenario.changed(_sets(link, cell) | sets) for cell in cells for sets in jumps]
    asked = experiment.Asked(runs, phases=grid.phases)
    tested = [one for [one] in experiment.every(tried, asked, progress, executor)]
    every = []
    for number, cell in enumerate(cells):
        [mapped] = found.bench.run(cell.cells(), keep=True)
        axes = tested[number * len(jumps) : (number + 1) * len(jumps)]
        responses = [worst(of) for of in zip(*(one.responses for one in axes), strict=True)]
        overshoots = [math.nan if run["overshoot"] is None else run["overshoot"] for run in mapped["runs"]]
        theirs = [response.overshoot for response in responses]
        every.append(
            Point(
                cell.rtt_ms[0],
                cell.loss[0],
                Answer(_mean(overshoots), wilson(mapped["good"], found.bench.runs)),
                Answer(_mean(theirs), share_of(responses, found.bench.limits)),
            )
        )
    return every


def _jumps(scenario: Scenario, found: StabilityMap) -> list[dict[str, Any]]:
    """What makes each axis of the map jump, one after the other; of one axis nothing."""
    if not found.bench.several:
        return [{}]
    [name] = [loop.name for loop in loops_of(scenario)]
    return [{f"components.{name}.robot.params.axis": axis + 1} for axis in found.bench.axes]


def _mean(overshoots: Sequence[float]) -> Interval | None:
    return interval(overshoots) if all(math.isfinite(one) for one in overshoots) else None


def _places(found: StabilityMap, reliability: float | None, points: int) -> list[tuple[int, int]]:
    """Rows and columns of the cells: at each loss the last one before the boundary, or else the last or first of all."""
    grid = found.grid
    last = len(grid.loss) - 1
    rows = sorted({round(number * last / max(1, points - 1)) for number in range(points)})

    def column(row: int) -> int:
        longest = found.longest_rtt_ms(row, reliability)
        if math.isnan(longest):
            return 0
        return max(number for number, rtt in enumerate(grid.rtt_ms) if rtt <= longest)

    return [(row, column(row)) for row in rows]


def _sets(link: str, cell: Grid) -> dict[str, Any]:
    """The cell as a scenario has it."""
    [one] = cell.cells()
    sets: dict[str, Any] = {f"links.{link}.delay": f"{round(one.there_ms * 1e6)} ns", f"links.{link}.loss": 0}
    if one.loss is not None:
        shares = {key: f"{100 * value!r} %" for key, value in one.loss.items() if key != "kind"}
        sets[f"links.{link}.loss"] = (
            shares["p"] if one.loss["kind"] == "random" else {"kind": one.loss["kind"], **shares}
        )
    if one.jitter is not None:
        sets[f"links.{link}.jitter"] = {"kind": one.jitter["kind"], "mean": f"{one.jitter['mean_ns']} ns"}
    return sets


def text(points: Sequence[Point]) -> str:
    """Both answers side by side, as a table for the terminal."""
    found = laid(points)
    return f"{tables.table(found.columns, found.rows)}\n{AGREE}"


def laid(points: Sequence[Point]) -> Table:
    """Both answers side by side."""
    columns = (
        Column("RTT", "ms"),
        Column("loss", "%"),
        Column("map: overshoot", "%"),
        words("good"),
        Column("testbed: overshoot", "%"),
        words("good"),
        words("agree"),
    )
    rows = (
        (
            f"{point.rtt_ms:.1f}",
            f"{100 * point.loss:.3g}",
            *_cells(point.mapped),
            *_cells(point.tested),
            "yes" if point.agrees else "NO",
        )
        for point in points
    )
    return Table("Compared with packets", columns, tuple(rows))


def _cells(answer: Answer) -> list[str]:
    found, good = answer.overshoot, answer.good
    half = "" if found is None or not found.half else f" ± {found.half:.1f}"
    return [NONE if found is None else f"{found.mean:.1f}{half}", f"{good.good} of {good.runs}"]


def _shown(answer: Answer) -> str:
    """The answer in words."""
    overshoot, good = _cells(answer)
    return f"{'without bound' if answer.overshoot is None else f'{overshoot} %'} ({good} good)"
