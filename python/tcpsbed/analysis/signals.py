"""Values of samples and of robots over time, at the points that `measure.signals` names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.records import HELD, KINDS, open_records, plan_of
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNAL = 1 + KINDS.index("signal")


@dataclass(frozen=True)
class Signal:
    """Values at a point over time.

    Attributes
    ----------
    t_ns : numpy.ndarray
        Shape (n,), the run's time in nanoseconds.
    values : numpy.ndarray
        Shape (n, m), a row of m values for each sample or step; what a shorter row lacks is not a number.
    numbers : numpy.ndarray
        Shape (n,), the numbers of the samples within their flow; 0 of a robot's steps.
    """

    t_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    numbers: NDArray[np.uint32]

    @property
    def t_s(self) -> NDArray[np.float64]:
        """The times in seconds."""
        return self.t_ns / 1e9


def read(folder: Path, point: str, flow: str | None = None) -> Signal:
    """The values at a point of a run.

    Parameters
    ----------
    folder
        The run folder.
    point
        Such as `srv.exit`, or `tactile-teleoperator.sense` for what a robot senses.
    flow
        The flow, where several pass the point.

    Raises
    ------
    DataError
        If the run has no such values.
    """
    plan = plan_of(folder)
    return of_rows(open_records(folder / "records.bin"), plan, point, flow)


def of_rows(rows: NDArray[np.void], plan: Mapping[str, Any], point: str, flow: str | None = None) -> Signal:
    """The values at a point, out of a run's rows."""
    wanted = number(plan, point)
    chosen = rows[(rows["kind"] == SIGNAL) & (rows["point"] == wanted)]
    if flow is not None:
        names = [entry["name"] for entry in plan["flows"]]
        if flow not in names:
            raise DataError(f'found "{flow}"', key="flow", allowed=close_match(str(flow), names))
        chosen = chosen[chosen["flow"] == names.index(flow)]
    if len(chosen) == 0:
        raise DataError(
            f'found no values at "{point}"', key="measure.signals", allowed=f'signals = ["{point}"]'
        )
    return table(chosen)


def number(plan: Mapping[str, Any], point: str) -> int:
    """The number of a point of a plan."""
    name, _, kind = str(point).rpartition(".")
    names = [component["name"] for component in plan["components"]]
    if name not in names or kind not in ("entry", "exit", "sense"):
        known = close_match(str(point), [f"{name}.exit" for name in names])
        raise DataError(f'found "{point}"', key="point", allowed=f"a point such as {known}")
    component = names.index(name)
    return {"entry": 2 * component, "exit": 2 * component + 1, "sense": HELD | component}[kind]


def table(rows: NDArray[np.void]) -> Signal:
    """Rows of single values as a table: a value with number 0 begins a row."""
    import numpy as np

    numbers = rows["detail"].astype(np.int64)
    starts = numbers == 0
    where = np.cumsum(starts) - 1
    values = np.full((int(starts.sum()), int(numbers.max()) + 1), np.nan)
    values[where, numbers] = np.ascontiguousarray(rows["value"]).view(np.float64)
    return Signal(rows["time"][starts], values, rows["index"][starts])
