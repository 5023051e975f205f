"""Descriptions of line charts over anything but time; `page/plots.js` draws them with uPlot."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcpsbed.views.markup import Html, escaped
from tcpsbed.views.numbers import finite

SIGNIFICANT = 6
"""Digits kept of a plotted number."""


@dataclass(frozen=True)
class Chart:
    """A chart with lines by label; with `categories` x counts through names.

    With `steps` a value holds up to the next x. Whiskers are half-widths, by line.
    """

    title: str
    x: Sequence[Any]
    x_label: str
    y_label: str
    lines: Mapping[str, Sequence[Any]]
    steps: bool = False
    logarithmic: bool = False
    whiskers: Sequence[Sequence[Any]] = ()
    categories: Sequence[str] = ()

    def described(self) -> dict[str, Any]:
        """What the drawing script needs."""
        return {
            "title": self.title,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "steps": self.steps,
            "log": self.logarithmic,
            "categories": list(self.categories),
            "data": [plotted(self.x), *map(plotted, self.lines.values())],
            "whiskers": [plotted(half) for half in self.whiskers],
            "labels": list(self.lines),
        }


@dataclass
class Sheet:
    """The charts of one page, each with its place in it."""

    drawn: list[dict[str, Any]] = field(default_factory=list)

    def place(self, charts: Iterable[Chart]) -> Html:
        """A grid of figures for these charts; empty where no chart has anything to show."""
        figures = []
        for chart in charts:
            if not any(has_values(values) for values in chart.lines.values()):
                continue
            figures.append(
                f'<figure data-chart="{len(self.drawn)}"><figcaption><b>{escaped(chart.title)}</b></figcaption></figure>'
            )
            self.drawn.append(chart.described())
        return Html(f'<div class="charts">{"".join(figures)}</div>' if figures else "")


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
    before = 0.0 if measured[0] > 0 else measured[0] - (measured[-1] - measured[0] or 1.0) * 0.05
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
    common, shares = joined(curves)
    beyond = {name: [1 - p if p < 1 else None for p in ps] for name, ps in shares.items()}
    return [
        Chart(title, common, label, "share at most this", shares, steps=True),
        Chart(f"{title}: the tail", common, label, "share beyond this", beyond, steps=True, logarithmic=True),
    ]
