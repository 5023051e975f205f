"""Tables for the terminal: plain aligned text, the same on a screen and through a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from tcpsbed.analysis import metrics, protection
from tcpsbed.analysis.disturbances import meaning
from tcpsbed.errors import counted, one_line
from tcpsbed.views import echoes, paths, programs, spread, states, tables
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.glance import glance
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE
from tcpsbed.views.sentence import causes

PLAYOUT = "Playout"
"""A table of flows that an overview has."""
BAR_CELLS = 32
"""Characters of the longest bar."""

EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Blocks of zero to eight eighths of a character, from the left."""


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], footer: Sequence[object] = ()) -> str:
    """Aligned text: words left, numbers right, without columns that are empty in every row."""
    body = [[one_line(str(cell)) for cell in row] for row in rows]
    shown = [i for i in range(len(columns)) if any(row[i].strip() not in ("", NONE) for row in body)]
    head = [one_line(f"{column.title} {column.unit}".strip()) for column in columns]
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
    first, *others = of(summary, "flows")
    parts = (
        headline(run) + without_effect(summary, MOST_WITHOUT_EFFECT),
        across_seeds(summary),
        flows(summary, first),
        *(shown for shown in others if shown.startswith(PLAYOUT)),
        ways(summary),
        *of(summary, "media"),
        *of(summary, "metrics"),
        supervised(summary),
        f"{left_out}\n" if left_out else "",
    )
    return "\n".join(part for part in parts if part)


def everything(run: RunFolder) -> str:
    """All tables about a run."""
    summary = run.summary
    first, *others = of(summary, "flows")
    parts = [
        headline(run),
        across_seeds(summary),
        flows(summary, first),
        ways(summary),
        *others,
        echo(summary),
    ]
    for part in metrics.SUMMARY:
        if part.parts and part.key not in tables.DRAWN:
            parts += of(summary, part.key)
    return "\n".join(part for part in [*parts, supervised(summary), notes(summary)] if part)


def of(summary: Mapping[str, Any], key: str) -> list[str]:
    """The tables of a part of the summary, its own first, which is empty where there is nothing in it."""
    part = metrics.section(key)
    found = tables.tables(part, summary.get(key), brief=True)
    own = found and found[0].title == part.title
    shown = [f"{one.title}\n{table(one.columns, one.rows)}" for one in found[1 if own else 0 :]]
    return [table(found[0].columns, found[0].rows) if own else "", *shown]


def headline(run: RunFolder) -> str:
    """Scenario, world, seed and duration, the same in every world; disturbances and errors below."""
    summary = run.summary
    version = (summary.get("versions") or {}).get("tcpsbed", "")
    lines = [" · ".join([run.name, *run.conditions, f"tcpsbed {version}"])]
    lines += [f"ERROR: {text}" for text in summary.get("errors") or ()]
    lines += [f"ATTACKED: {text}" for text in summary.get("attacked") or ()]
    lines += [f"SUPERVISOR: {text}" for text in summary.get("supervisors") or ()]
    if amiss := summary.get("disturbances"):
        lines += [f"DISTURBED: {text}" for text in amiss]
        lines += [f"{said} (tcpsbed docs real-world)"] if (said := meaning(summary)) else []
    if down := summary.get("outages"):
        lines.append(f"outages: {_outages(down)}")
    if caused := summary.get("as_set"):
        lines.append(f"attacks: {'; '.join(caused)}")
    lines += protection.sentences(summary.get("protection") or ())
    if found := summary.get("programs"):
        lines += [
            *programs.judged(found),
            *programs.settings(found),
            *programs.remedies(found),
            *programs.measured(found, summary.get("stalls")),
        ]
    return "\n".join(lines) + "\n"


MOST_WITHOUT_EFFECT = 6
"""Keys without effect that an overview names."""


def without_effect(summary: Mapping[str, Any], most: int | None = None) -> str:
    """Keys of the scenario that have no effect in this world, a line each, and how many more there are."""
    found = list(summary.get("ignored") or ())
    left = len(found) - len(found[:most])
    lines = [f"without effect in this world: {text}\n" for text in found[:most]]
    return "".join(lines) + (f"without effect in this world: {left} more (tcpsbed show)\n" if left else "")


MOST_OUTAGES = 4
"""Links, and outages of each, that are told one by one."""


