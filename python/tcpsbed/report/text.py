"""Tables for the terminal: plain aligned text, the same on a screen and through a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcpsbed.report import echoes, media, paths, places, playout, spread, states
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.glance import glance
from tcpsbed.report.markup import Column, words
from tcpsbed.report.numbers import (
    NONE,
    count,
    finite,
    half_width,
    ms,
    nothing,
    percent,
    place,
    rate,
    seconds,
    statistic,
)

BAR_CELLS = 32
"""Characters of the longest bar."""

EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Blocks of zero to eight eighths of a character, from the left."""


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], footer: Sequence[object] = ()) -> str:
    """Aligned text: words left, numbers right; columns that are empty in every row are left out."""
    body = [[str(cell) for cell in row] for row in rows]
    shown = [i for i in range(len(columns)) if any(row[i].strip() not in ("", NONE) for row in body)]
    head = [f"{column.title} {column.unit}".strip() for column in columns]
    every = [head, *body, *([[str(cell) for cell in footer]] if footer else [])]
    widths = {i: max(len(row[i]) for row in every) for i in shown}
    lines = [_line(row, columns, shown, widths) for row in every]
    lines.insert(1, "  ".join("─" * widths[i] for i in shown))
    return "\n".join(lines) + "\n"


def _line(
    row: Sequence[str], columns: Sequence[Column], shown: Sequence[int], widths: Mapping[int, int]
) -> str:
    cells = (
        row[i].rjust(widths[i]) if columns[i].kind == "number" else row[i].ljust(widths[i]) for i in shown
    )
    return "  ".join(cells).rstrip()


def span(start: float, length: float, top: float) -> str:
    """A bar from `start` of the given length on an axis that ends at `top`, drawn with blocks."""
    if top <= 0:
        return ""
    first = min(int(BAR_CELLS * start / top), BAR_CELLS - 1)
    eighths = max(1, round(8 * BAR_CELLS * length / top)) if length > 0 else 0
    return " " * first + EIGHTHS[8] * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def overview(run: RunFolder) -> str:
    """A run in short: conditions, flows, where the time went."""
    run, left_out = glance(run)
    summary = run.summary
    parts = (
        headline(run),
        across_seeds(summary),
        flows(summary),
        shown(summary),
        ways(summary),
        pictures(summary),
        supervised(summary),
        f"{left_out}\n" if left_out else "",
    )
    return "\n".join(part for part in parts if part)


def everything(run: RunFolder) -> str:
    """All tables about a run."""
    summary = run.summary
    parts = [
        headline(run),
        across_seeds(summary),
        flows(summary),
        shown(summary),
        ways(summary),
        split(summary),
        jitter(summary),
        echo(summary),
        pictures(summary),
        links(summary),
        stages(summary),
        watched(summary),
        nodes(summary),
        robots(summary),
        emulator(summary),
        boards(summary),
    ]
    return "\n".join(part for part in [*parts, notes(summary)] if part)


def headline(run: RunFolder) -> str:
    """Scenario, world, seed and duration; disturbances and errors below."""
    summary = run.summary
    warmup = finite(summary.get("warmup_s"))
    version = (summary.get("versions") or {}).get("tcpsbed", "")
    parts = [
        run.name,
        summary.get("world"),
        f"seed {summary.get('seed')}",
        seconds(summary.get("duration_s")) + (f", first {seconds(warmup)} left out" if warmup else ""),
        f"tcpsbed {version}",
    ]
    lines = [" · ".join(map(str, parts))]
    lines += [f"ERROR: {text}" for text in summary.get("errors") or ()]
    lines += [f"DISTURBED: {text}" for text in summary.get("disturbances") or ()]
    return "\n".join(lines) + "\n"


def across_seeds(summary: Mapping[str, Any]) -> str:
    """Means over seeds with their 95 % intervals; of one seed, that it is one."""
    columns, rows = spread.table(summary)
    said = spread.sentence(summary)
    return (f"{said}\n" if said else "") + (table(columns, rows) if rows else "")


def pictures(summary: Mapping[str, Any]) -> str:
    """Pictures and sound: from glass to glass, quality, bit rate."""
    rows = media.rows(summary)
    return table(media.columns(), rows) if rows else ""


def flows(summary: Mapping[str, Any]) -> str:
    """What was sent, what arrived, how late."""
    found = summary.get("flows", {}).values()
    unused = [key for key in ("superseded", "suppressed") if any(flow.get(key) for flow in found)]
    counted = ("sent", "delivered", *unused, "in_flight", "lost")
    rows = [
        [
            name,
            {"forward": "→", "backward": "←"}.get(flow.get("direction", ""), ""),
            *(count(flow.get(key)) for key in counted),
            percent(flow.get("loss")),
            *(ms(statistic(flow.get("delay_ms"), key)) for key in ("mean", "p50", "p99", "max")),
            rate(flow.get("rate_bps")),
        ]
        for name, flow in summary.get("flows", {}).items()
    ]
    columns = [words("flow"), words(""), *(Column(key.replace("_", " ")) for key in counted), Column("loss")]
    columns += [
        Column("mean", "ms"),
        Column("p50", "ms"),
        Column("p99", "ms"),
        Column("max", "ms"),
        Column("rate"),
    ]
    said = [paths.renumbered(name, flow) for name, flow in summary.get("flows", {}).items()]
    if any(flow.get("lost") for flow in summary.get("flows", {}).values()):
        said.append(paths.LOSS)
    return table(columns, rows) + "".join(f"{line}\n" for line in said if line) if rows else ""


