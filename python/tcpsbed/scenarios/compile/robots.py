"""Robots of components."""

from __future__ import annotations

from typing import Any

from tcpsbed.scenarios.compile.book import Book, Instance
from tcpsbed.scenarios.compile.code import code
from tcpsbed.scenarios.compile.plants import plant
from tcpsbed.scenarios.compile.sources import codec
from tcpsbed.scenarios.origin import Key

STEP = "step"
"""The robot whose parameters name a plant."""
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
    run = code(book, (*key, "run"), model.run, "robot", params)
    senses = model.senses or _senses(book, instance)
    return {"run": run, "period_ns": model.period_ns, "senses": senses, "authority": model.authority}


def _senses(book: Book, instance: Instance) -> int:
    """As many values as the samples of the flows that start at the robot hold, if no hook chooses among them."""
    if any(hook.kind == "sense" for hook in book.scenario.hooks.values()):
        return _SENSES
    fed = [way.model for way in book.ways if way.path[0] is instance]
    rooms = [(flow.sample_bytes or 0) // _BYTES[codec(flow)] for flow in fed if codec(flow) in _BYTES]
    return max(rooms, default=0) or _SENSES
