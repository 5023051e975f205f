"""Report sections on flows: where the time went, what arrived, distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.views import charts, echoes, markup, paths, tables
from tcpsbed.views.charts import Sheet
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.markup import Html, bar

ARROWS = {"forward": "→ robot", "backward": "→ operator"}


def where_time_went(run: RunFolder) -> Html:
    """Every flow's mean delay, place by place along its path."""
    drawn = waterfalls(run)
    return markup.section(
        "places",
        "Where the time went, by place",
        markup.listing(paths.largest(run.summary).values()),
        drawn,
        remark="Mean one-way delay of the delivered samples, component by component and link by link. The means of a path "
        "add up to its delay; percentiles do not add up."
        if drawn
        else "",
    )


def waterfalls(run: RunFolder) -> Html:
    """A table for each flow with the bars of its places, one after the other."""
    ways = {flow: path for flow, path in run.summary.get("path", {}).items() if path}
    return Html("".join(_waterfall(run, flow, path) for flow, path in ways.items()))


def _waterfall(run: RunFolder, flow: str, path: Sequence[paths.Part]) -> str:
    total, start, drawn = paths.total_ms(path), 0.0, []
    parts = paths.busy(path)
    for part in parts:
        length = paths.mean_ms(part)
        drawn.append(markup.lane(length, total, echoes.kind(part["what"]), start=start))
        start += length
    columns = tables.fields(metrics.section("path").parts)
    laid = tables.laid(columns, parts).beside(2, bar("from source to sink"), drawn)
    whole = {"name": "end to end", "latency_ms": {"mean": total}}
    footer = [one.shown(one.read(whole) or "") for one in columns]
    table = markup.table(laid.columns, laid.rows, [*footer[:2], "", *footer[2:]])
    return markup.block(markup.heading(flow, _direction(run, flow)), table, markup.note(paths.idle(path)))


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


def _axis(key: str) -> str:
    return metrics.section("flows").part(key).axis


def _curves(run: RunFolder, key: str) -> dict[str, tuple[Sequence[Any], Sequence[Any]]]:
    """Cumulative curves of the flows that have one."""
    cdf = run.series.get("cdf", {})
    return {
        flow: (curve[key], curve["p"])
        for flow, curve in cdf.items()
        if charts.has_values(curve.get(key) or ())
    }
