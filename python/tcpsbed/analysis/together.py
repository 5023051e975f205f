"""Flows whose packets a link cannot tell apart on the machine's clock: those of a secured channel, and of a stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tcpsbed.clocks import SIMULATED

PER_FLOW = ("udp", "rtp")
"""Transports whose packets name their flow."""


def together(plan: Mapping[str, Any], world: str) -> list[list[str]]:
    """Lists of flows that leave a node by the same channel without being named in their packets, each of two or more, in the
    order of the scenario; flows that share packets on one of several channels are in one list.
    """
    if world in SIMULATED:
        return []
    leaving = defaultdict[tuple[int, int], set[str]](set)
    for flow in plan.get("flows", ()):
        for visit in flow["path"]:
            if (channel := visit["channel"]) is not None and _hides(plan["channels"][channel]):
                leaving[channel, plan["components"][visit["component"]]["node"]].add(flow["name"])
    found: list[set[str]] = []
    for group in leaving.values():
        apart = [one for one in found if not one & group]
        found = [*apart, group.union(*(one for one in found if one & group))]
    order = [flow["name"] for flow in plan.get("flows", ())]
    return [sorted(group, key=order.index) for group in found if len(group) > 1]


def _hides(channel: Mapping[str, Any]) -> bool:
    return bool(channel.get("security")) or channel["transport"] not in PER_FLOW
