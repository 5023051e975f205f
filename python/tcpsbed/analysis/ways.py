"""The links that samples of each flow pass, from a plan; and those that they pass without stopping, with their delay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed import _tcps

Link = Mapping[str, Any]


def ways(plan: Mapping[str, Any]) -> dict[str, list[list[Link]]]:
    """By flow: for each channel on its path the links from one node to the next, in order; `changed`: by events.

    Nothing where the way of a packet depends on its code point (`dscp` of a link), or no link lies between nodes.
    """
    links = (plan.get("network") or {}).get("links") or ()
    if not links or any(link.get("dscp") is not None for link in links):
        return {}
    ends = {flow["name"]: list(_ends(plan, flow)) for flow in plan["flows"]}
    pairs = list(dict.fromkeys(pair for found in ends.values() for pair in found))
    changed = changes(plan)
    links = [link | {"changed": number in changed} for number, link in enumerate(links)]
    network = plan["network"] | {"links": [_bare(link) for link in links], "traffic": []}
    bare = json.dumps({**plan, "network": network})
    found = dict(zip(pairs, _tcps.ways(bare, pairs) if pairs else (), strict=True))
    return {
        flow: [[links[number] for number in found[pair] or ()] for pair in of] for flow, of in ends.items()
    }


def _bare(link: Link) -> dict[str, Any]:
    """A link without what may be code, which routes do not ask for."""
    return {key: value for key, value in link.items() if key not in ("changed", "jitter", "loss", "queue")}


def changes(plan: Mapping[str, Any]) -> dict[int, set[str]]:
    """By number of a link the keys of the plan that events set."""
    found: dict[int, set[str]] = {}
    for event in plan.get("events", ()):
        if event["action"]["kind"] == "link":
            for number in event["action"]["links"]:
                found.setdefault(number, set()).update(event["action"].keys() - {"kind", "links"})
    return found


def _ends(plan: Mapping[str, Any], flow: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The nodes at both ends of each channel of a flow, the sending one first."""
    for visit in flow["path"]:
        if visit.get("channel") is not None:
            channel = plan["channels"][visit["channel"]]
            here = plan["components"][visit["component"]]["node"]
            yield here, channel["b"] if channel["a"] == here else channel["a"]


def hops(told: Sequence[Mapping[str, Any]], ways: Sequence[Sequence[Link]]) -> list[dict[str, Any]]:
    """What a flow's packets spent at each link of its ways, in order.

    The network tells nothing of links without a rate that packets pass without stopping behind another: these get their
    delay from the plan, and so do the packets that passed such a link before an event made them stop there. A way whose
    first link knows no packet of the flow is left as it was told: others carry its samples.
    """
    there = {hop["link"]: dict(hop) for hop in told}
    found: dict[str, dict[str, Any]] = {}
    for way in ways:
        if not way or way[0]["name"] not in there:
            continue
        packets = there[way[0]["name"]]["packets"]
        for link in way:
            name, delay_ns = link["name"], link.get("delay_ns", 0)
            if name in there:
                found[name] = there[name]
                if link.get("changed") and link.get("rate_bps") is None and found[name]["packets"] < packets:
                    found[name] = _with_passed(found[name], packets, delay_ns)
                packets = found[name]["packets"]
            elif link.get("rate_bps") is None:
                found[name] = _passed(name, delay_ns)
    return [*found.values(), *(hop for name, hop in there.items() if name not in found)]


def _with_passed(hop: Mapping[str, Any], packets: int, delay_ns: int) -> dict[str, Any]:
    """A hop of some of these packets, once the others have spent this delay there."""
    share = hop["packets"] / packets
    spent = {key: mean * share for key, mean in hop.items() if key.endswith("_ns")}
    spent["propagation_ns"] += (1 - share) * delay_ns
    return {**hop, **spent, "packets": packets}


def _passed(name: str, delay_ns: int) -> dict[str, Any]:
    spent = dict.fromkeys(("queueing_ns", "serialisation_ns", "radio_ns"), 0.0)
    return {"link": name, "packets": None, **spent, "propagation_ns": float(delay_ns)}
