"""Pages behind a token, and their WebSockets; `server`, `gallery`, `sweep` and `subject` say what they show.

```text
browser ── GET /?token=… ──► page        /studio.js, /studio.css, …  ──► what the page loads, without a token
        ── /ws, /pictures, /near ──►                                 ◄── hand, force, pictures (console.server)
        ── /live?token=… ──►                                         ◄── JSON, what is new, 20 messages a second at most
        ── GET /all.json?token=… ──►                                 ◄── all of it, for a browser without WebSocket
```
Each viewer has a thread that sends what is new since its last message: a slow one gets fewer, larger messages. Whoever has
the other token, that of `watch`, gets all of it, and nothing that it says is heard.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import socket
import sys
import threading
import time
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
from tcpsbed.errors import WorldError, counted
from tcpsbed.media.packages import need
from tcpsbed.studio.limits import Allowance, ByAddress, Refusals, limited, network
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.tls import Sealed
from tcpsbed.studio.viewers import Viewers

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
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads allow-modals"
)
"""Of a page that stands in a folder, which may be a stranger's: it may draw, and send nothing, nor reach the others."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_BYTES = 1 << 16
"""Longest message of a browser."""
MOST_CONNECTIONS, MOST_OF_ADDRESS, MOST_GREETING_S = 96, 32, 2.0
"""Connections at a time, each with a thread or two; those of one address; and how long one may take to say what it wants."""
MOST_WATCHING = MOST_CONNECTIONS - MOST_OF_ADDRESS
"""WebSockets of those who only watch, who never keep the others out."""
CONNECTIONS, WRONG_TOKENS = (100.0, 600.0), (5.0, 20.0)
"""Of an address, a second and at once. A browser loads a page with about 45 connections."""
HAND = Allowance(frames=2000, at_once=4000, bytes=1 << 20)
"""A mouse moves the hand up to 1,000 times a second."""
WORDS = Allowance(frames=50, at_once=600, bytes=1 << 18)
"""The start page asks for all drawings at once."""
WATCHING = Allowance(frames=10, at_once=40, bytes=1 << 14)
"""Four times a second the page of a run with an operator asks for the clock."""
SEND_BYTES, STUCK_S = 1 << 18, 20.0
"""What the system keeps for a browser that reads slowly, and how long one may take nothing of it."""
EVERY_S, BESIDE_S = 0.05, 0.25
"""Time between two messages to a viewer; and beside an operator, whose hand the work for them would hold up."""
FULL_S = 0.05
"""Pause of a door where the system has no descriptor or memory for a connection."""

LOGGER = logging.getLogger("tcpsbed.studio")
LOGGER.addFilter(lambda told: "handshake" not in told.msg)
"""Some versions of `websockets` write a trace for each stranger who says nonsense."""


class Door(socket.socket):
    """Listens on a port, seals what comes there if it has to, and hangs up on those who are too many or too quick.

    Parameters
    ----------
    listening : Listening
        Where.
    refusals : Refusals
        Counts those that are hung up on.

    Raises
    ------
    OSError
        If the port is taken, or the address belongs to another machine.
    """

    def __init__(self, listening: Listening, refusals: Refusals) -> None:
        six = ":" in listening.host
        super().__init__(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
        self._within: list[tuple[socket.socket, str]] = []
        self._pace, self._refusals, self._context = ByAddress(*CONNECTIONS), refusals, listening.context()
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * STUCK_S))
        if six:
            self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            self.bind((listening.host, listening.port))
        except OSError:
            self.close()
            raise
        self.listen(MOST_CONNECTIONS)

    def accept(self) -> tuple[Any, Any]:
        """As of any socket; the server that asks ends with the first error, so that only the door's own end is one."""
        while True:
            try:
                connection, address = super().accept()
                break
            except OSError:
                if self.fileno() < 0:
                    raise
                time.sleep(FULL_S)
        place = network(address[0])
        self._within = [(one, at) for one, at in self._within if one.fileno() >= 0]
        full = len(self._within) >= MOST_CONNECTIONS
        if (
            full
            or sum(at == place for _, at in self._within) >= MOST_OF_ADDRESS
            or not self._pace.take(address[0])
        ):
            self._refusals.add("connections over the limit")
            connection.close()
            return connection, address
        self._within.append((connection, place))
        return (Sealed(connection, self._context) if self._context else connection), address


