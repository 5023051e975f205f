"""A run folder, opened: numbers, tables, samples, plots."""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents
from tcpsbed.analysis.latency import LatencyTable
from tcpsbed.analysis.metrics import VERSION
from tcpsbed.analysis.plot import Plot
from tcpsbed.analysis.records import open_records
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class Run:
    """A finished run.

    Parameters
    ----------
    folder : Path or str
        A run folder, as written by `tcpsbed run --out`.

    Examples
    --------
    >>> run = Run("runs/latest")  # doctest: +SKIP
    >>> run.summary["flows"]["haptic"]["delay_ms"]["p99"]  # doctest: +SKIP
    >>> run.latency  # doctest: +SKIP
    >>> run.plot.delay(["kinematic"])  # doctest: +SKIP
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        found = self.summary.get("version")
        if found != VERSION:
            remedy = f"{VERSION}; run the scenario again, or read the folder with the tcpsbed that wrote it"
            raise DataError(
                f"found {found!r}", file=self.folder / "summary.json", key="version", allowed=remedy
            )

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json` (docs/summary.md)."""
        return self._json("summary.json")

    @cached_property
    def series(self) -> dict[str, Any]:
        """The content of `series.json`: curves over time and cumulative curves."""
        return self._json("series.json")

    @property
    def flows(self) -> dict[str, Any]:
        """Results of each flow, by name."""
        found: dict[str, Any] = self.summary["flows"]
        return found

    @property
    def latency(self) -> LatencyTable:
        """Delays of flows, echo points, components and links, in ms."""
        return LatencyTable.of(self.summary)

    @property
    def plot(self) -> Plot:
        """Figures: `delay`, `cdf`, `path`, `queue`."""
        return Plot(self.summary, self.series)

    @property
    def records(self) -> NDArray[np.void]:
        """The rows of `records.bin` as a numpy memory map, with numbers instead of names."""
        return open_records(self.folder / "records.bin")

    @cached_property
    def samples(self) -> pa.Table | NDArray[np.void]:
        """The rows with names, as a pyarrow table (`.to_pandas()`); without pyarrow, the same as `records`."""
        try:
            from tcpsbed.analysis import export
        except ImportError:
            return self.records
        return export.table(self.folder)

    @property
    def disturbed(self) -> bool:
        """Whether there are disturbances or errors to check before trusting the numbers."""
        return bool(self.summary["disturbances"] or self.summary["errors"])

    def __repr__(self) -> str:
        found = self.summary
        head = f"Run {found['name']}: {found['world']}, seed {found['seed']}, {found['ran_s']:g} s, in {self.folder}"
        lines = [head, *(f"  {name}: {_line(flow)}" for name, flow in self.flows.items())]
        lines += [f"  ERROR: {text}" for text in found["errors"]]
        lines += [f"  DISTURBED: {text}" for text in found["disturbances"]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, *rest = repr(self).splitlines()
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in rest)
        return f"<b>{escape(first)}</b><ul>{items}</ul>"

    def _json(self, name: str) -> dict[str, Any]:
        return documents.read(self.folder / name)


def _line(flow: dict[str, Any]) -> str:
    delay = flow["delay_ms"]
    delays = f"delay {delay['mean']:.3f} ms mean, {delay['p99']:.3f} p99" if delay else "nothing delivered"
    return f"{flow['sent']} sent, {flow['loss']:.2%} lost, {delays}"
