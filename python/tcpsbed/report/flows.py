"""Sections about flows: where the time went, what arrived, how it was spread, how it changed over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed.palette import LOST
from tcpsbed.report import bars, charts, markup, paths, playout
from tcpsbed.report.charts import Chart, Line, Sheet
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, bar, words
from tcpsbed.report.numbers import (
    LABELS,
    NONE,
    PERCENTILES,
    count,
    finite,
    ms,
    percent,
    place,
    rate,
    statistic,
)

ARROWS = {"forward": "→ robot", "backward": "→ operator"}

QUEUES_SHOWN = 8
"""Lines in one chart of queues; the longest queues are taken."""


def where_time_went(run: RunFolder) -> Html:
    """Every flow's mean delay, split along its path."""
    ways = {flow: path for flow, path in run.summary.get("path", {}).items() if path}
    if not ways:
        return Html("")
    top = bars.axis_top(max(paths.total_ms(path) for path in ways.values()))
    overview = markup.table(
        [words("flow"), Column("mean", "ms"), bar("along the path")],
        [[flow, ms(paths.total_ms(path)), bars.stacked(_segments(path), top)] for flow, path in ways.items()],
        ["", "", bars.axis(top)],
        css="overview",
    )
    key = Html(
        '<p class="key"><i class="component even"></i> components <i class="link even"></i> links between them</p>'
    )
    details = "".join(_waterfall(run, flow, path) for flow, path in ways.items())
    return markup.section(
        "time",
        "Where the time went",
        overview,
        key,
        details,
        remark="Mean one-way delay of the delivered samples, component by component and link by link. The means of a path "
        "add up to its delay; percentiles do not add up.",
    )


def _segments(path: Sequence[paths.Part]) -> list[bars.Segment]:
    return [bars.Segment(place(part["name"]), bars.kind(part["what"]), paths.mean_ms(part)) for part in path]


def _waterfall(run: RunFolder, flow: str, path: Sequence[paths.Part]) -> str:
    total = paths.total_ms(path)
    top, start = bars.axis_top(total), 0.0
    parts, rows = paths.busy(path), []
    for part, segment in zip(parts, _segments(parts), strict=True):
        rows.append(
            [
                segment.name,
                bars.span(start, segment.length_ms, top, segment.paint),
                ms(segment.length_ms),
                percent(segment.length_ms / total if total else None),
                *(ms(statistic(part["latency_ms"], key)) for key in ("p50", "p99", "max")),
            ]
        )
        start += segment.length_ms
    columns = [words("place"), bar("from source to sink"), Column("mean", "ms"), Column("share")]
    columns += [Column(name, "ms") for name in ("p50", "p99", "max")]
    footer = ["whole way", bars.axis(top), ms(total), "", "", "", ""]
    table = markup.table(columns, rows, footer, css="waterfall")
    return markup.heading(flow, _direction(run, flow)) + table + markup.note(paths.idle(path))


def _direction(run: RunFolder, flow: str) -> str:
    direction = str(run.summary.get("flows", {}).get(flow, {}).get("direction", ""))
    return ARROWS.get(direction, direction)


def per_flow(run: RunFolder) -> Html:
    """What was sent, what arrived, how late."""
    columns = [
        words("flow"),
        words("way"),
        Column("sent"),
        Column("delivered"),
        Column("in flight"),
        Column("lost"),
        Column("loss"),
    ]
    columns += [Column("repeated"), Column("out of order"), Column("superseded"), Column("suppressed")]
    columns += [Column(LABELS.get(key, key), "ms") for key in PERCENTILES] + [
        Column("rate"),
        Column("checked"),
    ]
    rows = [_flow_row(run, name, flow) for name, flow in run.summary.get("flows", {}).items()]
    lost = [
        [name, place, count(n)]
        for name, flow in run.summary.get("flows", {}).items()
        for place, n in _drops(flow)
    ]
    where = markup.heading("Where packets were lost") + markup.table(
        [words("flow"), words("link and reason"), Column("packets")], lost
    )
    where += markup.note(
        "A sample that is sent as several packets may count several times here, and once above."
    )
    made = [paths.renumbered(name, flow) for name, flow in run.summary.get("flows", {}).items()]
    columns_shown, rows_shown = playout.table(run.summary)
    shown = markup.heading("Playout") + markup.table(columns_shown, rows_shown) + markup.note(playout.REMARK)
    return (
        markup.section(
            "flows",
            "Flows",
            markup.table(columns, rows, css="dense"),
            *map(markup.note, made),
            where if lost else "",
            shown if rows_shown else "",
            remark="Delay from source to sink of the samples that arrived; a frame counts when its last byte is there. "
            + paths.LOSS,
        )
        if rows
        else Html("")
    )


