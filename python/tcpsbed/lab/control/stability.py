"""The stability map of a loop: its step responses over a grid of round trips and losses.

```text
loss │ 30      ·         for each loss the longest round trip up to which the mean overshoot
     │   20  ·    40     (or the share of good runs) keeps its limit
     │10  ·
     └──────────── RTT
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpsbed.lab.control.batch import Bench, Cell, bursty
from tcpsbed.lab.control.loci import margins
from tcpsbed.lab.control.theory import LoopModel, Margins

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIGURES = ("rise_ms", "overshoot", "undershoot", "settling_ms")
FEW = 10
"""Of fewer round trips a sentence names those between which the limit lies, not the one that is interpolated."""

MOST_TOLD = 9
"""Losses of a map that are all told in sentences; of more it is five."""


@dataclass(frozen=True)
class Grid:
    """Round trips in ms and losses as shares, both rising, and what else a cell has; a linear controller replaces gains."""

    rtt_ms: Sequence[float]
    loss: Sequence[float]
    period_ms: float
    kp: float
    ki_per_ms: float
    burst: float = 1.0
    jitter_ms: float = 0.0
    phases: bool = True
    controller: dict[str, Any] | None = None

    def cells(self) -> list[Cell]:
        """All cells, loss by loss."""
        jitter = {"kind": "exponential", "mean_ns": round(self.jitter_ms * 1e6)}
        return [
            Cell(
                self.period_ms,
                rtt / 2,
                rtt / 2,
                self.kp,
                self.ki_per_ms,
                loss=bursty(loss, self.burst),
                jitter=jitter if self.jitter_ms > 0 else None,
                phases=self.phases,
                controller=self.controller,
            )
            for loss in self.loss
            for rtt in self.rtt_ms
        ]


@dataclass(frozen=True)
class StabilityMap:
    """A computed map.

    Attributes
    ----------
    grid, bench : Grid, Bench
        What was computed.
    mean : dict
        Mean of each figure, shape (losses, round trips); not a number where no run has one.
    good : numpy.ndarray
        Share of good runs, same shape.
    """

    grid: Grid
    bench: Bench
    mean: dict[str, NDArray[np.float64]]
    good: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        import numpy as np

        if not isinstance(other, StabilityMap):
            return NotImplemented
        mine, theirs = ({**one.mean, "good": one.good} for one in (self, other))
        return (
            (self.grid, self.bench) == (other.grid, other.bench)
            and mine.keys() == theirs.keys()
            and all(np.array_equal(mine[key], theirs[key], equal_nan=True) for key in mine)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def told(self) -> list[int]:
        """The losses that are told, by their place in the grid: all of them, or five of many."""
        last = len(self.grid.loss) - 1
        if last < MOST_TOLD:
            return list(range(last + 1))
        return sorted({round(share * last) for share in (0, 0.25, 0.5, 0.75, 1)})

    def longest_rtt_ms(self, row: int, reliability: float | None = None) -> float:
        """Up to which round trip a loss is borne.

        Parameters
        ----------
        row
            The loss, by its place in the grid.
        reliability
            The share of runs that must be good; absent: the mean overshoot must keep its limit, and some run must rise.

        Returns
        -------
        float
            The last round trip before the first one that is too long, interpolated where the mean crosses the limit;
            not a number if the shortest is too long already. It is as exact as the grid is fine.
        """
        first = self._first_bad(row, reliability)
        if first is None:
            return math.inf
        if first == 0:
            return math.nan
        rtt, overshoot, limit = self.grid.rtt_ms, self.mean["overshoot"][row], self.bench.limits.overshoot
        if reliability is not None:
            return float(rtt[first - 1])
        low, high = float(overshoot[first - 1]), float(overshoot[first])
        share = (limit - low) / (high - low) if math.isfinite(high) and high > low else 0.0
        return float(rtt[first - 1] + share * (rtt[first] - rtt[first - 1]))

    def _first_bad(self, row: int, reliability: float | None) -> int | None:
        """The first column whose round trip is too long at a loss; none if there is none."""
        import numpy as np

        # A loop that never gets there does not overshoot either.
        kept = (self.mean["overshoot"][row] <= self.bench.limits.overshoot) & ~np.isnan(
            self.mean["rise_ms"][row]
        )
        bad = self.good[row] < reliability if reliability is not None else ~kept
        return int(bad.argmax()) if bad.any() else None

    def _too_short(self, row: int, reliability: float | None) -> int | None:
        """The first column that is bad because no run lasts until h has risen; none if overshoot ends the row."""
        first = self._first_bad(row, reliability)
        if first is None or not self.mean["overshoot"][row][first] <= self.bench.limits.overshoot:
            return None
        return first if math.isnan(self.mean["rise_ms"][row][first]) else None

    def margins(self, rtt_ms: float) -> Margins:
        """Margins of the loop at a round trip, without loss and jitter: the least, where the axis that jumps matters."""
        grid, step = self.grid, self.bench.step
        model = LoopModel(
            grid.kp, grid.ki_per_ms, grid.period_ms, rtt_ms, step.divisor, step.plant, grid.controller
        )
        jumps = self.bench.axes if step.divisor != 1 else self.bench.axes[:1]
        found = [margins(replace(model, axis=axis)) for axis in jumps]
        return min(found, key=lambda one: (math.inf if math.isnan(one.delay_ms) else one.delay_ms, one.gain))

    def sentence(self, row: int, reliability: float | None = None) -> str:
        """What this loss means for the application, in words."""
        longest, limit = self.longest_rtt_ms(row, reliability), self.bench.limits
        what = (
            f"a mean overshoot up to {limit.overshoot:g} %"
            if reliability is None
            else f"{100 * reliability:g} % of runs with {limit}"
        )
        what += f" of {self.bench.jumps}" if self.bench.jumps else ""
        loss = f"{100 * self.grid.loss[row]:.3g} % loss"
        column = self._too_short(row, reliability)
        short, why = (False, "") if column is None else self._never_rises(row, column)
        if column == 0 and short:
            return f"at {loss} {why}"
        why = f"; from there on {why}" if column else f": {why}" if why else ""
        if math.isnan(longest):
            least = self.grid.rtt_ms[0]
            return f"for {what} this application does not tolerate an RTT of {least:g} ms at {loss}{why}"
        if math.isinf(longest):
            return (
                f"for {what} this application tolerates every RTT up to {self.grid.rtt_ms[-1]:g} ms at {loss}"
            )
        rtt, first = self.grid.rtt_ms, self._first_bad(row, reliability)
        upto = f"up to {longest:.1f} ms at {loss}"
        if len(rtt) < FEW and first:
            upto = (
                f"up to a limit between {rtt[first - 1]:g} and {rtt[first]:g} ms at {loss} (use more cells)"
            )
        return f"for {what} this application tolerates an RTT {upto}{why}"

    def _never_rises(self, row: int, column: int) -> tuple[bool, str]:
        """Whether runs of a cell in which none reaches 90 % of the step are only too short, and what to do about it."""
        from tcpsbed.lab.control.length import remedy

        rtt = self.grid.rtt_ms[column]
        [cell] = replace(self.grid, rtt_ms=[rtt], loss=[self.grid.loss[row]]).cells()
        what = f"no run reaches 90 % of the step within {self.bench.duration_ms:g} ms at an RTT of {rtt:g} ms"
        short, why = remedy(self.bench, cell)
        return short, f"{what}: {why}" if short else f"{what}, {why}"


def compute(
    grid: Grid,
    bench: Bench,
    progress: Callable[[float], object] | None = None,
    executor: Executor | None = None,
) -> StabilityMap:
    """Computes a map with the batch engine, all cores of this machine or an executor."""
    import numpy as np

    found = bench.run(grid.cells(), progress=progress, executor=executor)
    shape = (len(grid.loss), len(grid.rtt_ms))

    def table(of: Callable[[dict[str, Any]], float | None]) -> NDArray[np.float64]:
        return np.array([math.nan if of(cell) is None else of(cell) for cell in found], float).reshape(shape)

    mean = {name: table(lambda cell, name=name: cell[name]["mean"]) for name in FIGURES}  # type: ignore[misc]
    return StabilityMap(grid, bench, mean, table(lambda cell: cell["good"] / bench.runs))
