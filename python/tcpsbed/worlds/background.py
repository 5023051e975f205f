"""Background traffic as datagrams: its ends are additional nodes, hosted like the others.

```
 events      node a ── l1 ─┬─ router ── l2 ── node b        packets appear at the router and vanish behind l2
 datagrams   node a ── l1 ─┼─ router ── l2 ─┬─ node b       sockets in containers or namespaces of their own
                         end of                end of
                         traffic               traffic
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed import _tcps
from tcpsbed.errors import WorldError
from tcpsbed.worlds.contract import Hosting

END = "traffic@"
"""Before the name of the place, in the names of ends and of the links that they stand behind."""
LEAST_BYTES = _tcps.STACK_BYTES + 2
"""What a datagram of background traffic takes at least: link, IPv4, UDP, and the mark of its entry. [RFC 791]"""


def require(plan: dict[str, Any], hosting: Hosting) -> None:
    """Raises `WorldError` where background traffic shall be datagrams and the hosting has no ends for it."""
    if _as_datagrams(plan) and not hosting.datagrams:
        raise WorldError(
            f'found "datagrams", for which the world "{hosting.name}" has no sockets',
            key="real.background",
            allowed='"events", or --world namespaces, containers or mininet',
        )


def refuse(plan: dict[str, Any]) -> None:
    """Raises `WorldError` for what background traffic as datagrams cannot be or do, with the remedy."""
    if not _as_datagrams(plan):
        return
    for entry in plan["network"].get("traffic", []):
        if entry["model"]["kind"] == "users":
            raise WorldError(
                'found connections of TCP or QUIC, which real.background = "datagrams" does not support',
                key=f"traffic.{entry['name']}.kind",
                allowed='real.background = "events"',
            )
    for place, found, allowed in too_short(plan, elsewhere='real.background = "events"'):
        raise WorldError(f"found {found}", key=place, allowed=allowed)
    for event in plan.get("events", []):
        if event["action"]["kind"] == "traffic":
            raise WorldError(
                'found a change of traffic, which real.background = "datagrams" does not support',
                key=f"events ({event['name']})",
                allowed='real.background = "events"',
            )


def too_short(
    plan: Mapping[str, Any],
    least_bytes: int = LEAST_BYTES,
    what: str = "a datagram needs on an Ethernet",
    elsewhere: str = "",
) -> Iterator[tuple[str, str, str]]:
    """Place, what was found there and what is allowed, of each entry with packets that nothing there is as short as.

    Sizes that are drawn at random count by their mean: one that comes out shorter takes `least_bytes`.
    """
    allowed = f"{least_bytes} B or more, which {what}, or {elsewhere}"
    network = plan["network"]
    for entry in network.get("traffic", []):
        model = entry["model"]
        if model["kind"] == "replay":
            key, one = "file", "a packet of "
            least = min((size for _, size in network["recordings"][model["recording"]]), default=least_bytes)
        else:
            key, one, least = "packet", "", model.get("packet_bytes", least_bytes)
        if least < least_bytes:
            yield f"traffic.{entry['name']}.{key}", f"{one}{least} B", allowed


def stand_apart(plan: dict[str, Any]) -> None:
    """Makes a node of each place where traffic begins or ends, joined to it by a link without limits, in both directions."""
    network = plan["network"]
    entries = network.get("traffic", [])
    if not _as_datagrams(plan) or not entries:
        return
    nodes = len(plan["nodes"])
    places = sorted({entry[end] for entry in entries for end in ("from", "to")})
    names = [f"{END}{network['vertices'][place]}" for place in places]
    stand = {place: nodes + i for i, place in enumerate(places)}

    def moved(vertex: int) -> int:
        """Nodes come first, and routers behind them."""
        return vertex if vertex < nodes else vertex + len(places)

    links = [link | {"from": moved(link["from"]), "to": moved(link["to"])} for link in network["links"]]
    for name, place in zip(names, places, strict=True):
        links.append({"name": f"{name}.forward", "from": stand[place], "to": moved(place)})
        links.append({"name": f"{name}.backward", "from": moved(place), "to": stand[place]})
    plan["nodes"] = [*plan["nodes"], *({"name": name} for name in names)]
    plan["network"] = network | {
        "vertices": [*network["vertices"][:nodes], *names, *network["vertices"][nodes:]],
        "links": links,
        "traffic": [entry | {"from": stand[entry["from"]], "to": stand[entry["to"]]} for entry in entries],
    }


def of_the_network(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries that the network between the nodes must generate itself."""
    return [] if _as_datagrams(plan) else list(plan["network"].get("traffic", []))


def links_of_the_scenario(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of links, without those of the additional traffic nodes."""
    return [row for row in rows if not row["name"].startswith(END)]


def whole(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row an entry, out of those of its ends: what one has sent and the other has not had was dropped."""
    ends: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        ends.setdefault(row["name"], []).append(row)
    return [parts[0] if len(parts) == 1 else _joined(parts) for parts in ends.values()]


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sums = {key: sum(part[key] for part in parts) for key in ("packets", "bytes", "delivered_packets")}
    lost = max(0, sums["packets"] - sums["delivered_packets"])
    return {"name": parts[0]["name"], **sums, "dropped_packets": lost}


def _as_datagrams(plan: Mapping[str, Any]) -> bool:
    return bool(plan["real"].get("background") == "datagrams")
