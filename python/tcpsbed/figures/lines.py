"""Lines with 95 % bands, and heat maps: a metric over the factors of a sweep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign.grid import Axis
from tcpsbed.campaign.results import Group
from tcpsbed.drawing import Style, shapes
from tcpsbed.errors import DataError
from tcpsbed.figures.material import RUN, Material, numbers
from tcpsbed.figures.picture import Picture
from tcpsbed.figures.quantities import Quantity, axis, scale
from tcpsbed.views.tables import Field

Key = tuple[str, ...]
MOST_LINES = 8
"""Colours of the palette, so that no two lines are drawn alike."""


def lines(material: Material, y: Sequence[Quantity], x: str | None, by: Sequence[str]) -> Picture:
    """A line for each metric and each value of the other factors, over one factor."""
    same_unit(y)
    over, others = _axes(material, x, by)
    if len(over.values) < 2:
        single = f"found one value of {over.key}, {over.values[0]}; lines need two or more"
        more = "a sweep over two values or more" if material.swept else "two runs or more"
        remedy = f"{_others(material, over)}{more}, or --kind {'box' if material.swept else 'cdf, box'} or waterfall"
        raise DataError(single, key="--x", allowed=remedy)
    known, order = numbers(over.values), _ordered(over)
    places: list[float] = sorted(known[0]) if known else list(map(float, range(len(order))))
    varied = [len(factor.values) > 1 for factor in others]
    found: dict[str, list[Interval | None]] = {}
    notes: list[str] = []
    called = names_of(material, y)
    notes += _left_out(material, over, others)
    for one in y:
        means, said = _means(material, (over, *others), one)
        notes += said
        for values in itertools.product(*(factor.values for factor in others)):
            if not any((value, *values) in means for value in order):
                continue  # of zipped factors not every combination was run
            words = [called[one.path]] * (len(y) > 1)
            words += [
                material.called(value) for value, several in zip(values, varied, strict=True) if several
            ]
            found[", ".join(words) or called[one.path]] = [means.get((value, *values)) for value in order]
    at_most(found)
    factor, unit = scale(y[0].unit, [mean.mean for line in found.values() for mean in line if mean])
    table = {name: [_scaled(mean, factor) for mean in line] for name, line in found.items()}
    drawn = {
        name: ([m.mean if m else None for m in line], [m.half if m else None for m in line])
        for name, line in table.items()
    }

    def draw(axes: Any, style: Style) -> None:
        shapes.bands(axes, places, drawn, joined=known is not None, style=style)
        if known is None:
            shapes.names_below(axes, [material.called(value) for value in order])

    title = axis(titled(material, y), unit)
    label = "" if over.key == RUN else axis(material.called(over.key), known[1] if known else "")
    head = (label or RUN, *(table if len(table) > 1 else [title]))
    cells = (
        [f"{place:g}" for place in places] if known else list(map(material.called, order)),
        *table.values(),
    )
    legend = ", ".join(material.called(one.key) for one in others if len(one.values) > 1)
    rows = tuple(zip(*cells, strict=True))
    return Picture(f"{title} over {label or 'runs'}", label, title, draw, head, rows, legend, tuple(notes))


def heat(material: Material, y: Sequence[Quantity], x: str | None, by: Sequence[str]) -> Picture:
    """A cell for every pair of values of two factors."""
    if len(y) > 1:
        raise DataError(f"found {len(y)} metrics for a heat map", key="--y", allowed="one metric")
    varied = [one for one in material.factors if len(one.values) > 1]
    if len(varied) < 2:
        found = f"found {len(varied)} factor with several values; a heat map needs two"
        raise DataError(found, key="--kind", allowed="a sweep with two --over, or --kind lines")
    over, others = _axes(material, x, by[:1])
    varied = [one for one in others if len(one.values) > 1]
    if len(varied) != 1:
        keys = ", ".join(one.key for one in varied) or over.key
        raise DataError(
            f"found {len(varied)} other factors ({keys})", key="--by",
            allowed="one factor beside --x; fix the others by --where KEY=VALUE",
        )  # fmt: skip
    [up], one = varied, y[0]
    means, notes = _means(material, (over, up), one)
    (columns, across, x_label), (rows, upward, y_label) = (_ticks(material, factor) for factor in (over, up))
    factor, unit = scale(one.unit, [mean.mean for mean in means.values() if mean])
    table = [[_scaled(means.get((column, row)), factor) for column in columns] for row in rows]
    title = axis(material.names.get(one.path, one.title), unit)
    largest = max(abs(cell.mean) for line in table for cell in line if cell)
    digits = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
    shown = [[f"{cell.mean:.{digits}f}" if cell else "" for cell in line] for line in table]

    def draw(axes: Any, style: Style) -> None:
        values = [[cell.mean if cell else None for cell in line] for line in table]
        shapes.heat(axes, across, upward, values, title, shown, style=style)

    head = (f"{y_label} / {x_label}", *across)
    cells = tuple((name, *line) for name, line in zip(upward, table, strict=True))
    told = f"{title} over {x_label} and {y_label}"
    return Picture(told, x_label, y_label, draw, head, cells, "", tuple(notes))


def _ticks(material: Material, factor: Axis) -> tuple[list[str], list[str], str]:
    """Values of a factor in their order, their names at an axis, and its label: it has the unit of numbers."""
    order, known = _ordered(factor), numbers(factor.values)
    named = any(value in material.names for value in order)
    if known is None or named:
        return order, list(map(material.called, order)), material.called(factor.key)
    return order, [f"{value:g}" for value in sorted(known[0])], axis(material.called(factor.key), known[1])


def same_unit(y: Sequence[Quantity]) -> None:
    """Refuses metrics of several units, and distributions, which are no numbers."""
    for one in y:
        if one.spread:
            raise DataError(
                f"found {one.path}, a distribution, where a number is drawn", key="--y",
                allowed=f"one number of it, such as {one.path}.p99",
            )  # fmt: skip
    one_unit(y)


def one_unit(y: Sequence[Quantity]) -> None:
    """Refuses metrics of several units on one axis."""
    other = next((one for one in y if one.unit != y[0].unit), None)
    if other is not None:
        found = f"found {y[0].path} in {y[0].unit or 'numbers'} and {other.path} in {other.unit or 'numbers'}"
        raise DataError(
            found, key="--y", allowed="metrics of one unit; lines also one metric of each unit, as panels"
        )


def at_most(found: Mapping[str, Any]) -> None:
    """Refuses more lines than there are colours."""
    if len(found) > MOST_LINES:
        allowed = f"at most {MOST_LINES}: fewer --y, or values chosen by --where KEY=VALUE,VALUE"
        raise DataError(f"found {len(found)} lines for one figure", key="plot", allowed=allowed)


def titled(material: Material, y: Sequence[Quantity]) -> str:
    """What an axis shows: one metric, or what several have in common."""
    if len(y) == 1:
        return material.names.get(y[0].path, y[0].title)
    rests = {_rest(one) for one in y}
    return rests.pop() if len(rests) == 1 else "value"


def names_of(material: Material, y: Sequence[Quantity]) -> dict[str, str]:
    """Names of metrics in a legend, by path: of what they are where they are the same of several flows or links."""
    same = len({_rest(one) for one in y}) == 1
    return {one.path: material.names.get(one.path, one.name if same and one.name else one.title) for one in y}


def _rest(one: Quantity) -> str:
    return one.title.removeprefix(one.name).strip()


def means_of(
    groups: Mapping[Key, Group], by: Sequence[Axis], path: str, column: Field
) -> tuple[dict[Key, Interval], list[str]]:
    """Means with intervals, and a note where some seeds have no value.

    Raises
    ------
    DataError
        If a combination of values has none at all.
    """
    notes = []
    for key, group in groups.items():
        absent = sum(row["value"] is None for row in group.by_seed.values())
        where = ", ".join(f"{one.key} = {value}" for one, value in zip(by, key, strict=True))
        if absent == len(group.by_seed):
            allowed = f"another --y, or values chosen by --where {by[0].key}=VALUE,VALUE without it"
            raise DataError(f"{path} has no value at {where}", key="--y", allowed=allowed)
        if absent:
            notes.append(
                f"{path} has no value in {absent} of {len(group.by_seed)} seeds at {where}; the others are drawn"
            )
    found = {key: mean for key, group in groups.items() if (mean := group.mean(column, "value")) is not None}
    return found, notes


def _means(material: Material, by: Sequence[Axis], y: Quantity) -> tuple[dict[Key, Interval], list[str]]:
    return means_of(material.groups(by, y.number), by, y.path, y.field)


def _axes(material: Material, x: str | None, by: Sequence[str]) -> tuple[Axis, list[Axis]]:
    """The factor of the x axis, and the others.

    Raises
    ------
    DataError
        If another factor has several values and is not named by `by`, where something is.
    """
    named = [material.factor(one, "--by") for one in by]
    free = [one for one in material.factors if one not in named]
    varied = [one for one in free if len(one.values) > 1]
    over = material.factor(x, "--x") if x else next(iter(varied or free or named))
    if over in named:
        raise DataError(f'found "{over.key}" twice', key="--by", allowed="another factor than that of --x")
    chosen = [over, *named]
    for one in free:
        if one is over or (len(one.values) > 1 and _follows(material, one, chosen)):
            continue
        if named and len(one.values) > 1:
            allowed = f"--by {one.key}, too, or one value of it: --where {one.key}=VALUE"
            raise DataError(f"found several values of {one.key}", key="--by", allowed=allowed)
        chosen.append(one)
    return over, chosen[1:]


def _follows(material: Material, other: Axis, chosen: Sequence[Axis]) -> bool:
    """Whether each combination of values of the chosen factors has one value of another: it was zipped with them."""
    place, met = material.factors.index(other), dict[Key, str]()
    chosen_at = [material.factors.index(one) for one in chosen]
    return all(
        met.setdefault(tuple(one.values[at] for at in chosen_at), one.values[place]) == one.values[place]
        for one in material.runs
    )


def _left_out(material: Material, over: Axis, others: Sequence[Axis]) -> list[str]:
    """Of each factor that varies and is not drawn by itself: which of those that are it was zipped with."""
    shown = [one for one in (*others, over) if len(one.values) > 1]
    notes = []
    for one in material.factors:
        if one in (over, *others) or _follows(material, one, []):
            continue
        alone = [with_it.key for with_it in shown if _follows(material, one, [with_it])]
        notes.append(f"{one.key} changes with {' and '.join(alone[:1] or [each.key for each in shown])}")
    return notes


def _others(material: Material, over: Axis) -> str:
    varied = [one.key for one in material.factors if one is not over and len(one.values) > 1]
    return f"--x {varied[0]}, or " if varied else ""


def _ordered(factor: Axis) -> list[str]:
    known = numbers(factor.values)
    if known is None:
        return list(factor.values)
    return [value for _, value in sorted(zip(known[0], factor.values, strict=True))]


def _scaled(mean: Interval | None, factor: float) -> Interval | None:
    if mean is None:
        return None
    return Interval(mean.n, mean.mean * factor, None if mean.half is None else mean.half * factor)
