"""An edge component in a scenario: its place, the component that it serves, and scenarios with it at other places.

```text
source ─► … ─► a ═ … ═ before ═ last mile ═ host ─► next component ─► …
                        [edge]              [edge]
```
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError

EDGES = ("ss-ei", "ms-ei")
"""Kinds of components that may be moved: all they do is predict."""
CHANGING = ("decode", "kinematics", "inverse_kinematics", "sense", "feedback", "predict")
"""Steps after which values are others."""


@dataclass(frozen=True)
class Edge:
    """An edge component.

    Attributes
    ----------
    hook, component, flow : str
        The `predict` hook, the component at which it runs, and the flow that it handles.
    node : str
        Where the scenario puts it.
    next : str
        The component that it serves: the next one on the flow's way.
    host, before : str
        That component's node, and the node or router one hop before it on the way.
    meant : str
        The point whose values say what was meant: none changes them between there and the edge.
    period_ms : float
        The hook's period, or the flow's where it has none.
    charged : bool
        Whether the hook takes time in virtual time.
    last_mile : tuple of str
        Links that end at the host.
    nodes, routers : tuple of str
        Vertices where components may stand, and those to which a node is joined for it.
    alone : bool
        Whether nothing else stands on its node.
    """

    hook: str
    component: str
    flow: str
    node: str
    next: str
    host: str
    before: str
    meant: str
    period_ms: float
    charged: bool
    last_mile: tuple[str, ...]
    nodes: tuple[str, ...]
    routers: tuple[str, ...]
    alone: bool

    @property
    def end(self) -> str:
        """The point that receives its output."""
        return f"{self.next}.entry"


def find(scenario: scenarios.Scenario, hook: str | None = None) -> Edge:
    """The edge component of a scenario, by its hook, or the only one.

    Raises
    ------
    ConfigError
        If there is none, if several could be meant, or if there is no last mile before the component that it serves.
    """
    if len(scenario.sessions) > 1:
        raise scenario.error(("sessions",), f"found {len(scenario.sessions)} sessions", "one")
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = scenarios.compile_plan(scenario, Path(folder))
    name, flow, place = _chosen(scenario, plan, hook)
    components = [plan["components"][visit["component"]] for visit in flow["path"]]
    here, there = components[place], components[place + 1]
    network, count = plan["network"], len(plan["nodes"])
    hop = _hop(network["links"], components[place - 1]["node"], there["node"])
    if hop is None:
        raise _unlinked(scenario, network["vertices"], components[place - 1], there)
    vertices, model = network["vertices"], scenario.hooks[name]
    others = [one["node"] for one in plan["components"] if one is not here]
    return Edge(
        hook=name,
        component=here["name"],
        flow=flow["name"],
        node=vertices[here["node"]],
        next=there["name"],
        host=vertices[there["node"]],
        before=vertices[hop],
        meant=f"{components[_unchanged(flow['path'], place)]['name']}.exit",
        period_ms=(model.period_ns or flow["period_ns"]) / 1e6,
        charged=model.cost is not None or model.delay is not None or scenario.calibration is not None,
        last_mile=tuple(link["name"] for link in network["links"] if link["to"] == there["node"]),
        nodes=tuple(vertices[:count]),
        routers=tuple(vertices[count:]),
        alone=here["node"] not in others and vertices[here["node"]] not in scenario.nodes,
    )


def _unlinked(
    scenario: scenarios.Scenario,
    vertices: Sequence[str],
    before: Mapping[str, Any],
    there: Mapping[str, Any],
) -> ConfigError:
    """The error of two components between which the edge has no place."""
    start, end = vertices[before["node"]], vertices[there["node"]]
    found = f"found no link from {start} ({before['name']}) to {end} ({there['name']}): no place for the edge"
    allowed = f'a link on this path, such as [links.l1] with from = "{start}" and to = "{end}"'
    if start == end:
        found = (
            f"found {before['name']} and {there['name']} both at {start}: no place for the edge between them"
        )
        allowed = "different nodes with a link between them, such as [links.l1]"
    return scenario.error(("components", there["name"], "node"), found, allowed)


def _chosen(
    scenario: scenarios.Scenario, plan: Mapping[str, Any], wanted: str | None
) -> tuple[str, dict[str, Any], int]:
    """A hook, the flow that it handles, and the place on its path."""
    found = {name: place for name in scenario.hooks for place in _places(scenario, plan, name)}
    if wanted is None and len(found) == 1:
        wanted = next(iter(found))
    if wanted in found:
        return (str(wanted), *found[str(wanted)])
    allowed = ", ".join(found) or 'a predict hook at a component of its own, such as at = "ss-ei"'
    if wanted is None and not found:
        raise scenario.error(("hooks",), f"found no predictor at {' or '.join(EDGES)}", allowed)
    said = f"found {len(found)} predictors at the edge" if wanted is None else f'found "{wanted}"'
    raise ConfigError(said, key="--hook", allowed=allowed)


def _places(
    scenario: scenarios.Scenario, plan: Mapping[str, Any], hook: str
) -> Iterator[tuple[dict[str, Any], int]]:
    """Flows and places on their paths where a hook predicts at an edge component, between two others."""
    model = scenario.hooks[hook]
    if model.kind != "predict":
        return
    for flow in plan["flows"]:
        for place, visit in enumerate(flow["path"][:-1]):
            component = plan["components"][visit["component"]]
            mine = model.flow is None or flow["name"] in model.flow
            at = model.at is None or component["name"] in model.at or component["kind"] in model.at
            predicts = any(step["kind"] == "predict" for step in visit["steps"])
            if place > 0 and mine and at and predicts and component["kind"] in EDGES:
                yield flow, place


def _hop(links: Sequence[Mapping[str, Any]], start: int, end: int) -> int | None:
    """The vertex before the end of a path with the fewest hops; none if no link is on it."""
    reached, waiting = {start}, [start]
    while waiting and start != end:
        here = waiting.pop(0)
        for link in links:
            if link["from"] == here and link["to"] not in reached:
                if link["to"] == end:
                    return here
                reached.add(link["to"])
                waiting.append(link["to"])
    return None


def _unchanged(path: Sequence[Mapping[str, Any]], place: int) -> int:
    """The place on a path from which values do not change until `place`."""
    changing = (n for n in reversed(range(place)) if any(map(_changes, path[n]["steps"])))
    return next(changing, 0)


def _changes(step: Mapping[str, Any]) -> bool:
    """Whether a stage makes other values of a sample's; work has code where a component is of the user's kind."""
    return step["kind"] in CHANGING or (step["kind"] == "work" and "run" in step)


def moved(file: Path, sets: Sequence[str], edge: Edge, node: str | None) -> scenarios.Scenario:
    """The scenario with its edge at a node or a router, or without the hook; it records values at both ends.

    A component needs a computer: at a router the edge gets one of its own, joined by a link that takes no time.
    """
    at, joined = node or edge.host, []
    if at in edge.routers:
        at, joined = f"{node}-edge", [f'nodes."{node}-edge".at={json.dumps(node)}']
    origin = scenarios.tables(
        file,
        [
            *sets,
            *joined,
            f"components.{edge.component}.node={json.dumps(at)}",
            'measure.records="samples"',
            f"measure.signals={json.dumps([edge.meant, edge.end])}",
        ],
    )
    if node is None:
        del origin.document["hooks"][edge.hook]
    if edge.alone and at != edge.node:
        topology = origin.document.setdefault("topology", {})
        topology["routers"] = [*topology.get("routers", []), edge.node]
    return scenarios.Scenario.of(origin)
