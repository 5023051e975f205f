"""Pages on loopback behind a token, and a WebSocket for each viewer; `server`, `gallery` and `sweep` say what they show.

```text
browser ── GET /?token=… ──► page        /studio.js, /studio.css, …  ──► what the page loads, without a token
        ── /live?token=… ──►                                         ◄── JSON, what is new, 20 messages a second at most
        ── GET /all.json?token=… ──►                                 ◄── all of it, for a browser without WebSocket
```
Each viewer has a thread that sends what is new since its last message: a slow one gets fewer, larger messages.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tcpsbed import console, views
from tcpsbed.console.server import MOST_BYTES, MOST_GREETING_S, Door
from tcpsbed.errors import WorldError
from tcpsbed.media.packages import need

PAGE = Path(__file__).parent / "page"
VENDOR = Path(views.__file__).parent / "vendor"
KINDS = {".js": "text/javascript", ".css": "text/css"}
CONSOLE = Path(console.__file__).parent
FILES = {f"/{file.name}": file for file in PAGE.iterdir() if file.suffix in KINDS} | {
    "/hand.js": CONSOLE / "hand.js",
    "/pictures.js": CONSOLE / "pictures.js",
    "/uplot.js": VENDOR / "uPlot.iife.min.js",
    "/uplot.css": VENDOR / "uPlot.min.css",
}
"""What pages load."""
OF_FILES = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Of a page that stands in a folder, which may be a stranger's: it may draw, and send nothing."""
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
    "connect-src 'self' ws://127.0.0.1:*"
)
"""uPlot sets styles of its elements; a demonstration's console has a port of its own."""
EVERY_S = 0.05
"""Time between two messages to a viewer."""


class Site:
    """Serves one page.

    Parameters
    ----------
    port : int
        A port of 127.0.0.1; 0 takes a free one.
    page : str
        The file in `page/` that a browser opens.

    Raises
    ------
    WorldError
        If `websockets` is not installed or the port is taken.
    """

    def __init__(self, port: int, page: str) -> None:
        sync: Any = need("websockets.sync.server", "the studio", "studio")
        self.page, self.token, self.lock = PAGE / page, secrets.token_urlsafe(16), threading.Lock()
        try:
            door = Door(port)
        except OSError as error:
            allowed = "another --port, or 0 for a free one"
            raise WorldError(f"studio: port {port}: {error.strerror}", allowed=allowed) from None
        self.server = sync.serve(
            self._talk,
            sock=door,
            process_request=self._answer,
            max_size=MOST_BYTES,
            open_timeout=MOST_GREETING_S,
        )
        self.port: int = self.server.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Serves in a thread."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Takes no further viewers."""
        self.server.shutdown()

    def text(self, path: str) -> tuple[str, str, str] | None:
        """Content, kind and policy of what this site has at a path for those with the token; `None`: nothing."""

    def all(self) -> list[str]:
        """All messages that a viewer who comes now would get."""
        raise NotImplementedError

    def news(self, viewer: Any) -> Iterator[list[str]]:
        """What is new for a viewer since the last time, each time that it is asked."""
        raise NotImplementedError

    def hear(self, viewer: Any, said: dict[str, Any]) -> None:
        """Takes a message of a viewer."""

    def came(self, viewer: Any) -> None:
        """A viewer is there."""

    def gone(self, viewer: Any) -> None:
        """A viewer has left."""

    def _answer(self, connection: Any, request: Any) -> Any:
        """Files, and the check for WebSockets: the token, and a request from our own page."""
        asked = urlsplit(request.path)
        if asked.path in FILES:
            return _file(connection, FILES[asked.path])
        given = parse_qs(asked.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: the address lacks its token\n")
        if asked.path == "/live":
            origin = request.headers.get("Origin")
            if origin not in (None, f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"):
                return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: another page's request\n")
            return None
        if asked.path == "/":
            return _text(connection, self.page.read_text(encoding="utf-8"), "text/html", POLICY)
        if asked.path == "/all.json":
            return _text(connection, f"[{','.join(self.all())}]", "application/json", POLICY)
        found = self.text(asked.path)
        if found is None:
            return connection.respond(HTTPStatus.NOT_FOUND, "tcpsbed studio: no such page\n")
        return _text(connection, *found)

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
            while not over.wait(EVERY_S):
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
