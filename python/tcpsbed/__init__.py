"""tcpsbed: a testbed for teleoperation over networks.

A scenario describes operator, components, network and robot. It runs in virtual time or on real sockets.

Examples
--------
>>> import tcpsbed
>>> run = tcpsbed.run("scenarios/quickstart.toml")  # doctest: +SKIP
>>> run.flows["haptic"].delay_ms.p99  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module

# `typing` is not imported before `shadows` is there to name a file that hides it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tcpsbed.api.compare import compare
    from tcpsbed.api.latency import latency
    from tcpsbed.api.load import load
    from tcpsbed.api.map import map
    from tcpsbed.api.reproduce import reproduce
    from tcpsbed.api.run import run
    from tcpsbed.api.search import search
    from tcpsbed.api.step import step
    from tcpsbed.api.sweep import sweep
    from tcpsbed.api.tune import tune
    from tcpsbed.door import (
        Component,
        DelayModel,
        LossModel,
        Metric,
        NonlinearPlant,
        Param,
        Plant,
        QueueDiscipline,
        RateController,
        Sink,
        Source,
    )
    from tcpsbed.errors import ConfigError, DataError, HookError, TcpsbedError, WorldError
    from tcpsbed.figures.plot import plot
    from tcpsbed.runs.run import Run
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.model.code import Channel, Hook
    from tcpsbed.scenarios.model.flow import Flow
    from tcpsbed.scenarios.model.link import Link, Queue, Topology
    from tcpsbed.scenarios.model.measure import Event, Measure
    from tcpsbed.scenarios.model.place import Node

__version__ = "0.1.0"

__all__ = [
    "Channel",
    "Component",
    "ConfigError",
    "DataError",
    "DelayModel",
    "Event",
    "Flow",
    "Hook",
    "HookError",
    "Link",
    "LossModel",
    "Measure",
    "Metric",
    "Node",
    "NonlinearPlant",
    "Param",
    "Plant",
    "Queue",
    "QueueDiscipline",
    "RateController",
    "Run",
    "Scenario",
    "Sink",
    "Source",
    "TcpsbedError",
    "Topology",
    "WorldError",
    "__version__",
    "compare",
    "latency",
    "load",
    "map",
    "plot",
    "reproduce",
    "run",
    "search",
    "step",
    "sweep",
    "tune",
]

_HOMES = {
    **{
        name: f"tcpsbed.api.{name}"
        for name in (
            "compare",
            "latency",
            "load",
            "map",
            "reproduce",
            "run",
            "search",
            "step",
            "sweep",
            "tune",
        )
    },
    "plot": "tcpsbed.figures.plot",
    "Run": "tcpsbed.runs.run",
    "Scenario": "tcpsbed.scenarios",
    **dict.fromkeys(("Channel", "Hook"), "tcpsbed.scenarios.model.code"),
    "Flow": "tcpsbed.scenarios.model.flow",
    **dict.fromkeys(("Link", "Queue", "Topology"), "tcpsbed.scenarios.model.link"),
    **dict.fromkeys(("Event", "Measure"), "tcpsbed.scenarios.model.measure"),
    "Node": "tcpsbed.scenarios.model.place",
    **dict.fromkeys(
        (
            "Component",
            "DelayModel",
            "LossModel",
            "Metric",
            "NonlinearPlant",
            "Param",
            "Plant",
            "QueueDiscipline",
            "RateController",
            "Sink",
            "Source",
        ),
        "tcpsbed.door",
    ),
    **dict.fromkeys(
        ("ConfigError", "DataError", "HookError", "TcpsbedError", "WorldError"), "tcpsbed.errors"
    ),
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that a node process loads nothing that it does not need."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
