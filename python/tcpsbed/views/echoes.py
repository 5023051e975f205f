"""Report sections on echo points: round trips along the path, components and links as differences, ages of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import Metric
from tcpsbed.views import charts, markup, tables
from tcpsbed.views.charts import Sheet
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.markup import Html, bar, words
from tcpsbed.views.numbers import half_width, nothing, place, statistic
from tcpsbed.views.tables import Table

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
        yield f"Negative, but the interval includes 0: {', '.join(unknown)}. These may be 0."
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
        "in batches: intervals from 20 batch means, which remain valid if neighbouring samples are correlated. "
        "Outbound and return: one-way delays by the clocks of the nodes. Components and links are differences of "
        "neighbouring points; where half of a difference was taken, the row says so. " + COST,
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
    drawn = ""
    if laid := points(result):
        lanes = _lanes([entry.get("round_trip_ms") for entry in result["points"]])
        drawn = markup.block(
            markup.heading(f"{flow}: round trip by point"), _with(laid, 1, "along the path", lanes)
        )
    if laid := differences(result):
        entries = stretches(result)
        lanes = _lanes(
            [entry["latency_ms"] for entry in entries], [entry.get("what", "") for entry in entries]
        )
        drawn += markup.block(
            markup.heading(f"{flow}: components and links as differences"),
            _with(laid, 2, "mean and interval", lanes),
            *map(markup.note, below_zero(result)),
        )
    return drawn + "".join(map(tables.titled, others(flow, result)))


def _lanes(latencies: Sequence[Any], what: Sequence[str] = ()) -> list[Html]:
    """A bar for each mean, with its interval, on one axis."""
    means = [statistic(latency) or 0.0 for latency in latencies]
    halves = [half_width((latency or {}).get("ci95")) for latency in latencies]
    top = max((mean + (half or 0.0) for mean, half in zip(means, halves, strict=True)), default=0.0)
    paints = what or ["plain"] * len(means)
    return [
        markup.lane(mean, top, kind(paint), half=half)
        for mean, half, paint in zip(means, halves, paints, strict=True)
    ]


def kind(what: str) -> str:
    """How a stretch of a path is painted: as a component, as a link, or plainly."""
    return what if what in ("component", "link") else "plain"


def _with(laid: Table, place: int, title: str, lanes: Sequence[Html]) -> Html:
    shown = laid.beside(place, bar(title), lanes)
    return markup.table(shown.columns, shown.rows)


def points(result: Mapping[str, Any], *, brief: bool = False) -> Table | None:
    """Round trips and legs by point, along the path."""
    found = result.get("points") or ()
    return tables.laid(tables.fields(_parts("points"), brief=brief), found) if found else None


def trips(result: Mapping[str, Any]) -> list[float]:
    """Mean round trips of the points."""
    return [statistic(point.get("round_trip_ms")) or 0.0 for point in result["points"]]


def stretches(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Components, links and spans in the order of the path, and the time that the robot took to arrive."""
    names = [point["point"] for point in result.get("points") or ()]
    found = [entry for key in ("components", "links", "spans") for entry in result.get(key) or ()]
    found.sort(key=lambda entry: names.index(entry["from"]) if entry.get("from") in names else len(names))
    if statistic(actuation := result.get("actuation_ms")) is not None:
        name = metrics.section("echo").part("actuation_ms").title
        found.append({"name": name, "latency_ms": actuation, "ci95": _interval({"latency_ms": actuation})})
    return found


def differences(result: Mapping[str, Any], *, brief: bool = False) -> Table | None:
    """Latencies of the segments between points, and whether each differs from 0."""
    found = stretches(result)
    if not found:
        return None
    laid = tables.laid(tables.fields(_parts("components"), brief=brief), found)
    doubts = (nothing(statistic(entry["latency_ms"]), half_width(_interval(entry))) for entry in found)
    return laid.beside(-1, words(""), doubts)


def others(flow: str, result: Mapping[str, Any]) -> list[Table]:
    """What else is known of a flow's echoes: how many commands there were, and between which clocks."""
    part = metrics.section("echo")
    told = {key: value for key, value in result.items() if not isinstance(value, list)}
    return tables.tables(part, {flow: told})


def _parts(key: str) -> Sequence[Metric]:
    return metrics.section("echo").part(key).parts


def _interval(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return None
    inner = entry.get("latency_ms")
    return entry.get("ci95", inner.get("ci95") if isinstance(inner, Mapping) else None)


def ages(run: RunFolder) -> Html:
    """How old a sample is when it passes each point, from the samples themselves."""
    parts = []
    section = metrics.section("points")
    for flow, found in run.summary.get("points", {}).items():
        if not found:
            continue
        laid = tables.laid(tables.fields(section.parts), found)
        drawn = _with(laid, 1, "mean age", _lanes([point.get("age_ms") for point in found]))
        parts.append(f"<details><summary>{markup.escaped(flow)}</summary>{drawn}</details>")
    return markup.section("ages", section.title, *parts)
