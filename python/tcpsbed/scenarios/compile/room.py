"""Overload of a network: samples larger than a queue, and cross traffic above the rate of its link."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tcpsbed import _tcps

MTU_BYTES, HEADER_BYTES, BELOW_BYTES = 1200, 24, _tcps.STACK_BYTES
"""Longest datagram of `udp` unless set, its own header, and UDP, IPv4 and Ethernet below it."""
ONE_QUEUE = ("drop-tail", "red", "codel")
"""Queue disciplines in which all that comes waits behind all that is there."""

Found = Mapping[str, Any]


def warnings(plan: Found) -> list[str]:
    """What may surprise the user about the planned run, a sentence each."""
    return [*_queues(plan), *_lines(plan)] if plan["network"]["links"] else []


def _lines(plan: Found) -> Iterator[str]:
    """Links whose rate is too low for their cross traffic of a set rate: for one entry alone, or for all together."""
    offered: dict[int, list[Found]] = {}
    sources = [one for one in plan["network"]["traffic"] if one["model"].get("rate_bps")]
    pairs = list(dict.fromkeys((one["from"], one["to"]) for one in sources))
    ways = dict(zip(pairs, _tcps.ways(json.dumps(plan), pairs) if pairs else (), strict=True))
    for one in sources:
        for number in ways[one["from"], one["to"]] or ():
            offered.setdefault(number, []).append(one)
    for number, there in offered.items():
        link = plan["network"]["links"][number]
        if link.get("queue", {}).get("discipline", {}).get("kind", "drop-tail") not in ONE_QUEUE:
            continue
        most_bps = max(sum(_bps(one, begun["start_ns"]) for one in there) for begun in there)
        if (rate_bps := link.get("rate_bps", math.inf)) < most_bps:
            names = ", ".join(dict.fromkeys(f"traffic.{one['name'].partition('.')[0]}" for one in there))
            times = _times(most_bps / rate_bps)
            yield (
                f"{names}: up to {most_bps / 1e6:g} Mbit/s are offered to {link['name']}, {times} times "
                f"its rate of {rate_bps / 1e6:g} Mbit/s: its queue stays full and drops other traffic too"
            )


def _times(share: float) -> str:
    return f"{share:.3g}" if share < 100 else f"{share:.0f}"


def _bps(traffic: Found, at_ns: int) -> float:
    """The mean rate of cross traffic at a given time."""
    going = traffic["start_ns"] <= at_ns < traffic.get("stop_ns", math.inf)
    return float(traffic["model"]["rate_bps"]) if going else 0.0


def _queues(plan: Found) -> list[str]:
    """A sentence for each flow and each queue that is too small for some of its samples, with both sizes and the remedy.

    Looked at are flows over `udp`, which sends all packets of a sample at once, up to the first hook, whose samples may have
    another size.
    """
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
    """The warning for a flow at a link that its packets reach at most this fast; empty if all its samples fit."""
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
        f"sample arrive together, {found} must wait, and the queue holds {holds}. "
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
    """Waiting bytes and packets of a sample when its last packet arrives at an empty queue.

    The first packet is in service; `share` of what follows it stays, less a packet where a slower link is before this one.
    """
    room = params.get("mtu_bytes", MTU_BYTES) - HEADER_BYTES
    packets = max(1, math.ceil(size / room))
    header = params.get("overhead_bytes", HEADER_BYTES + BELOW_BYTES)
    one = math.ceil(size / packets)
    spared = 0 if share == 1 else 1
    waiting_bytes = (size - one + (packets - 1) * header) * share - spared * (one + header)
    return max(waiting_bytes, 0), max((packets - 1) * share - spared, 0)
