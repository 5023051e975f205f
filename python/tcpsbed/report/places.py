"""Sections about places: echo points, links, stages, nodes, emulator, clocks, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcpsbed.report import bars, charts, markup
from tcpsbed.report.charts import Sheet
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, bar, words
from tcpsbed.report.numbers import count, finite, general, half_width, ms, percent, rate, size, statistic, us


def echo(run: RunFolder, sheet: Sheet) -> Html:
    """Latency of every echo point along the path, and of components and links as differences."""
    found = {flow: result for flow, result in run.summary.get("echo", {}).items() if result}
    parts = "".join(_echo_flow(flow, result) + _echo_curves(run, flow, sheet) for flow, result in found.items())
    return markup.section(
        "echo", "Echo points", parts,
        note="Round trips of echo commands answered along the path, with 95 % confidence intervals of the mean (whisker); "
        "in batches: the same from 20 batch means, which allows for samples that resemble their neighbours. "
        "Out and home: one-way legs by the clocks of the nodes. Components and links are differences of neighbouring "
        "points; what is half a difference says so.",
    )  # fmt: skip


def _echo_curves(run: RunFolder, flow: str, sheet: Sheet) -> str:
    """Distributions of the round trips of a flow's points."""
    found = run.series.get("echo", {}).get(flow) or {}
    curves = {point: (trips, found["p"]) for point, trips in found.get("round_trip_ms", {}).items() if charts.has_values(trips)}
    return sheet.place(charts.distribution(f"{flow}: round trips", "round trip (ms)", curves)) if curves else ""


def _echo_flow(flow: str, result: Mapping[str, Any]) -> str:
    points = result.get("points") or []
    shown = _echo_points(points) if points else ""
    entries = [entry for key in ("components", "links", "spans") for entry in result.get(key) or ()]
    differences = [
        [_named(entry), bars.kind(entry.get("what", "")), entry.get("latency_ms"), half_width(_interval(entry))]
        for entry in sorted(entries, key=lambda entry: _place(entry, points))
    ]
    if statistic(actuation := result.get("actuation_ms")) is not None:
        inner = {"latency_ms": actuation}
        differences.append(["actuation (held until done)", "plain", actuation, half_width(_interval(inner))])
    title = markup.heading(f"{flow}: round trip by point") if points else ""
    return title + shown + _differences(flow, differences)


def _named(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']} (half the difference)" if entry.get("halved") else str(entry["name"])


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
                count(point.get("lost") or None),
            ]
        )
    columns = [words("point"), bar("along the path"), Column("mean", "ms"), Column("±", "ms"), Column("± in batches", "ms")]
    columns += [Column(name, "ms") for name in ("p50", "p99", "p99.9")]
    columns += [Column("out", "ms"), Column("home", "ms"), Column("echoes"), Column("lost")]
    return markup.table(columns, rows, ["", bars.axis(top), *[""] * 10], css="waterfall")


def _differences(flow: str, entries: list[list[Any]]) -> str:
    if not entries:
        return ""
    top = bars.axis_top(max((statistic(latency) or 0) + (half or 0) for _, _, latency, half in entries))
    rows = [
        [name, bars.with_interval(statistic(latency) or 0.0, half, top, kind), ms(statistic(latency)), ms(half)]
        + [ms(statistic(latency, key)) for key in ("p50", "p99")]
        for name, kind, latency, half in entries
    ]
    columns = [words("place"), bar("mean and interval"), Column("mean", "ms"), Column("±", "ms"), Column("p50", "ms"), Column("p99", "ms")]
    return markup.heading(f"{flow}: components and links as differences") + markup.table(
        columns, rows, ["", bars.axis(top), "", "", "", ""], css="waterfall"
    )


def ages(run: RunFolder) -> Html:
    """How old a sample is when it passes each point, from the samples themselves."""
    parts = []
    columns = [words("point"), bar("mean age"), Column("mean", "ms"), Column("p50", "ms"), Column("p99", "ms"), Column("max", "ms"), Column("samples")]
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
        parts.append(markup.table(columns, rows, ["", bars.axis(top), *[""] * 5], css="waterfall") + "</details>")
    return markup.section("ages", "Age of a sample along its path", *parts)


def network(run: RunFolder) -> Html:
    """Links and background traffic."""
    waits = {queue["link"]: queue.get("delay_ms") for queue in run.summary.get("queues") or ()}
    links = [
        [
            link["name"], bars.share_bar(finite(link.get("utilisation"))), percent(link.get("utilisation")), count(link.get("packets")),
            size(link.get("bytes")), count(link.get("dropped_packets")), percent(link.get("loss")),
            size(link.get("max_queue_bytes")), count(link.get("max_queue_packets")),
            *(ms(statistic(waits.get(link["name"]), key)) for key in ("mean", "p99")),
        ]
        for link in run.summary.get("network") or ()
    ]  # fmt: skip
    columns = [words("link"), bar("utilisation"), Column("busy"), Column("packets"), Column("carried"), Column("dropped")]
    columns += [Column("loss"), Column("longest queue"), Column("packets in it")]
    columns += [Column("wait mean", "ms"), Column("wait p99", "ms")]
    traffic = [
        [entry["name"], count(entry.get("packets")), size(entry.get("bytes")), count(entry.get("delivered_packets")), count(entry.get("dropped_packets"))]
        for entry in run.summary.get("traffic") or ()
    ]
    traffic_columns = [words("traffic"), Column("packets"), Column("offered"), Column("delivered"), Column("dropped")]
    return markup.section(
        "network", "Network",
        markup.table(columns, links, css="waterfall") if links else "",
        markup.heading("Background traffic") + markup.table(traffic_columns, traffic) if traffic else "",
    )  # fmt: skip


