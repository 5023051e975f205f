"""Devices `inverse3` and `inverse3_force`: a Haply Inverse3, with a VerseGrip if there is one, by Haply's local service.

```text
service ── {"inverse3": [{"device_id": "…", "state": {"cursor_position": {"x", "y", "z"}, …}}],
            "wireless_verse_grip": [{"state": {"orientation": {"x", "y", "z", "w"}, "buttons": {"a", …}}}]} ──►
        ◄── {"inverse3": [{"device_id": "…", "commands": {"set_cursor_force": {"values": {"x", "y", "z"}}}}]} ──
```
JSON over a WebSocket at `ws://localhost:10001`: each message is answered by the newest state. A force that is older than
0.1 s is none; the last message of a run says none.
"""

from __future__ import annotations

import atexit
import json
import math
import threading
import time
from typing import Any, ClassVar

import numpy as np

from tcpsbed.devices.device import AGAIN_S, Device, Floats, when_s
from tcpsbed.door import Param
from tcpsbed.errors import HookError
from tcpsbed.media.packages import need

ADDRESS = "ws://localhost:10001"
SILENT_S = 0.5
"""A service that says nothing, or nothing of a device, for so long is gone."""
STALE_S = 0.1
"""A force of the far side older than this is not felt any more."""
MOST_BYTES = 1 << 16
MOST_M = 10.0
"""Farthest that a cursor can be."""
_AXES = {"x": 0, "y": 1, "z": 2}


class Inverse3Reports:
    """The cursor and the grip out of messages of the service."""

    def __init__(self) -> None:
        self.refused = 0
        self.device: str | None = None
        self.cursor_m = np.zeros(3)
        self.orientation = np.array([0.0, 0.0, 0.0, 1.0])
        self.button = 0.0

    def take(self, content: bytes) -> bool:
        """Takes a message; false for one that is refused."""
        try:
            said = json.loads(content)
            first = said["inverse3"][0]
            device, cursor = first["device_id"], _numbers(first["state"]["cursor_position"], "xyz", MOST_M)
            if not isinstance(device, str) or len(device) > 64:
                raise ValueError("device_id")
            grips = said.get("wireless_verse_grip") or said.get("verse_grip") or []
            grip = self._grip(grips[0]["state"]) if grips else None
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
            self.refused += 1
            return False
        self.device, self.cursor_m = device, cursor
        if grip is not None:
            self.orientation, self.button = grip
        return True

    def _grip(self, state: dict[str, Any]) -> tuple[Floats, float]:
        buttons = state.get("buttons", {})
        pressed = state.get("button", False) or any(buttons[name] is True for name in buttons)
        return _numbers(state["orientation"], "xyzw", 1.001), float(pressed is True)

    def rest(self) -> None:
        """The device is gone."""
        self.device, self.button = None, 0.0


def _numbers(table: dict[str, Any], names: str, most: float) -> Floats:
    values = [float(table[name]) for name in names]
    if not all(math.isfinite(value) and abs(value) <= most for value in values):
        raise ValueError(names)
    return np.array(values)


class Service:
    """The conversation with the service, in a thread; one for all hooks of a process that name its address.

    Parameters
    ----------
    address
        Of its WebSocket.
    key
        What a force is called in `set_cursor_force`: `values`, or `vector` in later versions.
    """

    def __init__(self, address: str, key: str) -> None:
        self.sync: Any = need("websockets.sync.client", "inverse3", "console")
        self.address, self.key = address, key
        self.reports = Inverse3Reports()
        self.present, self.at_ns = False, 0
        self.force_n, self.force_at = np.zeros(3), -math.inf
        self.stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to talk; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
            atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the conversation with no force."""
        self.stopping.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def push(self, force_n: Floats) -> None:
        """The force in N along the device's axes that is felt from now on, for a while."""
        self.force_n, self.force_at = force_n, time.monotonic()

    def _follow(self) -> None:
        from websockets.exceptions import WebSocketException

        while not self.stopping.is_set():
            try:
                with self.sync.connect(
                    self.address, compression=None, max_size=MOST_BYTES, open_timeout=2.0, close_timeout=0.5
                ) as line:
                    self._talk(line)
            except (OSError, TimeoutError, WebSocketException):
                pass  # it is gone, or not there yet
            self._lose()
            self.stopping.wait(AGAIN_S)

    def _lose(self) -> None:
        self.present = False
        self.reports.rest()

    def _talk(self, line: Any) -> None:
        """Answers each message with the force that is due: none at the end, and when the device is gone."""
        heard, over = time.monotonic(), False
        while not over:
            message = line.recv(SILENT_S)
            over = self.stopping.is_set()
            if self.reports.take(message.encode() if isinstance(message, str) else message):
                heard, self.present, self.at_ns = time.monotonic(), True, time.monotonic_ns()
            lost = time.monotonic() - heard > SILENT_S
            if self.reports.device is not None:
                line.send(json.dumps(self._command(np.zeros(3) if over or lost else self._due())))
            if lost:
                self._lose()

    def _due(self) -> Floats:
        return self.force_n if time.monotonic() - self.force_at <= STALE_S else np.zeros(3)

    def _command(self, force_n: Floats) -> dict[str, Any]:
        vector = dict(zip("xyz", force_n.tolist(), strict=True))
        return {
            "inverse3": [
                {"device_id": self.reports.device, "commands": {"set_cursor_force": {self.key: vector}}}
            ]
        }


