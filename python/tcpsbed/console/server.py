"""The console's end of two kinds of WebSocket, for everything that moves; `studio.site` serves them with a page.

```text
browser ── /ws?token=… ──►                           ◄── {"k": "force", "f": […], "p": …}  50 a second
                                                     ◄── {"k": "held", "p": [x, y, z]}     where force has moved the hand
                                                     ◄── {"k": "near"}                     there are pictures at /near
                                                     ◄── {"k": "control", "mine": …}       whether it may move the hand
           {"k": "hand", "s": ms, "p": [[ago, x, y, z, button, wheel], …]}   coalesced events, oldest first
           {"k": "head", "s": ms, "p": [[ago, x, y, z, qx, qy, qz, qw]]}     pose of a headset
           {"k": "mark", "s": ms, "p": [[ago, x, y, width, height]]}     a region of the picture, in shares of it
           {"k": "ping", "t": …} ──► {"k": "pong", "t": …, "s": server's clock, ms, "took": [p50, p95]}
           {"k": "study", …} ──►                     ◄── {"k": "study", …}                 docs/study.md
        ── /pictures?token=… ──►                     ◄── 1 | number | offset | JPEG        the newest only
        ── /near?token=… ──►                         ◄── 4 | number | offset | JPEG        of the robot's own side
```
`p` is the age in ms of what a force was predicted from, or null where it came. `s` is the server's clock when the browser
sent, as far as it knows it; `ago` is ms before that. The subject of a study is told no latency: `p` is null, `took` empty.
Every WebSocket has a thread that listens and one that sends. Pictures have one of their own, because a line that is busy
with a picture does not listen. A slow browser gets fewer pictures, never old ones. One browser may move the hand, as whoever
serves the page says (`may`): of the others nothing but a ping is heard. While that one is not there any more, the run is
told so, and has no commands of the hand; one that comes back finds the hand where it was, with its button up.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tcpsbed.console.presence import Presence
from tcpsbed.media.line import FELT, FORCE, HEAD, HELD, MARK, NEAR, PICTURE, PLACE, POSE, STATE, TOOK, leave

NOTICE, FACT = 0, -1
"""Kinds of what a study shows, and of the news that there is a picture of the robot's own side."""
KINDS = {"/ws": (FORCE, NOTICE, HELD, FACT), "/pictures": (PICTURE,), "/near": (NEAR,)}
"""What each WebSocket sends."""
POINT, HEAD_POINT, MARK_POINT = 6, 8, 5
"""Numbers of an event of the hand, a pose of the head, a mark; the first is when (ms before it was sent)."""
MOST_POINTS = 256
"""Most events in one message."""
MOST_AGO_NS = 10_000_000_000
"""Oldest event, and farthest that a browser's idea of the clock may be off."""
LOOK_S = 0.2
"""Polling interval of connections; a run that began meanwhile is announced again."""
SWITCH_S = 0.0005
"""Longest time for which a thread that computes keeps a message of the hand waiting (Python's own: 5 ms)."""


@dataclass
class Newest:
    """The newest content of each kind, with its number, for threads that wait for some of them."""

    content: dict[int, Any] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, kind: int, content: Any) -> None:
        """Replaces the content."""
        with self.changed:
            self.content[kind] = content
            self.numbers[kind] = self.numbers.get(kind, 0) + 1
            self.changed.notify_all()

    def drop(self, kind: int) -> None:
        """Takes back what nobody has been given yet."""
        with self.changed:
            self.content.pop(kind, None)

    def wait(self, kinds: tuple[int, ...], seen: dict[int, int], seconds: float) -> list[tuple[int, Any]]:
        """Messages of these kinds that arrived after the numbers in `seen`, which are updated."""
        with self.changed:
            if not self._new(kinds, seen):
                self.changed.wait(seconds)
            new = self._new(kinds, seen)
            seen.update({kind: self.numbers[kind] for kind in new})
            return [(kind, self.content[kind]) for kind in new]

    def _new(self, kinds: tuple[int, ...], seen: dict[int, int]) -> list[int]:
        return [kind for kind in kinds if kind in self.content and self.numbers[kind] != seen.get(kind, 0)]


