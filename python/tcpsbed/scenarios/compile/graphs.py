"""Graphs that ship with tcpsbed, and GraphML files.

`usnet24` is the 24-node, 43-link USNET that the optical-network literature uses as a backbone of the United States; the
edges agree with those in SDON_simulator (data/raw/us_network.txt). `usnet9` is its north-western corner, S0 to S8, of the
published experiments. [Polachan 2022]
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.files import looked_up
from tcpsbed.scenarios.model.scenario import Scenario

# fmt: off
_USNET24 = [
    (0, 1), (0, 5), (1, 2), (1, 5), (2, 3), (2, 4), (2, 6), (3, 4), (3, 6), (4, 7), (5, 6), (5, 8), (5, 10), (6, 7), (6, 8),
    (7, 9), (8, 9), (8, 10), (8, 11), (9, 12), (9, 13), (10, 11), (10, 14), (10, 18), (11, 12), (11, 15), (12, 13), (12, 16),
    (13, 17), (14, 15), (14, 19), (15, 16), (15, 20), (15, 21), (16, 17), (16, 21), (16, 22), (17, 23), (18, 19), (19, 20),
    (20, 21), (21, 22), (22, 23),
]
# fmt: on
_KEY = ("topology", "graph")


@dataclass(frozen=True)
class Edge:
    """An edge between two vertices, with link settings that the graph's file gives."""

    a: str
    b: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its link, such as `S0-S1`."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Graph:
    """Vertices and edges."""

    vertices: list[str]
    edges: list[Edge]


def _numbered(count: int, edges: list[tuple[int, int]]) -> Graph:
    return Graph([f"S{i}" for i in range(count)], [Edge(f"S{a}", f"S{b}") for a, b in edges])


GRAPHS = {
    "usnet9": _numbered(9, [(a, b) for a, b in _USNET24 if max(a, b) < 9]),
    "usnet24": _numbered(24, _USNET24),
}
"""The graphs that ship with tcpsbed."""


def graph(scenario: Scenario) -> Graph:
    """The graph that a scenario names; without one, an empty graph."""
    name = scenario.topology.graph
    if name is None:
        return Graph([], [])
    if name in GRAPHS:
        return GRAPHS[name]
    path, is_file = looked_up(scenario, name)
    if not is_file:
        allowed = f"{close_match(name, list(GRAPHS))} or a GraphML file, looked for at {path}"
        raise scenario.error(_KEY, f'found "{name}", but there is no such file', allowed)
    return _graphml(scenario, path)


def _graphml(scenario: Scenario, path: Path) -> Graph:
    try:
        root = ET.fromstring(inputs.content(path, "a GraphML file", inputs.DOCUMENT_BYTES))
    except DataError as error:
        raise scenario.error(_KEY, f"found {path.name}, which {error.found}", error.allowed or "") from None
    except (ET.ParseError, OSError, ValueError, LookupError) as error:
        raise scenario.error(
            _KEY, f"found {path.name}, which is not XML ({error})", "a GraphML file"
        ) from None
    space = re.sub(r"[^}]*$", "", root.tag)
    keys = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{space}key")}

    def data(element: ET.Element) -> dict[str, str]:
        items = element.iter(f"{space}data")
        return {keys.get(item.get("key", ""), ""): (item.text or "").strip() for item in items}

    nodes = {node.get("id", ""): data(node) for node in root.iter(f"{space}node")}
    names = {id: found.get("label") or id for id, found in nodes.items()}
    if not names:
        raise scenario.error(
            _KEY, f"found {path.name}, which has no nodes", "a GraphML file with nodes and edges"
        )
    if hidden := inputs.unprintable(list(names.values())):
        found = f"found a node of {path.name} with {inputs.unseen(hidden[1])}"
        raise scenario.error(_KEY, found, "labels that can be seen")
    if len(set(names.values())) < len(names):
        names = {id: id for id in names}
    ends = [
        (edge.get("source", ""), edge.get("target", ""), data(edge)) for edge in root.iter(f"{space}edge")
    ]
    for source, target, _ in ends:
        for end in (source, target):
            if end not in names:
                raise scenario.error(
                    _KEY, f'found an edge to "{end}" in {path.name}', "edges between the nodes of the file"
                )
    edges = [Edge(names[a], names[b], _settings(found)) for a, b, found in ends]
    _check(scenario, path, edges)
    return Graph(list(names.values()), edges)


def _check(scenario: Scenario, path: Path, edges: list[Edge]) -> None:
    """Refuses edges that no path ever takes: from a node to itself, and a second one between the same two."""
    seen: set[frozenset[str]] = set()
    for edge in edges:
        ends = frozenset((edge.a, edge.b))
        if edge.a == edge.b:
            raise scenario.error(
                _KEY,
                f'found an edge from "{edge.a}" to itself in {path.name}',
                "edges between two different nodes",
            )
        if ends in seen:
            found = f'found a second edge between "{edge.a}" and "{edge.b}" in {path.name}'
            raise scenario.error(_KEY, found, "one edge between two nodes")
        seen.add(ends)


def _settings(data: dict[str, str]) -> dict[str, Any]:
    """Link settings of an edge: `rate` and `delay` with units, or `LinkSpeedRaw` in bit/s (Topology Zoo)."""
    settings: dict[str, Any] = {key: data[key] for key in ("rate", "delay") if data.get(key)}
    if "rate" not in settings and re.fullmatch(r"\d+(\.\d+)?", data.get("LinkSpeedRaw", "")):
        settings["rate"] = f"{data['LinkSpeedRaw']} bit/s"
    return settings