def _flow_row(run: RunFolder, name: str, flow: Mapping[str, Any]) -> list[str]:
    verified = flow.get("verified") or {}
    good, bad = finite(verified.get("good")) or 0, finite(verified.get("bad")) or 0
    checked = f"{count(good)} good" + (f", {count(bad)} bad" if bad else "") if good or bad else ""
    delays = [ms(statistic(flow.get("delay_ms"), key)) for key in PERCENTILES]
    counts = [count(flow.get(key)) for key in ("sent", "delivered", "in_flight", "lost")]
    again = [count(flow.get(key) or None) for key in ("duplicated", "reordered", "superseded", "suppressed")]
    return [
        name,
        _direction(run, name),
        *counts,
        percent(flow.get("loss")),
        *again,
        *delays,
        rate(flow.get("rate_bps")),
        checked,
    ]


def _drops(flow: Mapping[str, Any]) -> list[tuple[str, Any]]:
    drops = flow.get("drops") or {}
    return sorted(((place, n) for place, n in drops.items() if n), key=lambda item: -item[1])


def over_time(run: RunFolder, sheet: Sheet) -> Html:
    """Delay, queues, rate and age of data over time, events marked."""
    times = run.series.get("t_s", ())
    if not len(times):
        return Html("")
    flows = list(run.series.get("flows", {}))
    paint = charts.colors(flows)
    delays = sheet.place(_delay_chart(run, times, flow, paint[flow]) for flow in flows)
    others = sheet.place(_common_charts(run, times, paint))
    if not delays and not others:
        return Html("")
    return markup.section(
        "over-time",
        "Over time",
        _events(run),
        delays,
        others,
        remark="Line: mean of each bin; shaded up to the largest delay in it. Red dots, right axis: samples of the bin "
        "that were lost. Grey: warm-up, left out of all tables. Red bands: disturbed.",
    )


def _delay_chart(run: RunFolder, times: Sequence[Any], flow: str, color: str) -> Chart:
    mean = charts.series_of(run.series, flow, "delay_mean_ms")
    largest = charts.series_of(run.series, flow, "delay_max_ms")
    bridge = finite(run.series["flows"][flow].get("bridge_s")) or 0.0
    lines = [
        Line("largest", largest, color, thin=True, fill_to="mean", bridge=bridge),
        Line("mean", mean, color, bridge=bridge),
    ]
    lines = [line for line in lines if len(line.values)]
    lost = [value or None for value in charts.series_of(run.series, flow, "lost")]
    if charts.has_values(lost):
        lines.append(Line("lost", lost, LOST))
    return Chart(f"Delay of {flow}", times, "time (s)", "delay (ms)", lines)


def _common_charts(run: RunFolder, times: Sequence[Any], paint: Mapping[str, str]) -> Iterator[Chart]:
    yield Chart("Queue length", times, "time (s)", "waiting (kB)", _queues(run))
    for title, unit, key, factor in (
        ("Rate of delivered samples", "rate (Mbit/s)", "rate_bps", 1e-6),
        ("Age of the newest data", "age (ms)", "age_ms", 1.0),
        ("Merging", "fragments in a packet", "fragments", 1.0),
    ):
        lines = [
            Line(flow, charts.scaled(charts.series_of(run.series, flow, key), factor), paint[flow])
            for flow in paint
        ]
        yield Chart(
            title, times, "time (s)", unit, [line for line in lines if charts.has_values(line.values)]
        )


def _queues(run: RunFolder) -> list[Line]:
    filled = {}
    for link, queue in run.series.get("queues", {}).items():
        largest = max(
            (number for number in map(finite, queue.get("bytes", ())) if number is not None), default=0
        )
        if largest > 0:
            filled[link] = (largest, queue["bytes"])
    longest = sorted(filled, key=lambda link: -filled[link][0])[:QUEUES_SHOWN]
    paint = charts.colors(longest)
    return [Line(link, charts.scaled(filled[link][1], 1e-3), paint[link]) for link in longest]


