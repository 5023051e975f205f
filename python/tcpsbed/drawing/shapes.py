"""Shapes of figures, from plain numbers; each draws into axes inside `styled`."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.drawing.style import DASHES, MARKERS, PAGE, Style
from tcpsbed.palette import matplotlib

Values = Sequence[float | None]
MOST_TICKS, NEAREST = 8, 0.08
"""So few values of x that lie no nearer, as a share of the axis, have a tick each."""


@dataclass(frozen=True)
class Course:
    """A curve over time with its shade between `low` and `high`; values of empty bins are `None`."""

    t_s: Sequence[float]
    middle: Values
    low: Values
    high: Values


@dataclass(frozen=True)
class Summary:
    """Quantiles of a distribution: what a box shows."""

    low: float
    quarter: float
    median: float
    three_quarters: float
    high: float


def bands(
    axes: Any,
    x: Sequence[float],
    lines: Mapping[str, tuple[Values, Values]],
    *,
    joined: bool,
    style: Style = PAGE,
) -> None:
    """Means by line, each with its half-widths as a band; points with whiskers where x is not `joined`."""
    aside = [0.0] * len(lines)
    if not joined:
        aside = [0.12 * (number - (len(lines) - 1) / 2) for number in range(len(lines))]
    for number, (name, (means, halves)) in enumerate(lines.items()):
        color, marker = style.color(number), MARKERS[number % len(MARKERS)]
        y, half = _gaps(means), [0.0 if one is None else one for one in halves]
        if not joined:
            at = [place + aside[number] for place in x]
            axes.errorbar(at, y, half, color=color, marker=marker, linestyle="none", capsize=2, label=name)
            continue
        axes.plot(x, y, color=color, marker=marker, linestyle=DASHES[number % len(DASHES)], label=name)
        low, high = ([one + sign * h for one, h in zip(y, half, strict=True)] for sign in (-1, 1))
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    if joined and len(x) <= MOST_TICKS and min(map(operator.sub, x[1:], x)) > NEAREST * (x[-1] - x[0]):
        axes.set_xticks(x, [f"{value:g}" for value in x])


def cumulative(
    axes: Any,
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    beyond: bool = False,
    style: Style = PAGE,
) -> None:
    """Shares of samples up to a value, or on a logarithmic axis `beyond` it, by line."""
    for number, (name, (values, shares)) in enumerate(curves.items()):
        y = [0.0, *shares]
        if beyond:
            y = [math.nan if share >= 1 else 1 - share for share in y]
        dashes = DASHES[number % len(DASHES)]
        axes.plot([values[0], *values], y, color=style.color(number), linestyle=dashes, label=name)
    if beyond:
        axes.set_yscale("log")
        axes.set_ylim(top=1.0)
    else:
        axes.set_ylim(0, 1.02)


def courses(axes: Any, curves: Mapping[str, Course], *, style: Style = PAGE) -> None:
    """Curves over time."""
    for number, (name, one) in enumerate(curves.items()):
        color = style.color(number)
        axes.plot(one.t_s, _gaps(one.middle), color=color, label=name)
        if one.low is not one.high:
            axes.fill_between(one.t_s, _gaps(one.low), _gaps(one.high), color=color, alpha=0.2, linewidth=0)
    axes.margins(x=0)


def boxes(axes: Any, found: Mapping[str, Summary], *, style: Style = PAGE) -> None:
    """A box a name: quartiles and median, whiskers to `low` and `high`."""
    stats = [
        {
            "label": name, "whislo": one.low, "q1": one.quarter, "med": one.median,
            "q3": one.three_quarters, "whishi": one.high,
        }
        for name, one in found.items()
    ]  # fmt: skip
    drawn = axes.bxp(stats, showfliers=False, patch_artist=True, widths=0.5)
    for number, box in enumerate(drawn["boxes"]):
        box.set(facecolor=(style.color(number), 0.35), edgecolor=style.ink, linewidth=style.line_pt)
    for line in (*drawn["whiskers"], *drawn["caps"], *drawn["medians"]):
        line.set(color=style.ink, linewidth=style.line_pt)
    names_below(axes, list(found), first=1)


def violins(axes: Any, found: Mapping[str, Sequence[float]], *, style: Style = PAGE) -> None:
    """Densities by name, with their quartiles and medians."""
    drawn = axes.violinplot(list(found.values()), widths=0.8, showextrema=False, points=200)
    for number, body in enumerate(drawn["bodies"]):
        body.set(facecolor=style.color(number), edgecolor=style.ink, alpha=0.5, linewidth=0.5 * style.line_pt)
    for place, values in enumerate(found.values(), 1):
        low, middle, high = (quantile(values, p) for p in (0.25, 0.5, 0.75))
        axes.vlines(place, low, high, color=style.ink, linewidth=2.5 * style.line_pt)
        axes.plot([place], [middle], "o", color=style.paper, markeredgecolor=style.ink)
    names_below(axes, list(found), first=1)


def quantile(values: Sequence[float], p: float) -> float:
    """Of ordered or unordered values, interpolated between neighbours."""
    ordered = sorted(values)
    place = p * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def heat(
    axes: Any,
    columns: Sequence[str],
    rows: Sequence[str],
    table: Sequence[Values],
    label: str,
    cells: Sequence[Sequence[str]],
    *,
    style: Style = PAGE,
) -> None:
    """A cell for every pair of names with its number in it, and a scale."""
    known = [_gaps(row) for row in table]
    places = range(len(columns)), range(len(rows))
    drawn = axes.pcolormesh(*places, known, cmap=style.heat, shading="nearest", edgecolors=style.paper)
    axes.grid(visible=False)
    names_below(axes, list(columns))
    axes.set_yticks(range(len(rows)), rows)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(drawn, ax=axes, label=label)
    bar.outline.set_visible(False)
    # A raster image would be a file of its own beside a PGF.
    bar.solids.set(rasterized=False, edgecolor="face")
    for y, row in enumerate(known):
        for x, value in enumerate(row):
            if not math.isnan(value):
                light = _lightness(drawn.cmap(drawn.norm(value))) > 0.5
                axes.text(
                    x, y, cells[y][x], ha="center", va="center", color="black" if light else "white",
                    fontsize=0.85 * style.letters_pt,
                )  # fmt: skip


def _lightness(color: Sequence[float]) -> float:
    """Relative luminance of a colour, from 0 to 1."""
    return 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]


def waterfall(
    axes: Any, parts: Sequence[tuple[str, str, float]], *, total: bool = False, style: Style = PAGE
) -> None:
    """One bar after the other: name, `component` or `link`, and length; with `total` a bar of all, and numbers."""
    colors = {"component": style.component, "link": style.link, "": style.soft}
    whole = math.fsum(length for _, _, length in parts)
    bars = [*parts, *([("total", "", whole)] if total else [])]
    digits = max(0, 3 - math.floor(math.log10(whole))) if whole > 0 else 0
    start = 0.0
    for row, (_, what, length) in enumerate(bars):
        start = start if what else 0.0
        label = what if what not in [what for _, what, _ in bars[:row]] else ""
        axes.barh(row, length, left=start, color=colors[what], height=0.7, label=label)
        start += length
        if row + 1 < len(bars):
            axes.vlines(start, row - 0.35, row + 1.35, color=style.soft, linewidth=0.5 * style.line_pt)
        if total:
            axes.annotate(
                f"{length:.{digits}f}", (start, row), (3, 0), textcoords="offset points", va="center"
            )
    if total:
        axes.set_xlim(0, 1.15 * whole)
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()


def stacked(
    axes: Any, names: Sequence[str], parts: Mapping[str, Sequence[float]], *, style: Style = PAGE
) -> None:
    """A bar a name, made of parts."""
    starts = [0.0] * len(names)
    for number, (part, lengths) in enumerate(parts.items()):
        axes.barh(
            range(len(names)), lengths, left=starts, color=style.color(number), height=0.65, label=part,
            edgecolor=style.paper, linewidth=0.5 * style.line_pt,
        )  # fmt: skip
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()


def names_below(axes: Any, names: Sequence[str], first: int = 0) -> None:
    """Names at the ticks of the x axis; slanted where they are long."""
    axes.set_xticks(range(first, first + len(names)), names)
    axes.set_xlim(first - 0.5, first + len(names) - 0.5)
    axes.grid(visible=False, axis="x")
    room = axes.figure.get_figwidth() * 72 / max(len(names), 1)
    letters = max((len(line) for name in names for line in name.split("\n")), default=0)
    if letters * matplotlib().rcParams["font.size"] * 0.5 > room:
        axes.tick_params(axis="x", labelrotation=30)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def logarithmic(axes: Any, letter: str) -> None:
    """Makes the axis `x` or `y` logarithmic, with plain numbers at its ticks.

    Raises
    ------
    ValueError
        If a line has a value of 0 or below there.
    """
    for line in axes.lines:
        if any(value <= 0 for value in getattr(line, f"get_{letter}data")()):
            raise ValueError(letter)
    getattr(axes, f"set_{letter}scale")("log")
    axis, ticker = getattr(axes, f"{letter}axis"), matplotlib("ticker")
    low, high = getattr(axes, f"get_{letter}lim")()
    if low < high < 1000 * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _gaps(values: Iterable[float | None]) -> list[float]:
    """Bins without a value interrupt the line."""
    return [math.nan if value is None else value for value in values]
