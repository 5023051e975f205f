"""Descriptions of the page's line charts; `charts.js` draws them with uPlot."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcpsbed.palette import PALETTE
from tcpsbed.views.markup import Html, escaped
from tcpsbed.views.numbers import finite

SIGNIFICANT = 6
"""Digits kept of a plotted number."""


@dataclass(frozen=True)
class Line:
    """A line of a chart: label, values at the chart's x, colour; `fill_to` paints down to another line.

    It goes on over gaps of at most `bridge` on the x axis: bins in which no sample was due.
    """

    label: str
    values: Sequence[Any]
    color: str
    dashed: bool = False
    thin: bool = False
    fill_to: str | None = None
    bridge: float = 0.0


@dataclass(frozen=True)
class Chart:
    """A line chart over time, or over another quantity; with `categories` x counts through names.

    With `steps` a value holds up to the next x.
    """

    title: str
    x: Sequence[Any]
    x_label: str
    y_label: str
    lines: Sequence[Line]
    over_time: bool = True
    steps: bool = False
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
            "steps": self.steps,
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
                    "bridge": line.bridge,
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
) -> tuple[list[float], dict[str, list[float]]]:
    """Cumulative curves on one common x that begins below all of them, as steps: each has a value at every x.

    A value at x is the share of values up to x: 0 before the first, 1 from the last on.
    """
    points = {
        name: sorted(
            (x, y)
            for x, y in zip(map(finite, xs), map(finite, ys), strict=True)
            if x is not None and y is not None
        )
        for name, (xs, ys) in curves.items()
    }
    measured = sorted({x for found in points.values() for x, _ in found})
    if not measured:
        return [], {}
    before = min(0.0, measured[0] - (measured[-1] - measured[0] or 1.0) * 0.05)
    common = [before, *measured]
    return common, {name: [_share_up_to(x, found) for x in common] for name, found in points.items()}


def _share_up_to(x: float, found: Sequence[tuple[float, float]]) -> float:
    place = bisect_right(found, (x, math.inf))
    return found[place - 1][1] if place else 0.0


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
    common, shares = joined(curves)
    beyond: dict[str, list[float | None]] = {
        name: [1 - p if p < 1 else None for p in ps] for name, ps in shares.items()
    }
    charts = []
    drawings: tuple[tuple[str, str, Mapping[str, Sequence[Any]], bool], ...] = (
        (title, "share at most this", shares, False),
        (f"{title}: the tail", "share beyond this", beyond, True),
    )
    for heading, axis, lines, logarithmic in drawings:
        drawn = [
            Line(name, ys, paint[name], dashed=number >= len(PALETTE))
            for number, (name, ys) in enumerate(lines.items())
        ]
        charts.append(
            Chart(heading, common, label, axis, drawn, over_time=False, steps=True, logarithmic=logarithmic)
        )
    return charts


def series_of(series: Mapping[str, Any], flow: str, key: str) -> Sequence[Any]:
    """One of a flow's series over time; empty where the run left none."""
    values = series.get("flows", {}).get(flow, {}).get(key, ())
    return values if isinstance(values, Sequence) else ()
