"""Figures of searches: the medians along a factor with the interval, the map with the curve, the course of an optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.drawing import STYLES, Style, canvas, drawable, keyed, saved, styled
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from tcpsbed.campaign.search.boundary import Boundary
    from tcpsbed.campaign.search.contour import BoundaryCurve
    from tcpsbed.campaign.search.optimum import Optimum
    from tcpsbed.campaign.search.votes import Index

NO, YES, LINE = 0, 1, 2
"""Numbers of colours: where a condition does not hold, where it does, and the boundary."""


@contextmanager
def _figure(caption: str, file: Path, name: str, force: bool) -> Iterator[tuple[Any, Style]]:
    """Axes of a figure in a style, which is saved at the end."""
    if name not in STYLES:
        raise ConfigError(f'found "{name}"', key="style", allowed=close_match(name, STYLES))
    drawable(file, force=force)
    style = STYLES[name]
    with styled(style):
        figure = canvas(style)
        axes = figure.subplots()
        axes.set_title(caption, loc="left", wrap=True)
        yield axes, style
        keyed(figure, axes)
        saved(figure, file, dpi=style.dpi)


def along(found: Boundary, file: Path, style: str, *, force: bool) -> Path:
    """Draws the metric along the factor, and the boundary with its interval."""
    with _figure(found.sentences[0], file, style, force) as (axes, look):
        _along(axes, found, look)
    return file


def _along(axes: Any, found: Boundary, style: Style) -> None:
    unit, numbers = found.condition.metric.column.metric.unit, found.factor.numbers
    known = [(numbers[place], votes) for place, votes in sorted(found.line.known.items())]
    x, middles = [x for x, _ in known], [votes.middle for _, votes in known]
    axes.plot(x, middles, color=style.soft, marker="o", label="median over seeds")
    for x_, votes in known:
        for holds, number in ((False, NO), (True, YES)):
            values = [v for v, h in zip(votes.values, votes.holding, strict=True) if h is holds]
            axes.plot([x_] * len(values), values, "_", color=style.color(number), alpha=0.6)
    axes.axhline(found.condition.limit, color=style.soft, linestyle="--", label=found.condition.text)
    if found.interval is not None:
        color = style.color(LINE)
        axes.axvspan(*found.interval, color=color, alpha=0.25, linewidth=0, label="boundary, 95 % interval")
        axes.axvline(found.value, color=color)
    axes.set_xlabel(found.factor.label)
    axes.set_ylabel(f"{found.condition.metric.path} ({unit})" if unit else found.condition.metric.path)


def curve(found: BoundaryCurve, file: Path, style: str, *, force: bool) -> Path:
    """Draws the points that ran over both factors, and the curve."""
    with _figure(found.sentences[0], file, style, force) as (axes, look):
        _curve(axes, found, look)
    return file


def _curve(axes: Any, found: BoundaryCurve, style: Style) -> None:
    first, second = found.factors
    tested, glanced = found.traced.known, found.traced.glanced.keys() - found.traced.known.keys()
    yes, no = style.color(YES), style.color(NO)
    for answer, color, mark, label in (
        (True, yes, "o", "holds"), (False, no, "o", "does not hold"), (None, style.soft, "s", "undecided"),
    ):  # fmt: skip
        _dots(axes, found, [p for p, votes in tested.items() if votes.answer is answer], color, mark, label)
    for majority, color in ((True, yes), (False, no)):
        points = [p for p in sorted(glanced) if found.traced.glanced[p].majority is majority]
        _dots(axes, found, points, color, "+", "" if majority else "glance")
    for number, ((x0, y0), (x1, y1)) in enumerate(found.segments):
        axes.plot([x0, x1], [y0, y1], color=style.color(LINE), label="" if number else found.condition.text)
    axes.margins(0.02)
    axes.set_xlabel(first.label)
    axes.set_ylabel(second.label)


def _dots(
    axes: Any, found: BoundaryCurve, points: Sequence[Index], color: str, mark: str, label: str
) -> None:
    if points:
        pairs = zip(found.factors, zip(*points, strict=True), strict=True)
        x, y = ([one.numbers[n] for n in of] for one, of in pairs)
        axes.plot(x, y, mark, color=color, markersize=4, label=label)


def course(found: Optimum, file: Path, style: str, *, force: bool) -> Path:
    """Draws the points of an optimum in their order, and the best so far."""
    with _figure(found.sentences[0], file, style, force) as (axes, look):
        numbered = list(enumerate(found.trials, 1))
        for good, number in ((True, NO), (False, YES)):
            some = [(n, one) for n, one in numbered if one.good is good]
            if some:
                label = ("limits kept" if good else "limits broken") if found.limits else "points"
                means, halves = [one.mean.mean for _, one in some], [one.mean.half or 0.0 for _, one in some]
                axes.errorbar(
                    [n for n, _ in some],
                    means,
                    halves,
                    fmt="o",
                    color=look.color(number),
                    capsize=2,
                    label=label,
                )
        kept = [(n, one.mean.mean) for n, one in numbered if one.good]
        if kept:
            best = list(accumulate((mean for _, mean in kept), min if found.minimise else max))
            axes.step([n for n, _ in kept], best, where="post", color=look.color(LINE), label="best so far")
        unit = found.metric.column.metric.unit
        axes.set_xlabel("point")
        axes.set_ylabel(f"{found.metric.path} ({unit})" if unit else found.metric.path)
    return file
