"""Facts of a plan for the summary: names, directions, zero-cost stages, reproducibility."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.analysis import chance, outages
from tcpsbed.clocks import NS3_VIRTUAL, SIMULATED, VIRTUAL
from tcpsbed.scenarios.codes import is_ours

PROMISES = {
    "anywhere": "same scenario and seed give the same records on any machine",
    "machine": "same scenario and seed give the same records on this machine with these versions"
    " (Python or library code ran in it)",
    "none": "real time: a repetition gives similar, not equal, records",
}
"""Promises of [design: same on every machine]."""
LENA_UNTRIED = (
    "5G-LENA: its links were compiled against declarations of its interface, and never tried against a real 5G-LENA "
    "(tcpsbed docs ns3)"
)
"""What is said of a run over it."""


def scenario_info(
    plan: Mapping[str, Any],
    *,
    world: str,
    warmup_ns: int = 0,
    one_host: bool = True,
    phases: str = "aligned",
    events: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What `summary.build` wants to know about a scenario.

    Parameters
    ----------
    plan
        The compiled scenario (`plan.json`).
    world
        A name that the registry of worlds knows.
    warmup_ns
        Span at the beginning that statistics leave out.
    one_host
        Whether all nodes share one clock, so that the true error of a clock estimate is known.
    phases
        Where sources begin: `aligned`, or `random`, by the seed.
    events
        Kinds of the scenario's events by name: the plan of a run without a network lacks those of links and traffic.
    """
    promise = _promise(plan, world)
    nodes = [node["name"] for node in plan["nodes"]]
    return {
        "name": plan["name"],
        "world": world,
        "seed": plan["seed"],
        "duration_s": plan["duration_ns"] / 1e9,
        "warmup_s": warmup_ns / 1e9,
        "level": plan.get("records", "samples"),
        "promise": PROMISES[promise],
        "random": promise != "anywhere" or phases != "aligned" or chance.draws(plan),
        "one_host": one_host,
        "nodes": nodes,
        "clocks": {node["name"]: node.get("clock") for node in plan["nodes"]},
        "flows": {flow["name"]: _flow(plan, flow) for flow in plan["flows"]},
        "stage_periods_s": dict(_stage_periods(plan)),
        "assumed_free": list(_free(plan)) if world in SIMULATED else [],
        "ignored": list(_ignored(plan, world, events or {})),
        "untried": [LENA_UNTRIED] if _over_ns3(plan, world) and list(_cells(plan)) else [],
    }


def _flow(plan: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session": plan["sessions"][flow["session"]],
        "direction": flow["direction"],
        "period_s": flow["period_ns"] / 1e9,
    }


def _steps(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Flow, component and step, in the order of the plan."""
    for flow in plan["flows"]:
        for visit in flow["path"]:
            for step in visit.get("steps", ()):
                yield flow["name"], plan["components"][visit["component"]]["name"], step


def _free(plan: Mapping[str, Any]) -> Iterator[str]:
    """Stages that run code and take no simulated time."""
    for flow, component, step in _steps(plan):
        if step.get("run") and step.get("cost") is None and step.get("delay") is None:
            yield f"{component}: {step['kind']} of {flow}"


def _stage_periods(plan: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Component, flow and kind of stages that work at a period of their own, with the period."""
    for flow, component, step in _steps(plan):
        if step.get("period_ns"):
            yield (component, flow, step["kind"]), step["period_ns"] / 1e9


def _over_ns3(plan: Mapping[str, Any], world: str) -> bool:
    """Whether ns-3 lies between the nodes."""
    from tcpsbed.worlds import registry

    return world == NS3_VIRTUAL if world in SIMULATED else registry.parts(world, plan)[1].startswith("ns3")


def _cells(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Links over 5G radio, each by its direction up."""
    for link in plan["network"]["links"]:
        radio = link.get("radio") or {}
        if radio.get("kind") == "nr" and radio["up"]:
            yield link


def _ignored(plan: Mapping[str, Any], world: str, events: Mapping[str, str]) -> Iterator[str]:
    """Keys of the scenario without effect in this world, each with the reason."""
    if not _over_ns3(plan, world):
        for link in _cells(plan):
            if "lena" in link["radio"]["given"]:
                yield f"links.{link['name'].removesuffix('.forward')}.radio.lena: it is for 5G-LENA, over ns-3"
    if world not in SIMULATED:
        yield from _ignored_without_network(plan, world, events)
        yield from _ignored_on_sockets(plan)


def _ignored_without_network(plan: Mapping[str, Any], world: str, events: Mapping[str, str]) -> Iterator[str]:
    """Links, their events and background traffic in a world without emulation."""
    from tcpsbed.worlds import fit, registry

    if registry.has_network(world, plan):
        return
    for name in outages.names([link["name"] for link in plan["network"]["links"]]):
        yield f"link {name}: the actual network takes its place"
    for name, kind in events.items():
        if kind in fit.OF_NETWORK:
            yield f'event "{name}": nothing emulates the network that it changes'
    for name in dict.fromkeys(entry["name"].split(".")[0] for entry in plan["network"].get("traffic", ())):
        yield f"traffic {name}: nothing emulates the network that it is in"


def _ignored_on_sockets(plan: Mapping[str, Any]) -> Iterator[str]:
    """Keys about sharing cores, which the machine decides on sockets."""
    for node in plan["nodes"]:
        if node.get("cores", 1) != 1:
            yield f"nodes.{node['name']}.cores = {node['cores']}: stages run on the cores that the machine gives"
        kind = node.get("scheduling", {}).get("kind", "run_to_completion").replace("_", "-")
        if kind != "run-to-completion":
            yield f'nodes.{node["name"]}.scheduling = "{kind}": the loop of a session runs its stages to completion'
        if node.get("interrupts"):
            yield f"nodes.{node['name']}.interrupts: the network card interrupts as its driver is set"
    for flow in plan["flows"]:
        if flow.get("priority"):
            yield f"flows.{flow['name']}.priority = {flow['priority']}: a session takes samples in order of arrival"


# [design: same on every machine]
def _promise(plan: Mapping[str, Any], world: str) -> str:
    if world not in SIMULATED:
        return "none"
    if world != VIRTUAL:
        return "machine"
    return "anywhere" if is_ours(plan) else "machine"
