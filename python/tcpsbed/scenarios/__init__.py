"""Scenarios: read from TOML, checked, compiled into the plan that both drivers run.

```text
TOML + includes + overrides ─► load ─► Scenario ─► compile_plan ─► plan (JSON)
                                          └─► dump ─► TOML as run
```
"""

from __future__ import annotations

from tcpsbed.scenarios.build import load
from tcpsbed.scenarios.compile import check, compile_events, compile_network, compile_plan
from tcpsbed.scenarios.compile.events import asked_by
from tcpsbed.scenarios.compile.events import named as named_events
from tcpsbed.scenarios.dump import dump
from tcpsbed.scenarios.load import tables
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.overrides import Overrides, overrides
from tcpsbed.scenarios.schema import schema
from tcpsbed.scenarios.template import init_template

__all__ = [
    "Overrides",
    "Scenario",
    "asked_by",
    "check",
    "compile_events",
    "compile_network",
    "compile_plan",
    "dump",
    "init_template",
    "load",
    "named_events",
    "overrides",
    "schema",
    "tables",
]
