"""Curves over time, and where the time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics.split import PARTS
from tcpsbed.analysis.plot import course, places
from tcpsbed.analysis.stats import Interval
from tcpsbed.drawing import Style, shapes
from tcpsbed.drawing.shapes import Course
from tcpsbed.errors import DataError
from tcpsbed.figures.lines import at_most, means_of, names_of, one_unit, titled
from tcpsbed.figures.material import Material
from tcpsbed.figures.picture import Cell, Picture
from tcpsbed.figures.quantities import Quantity, axis, scale
from tcpsbed.nearest import close_match
from tcpsbed.views.numbers import finite
from tcpsbed.views.tables import field

MEAN = field(metrics.section("path").parts, "latency_ms.mean")
BY = ("place", "cause")
SMALLEST = 1e-3
"""Share of the longest delay below which a place or cause is left out."""


def over_time(material: Material, y: Sequence[Quantity]) -> Picture:
    """A curve for each run and metric, with a shade up to the largest value of a bin."""
    one_unit(y)
    if material.swept:
        amiss = "found a sweep, whose cells keep no curves over time"
        raise DataError(amiss, key="plot", allowed="folders of single runs (tcpsbed run --out)")
    kept, called = material.kept, names_of(material, y)
    found: dict[str, Course] = {}
    for run, folder in kept.items():
        for one in y:
            words = [run] * (len(kept) > 1) + [called[one.path]] * (len(y) > 1)
            try:
                curve = course(folder.series, one.section, one.name, one.field.metric.key)
            except KeyError:
                allowed = "haptic.delay_ms, .rate_bps, .age_ms or .lost of a flow, queues.l1.forward.bytes of a link"
                raise DataError(
                    f"{folder.path} keeps no curve of {one.path}", key="--y", allowed=allowed
                ) from None
            found[", ".join(words) or called[one.path]] = curve
    at_most(found)
    every = [value for one in found.values() for value in one.high]
    factor, unit = scale(y[0].unit, every)
    drawn = {
        name: Course(one.t_s, *([v and v * factor for v in of] for of in (one.middle, one.low, one.high)))
        for name, one in found.items()
    }

    def draw(axes: Any, style: Style) -> None:
        shapes.courses(axes, drawn, style=style)

    label = axis(titled(material, y).partition(", ")[0], unit)
    return Picture(f"{label} over time", "time (s)", label, draw, first=True)


def waterfall(material: Material, flows: Sequence[str], by: Sequence[str]) -> Picture:
    """Where the time of a flow goes: of one run place by place or cause by cause, of several their causes as bars."""
    known = list(material.summary["flows"])
    flow = flows[0] if flows else known[0]
    if len(flows) > 1:
        raise DataError(f"found {len(flows)} flows", key="--y", allowed="one flow, such as haptic")
    if flow not in known:
        raise DataError(f'found "{flow}", which is not a flow', key="--y", allowed=close_match(flow, known))
    varied = [one for one in material.factors if len(one.values) > 1]
    way = by[0] if by else ("cause" if varied else "place")
    if way not in BY or len(by) > 1:
        raise DataError(f'found "{", ".join(by)}"', key="--by", allowed=f"{' or '.join(BY)} for a waterfall")
    if way == "place" and varied:
        allowed = "--by cause, or one run: --where KEY=VALUE"
        raise DataError("found several runs, whose places are not stacked", key="--by", allowed=allowed)
    found, notes = _parts(material, flow, way)
    names = [", ".join(map(material.called, key)) for key in next(iter(found.values()))]
    label, title = "time since sent (ms)", f"Where the time of {flow} goes"
    if varied:
        rows = {part: [mean.mean for mean in of.values()] for part, of in found.items()}
        longest = max(sum(column) for column in zip(*rows.values(), strict=True))
        rows = {part: of for part, of in rows.items() if max(of) >= SMALLEST * longest}

        def draw(axes: Any, style: Style) -> None:
            shapes.stacked(axes, names, rows, style=style)

        head = ("", *(axis(part, "ms") for part in rows))
        cells = [[found[part][key] for part in rows] for key in next(iter(found.values()))]
        table: tuple[tuple[Cell, ...], ...] = tuple(
            (name, *of) for name, of in zip(names, cells, strict=True)
        )
        return Picture(title, axis(f"{flow} delay", "ms"), "", draw, head, table, "", tuple(notes))
    means = {part: next(iter(of.values())) for part, of in found.items()}
    total = sum(mean.mean for mean in means.values())
    means = {part: mean for part, mean in means.items() if mean.mean >= SMALLEST * total}
    kinds = {name: what for name, what, _ in places(material.summary["path"][flow])}
    bars = [
        (part, kinds.get(part, "component" if part in ("waiting", "working") else "link"), mean.mean)
        for part, mean in means.items()
    ]

    def draw_one(axes: Any, style: Style) -> None:
        shapes.waterfall(axes, bars, total=True, style=style)

    lines = tuple((part, mean, f"{mean.mean / total:.1%}") for part, mean in means.items())
    table = (*lines, ("total", Interval(1, total, None), "100.0%"))
    return Picture(title, label, "", draw_one, (way, axis("mean", "ms"), "share"), table, "", tuple(notes))


def _parts(material: Material, flow: str, way: str) -> tuple[dict[str, dict[Any, Interval]], list[str]]:
    """Mean times over seeds, by part and by values of the factors."""

    def times(summary: Mapping[str, Any]) -> dict[str, float]:
        if way == "place":
            return {name: mean for name, _, mean in places((summary.get("path") or {}).get(flow) or ())}
        split = (summary.get("split") or {}).get(flow) or {}
        return {part["part"]: part["mean_ms"] for part in split.get("parts", ())}

    every = [times(one.summary) for one in material.runs]
    if not all(every):
        allowed = "another flow, or a run in which its samples arrived"
        raise DataError(f"found no times of {flow} by {way} in a run", key="--y", allowed=allowed)
    known = list(dict.fromkeys(part for one in every for part in one))
    if way == "cause":
        known.sort(key=PARTS.index)
    varied = [one for one in material.factors if len(one.values) > 1] or list(material.factors)[:1]
    found: dict[str, dict[Any, Interval]] = {}
    for part in known:
        groups = material.groups(varied, lambda summary, part=part: finite(times(summary).get(part, 0.0)))  # type: ignore[misc]
        found[part], _ = means_of(groups, varied, part, MEAN)
    return found, []
