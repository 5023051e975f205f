"""Robots of components."""

from __future__ import annotations

from typing import Any

from tcpsbed.config.compile.book import Book, Instance
from tcpsbed.config.compile.code import code
from tcpsbed.config.compile.sources import codec
from tcpsbed.config.origin import Key
from tcpsbed.robots import FILES, ROBOTS

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
    params = _located(book, model.params) if model.run in ROBOTS else model.params
    run = code(book, (*key, "run"), model.run, "robot", params)
    senses = model.senses or _senses(book, instance)
    return {"run": run, "period_ns": model.period_ns, "senses": senses, "authority": model.authority}


def _located(book: Book, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the files that they name looked for beside the scenario."""
    named = {
        key: params[key] for key in FILES if isinstance(params.get(key), str) and set(params[key]) & set("./")
    }
    return params | {key: str((book.scenario.folder / file).resolve()) for key, file in named.items()}


def _senses(book: Book, instance: Instance) -> int:
    """As many values as the samples of the flows that start at the robot hold, if no hook chooses among them."""
    if any(hook.kind == "sense" for hook in book.scenario.hooks.values()):
        return _SENSES
    fed = [way.model for way in book.ways if way.path[0] is instance]
    rooms = [(flow.sample_bytes or 0) // _BYTES[codec(flow)] for flow in fed if codec(flow) in _BYTES]
    return max(rooms, default=0) or _SENSES
