"""Distributions: cumulative curves of samples, boxes and violins of samples or of seeds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.analysis.stats import Interval
from tcpsbed.drawing import Style, shapes
from tcpsbed.drawing.shapes import Summary, quantile
from tcpsbed.errors import DataError, counted
from tcpsbed.figures.lines import at_most, means_of, names_of, one_unit, titled
from tcpsbed.figures.material import Material
from tcpsbed.figures.picture import Cell, Picture
from tcpsbed.figures.quantities import FLOWS, Quantity, axis, scale
from tcpsbed.views.numbers import finite

Curve = tuple[list[float], list[float]]
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
ENDS = (0.01, 0.99)
"""Ends of the whiskers of samples; of seeds they are the smallest and the largest value."""
POINTS = 400
"""Of a curve from which a violin is made."""


def cumulative(material: Material, y: Sequence[Quantity], *, beyond: bool) -> Picture:
    """The share of samples up to a value, or beyond it on a logarithmic axis."""
    found = curves(material, y)
    at_most(found)

    def draw(axes: Any, style: Style) -> None:
        shapes.cumulative(axes, found, beyond=beyond, style=style)

    label = axis(titled(material, y), y[0].unit)
    up = "share of samples beyond" if beyond else "share of samples"
    head, rows = _quantiles(found, y[0].unit)
    return Picture(f"Distribution of {label}", label, up, draw, head, rows, first=True)


def boxes(material: Material, y: Sequence[Quantity], *, violin: bool) -> Picture:
    """A box or a violin for each run and metric: of samples, or of one number across seeds."""
    one_unit(y)
    if any(one.spread for one in y):
        found = curves(material, y)
        values = {name: _drawn(curve) for name, curve in found.items()}
        summaries = {name: _summary(curve) for name, curve in found.items()}
        head, rows = _quantiles(found, y[0].unit)
        notes: list[str] = []
        factor, unit = 1.0, y[0].unit
    else:
        values, notes = _seeds(material, y)
        factor, unit = scale(y[0].unit, [one for of in values.values() for one in of])
        values = {name: [one * factor for one in of] for name, of in values.items()}
        summaries = {
            name: Summary(*(quantile(of, p) for p in (0, 0.25, 0.5, 0.75, 1))) for name, of in values.items()
        }
        head = ("", "seeds", "smallest", "lower quartile", "median", "upper quartile", "largest")
        rows = tuple((name, f"{len(values[name])}", *_plain(one)) for name, one in summaries.items())

    def draw(axes: Any, style: Style) -> None:
        if violin:
            shapes.violins(axes, values, style=style)
        else:
            shapes.boxes(axes, summaries, style=style)

    label = axis(titled(material, y), unit)
    first = any(one.spread for one in y)
    return Picture(f"Distribution of {label}", "", label, draw, head, rows, "", tuple(notes), first)


def curves(material: Material, y: Sequence[Quantity]) -> dict[str, Curve]:
    """Values in ascending order with the share of samples up to each, by run and metric.

    Raises
    ------
    DataError
        If a run keeps none.
    """
    one_unit(y)
    if material.swept:
        found = "found a sweep, whose cells keep no distributions"
        remedy = (
            "--y with one number, such as haptic.delay_ms.p99, or folders of single runs (tcpsbed run --out)"
        )
        raise DataError(found, key="plot", allowed=remedy)
    kept, called = material.kept, names_of(material, y)
    drawn: dict[str, Curve] = {}
    for run, folder in kept.items():
        for one in y:
            curve = folder.series.get("cdf", {}).get(one.name, {}) if one.section == FLOWS else {}
            values = curve.get(one.field.metric.key)
            if not one.spread:
                above = one.path.removesuffix(f".{one.field.statistic}")
                allowed = f"{above if values else f'{one.name}.delay_ms'}, the whole distribution"
                raise DataError(f"found {one.path}, one number of each run", key="--y", allowed=allowed)
            if not values or all(finite(value) is None for value in values):
                has = [
                    f"{flow}.{key}"
                    for flow, of in folder.series.get("cdf", {}).items()
                    for key in of
                    if key != "p"
                ]
                found = f"{folder.path} keeps no distribution of {one.path}"
                raise DataError(found, key="--y", allowed=", ".join(has) or "a run in which samples arrived")
            words = [run] * (len(kept) > 1) + [called[one.path]] * (len(y) > 1)
            drawn[", ".join(words) or called[one.path]] = _known(
                values, curve["p"], _samples(folder.summary, one)
            )
    return drawn


def _samples(summary: Mapping[str, Any], one: Quantity) -> int:
    return int((summary["flows"][one.name].get(one.field.metric.key) or {}).get("n") or 0)


def _known(values: Sequence[float], shares: Sequence[float], samples: int) -> Curve:
    """A curve up to what so many samples can say, and its largest value."""
    most = 1 - 1 / samples if samples else 1.0
    known = ((finite(v), p) for v, p in zip(values, shares, strict=True) if p <= most or p >= 1)
    pairs = [(v, p) for v, p in known if v is not None]
    return [v for v, _ in pairs], [p for _, p in pairs]


def _at(curve: Curve, p: float) -> float:
    """The value with this share of samples up to it, between neighbours in proportion."""
    values, shares = curve
    place = min(max(bisect_left(shares, p), 1), len(shares) - 1)
    low, high = shares[place - 1], shares[place]
    share = min(max((p - low) / (high - low), 0.0), 1.0) if high > low else 1.0
    return values[place - 1] + share * (values[place] - values[place - 1])


def _summary(curve: Curve) -> Summary:
    return Summary(*(_at(curve, p) for p in (ENDS[0], 0.25, 0.5, 0.75, ENDS[1])))


def _drawn(curve: Curve) -> list[float]:
    low, high = ENDS
    return [_at(curve, low + (high - low) * (number + 0.5) / POINTS) for number in range(POINTS)]


def _quantiles(found: Mapping[str, Curve], unit: str) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    head = ("", *(axis(f"p{100 * p:g}", unit) for p in SHARES))
    rows = []
    for name, curve in found.items():
        last = max((p for p in curve[1] if p < 1), default=0.0)
        rows.append((name, *(Interval(1, _at(curve, p), None) if p <= last else None for p in SHARES)))
    return head, tuple(rows)


def _plain(one: Summary) -> tuple[Interval, ...]:
    values = (one.low, one.quarter, one.median, one.three_quarters, one.high)
    return tuple(Interval(1, value, None) for value in values)


def _seeds(material: Material, y: Sequence[Quantity]) -> tuple[dict[str, list[float]], list[str]]:
    """One number across seeds, by values of the factors and metric."""
    varied = [one for one in material.factors if len(one.values) > 1] or [material.factors[0]]
    found: dict[str, list[float]] = {}
    notes: list[str] = []
    called = names_of(material, y)
    for one in y:
        groups = material.groups(varied, one.number)
        notes += means_of(groups, varied, one.path, one.field)[1]
        for key, group in groups.items():
            values = [row["value"] for row in group.by_seed.values() if row["value"] is not None]
            words = [material.called(value) for value in key] + [called[one.path]] * (len(y) > 1)
            name = "\n".join(words)
            if len(values) < 2 or group.unchanged:
                same = " that differs" if group.unchanged else ""
                allowed = f"runs with --seeds 10; or {one.path.rpartition('.')[0]}, whose samples are drawn"
                what = (
                    f"found {counted(min(len(values), 1), 'value')}{same} of {one.path} at {', '.join(words)}"
                )
                raise DataError(f"{what}; a box needs several", key="--kind", allowed=allowed)
            found[name] = values
    return found, notes