def _events(run: RunFolder) -> Html:
    events = run.summary.get("events") or []
    if not events:
        return Html("")
    items = [
        f"{number}: {event['name']} at {finite(event['t_s']) or 0:g} s"
        for number, event in enumerate(events, 1)
    ]
    return Html(f'<p class="events">Events: {markup.escaped("; ".join(items))}.</p>')


def distributions(run: RunFolder, sheet: Sheet) -> Html:
    """Delay distributions with a logarithmic tail, and the jitter metrics."""
    curves = _curves(run, "delay_ms")
    gaps = _curves(run, "interarrival_ms")
    drawn = sheet.place(
        (charts.distribution("One-way delay", "delay (ms)", curves) if curves else [])
        + (charts.distribution("Time between arrivals", "gap (ms)", gaps) if gaps else [])
    )
    tables = _jitter(run) + _fits(run)
    note = "In the tail, with its logarithmic scale, a straight fall is an exponential law."
    return markup.section("spread", "Distribution and jitter", drawn, tables, remark=note if drawn else "")


def _curves(run: RunFolder, key: str) -> dict[str, tuple[Sequence[Any], Sequence[Any]]]:
    """Cumulative curves of the flows that have one."""
    cdf = run.series.get("cdf", {})
    return {
        flow: (curve[key], curve["p"])
        for flow, curve in cdf.items()
        if charts.has_values(curve.get(key) or ())
    }


def _fits(run: RunFolder) -> str:
    """Laws fitted to the time between arrivals."""
    rows = []
    for name, flow in run.summary.get("flows", {}).items():
        for law, fit in (flow.get("interarrival_fits") or {}).items():
            distance = finite(fit.get("distance"))
            shown = NONE if distance is None else f"{distance:.3f}"
            rows.append([name, law.capitalize(), ms(fit.get("location")), ms(fit.get("scale")), shown])
    if not rows:
        return ""
    columns = [
        words("flow"),
        words("law"),
        Column("location", "ms"),
        Column("scale", "ms"),
        Column("distance"),
    ]
    note = (
        "Distance: the largest gap between the measured and the fitted cumulative curve (Kolmogorov-Smirnov)."
    )
    title = markup.heading("Time between arrivals: fitted laws")
    return title + markup.table(columns, rows) + markup.note(note)


def _jitter(run: RunFolder) -> str:
    columns = [
        words("flow"),
        Column("step mean", "ms"),
        Column("step max", "ms"),
        Column("displayed mean", "ms"),
    ]
    columns += [
        Column("displayed max", "ms"),
        Column("RFC 3550", "ms"),
        Column("PDV mean", "ms"),
        Column("PDV p99", "ms"),
    ]
    columns += [Column("IPDV p50", "ms"), Column("IPDV p99", "ms")]
    columns += [Column("gap of arrivals p50", "ms"), Column("p99", "ms"), Column("max", "ms")]
    columns += [Column("age of data mean", "ms"), Column("p99", "ms"), Column("max", "ms")]
    rows = []
    for name, flow in run.summary.get("flows", {}).items():
        jitter, gaps = flow.get("jitter_ms") or {}, flow.get("interarrival_ms")
        numbers = [
            statistic(jitter.get(kind), key) for kind in ("step", "displayed") for key in ("mean", "max")
        ]
        numbers += [
            finite(jitter.get("rfc3550")),
            statistic(jitter.get("pdv")),
            statistic(jitter.get("pdv"), "p99"),
        ]
        numbers += [statistic(flow.get("ipdv_ms"), key) for key in ("p50", "p99")]
        numbers += [statistic(gaps, key) for key in ("p50", "p99", "max")]
        numbers += [statistic(flow.get("age_ms"), key) for key in ("mean", "p99", "max")]
        if any(number is not None for number in numbers):
            rows.append([name, *map(ms, numbers)])
    if not rows:
        return ""
    note = (
        "Step: change of delay from one packet to the next. Displayed: instant shown against instant expected from the "
        "delay held before. RFC 3550: smoothed. PDV: delay above the smallest. IPDV: delay minus that of the sample "
        "before it (RFC 3393). "
        "Age: of the newest data at the sink, at every moment."
    )
    return (
        markup.heading("Jitter, four ways, and age of data")
        + markup.table(columns, rows, css="dense")
        + markup.note(note)
    )
