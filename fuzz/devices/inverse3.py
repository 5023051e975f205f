"""Messages of Haply's service, a line each, and what is answered."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import numpy as np

from tcpsbed.devices.inverse3 import MOST_M, Service

MODULES = ("tcpsbed.devices.inverse3",)
JSON = True


class Words:
    """A WebSocket on which the service says some messages and then goes."""

    def __init__(self, messages: list[bytes]) -> None:
        self.messages, self.told = messages, 0

    def recv(self, timeout: float) -> str | bytes:
        """The next message, as text if it is one."""
        if not self.messages:
            raise TimeoutError
        message = self.messages.pop(0)
        try:
            return message.decode()
        except UnicodeDecodeError:
            return message

    def send(self, text: str) -> None:
        """A force must be finite numbers for a device that the service has named."""
        (command,) = json.loads(text, parse_constant=_no_number)["inverse3"]
        assert isinstance(command["device_id"], str)
        force = command["commands"]["set_cursor_force"]["values"]
        assert list(force.values()) in ([0.5, 0.0, -1.0], [0.0, 0.0, 0.0]) and list(force) == ["x", "y", "z"]
        self.told += 1


def target(data: bytes) -> None:
    """A conversation, up to its end."""
    service = Service("ws://localhost:1", "values")
    service.push(np.array([0.5, 0.0, -1.0]))
    messages = data.split(b"\n")
    words: Any = Words(list(messages))
    with suppress(TimeoutError):
        service._talk(words)
    reports = service.reports
    assert np.isfinite(reports.cursor_m).all() and np.abs(reports.cursor_m).max() <= MOST_M
    assert np.isfinite(reports.orientation).all() and reports.button in (0.0, 1.0)
    assert reports.refused <= len(messages) and service.present == (reports.device is not None)
    assert words.told <= len(messages) and math.isfinite(service.force_at)


def _no_number(name: str) -> None:
    raise AssertionError(f"{name} in what is told")
