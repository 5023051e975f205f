"""tcpsbed: a testbed for teleoperation over networks.

A scenario describes operator, components, network and robot. It runs in virtual time or on real sockets.

Examples
--------
>>> import tcpsbed
>>> run = tcpsbed.run("scenarios/quickstart.toml")  # doctest: +SKIP
>>> run.summary["flows"]["haptic"]["delay_ms"]["p99"]  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module

# `typing` is not imported before `shadows` is there to name a file that hides it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tcpsbed.analysis import Run
    from tcpsbed.door import (
        Component,
        DelayModel,
        LossModel,
        Metric,
        Param,
        Plant,
        QueueDiscipline,
        RateController,
        Sink,
        Source,
    )
    from tcpsbed.errors import ConfigError, DataError, HookError, TcpsbedError, WorldError
    from tcpsbed.runs.session import run
    from tcpsbed.scenarios.load import load as load

__version__ = "0.1.0"

__all__ = [
    "Component",
    "ConfigError",
    "DataError",
    "DelayModel",
    "HookError",
    "LossModel",
    "Metric",
    "Param",
    "Plant",
    "QueueDiscipline",
    "RateController",
    "Run",
    "Sink",
    "Source",
    "TcpsbedError",
    "WorldError",
    "__version__",
    "load",
    "plot",
    "run",
]

_HOMES = {
    "run": "tcpsbed.runs.session",
    "load": "tcpsbed.scenarios",
    "plot": "tcpsbed.figures",
    "Run": "tcpsbed.analysis",
    "Component": "tcpsbed.door",
    "DelayModel": "tcpsbed.door",
    "LossModel": "tcpsbed.door",
    "Metric": "tcpsbed.door",
    "Param": "tcpsbed.door",
    "Plant": "tcpsbed.door",
    "QueueDiscipline": "tcpsbed.door",
    "RateController": "tcpsbed.door",
    "Sink": "tcpsbed.door",
    "Source": "tcpsbed.door",
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
