"""The code that a plan names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.inputs import LIBRARY


def codes(plan: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Kind and place of each piece of code that a plan names."""
    for component in plan["components"]:
        if robot := component.get("robot"):
            yield "robot", robot["run"]
            plant = (robot["run"].get("params") or {}).get("plant")
            if isinstance(plant, Mapping) and plant.get("code"):  # of a step experiment
                place, _, symbol = plant["code"].rpartition(":")
                yield "plant", {"kind": "python", "name": place, "symbol": symbol}
    steps = (step for flow in plan["flows"] for visit in flow["path"] for step in visit.get("steps", ()))
    for step in steps:
        if run := step.get("run"):
            yield "component" if step["kind"] == "work" else "hook", run
            agent = (run.get("params") or {}).get("agent")
            if isinstance(agent, Mapping) and "kind" in agent:  # of a supervisor
                yield "hook", agent
    network = plan.get("network", {})
    named = [("transport", channel["transport"]) for channel in plan.get("channels", ())]
    named += [("traffic", entry["model"]["kind"]) for entry in network.get("traffic", ())]
    queues = [link["queue"]["discipline"] for link in network.get("links", ()) if link.get("queue")]
    named += [("queue", discipline["kind"]) for discipline in queues]
    named += [("loss", link["loss"]["kind"]) for link in network.get("links", ()) if link.get("loss")]
    jitters = [link["jitter"]["delay"] for link in network.get("links", ()) if link.get("jitter")]
    named += [("delay", delay["kind"]) for delay in jitters]
    for kind, text in named:
        place, colon, symbol = text.rpartition(":")
        if colon:
            library = LIBRARY.fullmatch(place)
            yield kind, {"kind": "library" if library else "python", "name": place, "symbol": symbol}
    for channel in plan.get("channels", ()):
        own = (value for value in (channel.get("params") or {}).values() if isinstance(value, Mapping))
        yield from (("controller", code) for code in own if "symbol" in code)


def is_ours(plan: Mapping[str, Any]) -> bool:
    """Whether all code that a plan names is built in."""
    return all(code["kind"] == "builtin" for _, code in codes(plan))
