"""Bars drawn as HTML boxes: stacked along a path, one below the other as a waterfall, with an interval as a whisker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcpsbed.views.markup import Html, escaped
from tcpsbed.views.numbers import ms

LABEL_SHARE = 0.09
"""A segment narrower than this share of the axis gets no name inside."""


@dataclass(frozen=True)
class Segment:
    """A stretch of a path: where, how it is painted (`component`, `link` or `plain`), how long in milliseconds."""

    name: str
    paint: str
    length_ms: float


def kind(what: str) -> str:
    """How a stretch of a path is painted: as a component, as a link, or plainly."""
    return what if what in ("component", "link") else "plain"


def nice_step(span: float, ticks: int = 5) -> float:
    """The step of 1, 2 or 5 times a power of ten that gives about this many ticks over the span."""
    if span <= 0:
        return 1.0
    raw = span / ticks
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def axis_top(largest: float) -> float:
    """The end of an axis that starts at 0 and holds the largest value."""
    return max(largest, 1e-9) * 1.02


def stacked(segments: Sequence[Segment], top: float) -> Html:
    """One bar of adjoining segments on an axis from 0 to `top` milliseconds."""
    pieces = []
    for number, part in enumerate(part for part in segments if part.length_ms > 0):
        share = max(part.length_ms, 0.0) / top
        label = escaped(part.name) if share >= LABEL_SHARE else ""
        shade = "odd" if number % 2 else "even"
        tip = escaped(f"{part.name}: {ms(part.length_ms)} ms")
        pieces.append(
            f'<i class="{part.paint} {shade}" style="width:{100 * share:.3f}%" title="{tip}">{label}</i>'
        )
    return Html(f'<div class="stack">{"".join(pieces)}</div>')


def span(start: float, length: float, top: float, paint: str) -> Html:
    """One step of a waterfall: a box from `start` of the given length."""
    if length <= 0:
        return Html("")
    left, width = 100 * max(start, 0.0) / top, 100 * max(length, 0.0) / top
    return Html(
        f'<div class="lane"><i class="{paint}" style="left:{left:.3f}%;width:{width:.3f}%"></i></div>'
    )


def with_interval(value: float, half: float | None, top: float, paint: str) -> Html:
    """A bar from 0 with its confidence interval as a whisker."""
    whisker = ""
    if half:
        left = 100 * max(value - half, 0.0) / top
        right = 100 * min(value + half, top) / top
        whisker = f'<b style="left:{left:.3f}%;width:{right - left:.3f}%"></b>'
    return Html(
        f'<div class="lane"><i class="{paint}" style="left:0;width:{100 * max(value, 0.0) / top:.3f}%"></i>{whisker}</div>'
    )


def share_bar(share: float | None) -> Html:
    """A bar for a share of one."""
    return Html("") if share is None else with_interval(min(share, 1.0), None, 1.0, "plain")


def axis(top: float, unit: str = "ms") -> Html:
    """Ticks from 0 to `top` with their numbers."""
    step = nice_step(top)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    marks = []
    for number in range(int(top / step + 1e-9) + 1):
        value = number * step
        text = f"{value:.{decimals}f}" + (f" {unit}" if number == 0 else "")
        marks.append(f'<s style="left:{100 * value / top:.3f}%">{text}</s>')
    return Html(f'<div class="axis">{"".join(marks)}</div>')
