"""Sections about echo points: round trips along the path, components and links as differences, ages of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcpsbed.report import bars, charts, markup
from tcpsbed.report.charts import Sheet
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, bar, words
from tcpsbed.report.numbers import count, half_width, ms, nothing, place, statistic

COST = (
    "A sample with an echo command is 20 B longer, and the answer is a datagram of 32 B: latencies differ a little from "
    "those of the same scenario without echoes, or with commands at another period."
)
"""Why `tcpsbed latency` and `tcpsbed run` do not agree to the last digit."""


def below_zero(result: Mapping[str, Any]) -> Iterable[str]:
    """What the negative latencies among the differences of a flow mean."""
    entries = [*(result.get("components") or ()), *(result.get("links") or ())]
    found = [
        (place(entry["name"]), mean, half)
        for entry in entries
        if (mean := statistic(entry.get("latency_ms"))) is not None
        and (half := half_width(_interval(entry)))
        and mean < 0
    ]
    if unknown := [name for name, mean, half in found if -mean <= half]:
        yield f"Negative, but the interval includes 0: {', '.join(unknown)}. These are not different from 0."
    if shifted := [name for name, mean, half in found if -mean > half]:
        yield (
            f"Negative beyond the interval: {', '.join(shifted)}. The two points are asked by different echo commands, and "
            "the queues changed between them. More echoes, or a shorter period, help."
        )


def echo(run: RunFolder, sheet: Sheet) -> Html:
    """Latency of every echo point along the path, and of components and links as differences."""
    found = {flow: result for flow, result in run.summary.get("echo", {}).items() if result}
    parts = "".join(
        _echo_flow(flow, result) + _echo_curves(run, flow, sheet) for flow, result in found.items()
    )
    return markup.section(
        "echo",
        "Echo points",
        parts,
        remark="Round trips of echo commands answered along the path, with 95 % confidence intervals of the mean (whisker); "
        "in batches: the same from 20 batch means, which allows for samples that resemble their neighbours. "
        "Out and home: one-way legs by the clocks of the nodes. Components and links are differences of neighbouring "
        "points; what is half a difference says so. " + COST,
    )


def _echo_curves(run: RunFolder, flow: str, sheet: Sheet) -> str:
    """Distributions of the round trips of a flow's points."""
    found = run.series.get("echo", {}).get(flow) or {}
    curves = {
        point: (trips, found["p"]) for point, trips in found.get("round_trip_ms", {}).items() if any(trips)
    }
    return (
        sheet.place(charts.distribution(f"{flow}: round trips", "round trip (ms)", curves)) if curves else ""
    )


def _echo_flow(flow: str, result: Mapping[str, Any]) -> str:
    points = result.get("points") or []
    shown = _echo_points(points) if points else ""
    entries = [entry for key in ("components", "links", "spans") for entry in result.get(key) or ()]
    differences = [
        [
            _named(entry),
            bars.kind(entry.get("what", "")),
            entry.get("latency_ms"),
            half_width(_interval(entry)),
        ]
        for entry in sorted(entries, key=lambda entry: _place(entry, points))
    ]
    if statistic(actuation := result.get("actuation_ms")) is not None:
        inner = {"latency_ms": actuation}
        differences.append(["actuation (held until done)", "plain", actuation, half_width(_interval(inner))])
    title = markup.heading(f"{flow}: round trip by point") if points else ""
    return title + shown + _differences(flow, differences) + "".join(map(markup.note, below_zero(result)))


def _named(entry: Mapping[str, Any]) -> str:
    return place(entry["name"]) + (" (half the difference)" if entry.get("halved") else "")


def _place(entry: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> int:
    """Where along the path a stretch begins."""
    names = [point["point"] for point in points]
    return names.index(entry["from"]) if entry.get("from") in names else len(names)


def _interval(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return None
    inner = entry.get("latency_ms")
    return entry.get("ci95", inner.get("ci95") if isinstance(inner, Mapping) else None)


def _echo_points(points: Iterable[Mapping[str, Any]]) -> str:
    trips = [(point, point.get("round_trip_ms") or {}) for point in points]
    reach = [(statistic(trip) or 0) + (half_width(trip.get("ci95")) or 0) for _, trip in trips]
    top = bars.axis_top(max(reach, default=0))
    rows = []
    for point, trip in trips:
        mean, half = statistic(trip), half_width(trip.get("ci95"))
        drawn = bars.with_interval(mean, half, top, "plain") if mean is not None else ""
        rows.append(
            [
                point["point"],
                drawn,
                ms(mean),
                ms(half),
                ms(half_width(trip.get("ci95_batch"))),
                *(ms(statistic(trip, key)) for key in ("p50", "p99", "p999")),
                ms(statistic(point.get("forward_ms"))),
                ms(statistic(point.get("return_ms"))),
                count(point.get("n")),
                *(count(point.get(key) or None) for key in ("lost", "superseded")),
            ]
        )
    columns = [
        words("point"),
        bar("along the path"),
        Column("mean", "ms"),
        Column("±", "ms"),
        Column("± in batches", "ms"),
    ]
    columns += [Column(name, "ms") for name in ("p50", "p99", "p99.9")]
    columns += [Column("out", "ms"), Column("home", "ms"), Column("echoes"), Column("lost")]
    columns += [Column("superseded")]
    return markup.table(columns, rows, ["", bars.axis(top), *[""] * 11], css="waterfall")


def _differences(flow: str, entries: list[list[Any]]) -> str:
    if not entries:
        return ""
    top = bars.axis_top(max((statistic(latency) or 0) + (half or 0) for _, _, latency, half in entries))
    rows = [
        [
            name,
            bars.with_interval(statistic(latency) or 0.0, half, top, kind),
            ms(statistic(latency)),
            ms(half),
            *(ms(statistic(latency, key)) for key in ("p50", "p99")),
            nothing(statistic(latency), half),
        ]
        for name, kind, latency, half in entries
    ]
    columns = [
        words("place"),
        bar("mean and interval"),
        Column("mean", "ms"),
        Column("±", "ms"),
        Column("p50", "ms"),
        Column("p99", "ms"),
        words(""),
    ]
    return markup.heading(f"{flow}: components and links as differences") + markup.table(
        columns, rows, ["", bars.axis(top), "", "", "", "", ""], css="waterfall"
    )


def ages(run: RunFolder) -> Html:
    """How old a sample is when it passes each point, from the samples themselves."""
    parts = []
    columns = [
        words("point"),
        bar("mean age"),
        Column("mean", "ms"),
        Column("p50", "ms"),
        Column("p99", "ms"),
        Column("max", "ms"),
        Column("samples"),
    ]
    for flow, points in run.summary.get("points", {}).items():
        means = [statistic(point.get("age_ms")) or 0.0 for point in points]
        if not means:
            continue
        top = bars.axis_top(max(means))
        rows = [
            [point["point"], bars.with_interval(mean, None, top, "plain"), ms(statistic(point.get("age_ms")))]
            + [ms(statistic(point.get("age_ms"), key)) for key in ("p50", "p99", "max")]
            + [count(point.get("n"))]
            for point, mean in zip(points, means, strict=True)
        ]
        parts.append(f"<details><summary>{markup.escaped(flow)}</summary>")
        parts.append(
            markup.table(columns, rows, ["", bars.axis(top), *[""] * 5], css="waterfall") + "</details>"
        )
    return markup.section("ages", "Age of a sample along its path", *parts)
