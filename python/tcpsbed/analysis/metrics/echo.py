"""Echo points: round trips, one-way legs, and differences between neighbours."""

from __future__ import annotations

from typing import Any

from tcpsbed.analysis.metrics.metric import LIST, SPREAD, Metric, spread
from tcpsbed.analysis.units import ms

TRIP = ("mean", "ci95", "ci95_batch", "p50", "p99", "p999")

POINT = (
    Metric("point", "as in `points` above"),
    Metric("n", "commands answered", "count", label="echoes"),
    Metric("lost", "commands never answered", "count", rare=True),
    Metric("superseded", "commands superseded by a newer sample at a periodic stage or a newer command at"
        " the robot (not lost)", "count", rare=True),
    spread("round_trip_ms", "estimate of the time from the command to its answer", shown=TRIP),
    spread("forward_ms", "estimate of the outbound delay, by the timestamps of the nodes' clocks", label="outbound",
        shown=("mean",)),
    spread("return_ms", "estimate of the return delay, by the same; the outbound delay is measured, never"
        " taken as half a round trip",
        label="return", shown=("mean",)),
)  # fmt: skip


def _half_width(key: str) -> Any:
    return lambda part: part["latency_ns"] and ms(part["latency_ns"][key])


# [Polachan 2022]
STRETCH = (
    Metric("what", "as in `path`"),
    Metric("name", "as in `path`", label="place"),
    Metric("from", "the first point", brief=()),
    Metric("to", "the second point", brief=()),
    spread("latency_ms", "estimate: the difference of the outbound delays, or of the round trips without"
        " stamps", label="latency", shown=SPREAD[:3]),
    Metric("ci95", "the same number as `latency_ms.ci95`", "ms", _half_width("ci95"), label="±"),
    Metric("ci95_batch", "the same number as `latency_ms.ci95_batch`", "ms", _half_width("ci95_batch"),
        label="± in batches"),
    Metric("source", "`one_way` or `round_trip`"),
    Metric("halved", "true only for a link whose latency is half the difference of the round trips,"
        " because the echo returns over the same link. A component is never halved: only"
        " the outbound path passes it", rare=True, type="bool"),
    spread("round_trip_difference_ms", "estimate of the difference of the round trips, as measured",
        label="difference of round trips", shown=("mean",)),
)  # fmt: skip


def _stretches(what: str) -> Any:
    return lambda probe: [part for part in probe["differences"] if part["what"] == what]


def _actuation(probe: Any) -> Any:
    return next((ms(part["latency_ns"]) for part in _stretches("actuation")(probe)), None)


def _if_corrected(key: str) -> Any:
    return lambda clocks: ms(clocks[key]) if clocks["corrected"] else None


CLOCKS = (
    Metric("from", "node of the source, which sends the commands"),
    Metric("to", "node of the component that receives the answers (`test-pc`)"),
    Metric("corrected", "whether stamps are corrected by the estimated offsets (`measure.sync`)", type="bool"),
    Metric("unknown", "answers received before both clocks were known; no result counts them", "count",
        label="before clocks were known", rare=True),
    Metric("correction_ms", "mean correction, null if there was none", "ms",
        _if_corrected("correction_ns"), label="correction"),
    Metric("bound_ms", "largest error of the correction, for any asymmetry of the paths: the bounds of"
        " both clocks added", "ms", _if_corrected("bound_ns"), label="bound ±"),
)  # fmt: skip
PROBE = (
    Metric("commands", "echo commands whose fate is known", "count"),
    Metric("points", "list, in the order of the path", parts=POINT, each=LIST, label="Echo points"),
    Metric("components", "list of components, each the segment between two consecutive points, measured within"
        " one round of interleaved commands", of=_stretches("component"), parts=STRETCH, each=LIST,
        label="Components as differences"),
    Metric("links", "list of segments that are links, with the keys of `components`",
        of=_stretches("link"), parts=STRETCH, each=LIST, label="Links as differences"),
    Metric("spans", "list of segments, with the keys of `components`, that are neither a component nor a link, because"
        " points in between were not measured", of=_stretches("span"),
        parts=STRETCH, each=LIST, label="Spans as differences"),
    spread("actuation_ms", "estimate of the time from the robot's component (exit or entry) to the point `held`, at which"
        " the robot has reached the command", of=_actuation,
        label="actuation (held until done)", shown=("mean", "ci95", "p50", "p99")),
    Metric("clocks", "the two clocks of the round trips; null if commands are sent and answered at"
        " one node", of=lambda probe: probe.get("clocks"), parts=CLOCKS,
        table="Clocks of round trips"),
)  # fmt: skip
SECTIONS = (
    Metric("echo", "by flow: echo commands",
        of=lambda source: {probe["flow"]: probe for probe in source["rows"]["echo"]}, parts=PROBE,
        each="flow", label="Echo commands"),
)  # fmt: skip
