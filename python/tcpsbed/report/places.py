"""Sections about places: echo points, links, stages, nodes, emulator, clocks, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tcpsbed.report import bars, markup
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, bar, words
from tcpsbed.report.numbers import count, finite, general, half_width, ms, percent, rate, size, statistic, us


def echo(run: RunFolder) -> Html:
    """Latency of every echo point along the path, and of components and links as differences."""
    parts = "".join(_echo_flow(flow, result) for flow, result in run.summary.get("echo", {}).items() if result)
    return markup.section(
        "echo", "Echo points", parts,
        note="Round trips of echo commands answered along the path, with 95 % confidence intervals of the mean (whisker); "
        "in batches: the same from 20 batch means, which allows for samples that resemble their neighbours. "
        "Components and links are differences of neighbouring points on the forward leg; no forward leg is halved.",
    )  # fmt: skip


def _echo_flow(flow: str, result: Mapping[str, Any]) -> str:
    points = result.get("points") or []
    shown = _echo_points(points) if points else ""
    differences = [
        [entry["name"], kind, entry.get("latency_ms"), half_width(_interval(entry))]
        for kind, key in (("component", "components"), ("link", "links"))
        for entry in result.get(key) or ()
    ]
    actuation = statistic(result.get("actuation_ms"))
    if actuation is not None:
        differences.append(["actuation (held until done)", "component", actuation, half_width(_interval(result["actuation_ms"]))])
    return markup.heading(f"{flow}: round trip by point") * bool(points) + shown + _differences(flow, differences)


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
    links = [
        [
            link["name"], bars.share_bar(finite(link.get("utilisation"))), percent(link.get("utilisation")), count(link.get("packets")),
            size(link.get("bytes")), count(link.get("dropped_packets")), percent(link.get("loss")),
            size(link.get("max_queue_bytes")), count(link.get("max_queue_packets")),
        ]
        for link in run.summary.get("network") or ()
    ]  # fmt: skip
    columns = [words("link"), bar("utilisation"), Column("busy"), Column("packets"), Column("carried"), Column("dropped")]
    columns += [Column("loss"), Column("longest queue"), Column("packets in it")]
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
            rate(entry.get("set_rate_bps")), rate(entry.get("delivered_rate_bps")),
            percent(entry.get("set_loss")), percent(entry.get("delivered_loss")),
        ]
        for entry in run.summary.get("emulator") or ()
    ]  # fmt: skip
    columns = [words("link"), Column("delay set", "ms"), Column("delivered mean", "ms"), Column("p50", "ms"), Column("p99", "ms")]
    columns += [Column("rate set"), Column("delivered"), Column("loss set"), Column("delivered")]
    return markup.section("emulator", "Emulator: set against delivered", markup.table(columns, rows) if rows else "")


def clocks(run: RunFolder) -> Html:
    """Offsets between node clocks, with the bound on their error."""
    rows = [
        [entry["node"], ms(entry.get("offset_ms")), ms(entry.get("bound_ms")), general(entry.get("drift_ppm")), ms(entry.get("true_error_ms"))]
        for entry in run.summary.get("clocks") or ()
    ]
    columns = [words("node"), Column("offset", "ms"), Column("bound ±", "ms"), Column("drift", "ppm"), Column("true error", "ms")]
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
