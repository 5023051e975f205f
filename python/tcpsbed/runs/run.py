"""A run folder, opened: numbers, tables, samples, plots."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents
from tcpsbed.analysis.latency import LatencyTable
from tcpsbed.analysis.plot import Plot
from tcpsbed.analysis.records import open_records
from tcpsbed.analysis.typed import Flow, Summary
from tcpsbed.views import notebook, numbers
from tcpsbed.views.folder import RunFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.analysis.export import Samples
    from tcpsbed.analysis.signals import Signal


class Run(RunFolder):
    """A finished run.

    Parameters
    ----------
    folder : Path or str
        A run folder, as written by `tcpsbed run --out`.

    Raises
    ------
    DataError
        If there is no run in it, or one that this version cannot read.

    Examples
    --------
    >>> run = Run("runs/latest")  # doctest: +SKIP
    >>> run.flows["haptic"].delay_ms.p99  # doctest: +SKIP
    >>> run.latency  # doctest: +SKIP
    >>> run.samples.to_pandas()  # doctest: +SKIP
    >>> run.plot.delay(["kinematic"])  # doctest: +SKIP
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__(Path(folder))
        _ = self.summary

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.path

    @cached_property
    def summary(self) -> Summary:
        """The content of `summary.json` (docs/summary.md), with its keys as attributes."""
        return Summary(super().summary)

    @cached_property
    def series(self) -> dict[str, Any]:
        """The content of `series.json`: curves over time and cumulative curves."""
        return documents.read(self.path / "series.json")

    @property
    def flows(self) -> dict[str, Flow]:
        """Results of each flow, by name."""
        return self.summary.flows

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
        return open_records(self.path / "records.bin")

    @property
    def samples(self) -> Samples:
        """The rows with names: `.to_arrow()`, `.to_pandas()`, `.to_polars()`."""
        from tcpsbed.analysis.export import Samples

        return Samples(self.path)

    def signal(self, point: str, flow: str | None = None) -> Signal:
        """The values at a point over time.

        Parameters
        ----------
        point
            One of `measure.signals`, such as `ss-com.exit`, or `tactile-teleoperator.sense` for what a robot senses.
        flow
            The flow, where several pass the point.

        Returns
        -------
        Signal
            Its `t_s` in seconds, shape (n,), and `values`, shape (n, m), in the units of the recording or the robot.

        Raises
        ------
        DataError
            If the run has no such values.
        """
        from tcpsbed.analysis import signals

        return signals.read(self.path, point, flow)

    @property
    def disturbed(self) -> bool:
        """Whether there are disturbances or errors to check before trusting the numbers."""
        return bool(self.summary.disturbances or self.summary.errors)

    def __repr__(self) -> str:
        first, *rest = self._said()
        return "\n".join([first, *(f"  {line}" for line in rest)])

    def _repr_html_(self) -> str:
        return notebook.cell(self, self._said())

    def _said(self) -> list[str]:
        found = self.summary
        head = f"Run {found.name}: {found.world}, seed {found.seed}, {found.ran_s:g} s, in {self.path}"
        lines = [head, *(f"{name}: {_line(flow)}" for name, flow in self.flows.items())]
        if failed := found.across_seeds.failed:
            lines.append(f"FAILED: seeds {', '.join(map(str, failed))}")
        lines += [f"ERROR: {text}" for text in found.errors]
        lines += [f"ATTACKED: {text}" for text in found.get("attacked") or ()]
        return lines + [f"DISTURBED: {text}" for text in found.disturbances]


def _line(flow: Flow) -> str:
    delay = flow.delay_ms
    delays = f"delay {delay.mean:.3f} ms mean, {delay.p99:.3f} p99" if delay else "nothing delivered"
    return f"{flow.sent} sent, {numbers.percent(flow.loss)} lost, {delays}"