def _floats(content: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(content) // 8}d", content[: len(content) // 8 * 8])


class Console:
    """Between browsers and runs, one after the other.

    Parameters
    ----------
    folder
        Where the sockets to the run are made; the run finds it by `TCPSBED_CONSOLE`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, ""
        """`address` is what a browser opens; whoever serves the page says it."""
        self.newest = Newest()
        self.refused = 0
        """Messages of browsers that were not what they should be."""
        self.denied = 0
        """Messages of browsers that may not move the hand."""
        self.may: Callable[[Any], bool] = lambda _: True
        """Whether a browser may move the hand; it waits for nobody."""
        self.gone = 0
        """Operators that have gone away."""
        self.answer: Callable[[dict[str, Any]], None] | None = None
        """Takes what the subject of a study answers; there is one only while a study runs."""
        self.presence = Presence(self._changed, self._leave, lambda browser: self.may(browser))
        self.told: Callable[[str], None] = lambda _: None
        """Hears when the operator goes away and comes back."""
        self.stands: Callable[[str], None] = lambda _: None
        """Hears of the hand: `moved` for the first time, `away`, `back`; it waits for nobody."""
        self.moved = False
        self.showed: Callable[[float, bytes], None] = lambda t_s, jpeg: None
        """Hears of each picture, and the run's time at which it is shown."""
        self.hand: tuple[float, ...] = (0.0,) * 5
        """The newest state of the hand."""
        self.stopped = threading.Event()
        self.took_ms: deque[float] = deque(maxlen=256)
        """Time from an event in the browser to the run's hook that took it, of the last ones."""
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.line.bind(str(folder / "console"))
        self.to_run = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.to_run.setblocking(False)

    def start(self) -> None:
        """Takes what the run sends, and looks who is there, in threads of its own."""
        sys.setswitchinterval(SWITCH_S)
        for body in (self._listen, self._look):
            threading.Thread(target=body, daemon=True).start()

    def stop(self) -> None:
        """Closes the sockets to the run."""
        self.stopped.set()
        self.line.close()
        self.to_run.close()

    def notify(self, told: dict[str, Any]) -> None:
        """Shows something on the page, also on one that is opened later."""
        self.newest.put(NOTICE, told)

    def forget(self) -> None:
        """Shows what was shown last to no page that is opened from now on."""
        self.newest.drop(NOTICE)

    def _listen(self) -> None:
        """Takes what the run sends."""
        with suppress(OSError):
            while True:
                content = self.line.recv(1 << 18)
                if len(content) < HEAD.size:
                    continue
                if content[0] in (PICTURE, NEAR):
                    if content[0] == NEAR and NEAR not in self.newest.content:
                        self.newest.put(FACT, {"k": "near"})
                    self.newest.put(content[0], content)
                    if content[0] == PICTURE:
                        *_, begun_ns = HEAD.unpack_from(content)
                        self.showed((time.monotonic_ns() - begun_ns) / 1e9, content[HEAD.size :])
                elif content[0] == HELD and len(content) == HEAD.size + PLACE.size:
                    held = PLACE.unpack_from(content, HEAD.size)
                    self.newest.put(HELD, {"k": "held", "p": [v if math.isfinite(v) else 0.0 for v in held]})
                elif content[0] == FORCE and len(content) == HEAD.size + FELT.size:
                    self.newest.put(FORCE, FELT.unpack_from(content, HEAD.size))
                elif content[0] == TOOK:
                    self.took_ms.extend(_floats(content[HEAD.size :])[:1])

    def talk(self, connection: Any) -> None:
        """Listens to a browser at one of `KINDS`, while a second thread sends to it."""
        from websockets.exceptions import ConnectionClosed

        path = urlsplit(connection.request.path).path
        pictures, over = path != "/ws", threading.Event()
        counts = not pictures and not connection.watches
        if counts:
            self.presence.heard(connection)
        threading.Thread(target=self._send, args=(connection, KINDS[path], over), daemon=True).start()
        try:
            with suppress(ConnectionClosed):
                for message in connection:
                    answer = self._hear(message, connection if counts else None)
                    if answer is not None:
                        connection.send(json.dumps(answer))
        finally:
            over.set()
            if counts:
                self.gone += self.may(connection)
                self.presence.left(connection)
            self.settled()

    def settled(self) -> None:
        """Another browser may move the hand now, or none."""
        self.presence.look()
        with self.newest.changed:
            self.newest.changed.notify_all()

    def _send(self, connection: Any, kinds: tuple[int, ...], over: threading.Event) -> None:
        """Sends the newest of some kinds whenever there is something new."""
        from websockets.exceptions import ConnectionClosed

        seen: dict[int, int] = {}
        mine: bool | None = None
        with suppress(ConnectionClosed):
            while not over.is_set():
                if NOTICE in kinds and mine is not (mine := self.may(connection)):
                    connection.send(json.dumps({"k": "control", "mine": mine}))
                for kind, content in self.newest.wait(kinds, seen, 1.0):
                    if kind == FORCE:
                        *force, age_ms = content
                        finite = [value if math.isfinite(value) else 0.0 for value in force]
                        known = math.isfinite(age_ms) and self.answer is None
                        content = {"k": "force", "f": finite, "p": age_ms if known else None}
                    connection.send(json.dumps(content) if isinstance(content, dict) else content)

    def _hear(self, message: str | bytes, browser: Any) -> dict[str, Any] | None:
        """Acts on a message of a browser; gives the answer that it wants. `None`: one that only watches."""
        now_ns = time.monotonic_ns()
        mine = browser is not None and self.presence.heard(browser)
        try:
            said = json.loads(message)
            if said["k"] == "ping":
                asked_ms = float(said["t"])
                if not math.isfinite(asked_ms):
                    raise ValueError("t")
                return {"k": "pong", "t": asked_ms, "s": now_ns / 1e6, "took": self._took()}
            if not mine:
                self.denied += 1
                return None
            if said["k"] == "hand":
                self._move(said["p"], _sent_ns(said, now_ns))
                return None
            if said["k"] == "head":
                self._turn(said["p"], _sent_ns(said, now_ns))
                return None
            if said["k"] == "mark":
                self._mark(said["p"], _sent_ns(said, now_ns))
                return None
            if said["k"] == "study" and self.answer is not None:
                self.answer(said)
                return None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            pass
        self.refused += 1
        return None

    def _took(self) -> list[float]:
        """Median and 95th percentile in ms of what events took to the run; empty before the first, none for subjects."""
        known = sorted(self.took_ms) if self.answer is None else []
        return [known[int(share * (len(known) - 1))] for share in (0.5, 0.95)] if known else []

    def _move(self, points: Any, sent_ns: int) -> None:
        """Hands coalesced events on, oldest first."""
        read = _read(points, POINT, sent_ns)
        if not self.moved:
            self.moved = True
            self.stands("moved")
        for at_ns, state in read:
            bounded = [min(max(value, -1.0), 1.0) for value in state[:4]]
            self.hand = (*bounded, state[4])
            self._tell("hand", STATE.pack(*self.hand, at_ns))

    def _turn(self, points: Any, sent_ns: int) -> None:
        """Hands poses of the head on."""
        for at_ns, pose in _read(points, HEAD_POINT, sent_ns):
            self._tell("head", POSE.pack(*(min(max(value, -100.0), 100.0) for value in pose), at_ns))

    def _mark(self, points: Any, sent_ns: int) -> None:
        """Hands marks of the picture on."""
        for at_ns, mark in _read(points, MARK_POINT, sent_ns):
            self._tell("mark", MARK.pack(*(min(max(value, 0.0), 1.0) for value in mark), at_ns))

    def _look(self) -> None:
        """Checks who is connected."""
        while not self.stopped.wait(LOOK_S):
            self.presence.look()

    def _changed(self, there: bool) -> None:
        """The operator has disconnected, or returned with the hand where it was and its button up."""
        self.stands("back" if there else "away")
        if there:
            self._tell("hand", STATE.pack(*self.hand[:3], 0.0, self.hand[4], time.monotonic_ns()))
            said = "the operator is connected again"
        else:
            self._leave()
            said = f"the browser disconnected or let go, and the hand sends no commands; open {self.address} again"
        with suppress(OSError, ValueError):  # who would read it has gone
            self.told(said)

    def _leave(self) -> None:
        leave(self.folder)

    def _tell(self, hook: str, content: bytes) -> None:
        with suppress(OSError):  # no such hook in this run, or it has not read the last ones
            self.to_run.sendto(content, str(self.folder / hook))


def _sent_ns(said: dict[str, Any], now_ns: int) -> int:
    """Send time of a message: from the browser, if given and plausible."""
    if said.get("s") is None:
        return now_ns
    sent_ns = int(float(said["s"]) * 1e6)
    return min(sent_ns, now_ns) if abs(now_ns - sent_ns) < MOST_AGO_NS else now_ns


def _read(points: Any, numbers: int, sent_ns: int) -> list[tuple[int, list[float]]]:
    """Points of a message: when each was, and what."""
    if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
        raise ValueError("points")
    read = []
    for point in points:
        if any(isinstance(value, bool) for value in point):
            raise ValueError("point")
        ago_ms, *values = (float(value) for value in point)
        if len(values) != numbers - 1 or not all(map(math.isfinite, (ago_ms, *values))):
            raise ValueError("point")
        read.append((sent_ns - min(int(max(ago_ms, 0.0) * 1e6), MOST_AGO_NS), values))
    return read
