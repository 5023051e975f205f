"""Tests of what this machine can do: kernel, clock, network, programs, devices, worlds.

```text
 examine   everything, with 3 s of measured timing        tcpsbed doctor
 glance    what costs no process and no time              beside every run, as doctor.json
```
"""

from __future__ import annotations

from tcpsbed.doctor.examination import examine, glance
from tcpsbed.doctor.finding import Finding

__all__ = ["Finding", "examine", "glance"]
