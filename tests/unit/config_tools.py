"""What the tests of scenarios share: texts to start from, and views of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

from tcpsbed.scenarios import compile_plan, load
from tcpsbed.scenarios.compile import builtins

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"hooks": ["zoh", "arm3", "linear"], "robots": ["arm", "wall_mass"], "transports": ["udp"]}
Plan = dict[str, Any]
CHAIN = """
[components]
tactile-operator = "a"
ms-embsys = "a"
ms-com = "b"
ms-ei = "b"
srv = "c"
ss-ei = "d"
ss-com = "d"
ss-embsys = "e"
[components.tactile-teleoperator]
node = "e"
robot = "arm"
[flows.kinematic]
[flows.haptic]
"""
PAIR = '[components]\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n'


def compiled(folder: Path, text: str, *overrides: str) -> Plan:
    """The plan of a scenario text, with built-in names that do not need the native module."""
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    with mock.patch.object(builtins, "known", lambda: KNOWN):
        return compile_plan(load(path, overrides), folder / "inputs")


def ways(plan: Plan) -> dict[str, list[str]]:
    """The names of the components on the way of each flow."""
    names = [component["name"] for component in plan["components"]]
    return {flow["name"]: [names[visit["component"]] for visit in flow["path"]] for flow in plan["flows"]}


def steps(plan: Plan, flow: str) -> dict[str, list[str]]:
    """The kinds of the steps of a flow at each component that has any."""
    names = [component["name"] for component in plan["components"]]
    path = next(f for f in plan["flows"] if f["name"] == flow)["path"]
    return {names[v["component"]]: [step["kind"] for step in v["steps"]] for v in path if v["steps"]}


def links(plan: Plan) -> dict[str, Plan]:
    """The links by name, with the names of their ends."""
    vertices = plan["network"]["vertices"]
    ends = lambda link: {"from": vertices[link["from"]], "to": vertices[link["to"]]}  # noqa: E731
    return {link["name"]: link | ends(link) for link in plan["network"]["links"]}
