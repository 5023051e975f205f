"""Figures of a run; the first one imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis import metrics
from tcpsbed.clocks import BETWEEN
from tcpsbed.drawing import shapes
from tcpsbed.drawing.shapes import Course
from tcpsbed.drawing.style import PAGE, styled
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match
from tcpsbed.palette import LINK, LOST, matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Plot:
    """Figures of one run: `run.plot.delay()`, `.cdf()`, `.path()`, `.queue()`.

    Every method takes an `ax` to draw into (absent: a new figure) and returns it. A figure carries the run's name, world,
    seed and version, and says if the run was disturbed. Figures for papers, and of several runs: `tcpsbed.plot`.

    Parameters
    ----------
    summary, series
        Contents of `summary.json` and `series.json`.
    """

    def __init__(self, summary: Mapping[str, Any], series: Mapping[str, Any]) -> None:
        self._summary, self._series = summary, series

    def delay(self, flows: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Mean delay over time, the largest above it as a shade; events as lines."""
        with styled():
            ax = self._axes(ax, "time (s)", _axis("flows", "delay_ms"))
            shapes.courses(
                ax, {name: course(self._series, "flows", name, "delay_ms") for name in self._chosen(flows)}
            )
            self._mark(ax)
            return _keyed(ax)

    def cdf(self, flows: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Share of samples up to a delay."""
        with styled():
            ax = self._axes(ax, _axis("flows", "delay_ms"), "share of samples")
            found = {name: self._series["cdf"].get(name) for name in self._chosen(flows)}
            shapes.cumulative(ax, {name: (one["delay_ms"], one["p"]) for name, one in found.items() if one})
            return _keyed(ax)

    def path(self, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Where the time went, component by component and link by link, as one bar after the other."""
        name = self._chosen([flow] if flow else None)[0]
        with styled():
            ax = self._axes(ax, "time since sent (ms)", "")
            shapes.waterfall(ax, places(self._summary["path"][name]))
        return ax

    def queue(self, links: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Bytes waiting at links over time."""
        queues = self._series["queues"]
        if not queues:
            raise DataError("found no sampled queue", key="measure.queues", allowed='a span such as "10 ms"')
        with styled():
            ax = self._axes(ax, "time (s)", _axis("queues", "bytes"))
            chosen = list(links) if links else list(queues)
            shapes.courses(ax, {name: course(self._series, "queues", name, "bytes") for name in chosen})
            self._mark(ax)
            return _keyed(ax)

    def _chosen(self, flows: Iterable[str] | None) -> list[str]:
        known = list(self._summary["flows"])
        chosen = list(flows) if flows is not None else known
        for name in chosen:
            if name not in known:
                raise DataError(f'found "{name}"', key="flow", allowed=close_match(name, known))
        return chosen

    def _axes(self, ax: Axes | None, x: str, y: str) -> Axes:
        if ax is None:
            size = (PAGE.width_in, PAGE.height_in)
            ax = matplotlib("pyplot").subplots(figsize=size, layout="constrained")[1]
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.set_title(self._caption(), fontsize=8, loc="left")
        return ax

    def _caption(self) -> str:
        found = self._summary
        version = found["versions"].get("tcpsbed", "")
        machine = found["machine"].get("cpu", "")
        text = f"{found['name']} · {found['world']} · seed {found['seed']} · tcpsbed {version} · {machine}"
        return text + " · ERROR" * bool(found["errors"]) + " · DISTURBED" * bool(found["disturbances"])

    def _mark(self, ax: Axes) -> None:
        for event in self._series.get("events", ()):
            ax.axvline(event["t_s"], color="0.5", linestyle=":", linewidth=1)
            ax.annotate(
                event["name"],
                (event["t_s"], 0.98),
                xycoords=("data", "axes fraction"),
                fontsize=7,
                va="top",
                rotation=90,
            )
        color = LINK if self._summary["world"] in BETWEEN else LOST  # as on the page (disturbances.py)
        for window in self._series.get("disturbed", ()):
            ax.axvspan(window["from_s"], window["to_s"], color=color, alpha=0.16)


CURVES = {"delay_ms": ("delay_mean_ms", "delay_max_ms"), "bytes": ("bytes", "bytes_max")}
"""Curves of `series.json` by metric, where they are not called the same: the line, and the end of its shade."""


def course(series: Mapping[str, Any], section: str, name: str, metric: str) -> Course:
    """A curve over time without its empty bins; the shade is up to the largest value.

    Raises
    ------
    KeyError
        If a run has no such curve.
    """
    curve = series[section][name]
    middle, most = CURVES.get(metric, (metric, metric))
    upper = curve.get(most) or curve[middle]
    times = series["t_s"]
    bridge_s = curve.get("bridge_s", 1.5 * (times[1] - times[0]) if len(times) > 1 else 0.0)
    t_s, (line, high) = _bridged(times, (curve[middle], upper), bridge_s)
    return Course(t_s, line, high if most == middle else line, high)


def places(parts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    """The parts of a path: name, what it is, and mean time in ms."""
    return [(part["name"].replace(" -> ", " → "), part["what"], part["latency_ms"]["mean"]) for part in parts]


def _axis(section: str, key: str) -> str:
    return metrics.section(section).part(key).axis


def _keyed(ax: Axes) -> Axes:
    """A legend beside the axes, where it covers no data."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    return ax


def _bridged(
    times: Sequence[float], curves: Sequence[Sequence[float | None]], bridge_s: float
) -> tuple[list[float], list[list[float | None]]]:
    """Curves without their empty bins, and one interruption where these last longer than `bridge_s`."""
    kept: list[int] = []
    for i, value in enumerate(curves[0]):
        if value is None:
            continue
        if kept and times[i] - times[kept[-1]] > bridge_s:
            kept.append(i - 1)
        kept.append(i)
    return [times[i] for i in kept], [[curve[i] for i in kept] for curve in curves]
