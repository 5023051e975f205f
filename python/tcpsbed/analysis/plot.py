"""Figures of a run; the first one imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis import metrics
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match
from tcpsbed.palette import COMPONENT, LINK, LOST, PALETTE, matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Plot:
    """Figures of one run: `run.plot.delay()`, `.cdf()`, `.path()`, `.queue()`.

    Every method takes an `ax` to draw into (absent: a new figure) and returns it. A figure carries the run's name, world,
    seed and version, and says if the run was disturbed.

    Parameters
    ----------
    summary, series
        Contents of `summary.json` and `series.json`.
    """

    def __init__(self, summary: Mapping[str, Any], series: Mapping[str, Any]) -> None:
        self._summary, self._series = summary, series

    def delay(self, flows: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Mean delay over time, the largest above it as a shade; events as lines."""
        ax = self._axes(ax, "time (s)", _axis("flows", "delay_ms"))
        times = self._series["t_s"]
        for color, name in _painted(self._chosen(flows)):
            curve = self._series["flows"][name]
            at, (mean, largest) = _bridged(
                times, (curve["delay_mean_ms"], curve["delay_max_ms"]), curve.get("bridge_s", 0.0)
            )
            ax.plot(at, mean, color=color, label=name)
            ax.fill_between(at, mean, largest, color=color, alpha=0.2, linewidth=0)
        self._mark(ax)
        ax.legend()
        return ax

    def cdf(self, flows: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Share of samples up to a delay."""
        ax = self._axes(ax, _axis("flows", "delay_ms"), "share of samples")
        for color, name in _painted(self._chosen(flows)):
            curve = self._series["cdf"].get(name)
            if curve:
                ms = curve["delay_ms"]
                ax.step([ms[0], *ms], [0.0, *curve["p"]], where="post", color=color, label=name)
        ax.set_ylim(0, 1.02)
        ax.legend()
        return ax

    def path(self, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Where the time went, component by component and link by link, as one bar after the other."""
        name = self._chosen([flow] if flow else None)[0]
        ax = self._axes(ax, "time since sent (ms)", "")
        start = 0.0
        parts = self._summary["path"][name]
        for row, part in enumerate(parts):
            mean = part["latency_ms"]["mean"]
            ax.barh(row, mean, left=start, color=COMPONENT if part["what"] == "component" else LINK)
            start += mean
        ax.set_yticks(range(len(parts)), [part["name"] for part in parts])
        ax.invert_yaxis()
        return ax

    def queue(self, links: Iterable[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Bytes waiting at links over time."""
        queues = self._series["queues"]
        if not queues:
            raise DataError("found no sampled queue", key="measure.queues", allowed='a span such as "10 ms"')
        ax = self._axes(ax, "time (s)", _axis("queues", "bytes"))
        for color, name in _painted(list(links) if links else list(queues)):
            ax.plot(self._series["t_s"], _gaps(queues[name]["bytes"]), color=color, label=name)
        self._mark(ax)
        ax.legend()
        return ax

    def _chosen(self, flows: Iterable[str] | None) -> list[str]:
        known = list(self._summary["flows"])
        chosen = list(flows) if flows is not None else known
        for name in chosen:
            if name not in known:
                raise DataError(f'found "{name}"', key="flow", allowed=close_match(name, known))
        return chosen

    def _axes(self, ax: Axes | None, x: str, y: str) -> Axes:
        if ax is None:
            ax = matplotlib("pyplot").subplots(figsize=(8, 4), layout="constrained")[1]
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.set_title(self._caption(), fontsize=8, loc="left")
        ax.grid(alpha=0.3)
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
        for window in self._series.get("disturbed", ()):
            ax.axvspan(window["from_s"], window["to_s"], color=LOST, alpha=0.16)


def _axis(section: str, key: str) -> str:
    return metrics.section(section).part(key).axis


def _painted(names: list[str]) -> Iterable[tuple[str, str]]:
    return ((PALETTE[i % len(PALETTE)], name) for i, name in enumerate(names))


def _gaps(values: Iterable[float | None]) -> list[float]:
    """Bins without a value interrupt the line."""
    return [math.nan if value is None else value for value in values]


def _bridged(
    times: Sequence[float], curves: Sequence[Sequence[float | None]], bridge_s: float
) -> tuple[list[float], list[list[float]]]:
    """Curves without their empty bins, and one interruption where these last longer than `bridge_s`."""
    kept: list[int] = []
    for i, value in enumerate(curves[0]):
        if value is None:
            continue
        if kept and times[i] - times[kept[-1]] > bridge_s:
            kept.append(i - 1)
        kept.append(i)
    return [times[i] for i in kept], [_gaps([curve[i] for i in kept]) for curve in curves]
