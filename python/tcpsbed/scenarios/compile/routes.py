"""Checks that every channel and every pair of background traffic has a route."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tcpsbed.nearest import meant
from tcpsbed.scenarios.compile.network import Network
from tcpsbed.scenarios.origin import Key

Need = tuple[int, int, Key]
"""A vertex that must reach another, and the key that says so."""
Onward = dict[int, list[int]]
"""Where the links of a vertex lead."""


def check(network: Network, needs: Iterable[Need]) -> None:
    """Raises the error of the first missing route; without links there is nothing to check."""
    if not network.links:
        return
    onward: Onward = defaultdict(list)
    for link in network.links:
        onward[link["from"]].append(link["to"])
    joined = _joined(onward)
    reach: dict[int, set[int]] = {}
    for start, end, key in needs:
        if start == end or joined.get(start, start) == joined.get(end, end):
            continue
        *passed, gate = _forced(onward, start)
        if gate not in reach:
            reach[gate] = _reach(onward, gate)
        if end not in passed and end not in reach[gate]:
            reached = reach[gate].union(passed)
            for vertex in (start, end):
                _misspelt(network, vertex)
            a, b = network.vertices[start], network.vertices[end]
            ends = ", ".join(sorted(network.vertices[v] for v in reached - {start})) or "nothing"
            raise network.book.scenario.error(
                key, f'found no route from "{a}" to "{b}"', f"links that join them ({a} reaches {ends})"
            )


def _misspelt(network: Network, vertex: int) -> None:
    """Raises the error of the component that names a node which has no link and no entry."""
    scenario, name = network.book.scenario, network.vertices[vertex]
    linked = {end for link in network.links for end in (link["from"], link["to"])}
    near = meant(name, [network.vertices[v] for v in linked])
    if vertex in linked or name in scenario.nodes or not near:
        return
    for component, model in scenario.components.items():
        if model.node == name:
            known = ", ".join(network.vertices[v] for v in sorted(linked))
            found = f'found "{name}", a node without a link{near}'
            raise scenario.error(("components", component, "node"), found, known)


def _joined(onward: Onward) -> dict[int, int]:
    """The least vertex of the part of the network that a vertex can reach and be reached from over pairs of links."""
    pairs = {(a, b) for a, ends in onward.items() for b in ends}
    both = {a: [b for b in ends if (b, a) in pairs] for a, ends in onward.items()}
    part: dict[int, int] = {}
    for start in sorted(both):
        if start not in part:
            part |= dict.fromkeys(_reach(both, start), start)
    return part


def _forced(onward: Onward, start: int) -> list[int]:
    """The vertices from one on while only a single link leads out: most nodes have one, and share the rest of the path."""
    way = [start]
    while len(ends := onward.get(way[-1], [])) == 1 and ends[0] not in way:
        way.append(ends[0])
    return way


def _reach(onward: Onward, start: int) -> set[int]:
    reached, waiting = {start}, [start]
    while waiting:
        new = [end for end in onward.get(waiting.pop(), ()) if end not in reached]
        reached.update(new)
        waiting += new
    return reached