class Site:
    """Serves one page.

    Parameters
    ----------
    listening : Listening
        Where.
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
    watchable = False
    """Whether it has a second address, at which nothing can be changed."""

    def __init__(self, listening: Listening, page: str, console: Console | None = None) -> None:
        sync: Any = need("websockets.sync.server", "the studio", "studio")
        self.page, self.lock, self.console = PAGE / page, threading.Lock(), console
        self.token, self.watch_token = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        self.sockets: dict[str, Callable[[Any], None]] = {}
        """What talks to a browser, by the path of its WebSocket."""
        self.refusals, self.wrong_tokens = Refusals(), ByAddress(*WRONG_TOKENS)
        self.viewers, self.watching = Viewers(), 0
        """Who may steer and move the hand; and WebSockets of those who may not."""
        self.numbers: dict[Any, int] = {}
        """Viewers by their connection, or by the key of their page."""
        try:
            door = Door(listening, self.refusals)
        except OSError as error:
            where = "" if listening.local else f"{listening.host} "
            allowed = "another --port, or 0 for a free one" + (where and "; an address of this machine")
            raise WorldError(
                f"studio: {where}port {listening.port}: {error.strerror}", allowed=allowed
            ) from None
        self.server = sync.serve(
            self._serve,
            sock=door,
            process_request=self._answer,
            create_connection=limited(sync.ServerConnection, self.refusals),
            compression=None,
            max_size=MOST_BYTES,
            open_timeout=MOST_GREETING_S,
            logger=LOGGER,
        )
        self.port: int = self.server.socket.getsockname()[1]
        self.listening = listening.at(self.port)
        if console is not None:
            console.address, console.may = self.address, self._moves
            self.sockets |= dict.fromkeys(OF_CONSOLE, console.talk) | {"/ws": self._operate}

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"{self.listening.base}/?token={self.token}"

    @property
    def watch(self) -> str:
        """What a browser opens that is to change nothing; empty: there is no such address."""
        return f"{self.listening.base}/?token={self.watch_token}" if self.watchable else ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its certificate; empty without TLS."""
        return self.listening.told.fingerprint if self.listening.told else ""

    def start(self) -> None:
        """Serves in a thread."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        if self.console is not None:
            self.console.start()

    def stop(self) -> None:
        """Takes no further browsers, and says what was refused."""
        self.server.shutdown()
        if self.console is not None:
            self.console.stop()
        if counts := self.refused():
            told = ", ".join(_counted(number, what) for what, number in counts.items())
            with suppress(OSError, ValueError):  # who would read it has gone
                print(f"studio: refused: {told}", file=sys.stderr, flush=True)

    def refused(self) -> dict[str, int]:
        """How much was refused so far, by what it was."""
        denied = self.console.denied if self.console else 0
        return self.refusals.counts() | ({"messages of viewers who do not steer": denied} if denied else {})

    def text(self, path: str) -> tuple[str, str, str] | None:
        """Content, kind and policy of what this site has at a path for those with the token; `None`: nothing."""

    def _serve(self, browser: Any) -> None:
        """One WebSocket, until it ends."""
        if not browser.watches:
            self.sockets[_path(browser)](browser)
            return
        with self.lock:
            self.watching += 1
        try:
            self.sockets[_path(browser)](browser)
        finally:
            with self.lock:
                self.watching -= 1

    def _operate(self, browser: Any) -> None:
        """The hand of a page that is known, or of a viewer without one."""
        browser.page = asked(browser, "page")
        if not browser.watches and not browser.page:
            with self.lock:
                self.numbers[browser] = self.viewers.enter("", takes=True, away=self._away)
        assert self.console is not None
        try:
            self.console.talk(browser)
        finally:
            with self.lock:
                if (number := self.numbers.pop(browser, None)) is not None:
                    self.viewers.leave(number)

    @property
    def _away(self) -> bool:
        """Whether the operator is away."""
        return self.console is not None and self.console.presence.away

    def _moves(self, browser: Any) -> bool:
        """Whether the hand is that of this WebSocket; asked for each message, so without the lock."""
        number = None if browser.watches else self.numbers.get(browser.page or browser)
        return number is not None and self.viewers.steers == number

    def _answer(self, connection: Any, request: Any) -> Any:
        """Files, and the check for WebSockets: the token, and a request from our own page."""
        try:
            _, _, path, query, _ = urlsplit(request.path)
        except ValueError:
            return _refuse(connection, HTTPStatus.BAD_REQUEST, "no address")
        if path in self.files:
            return _file(connection, self.files[path])
        role = self._role(parse_qs(query).get("token", [""])[0])
        if role is None:
            within = self.wrong_tokens.take(_peer(connection))
            self.refusals.add("requests without the right token")
            status = HTTPStatus.FORBIDDEN if within else HTTPStatus.TOO_MANY_REQUESTS
            return _refuse(connection, status, "the address lacks its token")
        connection.watches = role is WATCHING
        if path in self.sockets:
            origin = request.headers.get("Origin")
            if origin is not None and not self.listening.ours(origin):
                self.refusals.add("requests of other pages")
                return _refuse(connection, HTTPStatus.FORBIDDEN, "another page's request")
            if connection.watches and self.watching >= MOST_WATCHING:
                self.refusals.add("connections over the limit")
                return _refuse(connection, HTTPStatus.SERVICE_UNAVAILABLE, "too many watch")
            connection.allow(HAND if path == "/ws" and role is WORDS else role)
            return None
        if path == "/":
            return _text(connection, self.page.read_text(encoding="utf-8"), "text/html", POLICY)
        found = self.text(path)
        if found is None:
            return _refuse(connection, HTTPStatus.NOT_FOUND, "no such page")
        return _text(connection, *found)

    def _role(self, given: str) -> Allowance | None:
        """What a token lets its holder say; `None`: it is neither of the two."""
        said = given.encode(errors="replace")
        steers = hmac.compare_digest(said, self.token.encode())
        watches = hmac.compare_digest(said, self.watch_token.encode())
        return WORDS if steers else WATCHING if watches and self.watchable else None


class Live(Site, ABC):
    """A page whose viewers are told what is new. Parameters as of `Site`."""

    def __init__(self, listening: Listening, page: str, console: Console | None = None) -> None:
        super().__init__(listening, page, console)
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
        try:
            for message in viewer:
                if viewer.watches:
                    self.refusals.add("messages of viewers who only watch")
                    continue
                with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    self.hear(viewer, json.loads(message))
        except (ConnectionClosed, OSError):  # or nobody hears the run any more
            pass
        finally:
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


def asked(browser: Any, key: str) -> str:
    """A part of the address of a WebSocket, 64 letters of it at most; empty where it has none."""
    path: str = browser.request.path
    return parse_qs(urlsplit(path).query).get(key, [""])[0][:64]


def _path(browser: Any) -> str:
    path: str = browser.request.path
    return urlsplit(path).path


def _peer(connection: Any) -> str:
    """Whose connection it is; `::` of one that has gone."""
    try:
        return str(connection.remote_address[0])
    except OSError:
        return "::"


def _counted(number: int, what: str) -> str:
    """`2 requests of other pages`, `1 request of other pages`."""
    thing, rest = what.split(" ", 1)
    return f"{counted(number, thing.removesuffix('s'))} {rest}"


def _refuse(connection: Any, status: HTTPStatus, why: str) -> Any:
    return _bare(connection.respond(status, f"tcpsbed studio: {why}\n"))


def _file(connection: Any, file: Path) -> Any:
    return _text(connection, file.read_text(encoding="utf-8"), KINDS[file.suffix], POLICY)


def _text(connection: Any, text: str, kind: str, policy: str) -> Any:
    response = _bare(connection.respond(HTTPStatus.OK, text))
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = f"{kind}; charset=utf-8"
    response.headers["Content-Security-Policy"] = policy
    return response


def _bare(response: Any) -> Any:
    """Kept nowhere, taken for nothing else; and no page that is opened from it learns its address, which has the token."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