def shown(summary: Mapping[str, Any]) -> str:
    """What was shown, and when, of flows that play out."""
    columns, rows = playout.table(summary)
    return table(columns, rows) if rows else ""


def ways(summary: Mapping[str, Any]) -> str:
    """Where the time went, one table a flow."""
    return "\n".join(_way(flow, path) for flow, path in summary.get("path", {}).items() if path)


def _way(flow: str, path: Sequence[Mapping[str, Any]]) -> str:
    total, start, rows = paths.total_ms(path), 0.0, []
    for part in paths.busy(path):
        mean = paths.mean_ms(part)
        share, p99 = percent(mean / total if total else None), ms(statistic(part["latency_ms"], "p99"))
        rows.append([place(part["name"]), part["what"], ms(mean), share, p99, span(start, mean, total)])
        start += mean
    columns = [words(flow), words(""), Column("mean", "ms"), Column("share"), Column("p99", "ms")]
    shown = table([*columns, words("where the time went")], rows, ["whole way", "", ms(total), "", "", ""])
    return shown + (f"{said}\n" if (said := paths.idle(path)) else "")


def split(summary: Mapping[str, Any]) -> str:
    """What the true time of samples went to, one table a flow."""
    return "\n".join(_split(flow, found) for flow, found in summary.get("split", {}).items())


def _split(flow: str, found: Mapping[str, Any]) -> str:
    columns = [words(flow), Column("mean", "ms"), Column("share"), Column("p99", "ms")]
    rows = [
        [part["part"], ms(part["mean_ms"]), percent(part["share"]), ms(part["p99_ms"])]
        for part in found["parts"]
    ]
    for hop in found["hops"]:
        rows += [
            [f"{part} at {hop['link']}", ms(hop[f"{part}_ms"]), "", ""]
            for part in ("queueing", "serialisation", "radio")
            if hop[f"{part}_ms"]
        ]
    for component in found["components"]:
        rows += [
            [f"{part} at {component['component']}", ms(component[f"{part}_ms"]), "", ""]
            for part in ("waiting", "working")
            if component[f"{part}_ms"]
        ]
    footer = ["making to sink", ms(found["total_ms"]), "", ""]
    return table([*columns], rows, footer)


def jitter(summary: Mapping[str, Any]) -> str:
    """The jitter metrics of every flow."""
    columns = [
        words("jitter"),
        Column("step mean", "ms"),
        Column("max", "ms"),
        Column("displayed mean", "ms"),
        Column("max", "ms"),
    ]
    columns += [Column("RFC 3550", "ms"), Column("PDV mean", "ms"), Column("PDV p99", "ms")]
    rows = []
    for name, flow in summary.get("flows", {}).items():
        found = flow.get("jitter_ms") or {}
        pairs = [statistic(found.get(kind), key) for kind in ("step", "displayed") for key in ("mean", "max")]
        rows.append(
            [
                name,
                *map(
                    ms,
                    [
                        *pairs,
                        finite(found.get("rfc3550")),
                        statistic(found.get("pdv")),
                        statistic(found.get("pdv"), "p99"),
                    ],
                ),
            ]
        )
    return table(columns, rows) if any(cell != NONE for row in rows for cell in row[1:]) else ""


def echo(summary: Mapping[str, Any]) -> str:
    """Latency of echo points, components and links, with 95 % confidence intervals."""
    return "\n".join(text for flow, result in summary.get("echo", {}).items() for text in _echo(flow, result))


def _echo(flow: str, result: Mapping[str, Any]) -> Iterable[str]:
    points = [(point, point.get("round_trip_ms") or {}) for point in result.get("points") or ()]
    top = max((statistic(trip) or 0.0 for _, trip in points), default=0.0)
    rows = [
        [
            point["point"],
            count(point.get("n")),
            ms(statistic(trip)),
            ms(half_width(trip.get("ci95"))),
            ms(half_width(trip.get("ci95_batch"))),
            *(ms(statistic(trip, key)) for key in ("p50", "p99", "p999")),
            ms(statistic(point.get("forward_ms"))),
            ms(statistic(point.get("return_ms"))),
            span(0.0, statistic(trip) or 0.0, top),
        ]
        for point, trip in points
    ]
    columns = [
        words(f"{flow}: echo point"),
        Column("n"),
        Column("round trip", "ms"),
        Column("±", "ms"),
        Column("± batches", "ms"),
    ]
    columns += [
        Column("p50", "ms"),
        Column("p99", "ms"),
        Column("p99.9", "ms"),
        Column("out", "ms"),
        Column("home", "ms"),
        words(""),
    ]
    if rows:
        yield table(columns, rows)
    yield from _differences(flow, result)


