"""Queues without room for a whole sample: what a flow can never get through them, even alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tcpsbed import _tcps

MTU_BYTES, HEADER_BYTES, BELOW_BYTES = 1200, 24, 8 + 20 + 26
"""Longest datagram of `udp` unless set, its own header, and UDP, IPv4 and Ethernet below it."""

Found = Mapping[str, Any]


def warnings(plan: Found) -> list[str]:
    """A sentence for each flow and each queue that is too small for some of its samples, with both sizes and the remedy.

    Looked at are flows over `udp`, which sends all packets of a sample at once, up to the first hook, whose samples may have
    another size.
    """
    if not plan["network"]["links"]:
        return []
    hops = [(flow, *hop) for flow in plan["flows"] for hop in _hops(plan, flow)]
    pairs = list(dict.fromkeys((start, end) for _, _, start, end in hops))
    ways = dict(zip(pairs, _tcps.ways(json.dumps(plan), pairs), strict=True))
    found: dict[tuple[str, str], str] = {}
    for flow, channel, start, end in hops:
        fastest_bps = math.inf
        for number in ways[start, end] or ():
            link = plan["network"]["links"][number]
            if said := _refused(flow, channel["params"], link, fastest_bps):
                found.setdefault((flow["name"], link["name"]), said)
            fastest_bps = min(fastest_bps, link.get("rate_bps", math.inf))
    return list(found.values())


def _hops(plan: Found, flow: Found) -> Iterator[tuple[Found, int, int]]:
    """Channels that samples of the source pass as they are, each with the nodes at its ends."""
    for visit in flow["path"]:
        channel = plan["channels"][visit["channel"]] if visit.get("channel") is not None else None
        if any(step.get("run") for step in visit.get("steps", ())):
            return
        if channel is not None and channel["transport"] == "udp":
            here = plan["components"][visit["component"]]["node"]
            yield channel, here, channel["b"] if channel["a"] == here else channel["a"]


def _refused(flow: Found, params: Found, link: Found, fastest_bps: float) -> str:
    """What to say of a flow at a link that its packets reach at most this fast; empty if all its samples fit."""
    rate_bps, queue = link.get("rate_bps", math.inf), link.get("queue", {})
    if rate_bps >= fastest_bps:
        return ""
    share = 1 - rate_bps / fastest_bps
    room_bytes, room_packets = (queue.get(key) or math.inf for key in ("limit_bytes", "limit_packets"))
    sizes = _sizes(flow["source"])
    needs = [_waiting(size, params, share) for size in sizes]
    lost = sum(need > room_bytes or packets > room_packets for need, packets in needs)
    if not lost:
        return ""
    most_bytes, most_packets = (math.ceil(max(column)) for column in zip(*needs, strict=True))
    found, holds = f"{most_packets} packets", f"{room_packets:g}"
    if most_bytes > room_bytes:
        found, holds = f"{most_bytes} B", f"{room_bytes:g} B"
    name = link["name"].rpartition(".")[0] or link["name"]
    return (
        f"flows.{flow['name']}: {_which(lost, sizes)} never get through the queue of {link['name']}: the packets of one "
        f"come at once, {found} of them wait, and the queue holds {holds}. "
        f'Set links.{name}.queue = "{found}" or more, or send smaller samples'
    )


def _which(lost: int, sizes: list[int]) -> str:
    if len(sizes) == 1:
        return f"samples of {sizes[0]} B"
    return f"samples of up to {max(sizes)} B ({lost} of the {len(sizes)} of its source)"


def _sizes(source: Found) -> list[int]:
    if source["kind"] == "frames":
        offsets = source["offsets"]
        return [end - begin for begin, end in pairwise(offsets)]
    if source["kind"] == "sizes":
        return list(source["bytes"])
    return [source["bytes"]] if source["kind"] == "generated" else []


def _waiting(size: int, params: Found, share: float) -> tuple[float, float]:
    """Bytes and packets of a sample that wait when its last packet is there, in a queue that was empty.

    The first packet is in service; `share` of what follows it stays, less a packet where a slower link is before this one.
    """
    room = params.get("mtu_bytes", MTU_BYTES) - HEADER_BYTES
    packets = max(1, math.ceil(size / room))
    header = params.get("overhead_bytes", HEADER_BYTES + BELOW_BYTES)
    one = math.ceil(size / packets)
    spared = 0 if share == 1 else 1
    waiting_bytes = (size - one + (packets - 1) * header) * share - spared * (one + header)
    return max(waiting_bytes, 0), max((packets - 1) * share - spared, 0)
