"""Where the true time of samples went, from source to sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed import _tcps
from tcpsbed.analysis.largest import OF_NETWORK, largest
from tcpsbed.analysis.metrics.metric import LIST, Metric, one_of
from tcpsbed.analysis.ways import hops as complete
from tcpsbed.clocks import BETWEEN

PARTS: tuple[str, ...] = tuple(_tcps.PARTS)
"""In the order of a sample's way."""
UNSPLIT = (
    ("retransmission", "a node does not know which of its datagrams came"),
    ("system", "of the kernel that sends: the next stamp is that of the kernel that receives"),
    ("held", "the datagram that a sample waits for at the receiving endpoint carries no true time"),
    ("clock error", "delays are by the clocks of nodes; `clocks` bounds their errors"),
)
"""On sockets: what no clock sees both ends of, and why."""
NO_EMULATOR = (("queueing, serialisation, propagation", "the network between the nodes does not tell"),)
EMULATOR = (("emulation error", "is in `emulator`, of all packets together"),)


def _parts(split: Mapping[str, Any]) -> list[dict[str, Any]]:
    found, total = split["parts_ns"], split["total_ns"]
    shown = ((part, found[part]) for part in PARTS if part in found)
    return [
        {"part": part, "of_ns": total} | {f"{key}_ns": span[key] for key in ("mean", "p99") if key in span}
        for part, span in shown
    ]


def by_flow(source: Mapping[str, Any]) -> dict[str, Any]:
    """The split of each flow, with every link that its packets pass, in nanoseconds."""
    ways = source.get("ways") or {}
    return {
        flow: split | {"hops": complete(split["hops"], ways.get(flow, ()))}
        for flow, split in _told(source).items()
    }


def _told(source: Mapping[str, Any]) -> dict[str, Any]:
    told = source["told"]
    if "legs" not in told:
        return {split["flow"]: split for split in told.get("split", ())}
    found = {}
    for flow in source["rows"]["flows"]:
        legs = [leg for leg in told["legs"] if leg["flow"] == flow["name"]]
        last = _last_component(flow["name"], source.get("plan"))
        if split := _on_sockets(flow["delay_ns"], legs, last, ours=source["world"] not in BETWEEN):
            found[flow["name"]] = split
    return found


def _last_component(flow: str, plan: Mapping[str, Any] | None) -> str:
    """The last component of a flow that passes others at its last node, else empty."""
    flows = plan["flows"] if plan else ()
    path: Sequence[Mapping[str, Any]] = next((one["path"] for one in flows if one["name"] == flow), [])
    if plan is None or len(path) < 2 or path[-2].get("channel") is not None:
        return ""
    return str(plan["components"][path[-1]["component"]]["name"])


def _on_sockets(
    delay_ns: Mapping[str, Any] | None, legs: Sequence[Mapping[str, Any]], last_component: str, *, ours: bool
) -> dict[str, Any] | None:
    """The delay by clocks, to the entry of the last component, and what that and playout add, split into what nodes and
    emulator know, and `unsplit`, the rest; of programs that are not `ours` it is the emulation error.
    """
    last = [leg for leg in legs if leg["ends"]]
    if not last or not delay_ns or delay_ns.get("mean") is None:
        return None
    parts = dict.fromkeys(PARTS, 0.0)
    # An emulator reports over the datagrams that carried the flow, copies and repeats of them too.
    emulated = [leg for leg in legs if not leg["parts_ns"].keys().isdisjoint(OF_NETWORK)]
    for (
        leg
    ) in legs:  # one behind the other: each has the samples that passed it, at the rate that they have there
        for part, span in leg["parts_ns"].items():
            parts[part] += span["mean"]
    samples = sum(leg["samples"] for leg in last)
    components = [component for leg in legs for component in leg["components"]]
    if last_component:
        spans = [one for one in components if one["component"] == last_component]
        behind = sum(one["waiting_ns"] + one["working_ns"] for one in spans) + parts["playout"]
    else:
        behind = sum(leg["total_ns"] * leg["samples"] for leg in last) / samples
    total = delay_ns["mean"] + behind
    parts["unsplit"] = total - sum(parts.values())
    hops = [hop for leg in legs for hop in leg["hops"]]
    why = (*(UNSPLIT if ours else ()), *(EMULATOR if emulated or hops else NO_EMULATOR))
    return {
        "samples": samples,
        "total_ns": total,
        "parts_ns": {part: {"mean": mean} for part, mean in parts.items() if mean},
        "components": components,
        "hops": hops,
        "unsplit": [{"part": part, "why": reason} for part, reason in why],
    }