def _differences(flow: str, result: Mapping[str, Any]) -> Iterable[str]:
    found = [(kind[:-1], entry) for kind in ("components", "links") for entry in result.get(kind) or ()]
    rows = [
        [
            place(entry["name"]),
            kind,
            ms(statistic(entry.get("latency_ms"))),
            ms(half_width(entry.get("ci95"))),
            nothing(statistic(entry.get("latency_ms")), half_width(entry.get("ci95"))),
        ]
        for kind, entry in found
    ]
    if (actuation := statistic(result.get("actuation_ms"))) is not None:
        rows.append(["actuation (held until done)", "", ms(actuation), NONE, ""])
    if rows:
        yield table(
            [
                words(f"{flow}: as differences"),
                words(""),
                Column("mean", "ms"),
                Column("± 95 %", "ms"),
                words(""),
            ],
            rows,
        ) + "".join(f"{line}\n" for line in echoes.below_zero(result))


def links(summary: Mapping[str, Any]) -> str:
    """Links: load, loss, longest queue."""
    rows = [
        [
            link["name"],
            percent(link.get("utilisation")),
            count(link.get("packets")),
            count(link.get("dropped_packets")),
            percent(link.get("loss")),
            count(link.get("max_queue_bytes")),
            count(link.get("max_queue_packets")),
        ]
        for link in summary.get("network") or ()
    ]
    columns = [
        words("link"),
        Column("busy"),
        Column("packets"),
        Column("dropped"),
        Column("loss"),
        Column("longest queue", "B"),
        Column("packets in it"),
    ]
    return table(columns, rows) if rows else ""


def stages(summary: Mapping[str, Any]) -> str:
    """Processor time of hooks and codecs, in microseconds a call, and of all that each component has."""
    parts = [places.staged(summary), places.shared(summary)]
    return "\n".join(table(columns, rows) for columns, rows in parts if rows)


def watched(summary: Mapping[str, Any]) -> str:
    """Changes of state of hooks that watch over a flow, and the time in each state."""
    columns, rows = states.changed(summary)
    return table(columns, rows) + supervised(summary) if rows else ""


def supervised(summary: Mapping[str, Any]) -> str:
    """Time in each state of hooks that watch over a flow, the last change, and whether limits are too narrow."""
    warned = [f"WARNING: {line}" for line in states.held_back(summary)]
    return "".join(f"{line}\n" for line in [*states.spent(summary), *warned])


def nodes(summary: Mapping[str, Any]) -> str:
    """What nodes say about themselves."""
    rows = []
    for node in summary.get("nodes") or ():
        late = [statistic(node.get("late_ns"), key) for key in ("p50", "p99", "max")]
        counts = [
            count(node.get(key))
            for key in ("ticks", "missed_ticks", "gaps_over_1ms", "ring_overflows", "socket_drops")
        ]
        rows.append(
            [
                places.loop_name(node),
                seconds(node.get("busy_s")),
                *counts,
                *(NONE if t is None else f"{t / 1000:.1f}" for t in late),
            ]
        )
    columns = [
        words("node"),
        Column("busy"),
        Column("ticks"),
        Column("missed"),
        Column("gaps > 1 ms"),
        Column("records lost"),
        Column("socket drops"),
    ]
    return (
        table([*columns, *(Column(f"late {key}", "µs") for key in ("p50", "p99", "max"))], rows)
        if rows
        else ""
    )


def robots(summary: Mapping[str, Any]) -> str:
    """How the loops of robots kept their time."""
    columns, rows = places.robots_late(summary)
    return table(columns, rows) if rows else ""


def emulator(summary: Mapping[str, Any]) -> str:
    """Set against delivered."""
    columns, rows = places.emulated(summary)
    return table(columns, rows) if rows else ""


def boards(summary: Mapping[str, Any]) -> str:
    """What went over the lines of boards, and what was damaged there."""
    columns, rows = places.lined(summary)
    return table(columns, rows) if rows else ""


def notes(summary: Mapping[str, Any]) -> str:
    """What was assumed, what had no effect, what was never tried, and the hash of the records."""
    free = summary.get("assumed_free") or ()
    lines = [f"assumed free (no cost given): {', '.join(map(str, free))}"] if free else []
    lines += [f"without effect in this world: {text}" for text in summary.get("ignored") or ()]
    lines += [f"untried: {text}" for text in summary.get("untried") or ()]
    if summary.get("records_sha256"):
        lines.append(f"records sha256 {summary['records_sha256']}")
    return "\n".join(lines) + "\n" if lines else ""
