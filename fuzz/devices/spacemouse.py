"""HID reports of a SpaceMouse, and a recording by hid-recorder."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tcpsbed.devices.spacemouse import SpaceMouseReports, recorded

MODULES = ("tcpsbed.devices.spacemouse",)


def target(data: bytes) -> None:
    """Reports, each behind its length, then the same bytes as a recording."""
    reports = SpaceMouseReports()
    at = taken = 0
    while at < len(data):
        size = data[at] % 16
        reports.take(data[at + 1 : at + 1 + size])
        at, taken = at + 1 + size, taken + 1
        judge(reports, taken)
    reports.rest()
    assert not reports.push.any() and not reports.turn.any() and reports.buttons == 0
    file = cast(Any, SimpleNamespace(read_bytes=lambda: data))
    for at_s, report in recorded(file):
        assert 0.0 <= at_s <= 86_400.0
        reports.take(report)
        taken += 1
        judge(reports, taken)


def judge(reports: SpaceMouseReports, taken: int) -> None:
    """What the hand is told."""
    assert reports.push.shape == reports.turn.shape == (3,)
    assert np.abs(reports.push).max() <= 1.0 and np.abs(reports.turn).max() <= 1.0
    assert 0 <= reports.buttons < 1 << 64 and reports.refused <= taken
