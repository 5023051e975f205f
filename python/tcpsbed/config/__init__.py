"""Scenarios: read from TOML, checked, compiled into the plan that both drivers run.

```text
TOML + includes + overrides ─► load ─► Scenario ─► compile_plan ─► plan (JSON)
```
"""

from __future__ import annotations

from tcpsbed.config.compile import check, compile_plan
from tcpsbed.config.load import load
from tcpsbed.config.model.scenario import Scenario

__all__ = ["Scenario", "check", "compile_plan", "load"]
