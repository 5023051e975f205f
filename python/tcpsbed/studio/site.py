"""Pages on loopback behind a token, and their WebSockets; `server`, `gallery`, `sweep` and `subject` say what they show.

```text
browser ── GET /?token=… ──► page        /studio.js, /studio.css, …  ──► what the page loads, without a token
        ── /ws, /pictures, /near ──►                                 ◄── hand, force, pictures (console.server)
        ── /live?token=… ──►                                         ◄── JSON, what is new, 20 messages a second at most
        ── GET /all.json?token=… ──►                                 ◄── all of it, for a browser without WebSocket
```
Each viewer has a thread that sends what is new since its last message: a slow one gets fewer, larger messages.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tcpsbed import views
from tcpsbed.console.server import KINDS as OF_CONSOLE
from tcpsbed.console.server import Console
from tcpsbed.errors import WorldError
from tcpsbed.media.packages import need

PAGE = Path(__file__).parent / "page"
VENDOR = Path(views.__file__).parent / "vendor"
KINDS = {".js": "text/javascript", ".css": "text/css"}
FILES = {f"/{file.name}": file for file in PAGE.iterdir() if file.suffix in KINDS} | {
    "/uplot.js": VENDOR / "uPlot.iife.min.js",
    "/uplot.css": VENDOR / "uPlot.min.css",
}
"""What pages load."""
OF_FILES = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Of a page that stands in a folder, which may be a stranger's: it may draw, and send nothing."""
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:"
"""uPlot sets styles of its elements."""
MOST_BYTES = 1 << 16
"""Longest message of a browser."""
MOST_CONNECTIONS, MOST_GREETING_S = 32, 2.0
"""Connections at a time, each with a thread or two, and how long one may take to say what it wants."""
EVERY_S, BESIDE_S = 0.05, 0.25
"""Time between two messages to a viewer; and beside an operator, whose hand the work for them would hold up."""


class Door(socket.socket):
    """Listens on a port of loopback, and hangs up on those who come while `MOST_CONNECTIONS` are in."""

    def __init__(self, port: int) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._within: list[socket.socket] = []
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.bind(("127.0.0.1", port))
        except OSError:
            self.close()
            raise
        self.listen(MOST_CONNECTIONS)

    def accept(self) -> tuple[socket.socket, Any]:
        """As of any socket."""
        connection, address = super().accept()
        self._within = [one for one in self._within if one.fileno() >= 0]
        if len(self._within) < MOST_CONNECTIONS:
            self._within.append(connection)
        else:
            connection.close()
        return connection, address


class Site:
    """Serves one page.

    Parameters
    ----------
    port : int
        A port of 127.0.0.1; 0 takes a free one.
    page : str
        The file in `page/` that a browser opens.
    console : Console, optional
        What the page's operator talks to; it starts and stops with the page.

    Raises
    ------
    WorldError
        If `websockets` is not installed or the port is taken.
    """

    files = FILES
    """What the page loads, without a token, by path."""

    def __init__(self, port: int, page: str, console: Console | None = None) -> None:
        sync: Any = need("websockets.sync.server", "the studio", "studio")
        self.page, self.token, self.lock = PAGE / page, secrets.token_urlsafe(16), threading.Lock()
        self.console = console
        self.sockets: dict[str, Callable[[Any], None]] = {}
        """What talks to a browser, by the path of its WebSocket."""
        try:
            door = Door(port)
        except OSError as error:
            allowed = "another --port, or 0 for a free one"
            raise WorldError(f"studio: port {port}: {error.strerror}", allowed=allowed) from None
        self.server = sync.serve(
            lambda browser: self.sockets[urlsplit(browser.request.path).path](browser),
            sock=door,
            process_request=self._answer,
            compression=None,
            max_size=MOST_BYTES,
            open_timeout=MOST_GREETING_S,
        )
        self.port: int = self.server.socket.getsockname()[1]
        if console is not None:
            console.address = self.address
            self.sockets |= dict.fromkeys(OF_CONSOLE, console.talk)

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Serves in a thread."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        if self.console is not None:
            self.console.start()

    def stop(self) -> None:
        """Takes no further browsers."""
        self.server.shutdown()
        if self.console is not None:
            self.console.stop()

    def text(self, path: str) -> tuple[str, str, str] | None:
        """Content, kind and policy of what this site has at a path for those with the token; `None`: nothing."""

    def _answer(self, connection: Any, request: Any) -> Any:
        """Files, and the check for WebSockets: the token, and a request from our own page."""
        asked = urlsplit(request.path)
        if asked.path in self.files:
            return _file(connection, self.files[asked.path])
        given = parse_qs(asked.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: the address lacks its token\n")
        if asked.path in self.sockets:
            origin = request.headers.get("Origin")
            if origin not in (None, f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"):
                return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: another page's request\n")
            return None
        if asked.path == "/":
            return _text(connection, self.page.read_text(encoding="utf-8"), "text/html", POLICY)
        found = self.text(asked.path)
        if found is None:
            return connection.respond(HTTPStatus.NOT_FOUND, "tcpsbed studio: no such page\n")
        return _text(connection, *found)


class Live(Site, ABC):
    """A page whose viewers are told what is new. Parameters as of `Site`."""

    def __init__(self, port: int, page: str, console: Console | None = None) -> None:
        super().__init__(port, page, console)
        self.sockets["/live"] = self._talk

    def text(self, path: str) -> tuple[str, str, str] | None:
        """All messages."""
        return (f"[{','.join(self.all())}]", "application/json", POLICY) if path == "/all.json" else None

    @abstractmethod
    def all(self) -> list[str]:
        """All messages that a viewer who comes now would get."""

    @abstractmethod
    def news(self, viewer: Any) -> Iterator[list[str]]:
        """What is new for a viewer since the last time, each time that it is asked."""

    def hear(self, viewer: Any, said: dict[str, Any]) -> None:
        """Takes a message of a viewer."""

    def came(self, viewer: Any) -> None:
        """A viewer is there."""

    def gone(self, viewer: Any) -> None:
        """A viewer has left."""

    def _talk(self, viewer: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        over = threading.Event()
        self.came(viewer)
        threading.Thread(target=self._send, args=(viewer, over), daemon=True).start()
        with suppress(ConnectionClosed):
            for message in viewer:
                with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    self.hear(viewer, json.loads(message))
        over.set()
        self.gone(viewer)

    def _send(self, viewer: Any, over: threading.Event) -> None:
        """Sends what is new, at the viewer's pace."""
        from websockets.exceptions import ConnectionClosed

        news = self.news(viewer)
        with suppress(ConnectionClosed):
            while not over.wait(EVERY_S if self.console is None else BESIDE_S):
                for text in next(news):
                    viewer.send(text)


def _file(connection: Any, file: Path) -> Any:
    return _text(connection, file.read_text(encoding="utf-8"), KINDS[file.suffix], POLICY)


def _text(connection: Any, text: str, kind: str, policy: str) -> Any:
    response = connection.respond(HTTPStatus.OK, text)
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = f"{kind}; charset=utf-8"
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if policy:
        response.headers["Content-Security-Policy"] = policy
    return response
