"""Analysis of runs: records to summary, plots, tables and export.

```text
records.bin ─► _tcps.analyse ─► summary.build ─► summary.json, series.json
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpsbed.analysis.latency import Confidence, LatencyTable
    from tcpsbed.analysis.playout import Played
    from tcpsbed.analysis.summary import build, summarise

__all__ = ["Confidence", "LatencyTable", "Played", "build", "summarise"]

_HOMES = {
    "Confidence": "latency",
    "LatencyTable": "latency",
    "Played": "playout",
    "build": "summary",
    "summarise": "summary",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
