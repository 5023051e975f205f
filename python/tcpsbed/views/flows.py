"""Report sections on flows: where the time went, what arrived, distributions, and curves over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.palette import LOST
from tcpsbed.views import bars, charts, markup, paths, tables
from tcpsbed.views.charts import Chart, Line, Sheet
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.markup import Column, Html, bar, words
from tcpsbed.views.numbers import finite, ms, place

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
    parts, drawn = paths.busy(path), []
    for segment in _segments(parts):
        drawn.append(bars.span(start, segment.length_ms, top, segment.paint))
        start += segment.length_ms
    columns = tables.fields(metrics.section("path").parts)
    laid = tables.laid(columns, parts).beside(2, bar("from source to sink"), drawn)
    whole = {"name": "end to end", "latency_ms": {"mean": total}}
    footer = [one.shown(one.read(whole) or "") for one in columns]
    table = markup.table(laid.columns, laid.rows, [*footer[:2], bars.axis(top), *footer[2:]], css="waterfall")
    return markup.heading(flow, _direction(run, flow)) + table + markup.note(paths.idle(path))


def _direction(run: RunFolder, flow: str) -> str:
    direction = str(run.summary.get("flows", {}).get(flow, {}).get("direction", ""))
    return ARROWS.get(direction, direction)


def per_flow(run: RunFolder) -> Html:
    """What was sent, what arrived, how late, how it was spread."""
    part = metrics.section("flows")
    flows = run.summary.get("flows", {})
    said = [paths.renumbered(name, flow) for name, flow in flows.items()]
    return markup.section(
        "flows",
        part.title,
        *tables.on_page(part, flows),
        *map(markup.note, said),
        remark="Delay from source to sink of the samples that arrived; a frame counts when its last byte has arrived. "
        + paths.LOSS,
    )


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
        "that were lost. Grey: warm-up, excluded from all tables. Red bands: disturbed.",
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
    return Chart(f"Delay of {flow}", times, "time (s)", _axis("delay_ms"), lines)


def _common_charts(run: RunFolder, times: Sequence[Any], paint: Mapping[str, str]) -> Iterator[Chart]:
    yield Chart("Queue length", times, "time (s)", "waiting (kB)", _queues(run))
    for title, unit, key, factor in (
        ("Rate of delivered samples", "rate (Mbit/s)", "rate_bps", 1e-6),
        ("Age of the newest data", _axis("age_ms"), "age_ms", 1.0),
        ("Merging", "fragments in a packet", "fragments", 1.0),
    ):
        lines = [
            Line(flow, charts.scaled(charts.series_of(run.series, flow, key), factor), paint[flow])
            for flow in paint
        ]
        yield Chart(
            title, times, "time (s)", unit, [line for line in lines if charts.has_values(line.values)]
        )


def _axis(key: str) -> str:
    return metrics.section("flows").part(key).axis


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
    """Delay distributions with a logarithmic tail."""
    curves = _curves(run, "delay_ms")
    gaps = _curves(run, "interarrival_ms")
    drawn = sheet.place(
        (charts.distribution("One-way delay", _axis("delay_ms"), curves) if curves else [])
        + (charts.distribution("Time between arrivals", _axis("interarrival_ms"), gaps) if gaps else [])
    )
    note = "In the tail, with its logarithmic scale, a straight fall is an exponential law."
    return markup.section("spread", "Distribution", drawn, remark=note if drawn else "")


def _curves(run: RunFolder, key: str) -> dict[str, tuple[Sequence[Any], Sequence[Any]]]:
    """Cumulative curves of the flows that have one."""
    cdf = run.series.get("cdf", {})
    return {
        flow: (curve[key], curve["p"])
        for flow, curve in cdf.items()
        if charts.has_values(curve.get(key) or ())
    }