def processing(run: RunFolder) -> Html:
    """Processor time of stages and the nodes' report on themselves."""
    stages = [
        [stage.get("component", ""), stage.get("flow", ""), stage.get("kind", ""), stage.get("name", ""), count(stage.get("calls")), count(stage.get("failures") or None)]
        + [us(statistic(stage.get("cpu_ns"), key)) for key in ("mean", "p50", "p99", "max")]
        + [percent(stage.get("core_share"))]
        for stage in run.summary.get("stages") or ()
    ]
    columns = [words("component"), words("flow"), words("stage"), words("code"), Column("calls"), Column("failures")]
    columns += [Column(key, "µs") for key in ("mean", "p50", "p99", "max")] + [Column("of a core")]
    return markup.section(
        "processing", "Processing",
        markup.heading("Processor time a call") + markup.table(columns, stages) if stages else "",
        _nodes(run),
    )  # fmt: skip


def _nodes(run: RunFolder) -> str:
    rows = []
    for node in run.summary.get("nodes") or ():
        late, cores = node.get("late_ns"), finite(node.get("cores")) or 1
        busy, duration = finite(node.get("busy_s")), finite(run.summary.get("duration_s"))
        share = busy / (duration * cores) if busy is not None and duration else None
        rows.append(
            [
                node["name"], percent(share), general(node.get("cores")), count(node.get("ticks")), count(node.get("missed_ticks")),
                *(us(statistic(late, key)) for key in ("p50", "p99", "p999", "max")), count(node.get("gaps_over_1ms")),
                count(node.get("ring_overflows")), count(node.get("socket_drops")), general(node.get("waiting")),
                ", ".join(map(str, node.get("privileges") or ())),
            ]
        )  # fmt: skip
    columns = [words("node"), Column("busy"), Column("cores"), Column("ticks"), Column("missed")]
    columns += [Column(f"late {name}", "µs") for name in ("p50", "p99", "p99.9", "max")]
    columns += [Column("gaps over 1 ms"), Column("records lost"), Column("socket drops"), words("waiting"), words("privileges")]
    return markup.heading("Nodes") + markup.table(columns, rows, css="dense") if rows else ""


def emulator(run: RunFolder) -> Html:
    """What the emulator was set to, against what it delivered."""
    rows = [
        [
            entry.get("link", entry.get("path", "")), ms(entry.get("set_delay_ms")),
            *(ms(statistic(entry.get("delivered_delay_ms"), key)) for key in ("mean", "p50", "p99")),
            *(ms(statistic(entry.get("error_ms"), key)) for key in ("p50", "p99")),
            rate(entry.get("set_rate_bps")), rate(entry.get("delivered_rate_bps")),
            percent(entry.get("set_loss")), percent(entry.get("delivered_loss")), count(entry.get("packets")),
        ]
        for entry in run.summary.get("emulator") or ()
    ]  # fmt: skip
    columns = [words("link or path"), Column("delay set", "ms"), Column("delivered mean", "ms"), Column("p50", "ms"), Column("p99", "ms")]
    columns += [Column("error p50", "ms"), Column("error p99", "ms")]
    columns += [Column("rate set"), Column("delivered"), Column("loss set"), Column("delivered"), Column("packets")]
    return markup.section("emulator", "Emulator: set against delivered", markup.table(columns, rows) if rows else "")


def clocks(run: RunFolder) -> Html:
    """Offsets between node clocks, with the bound on their error."""
    rows = [
        [entry["node"], entry.get("reference", ""), *(ms(entry.get(key)) for key in ("offset_ms", "bound_ms"))]
        + [general(entry.get("drift_ppm")), *(ms(entry.get(key)) for key in ("true_error_ms", "true_error_max_ms"))]
        + [count(entry.get("exchanges"))]
        for entry in run.summary.get("clocks") or ()
    ]
    columns = [words("node"), words("against"), Column("offset", "ms"), Column("bound ±", "ms"), Column("drift", "ppm")]
    columns += [Column("true error", "ms"), Column("largest", "ms"), Column("exchanges")]
    return markup.section(
        "clocks", "Clocks", markup.table(columns, rows) if rows else "",
        note="Offset estimated by exchanges through the same network. The bound is half the smallest round trip, whatever the asymmetry.",
    )  # fmt: skip


def endpoints(run: RunFolder) -> Html:
    """What transport endpoints refused."""
    counted = ("malformed", "duplicates", "incomplete")
    rows = [
        [entry.get("channel", ""), entry.get("side", ""), *(count(entry.get(key)) for key in counted)]
        for entry in run.summary.get("endpoints") or ()
        if any(entry.get(key) for key in counted)
    ]
    columns = [words("channel"), words("side"), Column("malformed"), Column("duplicates"), Column("incomplete frames")]
    return markup.section("endpoints", "Refused by transports", markup.table(columns, rows) if rows else "")


def assumed(run: RunFolder) -> Html:
    """Stages that were given no cost."""
    items = markup.listing(run.summary.get("assumed_free") or ())
    return markup.section(
        "assumed", "Assumed free", items,
        note="These stages were given no cost and took no time. Measure them with `tcpsbed calibrate`.",
    )  # fmt: skip


def scenario(run: RunFolder) -> Html:
    """The scenario's text as it ran."""
    if not run.scenario:
        return Html("")
    text = markup.escaped(run.scenario)
    return markup.section("scenario", "Scenario", f"<details><summary>scenario.toml as it ran</summary><pre>{text}</pre></details>")
