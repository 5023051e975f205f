"""The server of the console: a page on loopback, and a WebSocket for everything that moves.

```text
browser ── GET /?token=… ──► page            browser ◄── 1 | number | offset | JPEG       pictures, the newest only
        ── WebSocket /ws?token=… ──►                 ◄── {"k": "force", "f": […]}          50 a second
           {"k": "hand", "p": [[t, x, y, z, button, wheel], …]}   coalesced events, oldest first
           {"k": "ping", "t": …} ──► {"k": "pong", "t": …, "s": server's clock, ms}
```
Every browser has a thread that listens and one that sends; a slow browser gets fewer pictures, never old ones. A
browser that goes away leaves the hand where it is.
"""

from __future__ import annotations

import hmac
import json
import math
import secrets
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tcpsbed.errors import WorldError
from tcpsbed.media.line import FORCE, HEAD, PICTURE, STATE
from tcpsbed.media.packages import need

HERE = Path(__file__).parent
POINT = 6
"""Numbers of an event: when (ms before it was sent), x, y, z, button, wheel."""
MOST_POINTS = 256
"""Most events in one message."""
MOST_BYTES = 1 << 16
"""Longest message of a browser."""


@dataclass
class Newest:
    """The newest picture and force, each with its number, for threads that wait for either."""

    picture: bytes = b""
    pictures: int = 0
    force: tuple[float, ...] = ()
    forces: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, kind: int, content: bytes) -> None:
        """Replaces what was there."""
        with self.changed:
            if kind == PICTURE:
                self.picture, self.pictures = content, self.pictures + 1
            else:
                self.force, self.forces = _floats(content[HEAD.size :]), self.forces + 1
            self.changed.notify_all()


def _floats(content: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(content) // 8}d", content[: len(content) // 8 * 8])


class Console:
    """Serves one run on loopback.

    Parameters
    ----------
    folder
        Where the sockets to the run are made; the run finds it by `TCPSBED_CONSOLE`.
    port
        A port of 127.0.0.1; 0 takes a free one.

    Raises
    ------
    WorldError
        If the port is taken.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        sync: Any = need("websockets.sync.server", "the console", "console")
        self.folder, self.token = folder, secrets.token_urlsafe(16)
        self.newest = Newest()
        self.refused = 0
        """Messages of browsers that were not what they should be."""
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.line.bind(str(folder / "console"))
        self.to_hand = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.to_hand.setblocking(False)
        try:
            self.server = sync.serve(
                self._talk,
                "127.0.0.1",
                port,
                process_request=self._answer,
                compression=None,
                max_size=MOST_BYTES,
            )
        except OSError as error:
            self._close()
            raise WorldError(
                f"console: port {port}: {error}", allowed="another --port, or 0 for a free one"
            ) from None
        self.port: int = self.server.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Begins to serve, in threads of its own."""
        for body in (self.server.serve_forever, self._listen):
            threading.Thread(target=body, daemon=True).start()

    def stop(self) -> None:
        """Ends all conversations."""
        self.server.shutdown()
        self._close()

    def _close(self) -> None:
        self.line.close()
        self.to_hand.close()

    def _listen(self) -> None:
        """Takes what the run sends."""
        with suppress(OSError):
            while True:
                content = self.line.recv(1 << 18)
                if len(content) >= HEAD.size and content[0] in (PICTURE, FORCE):
                    self.newest.put(content[0], content)

    def _answer(self, connection: Any, request: Any) -> Any:
        """The page, and who may open a WebSocket: whoever knows the token, from our own page."""
        asked = urlsplit(request.path)
        files = {"/": ("page.html", "text/html"), "/page.js": ("page.js", "text/javascript")}
        if asked.path == "/page.js":
            return self._file(connection, *files["/page.js"])
        given = parse_qs(asked.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed console: the address lacks its token\n")
        if asked.path == "/ws":
            origin = request.headers.get("Origin")
            ours = {f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"}
            if origin is not None and origin not in ours:
                return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed console: another page's request\n")
            return None
        if asked.path in files:
            return self._file(connection, *files[asked.path])
        return connection.respond(HTTPStatus.NOT_FOUND, "tcpsbed console: no such page\n")

    def _file(self, connection: Any, name: str, kind: str) -> Any:
        response = connection.respond(HTTPStatus.OK, (HERE / name).read_text(encoding="utf-8"))
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = f"{kind}; charset=utf-8"
        response.headers["Cache-Control"] = "no-store"
        response.headers["Content-Security-Policy"] = (
            "default-src 'self'; img-src 'self' blob:; style-src 'unsafe-inline'"
        )
        return response

    def _talk(self, connection: Any) -> None:
        """Listens to a browser, while a second thread sends to it."""
        from websockets.exceptions import ConnectionClosed

        gone = threading.Event()
        sender = threading.Thread(target=self._send, args=(connection, gone), daemon=True)
        sender.start()
        with suppress(ConnectionClosed):
            for message in connection:
                answer = self._hear(message)
                if answer is not None:
                    connection.send(json.dumps(answer))
        gone.set()
        with self.newest.changed:
            self.newest.changed.notify_all()

    def _send(self, connection: Any, gone: threading.Event) -> None:
        """Sends the newest picture and force whenever there are new ones."""
        from websockets.exceptions import ConnectionClosed

        pictures = forces = 0
        newest = self.newest
        with suppress(ConnectionClosed):
            while not gone.is_set():
                with newest.changed:
                    if (newest.pictures, newest.forces) == (pictures, forces):
                        newest.changed.wait(1.0)
                    picture = newest.picture if newest.pictures > pictures else b""
                    force = newest.force if newest.forces > forces else ()
                    pictures, forces = newest.pictures, newest.forces
                if force:
                    finite = [value if math.isfinite(value) else 0.0 for value in force]
                    connection.send(json.dumps({"k": "force", "f": finite}))
                if picture:
                    connection.send(picture)

    def _hear(self, message: str | bytes) -> dict[str, Any] | None:
        """Acts on a message of a browser; gives the answer that it wants."""
        now_ns = time.monotonic_ns()
        try:
            said = json.loads(message)
            if said["k"] == "ping":
                return {"k": "pong", "t": float(said["t"]), "s": now_ns / 1e6}
            if said["k"] == "hand":
                self._move(said["p"], now_ns)
                return None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            pass
        self.refused += 1
        return None

    def _move(self, points: Any, now_ns: int) -> None:
        """Hands coalesced events on, oldest first."""
        if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
            raise ValueError("points")
        for point in points:
            ago_ms, *state = (float(value) for value in point)
            if len(state) != POINT - 1 or not all(map(math.isfinite, (ago_ms, *state))):
                raise ValueError("point")
            bounded = [min(max(value, -1.0), 1.0) for value in state[:4]]
            at_ns = now_ns - int(min(max(ago_ms, 0.0), 1e4) * 1e6)
            with suppress(OSError):  # no hand in this run, or it has not read the last ones
                self.to_hand.sendto(STATE.pack(*bounded, state[4], at_ns), str(self.folder / "hand"))
