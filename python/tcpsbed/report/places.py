"""Sections about places: links, stages, nodes, emulator, clocks, and what was assumed or had no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.report import bars, markup
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, bar, words
from tcpsbed.report.numbers import (
    count,
    finite,
    general,
    ms,
    percent,
    place,
    rate,
    seconds,
    size,
    statistic,
    us,
)

DAMAGE = {
    "no_crc": "damaged",
    "no_cobs": "torn",
    "too_long": "babble",
    "unknown": "unknown",
    "missing": "missing",
}
"""Counts of a reader of frames, and what tables call them; each is shown of this end and of the board's."""


def network(run: RunFolder) -> Html:
    """Links and background traffic."""
    waits = {queue["link"]: queue.get("delay_ms") for queue in run.summary.get("queues") or ()}
    links = [
        [
            link["name"],
            bars.share_bar(finite(link.get("utilisation"))),
            percent(link.get("utilisation")),
            count(link.get("packets")),
            size(link.get("bytes")),
            count(link.get("dropped_packets")),
            percent(link.get("loss")),
            size(link.get("max_queue_bytes")),
            count(link.get("max_queue_packets")),
            *(ms(statistic(waits.get(link["name"]), key)) for key in ("mean", "p99")),
        ]
        for link in run.summary.get("network") or ()
    ]
    columns = [
        words("link"),
        bar("utilisation"),
        Column("busy"),
        Column("packets"),
        Column("carried"),
        Column("dropped"),
    ]
    columns += [Column("loss"), Column("longest queue"), Column("packets in it")]
    columns += [Column("wait mean", "ms"), Column("wait p99", "ms")]
    traffic = [
        [
            entry["name"],
            count(entry.get("packets")),
            size(entry.get("bytes")),
            count(entry.get("delivered_packets")),
            count(entry.get("dropped_packets")),
        ]
        for entry in run.summary.get("traffic") or ()
    ]
    traffic_columns = [
        words("traffic"),
        Column("packets"),
        Column("offered"),
        Column("delivered"),
        Column("dropped"),
    ]
    return markup.section(
        "network",
        "Network",
        markup.table(columns, links, css="waterfall") if links else "",
        markup.heading("Background traffic") + markup.table(traffic_columns, traffic) if traffic else "",
    )


def processing(run: RunFolder) -> Html:
    """Processor time of stages and the nodes' report on themselves."""
    columns, rows = staged(run.summary)
    share_columns, shares = shared(run.summary)
    robot_columns, robots = robots_late(run.summary)
    return markup.section(
        "processing",
        "Processing",
        markup.heading("Processor time a call") + markup.table(columns, rows) if rows else "",
        markup.heading("All stages of a component") + markup.table(share_columns, shares) if shares else "",
        _nodes(run),
        markup.heading("Robots with a loop of their own") + markup.table(robot_columns, robots)
        if robots
        else "",
    )


