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
    spread("forward_ms", "estimate of the way out, by the stamps of the nodes' clocks", label="out",
        shown=("mean",)),
    spread("return_ms", "estimate of the way home, by the same; the forward leg is never half a round trip",
        label="home", shown=("mean",)),
)  # fmt: skip


def _half_width(key: str) -> Any:
    return lambda part: part["latency_ns"] and ms(part["latency_ns"][key])


# [Polachan 2022]
STRETCH = (
    Metric("what", "as in `path`"),
    Metric("name", "as in `path`", label="place"),
    Metric("from", "the first point", brief=()),
    Metric("to", "the second point", brief=()),
    spread("latency_ms", "estimate: the difference of the forward legs, or of the round trips where there"
        " are no stamps", label="latency", shown=SPREAD[:3]),
    Metric("ci95", "half width of its 95 % interval again", "ms", _half_width("ci95"), label="±"),
    Metric("ci95_batch", "the same from batches, again", "ms", _half_width("ci95_batch"),
        label="± in batches"),
    Metric("source", "`one_way` or `round_trip`"),
    Metric("halved", "true only for a link whose latency is half the difference of the round trips,"
        " because the echo comes back over the same link. A component is never halved: only the way out"
        " passes it", rare=True),
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
    Metric("from", "node of the source, which gives the commands"),
    Metric("to", "node of the test-pc"),
    Metric("corrected", "whether they are, by the estimated offsets (`measure.sync`)"),
    Metric("unknown", "answers that came before both clocks were known; they are in no figure", "count",
        label="before clocks were known", rare=True),
    Metric("correction_ms", "mean of what was added, null if nothing was", "ms",
        _if_corrected("correction_ns"), label="correction"),
    Metric("bound_ms", "how wrong that can be, however unequal the ways are: the bounds of both clocks"
        " together", "ms", _if_corrected("bound_ns"), label="bound ±"),
)  # fmt: skip
PROBE = (
    Metric("commands", "echo commands whose fate is known", "count"),
    Metric("points", "list, in the order of the way", parts=POINT, each=LIST, label="Echo points"),
    Metric("components", "list of stretches between points that follow each other, taken within one round"
        " of interleaved commands", of=_stretches("component"), parts=STRETCH, each=LIST,
        label="Components as differences"),
    Metric("links", "list of the same", of=_stretches("link"), parts=STRETCH, each=LIST,
        label="Links as differences"),
    Metric("spans", "list of the same that are neither a component nor a link, because points between were"
        " not asked", of=_stretches("span"), parts=STRETCH, each=LIST, label="Spans as differences"),
    spread("actuation_ms", "estimate of the hold-until-done point minus the exit of its component: the"
        " time the robot took to arrive", of=_actuation, label="actuation (held until done)",
        shown=("mean", "ci95", "p50", "p99")),
    Metric("clocks", "null where commands are given and answered at one node; else the two clocks that the"
        " round trips are between", of=lambda probe: probe.get("clocks"), parts=CLOCKS,
        table="Clocks of round trips"),
)  # fmt: skip
SECTIONS = (
    Metric("echo", "by flow: echo commands",
        of=lambda source: {probe["flow"]: probe for probe in source["rows"]["echo"]}, parts=PROBE,
        each="flow", label="Echo commands"),
)  # fmt: skip
