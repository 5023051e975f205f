"""tcpsbed: a testbed for teleoperation over networks.

One scenario says who the operator is, which components stand on the way, what network lies between and what robot
answers; it runs in virtual time or on real sockets.

Examples
--------
>>> import tcpsbed
>>> run = tcpsbed.run("scenarios/quickstart.toml")  # doctest: +SKIP
>>> run.summary["flows"]["haptic"]["delay_ms"]["p99"]  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpsbed.analysis import Run
    from tcpsbed.config.load import load as load
    from tcpsbed.door import Param, QueueDiscipline, RateController, Source
    from tcpsbed.errors import ConfigError, DataError, HookError, TcpsbedError, WorldError
    from tcpsbed.session import run

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DataError",
    "HookError",
    "Param",
    "QueueDiscipline",
    "RateController",
    "Run",
    "Source",
    "TcpsbedError",
    "WorldError",
    "__version__",
    "load",
    "run",
]

_HOMES = {
    "run": "tcpsbed.session",
    "load": "tcpsbed.config",
    "Run": "tcpsbed.analysis",
    "Param": "tcpsbed.door",
    "QueueDiscipline": "tcpsbed.door",
    "RateController": "tcpsbed.door",
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
