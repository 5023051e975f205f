"""Descriptions of the page's line charts; `charts.js` draws them with uPlot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcpsbed.report.markup import Html, escaped
from tcpsbed.report.numbers import finite

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#8E4B87", "#B07D00", "#3A3A3A", "#56B4E9", "#CC79A7")
"""Colours that stay apart for colour-blind readers and on grey paper, after Okabe and Ito (2008), darkened for lines."""

SIGNIFICANT = 6
"""Digits kept of a plotted number."""


@dataclass(frozen=True)
class Line:
    """A line of a chart: label, values at the chart's x, colour; `dashed` and `filled` (down to the next line)."""

    label: str
    values: Sequence[Any]
    color: str
    dashed: bool = False
    thin: bool = False
    fill_to: str | None = None


@dataclass(frozen=True)
class Chart:
    """A line chart over time, or over another quantity; with `categories` x counts through names."""

    title: str
    x: Sequence[Any]
    x_label: str
    y_label: str
    lines: Sequence[Line]
    over_time: bool = True
    logarithmic: bool = False
    whiskers: Sequence[Sequence[Any]] = ()
    categories: Sequence[str] = ()

    def described(self) -> dict[str, Any]:
        """What the drawing script needs."""
        labels = [line.label for line in self.lines]
        return {
            "title": self.title,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "time": self.over_time,
            "log": self.logarithmic,
            "categories": list(self.categories),
            "data": [plotted(self.x), *(plotted(line.values) for line in self.lines)],
            "whiskers": [plotted(half) for half in self.whiskers],
            "lines": [
                {
                    "label": line.label,
                    "color": line.color,
                    "dashed": line.dashed,
                    "thin": line.thin,
                    "fillTo": None if line.fill_to is None else labels.index(line.fill_to) + 1,
                }
                for line in self.lines
            ],
        }


@dataclass
class Sheet:
    """The charts of one page, each with its place in it."""

    drawn: list[dict[str, Any]] = field(default_factory=list)

    def place(self, charts: Iterable[Chart]) -> Html:
        """A grid of figures for these charts; empty where no chart has anything to show."""
        figures = []
        for chart in charts:
            if not any(has_values(line.values) for line in chart.lines):
                continue
            figures.append(
                f"<figure><figcaption>{escaped(chart.title)}</figcaption>"
                f'<div class="chart" data-chart="{len(self.drawn)}"></div></figure>'
            )
            self.drawn.append(chart.described())
        return Html(f'<div class="grid">{"".join(figures)}</div>' if figures else "")


def has_values(values: Sequence[Any]) -> bool:
    """Whether there is a number among the values."""
    return any(finite(value) is not None for value in values)


def plotted(values: Sequence[Any]) -> list[float | None]:
    """The values as JSON can carry them, rounded to what a plot shows."""
    rounded: list[float | None] = []
    for value in values:
        number = finite(value)
        rounded.append(None if number is None else float(f"{number:.{SIGNIFICANT}g}"))
    return rounded


def colors(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in order."""
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}


def scaled(values: Sequence[Any], factor: float) -> list[float | None]:
    """The values times a factor, gaps kept."""
    numbers = (finite(value) for value in values)
    return [None if number is None else number * factor for number in numbers]


def joined(
    curves: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
) -> tuple[list[float], dict[str, list[float | None]]]:
    """Curves with an x of their own on one common x, with gaps where a curve has no point."""
    points = {
        name: {
            x: y
            for x, y in zip(map(finite, xs), map(finite, ys), strict=True)
            if x is not None and y is not None
        }
        for name, (xs, ys) in curves.items()
    }
    common = sorted({x for found in points.values() for x in found})
    return common, {name: [found.get(x) for x in common] for name, found in points.items()}


def distribution(
    title: str, label: str, curves: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
) -> list[Chart]:
    """Cumulative curves twice: as they are, and the share beyond on a logarithmic scale.

    Parameters
    ----------
    title, label : str
        What is distributed, and the label of its axis with the unit.
    curves : mapping of str to pair of sequences
        Values in ascending order and their cumulative probabilities.
    """
    paint = colors(curves)
    beyond = {name: (xs, [_beyond(p) for p in ps]) for name, (xs, ps) in curves.items()}
    charts = []
    for heading, axis, found, logarithmic in (
        (title, "share at most this", curves, False),
        (f"{title}: the tail", "share beyond this", beyond, True),
    ):
        common, lines = joined(found)
        dashed = {name: number >= len(PALETTE) for number, name in enumerate(lines)}
        drawn = [Line(name, ys, paint[name], dashed=dashed[name]) for name, ys in lines.items()]
        charts.append(Chart(heading, common, label, axis, drawn, over_time=False, logarithmic=logarithmic))
    return charts


def _beyond(p: Any) -> float | None:
    number = finite(p)
    return None if number is None or number >= 1 else 1 - number


def series_of(series: Mapping[str, Any], flow: str, key: str) -> Sequence[Any]:
    """One of a flow's series over time; empty where the run left none."""
    values = series.get("flows", {}).get(flow, {}).get(key, ())
    return values if isinstance(values, Sequence) else ()
