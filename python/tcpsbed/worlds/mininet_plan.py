"""A plan in Mininet: hosts, switches, links of the kernel, and links that our relay emulates.

```
 switch s0 ── veth with HTB, pfifo, netem ── switch s1      what the kernel can do
 switch s0 ── TAP l0a ══ relay ══ TAP l0b ── switch s1      everything else: jitter, bursts of loss, …
```
A kernel without `netem` neither delays nor loses: there links that do are the relay's, too.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tcpsbed import _tcps
from tcpsbed.worlds import background, fit

RELAYED = ("medium", "jitter", "duplicate", "corrupt", "outages", "slots", "opportunities_ns")
"""Keys of a link that the kernel's queues cannot do."""
UNCOUNTED_BYTES = _tcps.LINK_BYTES - 14
"""What the kernel, which sees an Ethernet header, does not count of what links count around IP."""


def address(host: int) -> str:
    """The address of a host."""
    return f"10.66.{(host + 1) // 256}.{(host + 1) % 256}"


def layout(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the box is to build: a switch for each vertex, a host for each node, a pair of devices for each link."""
    links, apart = plan["network"]["links"], relayed(plan)
    switches = [*range(len(plan["nodes"])), *stands(plan)]
    hosts = [
        {
            "switch": switch,
            "address": address(id),
            "mac": f"02:00:00:00:{(id + 1) // 256:02x}:{(id + 1) % 256:02x}",
        }
        for id, switch in enumerate(switches)
    ]
    pairs = [
        {
            "from": links[a]["from"],
            "to": links[a]["to"],
            "relayed": a in apart,
            "forward": _link(links[a], a),
            "backward": _link(links[b], b),
        }
        for a, b in pairs_of(links)
    ]
    return {
        "switches": len(plan["network"]["vertices"]),
        "hosts": hosts,
        "links": pairs,
        "ends": [link["from"] for link in links],
        "routes": json.loads(_tcps.routes(json.dumps(plan))),
    }


def stands(plan: Mapping[str, Any]) -> dict[int, int]:
    """Background traffic has hosts of its own, behind those of the nodes: number of the host by vertex."""
    vertices = {entry[end] for entry in plan["network"].get("traffic", []) for end in ("from", "to")}
    return {vertex: len(plan["nodes"]) + place for place, vertex in enumerate(sorted(vertices))}


def _link(link: Mapping[str, Any], number: int) -> dict[str, Any]:
    queue = link.get("queue", {})
    return {
        "name": f"links.{link['name']}",
        "number": number,
        "rate_bps": link.get("rate_bps"),
        "overhead_bytes": UNCOUNTED_BYTES,
        "delay_ns": link.get("delay_ns", 0),
        "loss": (link.get("loss") or {}).get("p", 0),
        "queue": {key: queue[key] for key in ("limit_bytes", "limit_packets") if queue.get(key) is not None},
    }


def pairs_of(links: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Both directions of each link; a link of one direction has none, see `refuse`."""
    numbers = {link["name"]: number for number, link in enumerate(links)}
    return [
        (number, numbers[name.removesuffix("forward") + "backward"])
        for name, number in numbers.items()
        if name.endswith(".forward")
    ]


def relayed(plan: Mapping[str, Any]) -> set[int]:
    """Numbers of the links that our relay emulates, both directions of each: the kernel cannot, or an event changes them."""
    links = plan["network"]["links"]
    actions = [event["action"] for event in plan.get("events", [])]
    changed = {link for action in actions if action["kind"] == "link" for link in action["links"]}
    return {
        number
        for pair in pairs_of(links)
        if any(number in changed or _beyond_the_kernel(links[number]) for number in pair)
        for number in pair
    }


def _beyond_the_kernel(link: Mapping[str, Any]) -> bool:
    discipline = link.get("queue", {}).get("discipline", {}).get("kind", "drop-tail")
    bursts = (link.get("loss") or {}).get("kind", "random") != "random"
    if bursts or discipline != "drop-tail" or any(link.get(key) for key in RELAYED):
        return True
    return bool(link.get("delay_ns") or link.get("loss")) and not has_netem()


def wires(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """The devices that the relay's links leave and reach, by the number of the link, as the box names them."""
    found: dict[str, list[str]] = {}
    apart = relayed(plan)
    for place, (forward, backward) in enumerate(pairs_of(plan["network"]["links"])):
        if forward in apart:
            ends = [f"l{place}a", f"l{place}b"]
            found |= {str(forward): ends, str(backward): ends[::-1]}
    return found


@cache
def has_netem() -> bool:
    """Whether the kernel can delay and lose: tried on a device that is gone at once."""
    attempt = "ip link add ta type veth peer name tb && tc qdisc add dev ta root netem delay 1ms"
    return subprocess.run(["unshare", "--net", "sh", "-c", attempt], capture_output=True).returncode == 0


def refuse(plan: Mapping[str, Any]) -> None:
    """Refuses what neither switches nor relay do as asked for, with the remedy.

    Raises
    ------
    WorldError
        With the first such thing.
    """
    fit.refuse(fit.MININET, plan, _unfit(plan))


def _unfit(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    built_in = "--world namespaces"
    yield from fit.unhonoured(fit.MININET, plan, built_in)
    yield from background.too_short(plan, elsewhere=built_in)