def _outages(down: Iterable[Mapping[str, Any]]) -> str:
    """Links that were down, from when, and for how long: `l1 at 2.000 s for 0.200 s, at 6.000 s for 0.500 s`."""
    by_link: dict[str, list[str]] = {}
    for one in down:
        by_link.setdefault(one["link"], []).append(f"at {one['from_s']:.3f} s for {one['length_s']:.3f} s")
    left = len(by_link) - MOST_OUTAGES
    return "; ".join(
        f"{link} {', '.join(spans[:MOST_OUTAGES])}"
        + (f" and {len(spans) - MOST_OUTAGES} more" if len(spans) > MOST_OUTAGES else "")
        for link, spans in islice(by_link.items(), MOST_OUTAGES)
    ) + (f"; and {counted(left, 'other link')}" if left > 0 else "")


def across_seeds(summary: Mapping[str, Any]) -> str:
    """Means over seeds with their 95 % intervals; of one seed, that it is one."""
    said, found = spread.sentence(summary), spread.table(summary)
    return (f"{said}\n" if said else "") + (table(found.columns, found.rows) if found else "")


def flows(summary: Mapping[str, Any], shown: str) -> str:
    """Sent and received samples, delays, and remarks."""
    found = summary.get("flows", {})
    said = [paths.renumbered(name, flow) for name, flow in found.items()]
    if any(flow.get("lost") for flow in found.values()):
        said += [paths.LOSS, *causes(summary)]
    return shown + "".join(f"{line}\n" for line in said if line)


def ways(summary: Mapping[str, Any]) -> str:
    """Where the time went: one table a flow, then a sentence a flow."""
    drawn = [_way(flow, path) for flow, path in summary.get("path", {}).items() if path]
    said = "".join(f"{line}\n" for line in paths.largest(summary).values())
    return "\n".join(filter(None, [*drawn, said]))


def _way(flow: str, path: Sequence[Mapping[str, Any]]) -> str:
    total, start, drawn = paths.total_ms(path), 0.0, []
    parts = paths.busy(path)
    for part in parts:
        drawn.append(span(start, paths.mean_ms(part), total))
        start += paths.mean_ms(part)
    columns = tables.fields(metrics.section("path").parts, brief=True)
    laid = tables.laid(columns, parts).beside(-1, words("where the time went"), drawn)
    whole = {"name": "end to end", "latency_ms": {"mean": total}}
    footer = [one.shown(one.read(whole) or "") for one in columns]
    said = paths.idle(path)
    return f"{flow}\n{table(laid.columns, laid.rows, [*footer, ''])}" + (f"{said}\n" if said else "")


def echo(summary: Mapping[str, Any]) -> str:
    """Latency of echo points, components and links, with 95 % confidence intervals."""
    return "\n".join(text for flow, result in summary.get("echo", {}).items() for text in _echo(flow, result))


def _echo(flow: str, result: Mapping[str, Any]) -> Iterable[str]:
    if points := echoes.points(result, brief=True):
        trips = echoes.trips(result)
        drawn = points.beside(-1, words(""), (span(0.0, trip, max(trips)) for trip in trips))
        yield f"{flow}: echo points\n{table(drawn.columns, drawn.rows)}"
    if found := echoes.differences(result, brief=True):
        said = "".join(f"{line}\n" for line in echoes.below_zero(result))
        yield f"{flow}: as differences\n{table(found.columns, found.rows)}{said}"
    for other in echoes.others(flow, result):
        yield f"{other.title}\n{table(other.columns, other.rows)}"


def supervised(summary: Mapping[str, Any]) -> str:
    """Time in each state of hooks that watch over a flow, the last change, and whether limits are too narrow."""
    warned = [f"WARNING: {line}" for line in states.held_back(summary)]
    return "".join(f"{line}\n" for line in [*states.spent(summary), *warned])


def notes(summary: Mapping[str, Any]) -> str:
    """What was assumed, what had no effect, what was never tried, and the hash of the records."""
    free = summary.get("assumed_free") or ()
    lines = [f"zero-cost stages (no cost given): {', '.join(map(str, free))}"] if free else []
    lines += without_effect(summary).splitlines()
    lines += [f"untried: {text}" for text in summary.get("untried") or ()]
    if summary.get("records_sha256"):
        lines.append(f"records sha256 {summary['records_sha256']}")
    return "\n".join(lines) + "\n" if lines else ""
