"""The loops of a scenario with a step: the place of the step, and the controller."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tcpsbed import linear
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.response import Step
from tcpsbed.scenarios.model.entries import defaults

ROBOT = "step"
AXES = "tcpsbed.robots.axes"
"""The module of robot and controller with several axes in a plan."""
CONTROLLER = "pi"
COMPENSATOR = "compensator"
"""The hook that is any linear controller."""
SHOWN_MS = 1000.0
"""How long after a step its answer is usually looked at."""


@dataclass(frozen=True)
class Loop:
    """A loop in a plan.

    Attributes
    ----------
    name : str
        The component with the step.
    step : Step
        What jumps, and when.
    component : int
        Its number.
    sent : tuple of int
        Numbers of the flows that come from it.
    back : str
        The one of them that brings h back.
    controller : str
        The component that it comes to.
    period_ms : float
        Time between two commands.
    kp, ki_per_ms : float
        Gains of the controller; not known (None) if it is no built-in one.
    law : dict, optional
        A linear controller as the plan has it, in place of the gains.
    delay_ms : float, optional
        Delay of the links around the loop, without queues and jitter; not known (None) behind routers.
    axes : int
        How many quantities it holds. One packet carries them all.
    is_lossy : bool
        Whether a link around the loop has an independent loss.
    """

    name: str
    step: Step
    component: int
    sent: tuple[int, ...]
    back: str
    controller: str
    period_ms: float
    kp: float | None
    ki_per_ms: float | None
    law: dict[str, Any] | None = None
    delay_ms: float | None = None
    axes: int = 1
    is_lossy: bool = False

    @property
    def point(self) -> str:
        """Where h is recorded."""
        return f"{self.name}.sense"

    @property
    def seen_point(self) -> str:
        """Where h is recorded as the controller sees it."""
        return f"{self.controller}.entry"


def loops(plan: Mapping[str, Any]) -> list[Loop]:
    """The loops of a plan, in the order of its components.

    Raises
    ------
    ConfigError
        If there is none.
    """
    found = [
        _loop(plan, number, component["name"], component["robot"]["run"]["params"] or {})
        for number, component in enumerate(plan["components"])
        if component["robot"] and component["robot"]["run"]["name"] in (ROBOT, AXES)
    ]
    if not found:
        names = ", ".join(c["robot"]["run"]["name"] for c in plan["components"] if c["robot"]) or "no robot"
        raise ConfigError(
            f"found {names}",
            key="components",
            allowed=f'a component with robot = "{ROBOT}", as in `tcpsbed init --from step`',
        )
    return found


def reached(plan: Mapping[str, Any], found: Sequence[Loop], key: str = "duration") -> None:
    """Raises `ConfigError` if a run is over before a step shows, at the first tick from then on; `key` gave its duration."""
    for loop in found:
        t0_ms = loop.step.t0_ms
        least_ms = t0_ms + plan["components"][loop.component]["robot"]["period_ns"] / 1e6
        if plan["duration_ns"] / 1e6 <= least_ms:
            raise ConfigError(
                f"found {plan['duration_ns'] / 1e6:g} ms, too short for the step at {t0_ms:g} ms and the robot's next "
                f"tick at {least_ms:g} ms",
                key=key,
                allowed=f'more than {least_ms:g} ms, such as "{t0_ms + SHOWN_MS:g} ms"',
            )


def _loop(plan: Mapping[str, Any], component: int, name: str, params: Mapping[str, Any]) -> Loop:
    there = [n for n, flow in enumerate(plan["flows"]) if flow["path"][-1]["component"] == component]
    back = [n for n, flow in enumerate(plan["flows"]) if flow["path"][0]["component"] == component]
    if not there or not back:
        raise ConfigError(
            f"found {'no command' if not there else 'nothing that comes back'}",
            key=f"components.{name}",
            allowed="a flow that drives the robot and one whose source it is",
        )
    run, far = _controller(plan, there), defaults("robot", ROBOT) | dict(params)
    gains = defaults("hook", CONTROLLER) | (run["params"] or {}) if run and run["name"] == CONTROLLER else {}
    ways = [_links(plan, there[0]), _links(plan, back[0])]
    around = [link for way in ways for link in way or ()]
    law = (
        (run["params"] or {}).get("system", {"kind": "static"})
        if run and run["name"] in (COMPENSATOR, AXES)
        else None
    )
    return Loop(
        name,
        Step(
            far["c"],
            far["t0_ns"] * 1e-6,
            _with_memory(far.get("plant")),
            far["disturbance"],
            far.get("axis", 1) - 1,
        ),
        component,
        tuple(back),
        plan["flows"][back[0]]["name"],
        plan["components"][plan["flows"][back[0]]["path"][-1]["component"]]["name"],
        plan["flows"][there[0]]["period_ns"] * 1e-6,
        gains.get("kp"),
        gains.get("ki_per_ms"),
        None if law is None else alone(law),
        None if None in ways else math.fsum(link.get("delay_ns", 0) / 1e6 for link in around),
        _axes(name, far.get("plant"), law),
        any(loss["kind"] == "random" and loss["p"] > 0 for link in around if (loss := link.get("loss"))),
    )


def _axes(name: str, plant: dict[str, Any] | None, law: dict[str, Any] | None) -> int:
    """How many axes a loop has, once plant and controller fit together."""
    size, inputs = (None if one is None else linear.shape(one) for one in (plant, law))
    if law is not None and (size or (1, 1)) != (inputs or (1, 1))[::-1]:
        told, wanted = (
            "{} outputs and {} inputs".format(*(of or (1, 1))) for of in (inputs, (size or (1, 1))[::-1])
        )
        found = f"found a controller of {told}"
        raise ConfigError(
            found, key="controller", allowed=f"one of {wanted}, which the plant of {name} takes"
        )
    return 1 if size is None else size[0]


def _with_memory(plant: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if plant is None or plant["kind"] == "static" else alone(plant)


def alone(system: dict[str, Any]) -> dict[str, Any]:
    """A system of one input and output that is written with rows, as one without; any other as it is.

    Examples
    --------
    >>> alone({"kind": "state-space", "a": [[0.0]], "b": [[1.0]], "c": [[1.0]], "d": [[0.0]]})
    {'kind': 'state-space', 'a': [[0.0]], 'b': [1.0], 'c': [1.0], 'd': 0.0}
    """
    rows = system.get("kind") in ("state-space", "transfer-function") and linear.several(system)
    if not rows or linear.shape(system) != (1, 1):
        return system

    def flat(of: Any) -> list[Any]:
        return [one for row in of for one in flat(row)] if isinstance(of, list) else [of]

    told = {key: flat(system[key]) for key in ("num", "den", "b", "c", "d") if key in system}
    return system | told | ({"d": told["d"][0]} if told.get("d") else {})


def _controller(plan: Mapping[str, Any], flows: list[int]) -> dict[str, Any] | None:
    """The first built-in controller on one of these flows."""
    for flow in flows:
        for visit in plan["flows"][flow]["path"]:
            for step in visit["steps"]:
                run: dict[str, Any] | None = step.get("run")
                if run is not None and run["name"] in (CONTROLLER, COMPENSATOR, AXES):
                    return run
    return None


def _links(plan: Mapping[str, Any], flow: int) -> list[dict[str, Any]] | None:
    """The links on a flow's path; none where nodes are not joined by one."""
    network = plan.get("network") or {"vertices": [], "links": []}
    nodes = [
        plan["nodes"][plan["components"][visit["component"]]["node"]]["name"]
        for visit in plan["flows"][flow]["path"]
    ]
    ends = {
        (network["vertices"][link["from"]], network["vertices"][link["to"]]): link
        for link in network["links"]
    }
    hops = [pair for pair in pairwise(nodes) if pair[0] != pair[1]]
    return [ends[hop] for hop in hops] if all(hop in ends for hop in hops) else None


def controllers(hooks: Mapping[str, Any]) -> list[str]:
    """Names of the scenario's hooks that are built-in controllers."""
    return [name for name, hook in hooks.items() if hook.run == CONTROLLER]


def chosen(loop: Loop, axis: int | None) -> list[int]:
    """Numbers of the axes of a loop that jump, one after the other: all, or the chosen one.

    Raises
    ------
    ConfigError
        If it has no such axis.
    """
    if axis is None:
        return list(range(1, loop.axes + 1))
    if type(axis) is not int or not 1 <= axis <= loop.axes:
        allowed = (
            f"1 to {loop.axes}, the axes of {loop.name}" if loop.axes > 1 else f"1: {loop.name} has one axis"
        )
        raise ConfigError(f"found {axis!r}", key="--axis", allowed=allowed)
    return [axis]