_services: dict[str, Service] = {}


def service(address: str, key: str) -> Service:
    """The connection to an address, opened on first use.

    Raises
    ------
    HookError
        If two hooks call a force differently.
    """
    found = _services.setdefault(address, Service(address, key))
    if found.key != key:
        raise HookError(
            f'inverse3: found key = "{key}" beside "{found.key}"', allowed="the same for one service"
        )
    return found


def _axes(given: list[str]) -> tuple[list[int], Floats]:
    """Which of the device's axes go to the front, to the left and up, and their signs."""
    bare = [name.lstrip("-") for name in given]
    if sorted(bare) != ["x", "y", "z"]:
        raise HookError(
            f"inverse3: found axes = {given}", allowed='x, y, z in any order, such as ["y", "-x", "z"]'
        )
    return [_AXES[name] for name in bare], np.array([-1.0 if name.startswith("-") else 1.0 for name in given])


_SERVICE = {
    "address": Param("text", default=ADDRESS, doc="address of Haply's service"),
    "key": Param(
        "text",
        default="values",
        doc="name of the force in `set_cursor_force`. Later versions call it `vector`",
    ),
}
_BASE = Param(
    {"list": "text"}, default='["y", "-x", "z"]', doc="axes of the device that point to front, left and up"
)


class Inverse3(Device):
    """The hand at the cursor: x, y, z (m), button, wheel (0), when (s), orientation of the grip (x, y, z, w)."""

    params: ClassVar[dict[str, Param]] = {
        **_SERVICE,
        "centre_m": Param(
            {"array": [3, "number"]}, default="[0, 0, 0]", doc="position of the device at `rest`"
        ),
        "rest": Param({"array": [3, "number"]}, default="[0, 0, 0]", doc="x, y, z (m) of the hand at rest"),
        "scale": Param("number", default="1", doc="m that the hand moves for each m of the device"),
        "axes": _BASE,
    }

    def __init__(
        self,
        address: str,
        key: str,
        centre_m: list[float],
        rest: list[float],
        scale: float,
        axes: list[str],
    ) -> None:
        self.service = service(address, key)
        self.centre_m, self.middle = np.array(centre_m, dtype=np.float64), np.array(rest, dtype=np.float64)
        self.scale = scale
        self.order, self.signs = _axes(axes)

    def _start(self) -> None:
        self.service.start()

    def _gone(self) -> str | None:
        return (
            None if self.service.present else f"inverse3: the service at {self.service.address} or its device"
        )

    def _refused(self) -> int:
        return self.service.reports.refused

    def _state(self, t_ns: int) -> list[float]:
        now = self.service.reports
        moved = (now.cursor_m - self.centre_m)[self.order] * self.signs * self.scale
        place = (self.middle + moved).tolist()
        return [*place, now.button, 0.0, when_s(t_ns, self.service.at_ns), *now.orientation.tolist()]


class Inverse3Force:
    """The force that comes back, felt at the cursor: a `feedback` hook at the operator."""

    params: ClassVar[dict[str, Param]] = {
        **_SERVICE,
        "gain": Param("number", default="1", doc="N that the device shows for each N of the force"),
        "most_n": Param("number", 0, default="5", doc="largest force that the device shows, in N"),
        "axes": _BASE,
    }

    def __init__(self, address: str, key: str, gain: float, most_n: float, axes: list[str]) -> None:
        self.service = service(address, key)
        self.gain, self.most_n = gain, most_n
        self.order, self.signs = _axes(axes)

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """Outputs the force on the device and passes it on; a force that is not three finite numbers counts as none."""
        if x is None:
            return 0
        force = np.zeros(3)
        if len(x) >= 3 and np.isfinite(x[:3]).all():
            force[self.order] = x[:3] * self.signs * self.gain
            size = math.hypot(*force)
            force *= min(1.0, self.most_n / size) if 0 < size < math.inf else 0.0
            force[~np.isfinite(force)] = 0.0
        self.service.push(force)
        y[: len(x)] = x
        return len(x)
