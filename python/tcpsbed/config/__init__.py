"""Scenarios: read from TOML, checked, compiled into the plan that both drivers run.

```text
TOML + includes + overrides ─► load ─► Scenario ─► compile_plan ─► plan (JSON)
                                          └─► dump ─► TOML as run
```
"""

from __future__ import annotations

from tcpsbed.config.compile import check, compile_network, compile_plan
from tcpsbed.config.dump import dump
from tcpsbed.config.load import build, load, tables
from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.schema import schema
from tcpsbed.config.template import init_template

__all__ = [
    "Scenario",
    "build",
    "check",
    "compile_network",
    "compile_plan",
    "dump",
    "init_template",
    "load",
    "schema",
    "tables",
]