def staged(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the processor time of hooks, for the page and the terminal."""
    rows = [
        [
            stage.get("component", ""),
            stage.get("flow", ""),
            stage.get("kind", ""),
            stage.get("name", ""),
            count(stage.get("calls")),
            count(stage.get("failures") or None),
            count(stage.get("not_finite") or None),
            count(stage.get("overruns") or None),
        ]
        + [us(statistic(stage.get("cpu_ns"), key)) for key in ("mean", "p50", "p99", "max")]
        + [percent(stage.get("core_share"))]
        for stage in summary.get("stages") or ()
    ]
    columns = [
        words("component"),
        words("flow"),
        words("stage"),
        words("code"),
        Column("calls"),
        Column("failures"),
        Column("no numbers"),
        Column("over its cost"),
    ]
    columns += [Column(key, "µs") for key in ("mean", "p50", "p99", "max")] + [Column("of a core")]
    return columns, rows


def shared(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of what share of a core the stages of each component take, for the page and the terminal."""
    rows = [
        [entry["component"], seconds(entry.get("busy_s")), percent(entry.get("core_share"))]
        for entry in summary.get("components") or ()
    ]
    return [words("component"), Column("processor time"), Column("of a core")], rows


def _nodes(run: RunFolder) -> str:
    rows = []
    for node in run.summary.get("nodes") or ():
        late, cores = node.get("late_ns"), finite(node.get("cores")) or 1
        busy, duration = finite(node.get("busy_s")), finite(run.summary.get("duration_s"))
        share = busy / (duration * cores) if busy is not None and duration else None
        rows.append(
            [
                loop_name(node),
                percent(share),
                general(node.get("cores")),
                count(node.get("ticks")),
                count(node.get("missed_ticks")),
                *(us(statistic(late, key)) for key in ("p50", "p99", "p999", "max")),
                count(node.get("gaps_over_1ms")),
                count(node.get("ring_overflows")),
                count(node.get("socket_drops")),
                general(node.get("waiting")),
                ", ".join(map(str, node.get("privileges") or ())),
            ]
        )
    columns = [words("node"), Column("busy"), Column("cores"), Column("ticks"), Column("missed")]
    columns += [Column(f"late {name}", "µs") for name in ("p50", "p99", "p99.9", "max")]
    columns += [
        Column("gaps over 1 ms"),
        Column("records lost"),
        Column("socket drops"),
        words("waiting"),
        words("privileges"),
    ]
    return markup.heading("Nodes") + markup.table(columns, rows, css="dense") if rows else ""


def robots_late(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of how the loops of robots kept their time, for the page and the terminal."""
    rows = [
        [
            robot["component"],
            robot["node"],
            *(count(robot[key]) for key in ("ticks", "missed_ticks", "gaps_over_1ms")),
            *(us(statistic(robot["late_ns"], key)) for key in ("p50", "p99", "max")),
        ]
        for robot in summary.get("robots") or ()
    ]
    columns = [words("robot"), words("node"), Column("ticks"), Column("missed"), Column("gaps over 1 ms")]
    return columns + [Column(f"late {key}", "µs") for key in ("p50", "p99", "max")], rows


def loop_name(node: Mapping[str, Any]) -> str:
    """A node, and the sessions of its loop where it has several."""
    sessions = ", ".join(node.get("sessions") or ())
    return f"{node['name']} ({sessions})" if sessions else str(node["name"])


def emulator(run: RunFolder) -> Html:
    """What the emulator was set to, against what it delivered."""
    columns, rows = emulated(run.summary)
    return markup.section(
        "emulator", "Emulator: set against delivered", markup.table(columns, rows) if rows else ""
    )


def emulated(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of set against delivered, for the page and the terminal."""
    rows = [
        [
            place(entry.get("path", "")),
            ms(entry.get("set_delay_ms")),
            *(ms(statistic(entry.get("delivered_delay_ms"), key)) for key in ("mean", "p50", "p99")),
            *(ms(statistic(entry.get("error_ms"), key)) for key in ("p50", "p99")),
            rate(entry.get("set_rate_bps")),
            rate(entry.get("delivered_rate_bps")),
            percent(entry.get("set_loss")),
            percent(entry.get("delivered_loss")),
            count(entry.get("packets")),
            general(entry.get("stamps")),
        ]
        for entry in summary.get("emulator") or ()
    ]
    columns = [
        words("emulator"),
        Column("delay set", "ms"),
        Column("delivered mean", "ms"),
        Column("p50", "ms"),
        Column("p99", "ms"),
    ]
    columns += [Column("error p50", "ms"), Column("error p99", "ms")]
    columns += [
        Column("rate set"),
        Column("delivered"),
        Column("loss set"),
        Column("delivered"),
        Column("packets"),
        words("time of entry"),
    ]
    return columns, rows


def clocks(run: RunFolder) -> Html:
    """Offsets between node clocks, with the bound on their error."""
    rows = [
        [
            entry["node"],
            entry.get("reference", ""),
            *(ms(entry.get(key)) for key in ("offset_ms", "bound_ms")),
            general(entry.get("drift_ppm")),
            *(ms(entry.get(key)) for key in ("true_error_ms", "true_error_max_ms")),
            count(entry.get("exchanges")),
        ]
        for entry in run.summary.get("clocks") or ()
    ]
    columns = [
        words("node"),
        words("against"),
        Column("offset", "ms"),
        Column("bound ±", "ms"),
        Column("drift", "ppm"),
    ]
    columns += [Column("true error", "ms"), Column("largest", "ms"), Column("exchanges")]
    return markup.section(
        "clocks",
        "Clocks",
        markup.table(columns, rows) if rows else "",
        remark="Offset estimated by exchanges through the same network. The bound is half the smallest "
        "round trip, whatever the asymmetry.",
    )


def endpoints(run: RunFolder) -> Html:
    """What transport endpoints refused and what they sent again."""
    counted = (
        "malformed",
        "duplicates",
        "incomplete",
        "refused",
        "retransmits",
        "unanswered",
        "recovered",
        "lost",
        "reports",
        "told",
        "told_lost",
        "connections_lost",
        "stalls",
        "strangers",
    )
    rows = [
        [entry.get("channel", ""), entry.get("side", ""), *(count(entry.get(key)) for key in counted)]
        for entry in run.summary.get("endpoints") or ()
        if any(entry.get(key) for key in counted)
    ]
    columns = [
        words("channel"),
        words("side"),
        Column("malformed"),
        Column("duplicates"),
        Column("incomplete frames"),
        Column("samples without room"),
        Column("sent again"),
        Column("unanswered"),
        Column("recovered"),
        Column("lost"),
        Column("reports"),
        Column("packets told of"),
        Column("told as lost"),
        Column("connections lost"),
        Column("stalls"),
        Column("strangers"),
    ]
    return markup.section("endpoints", "Counted by transports", markup.table(columns, rows) if rows else "")


def boards(run: RunFolder) -> Html:
    """What went over the lines of boards, and what was damaged there."""
    columns, rows = lined(run.summary)
    return markup.section("boards", "Boards", markup.table(columns, rows) if rows else "")


def lined(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the lines of boards, for the page and the terminal."""
    rows = []
    for board in summary.get("boards") or ():
        here, there = board.get("damaged") or {}, board.get("damaged_there") or {}
        bound_ns = finite(board.get("clock_bound_ns"))
        rows.append(
            [
                board["component"],
                *(count(board.get(key)) for key in ("sent", "answered", "lost", "safe")),
                count(board.get("late") or None),
                *(count(end.get(key) or None) for key in DAMAGE for end in (here, there)),
                count(there.get("overflown") or None),
                count(board.get("refused_values") or None),
                us(bound_ns),
                (board.get("gone") or {}).get("why", ""),
            ]
        )
    columns = [
        words("board"),
        Column("sent"),
        Column("answered"),
        Column("lost"),
        Column("safe output"),
        Column("late"),
    ]
    for title in DAMAGE.values():
        columns += [Column(title), Column("there")]
    return [
        *columns,
        Column("overflown there", "B"),
        Column("no numbers"),
        Column("stamps ±", "µs"),
        words("gone"),
    ], rows


def assumed(run: RunFolder) -> Html:
    """Stages that were given no cost."""
    items = markup.listing(run.summary.get("assumed_free") or ())
    return markup.section(
        "assumed",
        "Assumed free",
        items,
        remark="These stages were given no cost and took no time. Measure them with `tcpsbed calibrate`.",
    )


def ignored(run: RunFolder) -> Html:
    """Keys of the scenario that have no effect in this world."""
    return markup.section(
        "ignored",
        "Without effect in this world",
        markup.listing(run.summary.get("ignored") or ()),
        remark="The scenario gives these keys, and something else decides in this world.",
    )


def untried(run: RunFolder) -> Html:
    """What the run rests on that was never tried."""
    return markup.section("untried", "Never tried", markup.listing(run.summary.get("untried") or ()))


def scenario(run: RunFolder) -> Html:
    """The scenario's text as it ran."""
    if not run.scenario:
        return Html("")
    text = markup.escaped(run.scenario)
    return markup.section(
        "scenario",
        "Scenario",
        f"<details><summary>scenario.toml as it ran</summary><pre>{text}</pre></details>",
    )
