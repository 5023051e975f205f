"""A stream of events of the kernel, cut anywhere, and a recording of one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

from tcpsbed.devices.evdev import EVENT, EvdevReports, recorded

MODULES = ("tcpsbed.devices.evdev",)
ENDS = {0: (0, 1023), 1: (-5, 5), 2: (-(2**31), 2**31 - 1)}


def target(data: bytes) -> None:
    """The first byte says how the stream is cut."""
    reports = EvdevReports(ends=ENDS)
    size = 1 + (data[0] if data else 0)
    for at in range(1, len(data), size):
        reports.take(data[at : at + size])
        judge(reports)
    reports.rest()
    judge(reports)
    assert reports.button == 0.0 and not reports._pending and not reports._left
    file = cast(Any, SimpleNamespace(read_bytes=lambda: data))
    for at_s, report in recorded(file):
        assert 0.0 <= at_s <= 86_400.0 and len(report) <= EVENT.size
        reports.take(report)
        judge(reports)


def judge(reports: EvdevReports) -> None:
    """What the hand is told."""
    assert all(-1.0 <= share <= 1.0 for share in (reports.right, reports.up, reports.further))
    assert reports.button in (0.0, 1.0) and math.isfinite(reports.wheel)
    assert len(reports._pending) <= 64 and len(reports._left) < EVENT.size