PART = (
    Metric(
        "part",
        "name of the part, see above",
    ),
    Metric("mean_ms", "over all samples", "ms"),
    Metric("p99_ms", "over all samples, within 2 %, in virtual time", "ms"),
    Metric(
        "share",
        "of the total",
        "share",
        lambda part: part["mean_ns"] / part["of_ns"] if part["of_ns"] else None,
    ),
)
NOT_SPLIT = (
    Metric("part", "part contained in `unsplit`"),
    Metric("why", "reason why it cannot be separated"),
)
COMPONENT = (
    Metric("component", "name of the component"),
    Metric("samples", "how many", "count"),
    Metric("waiting_ms", "mean", "ms"),
    Metric("working_ms", "mean", "ms"),
)
HOP = (
    Metric("link", "name of the link"),
    Metric(
        "packets",
        "followed packets, also of samples that were lost later; null at a link without a rate behind another"
        " link: packets pass it without stopping, and its delay is that of the scenario",
        "count",
    ),
    Metric("queueing_ms", "mean", "ms"),
    Metric("serialisation_ms", "mean", "ms"),
    Metric("propagation_ms", "mean, with jitter", "ms"),
    Metric("radio_ms", "mean of retransmissions on the link", "ms", rare=True),
)
SPLIT = Metric(
    "split",
    "by flow: true time of delivered samples by cause; on sockets the parts also of those sent during the warm-up."
    " Of more than 65,536 samples one in 2, 4, 8 … is followed;"
    ' with `measure.records = "packets"` every one',
    of=one_of("split"),
    parts=(
        Metric("samples", "delivered samples that were followed", "count"),
        Metric(
            "total_ms",
            "mean true time from source to sink, including playout and last stages: the sum"
            " of the parts; on sockets the mean of `delay_ms` plus the time from the entry of the last component",
            "ms",
        ),
        Metric(
            "clock_error_ms",
            "in virtual time: mean difference between age by the clocks of nodes and true age",
            "ms",
        ),
        Metric(
            "parts",
            "parts that are not zero",
            of=_parts,
            parts=PART,
            each=LIST,
            label="True time by cause, of a sample",
        ),
        Metric(
            "components",
            "components of the path, and the followed samples that left them",
            parts=COMPONENT,
            each=LIST,
            label="True time by component",
        ),
        Metric(
            "hops",
            "links that the flow's packets pass: those of its path in order, then those of other packets, such as"
            " acknowledgements and copies; packets that flows share are listed at the first flow of their channel",
            parts=HOP,
            each=LIST,
            label="True time by link, of a packet",
        ),
        Metric(
            "unsplit",
            "on sockets: contents of the part `unsplit`",
            parts=NOT_SPLIT,
            each=LIST,
            label="Parts that sockets cannot separate",
        ),
    ),
    each="flow",
    label="True time",
)
LARGE = (
    Metric("cause", "name of the part, as in `split`; empty where only places are known"),
    Metric("place", "link, component or channel; empty where it is of none"),
    Metric("mean_ms", "mean time spent on it", "ms"),
    Metric("total_ms", "mean time from source to sink, as in `split`", "ms"),
    Metric("share", "of `total_ms`", "share", lambda one: one["mean_ns"] / one["total_ns"]),
    Metric("key", "key of the scenario that changes it; empty where there is none"),
    Metric(
        "value",
        "value of this key, and what else is to be known of it; empty where it is no single number or name",
    ),
)
LARGEST = Metric(
    "largest",
    "by flow that delivered: the largest single part of its delay, and what changes it; none of a flow without delay, or"
    " where on sockets half of the part may be the difference of the clocks. Times of a cause are shared among the links"
    " or components of the flow's path in proportion to the means of `split`",
    of=lambda source: largest(source, source["split"]),
    parts=(
        *LARGE,
        Metric(
            "next",
            "the second largest, if it takes at least three quarters of that time",
            parts=LARGE,
            each=LIST,
            label="Nearly as large",
        ),
    ),
    each="flow",
    label="Largest part of the delay",
)
