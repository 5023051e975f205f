"""Where the true time of samples went, from their making to their sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.metrics.metric import LIST, Metric

PARTS = (
    "waiting",
    "working",
    "delay",
    "board",
    "endpoint",
    "system",
    "queueing",
    "serialisation",
    "propagation",
    "radio",
    "unsplit",
    "held",
    "playout",
)
"""In the order of a sample's way."""


def _parts(split: Mapping[str, Any]) -> list[dict[str, Any]]:
    found, total = split["parts_ns"], split["total_ns"]
    return [
        {"part": part, "mean_ns": found[part]["mean"], "p99_ns": found[part]["p99"], "of_ns": total}
        for part in PARTS
        if part in found
    ]


def _by_flow(source: Mapping[str, Any]) -> dict[str, Any]:
    return {split["flow"]: split for split in source["told"].get("split", ())}


PART = (
    Metric(
        "part",
        "`waiting` at a component: for a turn, a core, the tick of a stage, a send that blocks · `working`: core time of"
        " stages · `delay` of stages · `board`: to a board and back · `endpoint`: its endpoint kept it until the"
        " datagram was sent that completed it, to merge or to pace, or because what was sent before was lost · `system`:"
        " `send` and `receive` of nodes · `queueing` · `serialisation` · `propagation` with jitter · `radio`:"
        " retransmissions on radio links · `unsplit`: in a network that does not tell · `held` by the endpoint that received"
        " it, for what comes before it · `playout`",
    ),
    Metric("mean_ms", "over all samples", "ms"),
    Metric("p99_ms", "over all samples, within 2 %", "ms"),
    Metric(
        "share",
        "of the total",
        "share",
        lambda part: part["mean_ns"] / part["of_ns"] if part["of_ns"] else None,
    ),
)
COMPONENT = (
    Metric("component", "that samples left"),
    Metric("samples", "how many", "count"),
    Metric("waiting_ms", "mean", "ms"),
    Metric("working_ms", "mean", "ms"),
)
HOP = (
    Metric("link", "that took packets"),
    Metric("packets", "how many, also of samples that were lost later", "count"),
    Metric("queueing_ms", "mean", "ms"),
    Metric("serialisation_ms", "mean", "ms"),
    Metric("propagation_ms", "mean, with jitter", "ms"),
    Metric("radio_ms", "mean of retransmissions on the link", "ms", rare=True),
)
SPLIT = Metric(
    "split",
    "by flow, in virtual time: what the true time of its samples went to that came to their sink, over the whole run."
    " Of a run with more than 131,072 samples one of 2, 4, 8 … is followed, at the level `packets` every one",
    of=_by_flow,
    parts=(
        Metric("samples", "that came and were followed", "count"),
        Metric(
            "total_ms",
            "mean true time from making to sink, playout and last stages included: the parts add up to it",
            "ms",
        ),
        Metric(
            "clock_error_ms",
            "by how much ages that are stamped by clocks of nodes are longer on the average",
            "ms",
        ),
        Metric(
            "parts",
            "those that are not nought",
            of=_parts,
            parts=PART,
            each=LIST,
            label="What the true time went to, by part",
        ),
        Metric(
            "components",
            "on the way, and all samples there",
            parts=COMPONENT,
            each=LIST,
            label="The same, by component",
        ),
        Metric(
            "hops",
            "links; one without a rate that packets pass without stopping is part of `propagation` and not listed",
            parts=HOP,
            each=LIST,
            label="The same, by link",
        ),
    ),
    each="flow",
    label="What the true time went to",
)
