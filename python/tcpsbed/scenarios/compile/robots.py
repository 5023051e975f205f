"""Robots of components."""

from __future__ import annotations

from typing import Any

from tcpsbed import linear
from tcpsbed.scenarios.compile.book import Book, Instance
from tcpsbed.scenarios.compile.code import code
from tcpsbed.scenarios.compile.plants import plant
from tcpsbed.scenarios.compile.sources import codec
from tcpsbed.scenarios.model.entries import defaults
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import shown

STEP = "step"
"""The robot whose parameters name a plant."""
AXES = "tcpsbed.robots.axes"
"""The module of a loop with several axes."""
_SENSES = 16
_BYTES = {"f32": 4, "f64": 8}


def robot(book: Book, instance: Instance) -> dict[str, Any] | None:
    """The robot of a component as the plan has it."""
    model = instance.model.robot
    if model is None:
        return None
    key: Key = ("components", instance.id, "robot")
    if instance.kind != "tactile-teleoperator":
        raise book.scenario.error(
            key, f"found a robot at a {instance.kind}", "a robot at a tactile-teleoperator"
        )
    params = model.params
    if model.run == STEP and "plant" in params:
        params = params | {"plant": plant(book, (*key, "params", "plant"), params["plant"], model.period_ns)}
    if model.run == STEP and (several := linear.shape(params.get("plant") or {"kind": ""})) is not None:
        run = _step(book, key, params, several)
    else:
        run = code(book, (*key, "run"), model.run, "robot", params)
    senses = model.senses or _senses(book, instance)
    if run["name"] == AXES:
        _refuse_room(book, instance, linear.shape(run["params"]["plant"]) or (1, 1))
    return {"run": run, "period_ns": model.period_ns, "senses": senses, "authority": model.authority}


def _step(book: Book, key: Key, params: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """The robot `step` with several axes, at one of which h falls."""
    axis = params.get("axis", 1)
    if type(axis) is not int or not 1 <= axis <= size[0]:
        allowed = f"an output of the plant, 1 to {size[0]}, where h falls"
        raise book.scenario.error((*key, "params", "axis"), f"found {shown(axis)}", allowed)
    rest = {name: value for name, value in params.items() if name not in ("plant", "axis")}
    one = code(book, (*key, "run"), STEP, "robot", rest)["params"]
    told = {name: value for name, value in (defaults("robot", STEP) | one).items() if name != "plant"}
    own = {"plant": params["plant"], "axis": axis}
    return {"kind": "python", "name": AXES, "symbol": "Step", "params": told | own}


def _refuse_room(book: Book, instance: Instance, size: tuple[int, int]) -> None:
    """Refuses samples that do not hold a value for each axis."""
    for way in book.ways:
        flow, ends = way.model, (way.path[0] is instance, way.path[-1] is instance)
        if codec(flow) in _BYTES and any(ends):
            room, wanted = (flow.sample_bytes or 0) // _BYTES[codec(flow)], size[0] if ends[0] else size[1]
            if room < wanted:
                allowed = f'"{_BYTES[codec(flow)] * wanted} B": a value for each of {wanted} axes'
                found = f"found {flow.sample_bytes} B"
                raise book.scenario.error(("flows", way.id, "sample"), found, allowed)


def _senses(book: Book, instance: Instance) -> int:
    """As many values as the samples of the flows that start at the robot hold, if no hook chooses among them."""
    if any(hook.kind == "sense" for hook in book.scenario.hooks.values()):
        return _SENSES
    fed = [way.model for way in book.ways if way.path[0] is instance]
    rooms = [(flow.sample_bytes or 0) // _BYTES[codec(flow)] for flow in fed if codec(flow) in _BYTES]
    return max(rooms, default=0) or _SENSES
