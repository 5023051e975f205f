"""The studio's own process: takes frames of a run on standard input, and serves pages on loopback.

```text
browser ── GET /?token=… ──► page        /report?token=… ──► report.html of the run, when it is over
        ── GET /scenario.toml?token=… ──► the scenario with what was done by hand
        ── /live?token=… ──►  {"k": "plan" | "steered" | "bins" | "now" | "asked" | "over", …}     20 a second at most
           {"k": "event", "id": n, "event": {…}} ──► one line of JSON on standard output; answered by "asked"
```
Each viewer has a thread that sends what is new since its last message: a slow one gets fewer, larger messages. The first
viewer to ask for control has it until it leaves; the others look.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tcpsbed import views
from tcpsbed.console.server import MOST_BYTES, MOST_GREETING_S, Door
from tcpsbed.errors import TcpsbedError
from tcpsbed.media.packages import need
from tcpsbed.studio.collector import Collector
from tcpsbed.studio.feed import HEADER, PLAN, ROWS, SCENARIO, SPLIT, TEXT
from tcpsbed.studio.sinks.running import Sinks

PAGE = Path(__file__).parent / "page"
VENDOR = Path(views.__file__).parent / "vendor"
FILES = {
    "/": (PAGE / "index.html", "text/html"),
    "/studio.js": (PAGE / "studio.js", "text/javascript"),
    "/studio.css": (PAGE / "studio.css", "text/css"),
    "/uplot.js": (VENDOR / "uPlot.iife.min.js", "text/javascript"),
    "/uplot.css": (VENDOR / "uPlot.min.css", "text/css"),
}
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:"
"""uPlot sets styles of its elements."""
EVERY_S = 0.05
"""Time between two messages to a viewer."""
NOW_EVERY_S = 0.25
"""Time between two analyses of the last seconds."""


class Studio:
    """Serves one run.

    Parameters
    ----------
    port : int
        A port of 127.0.0.1; 0 takes a free one.
    folder : Path
        The run's folder, as the user knows it.
    sinks : sequence of str
        Where its data goes besides, as `--sink` names it.
    """

    def __init__(self, port: int, folder: Path, sinks: Sequence[str] = ()) -> None:
        sync: Any = need("websockets.sync.server", "the studio", "studio")
        self.folder, self.token = folder, secrets.token_urlsafe(16)
        self.lock = threading.Lock()
        self.collector: Collector | None = None
        self.scenario = ""
        self.messages: list[str] = []
        """What every viewer gets once, from the first on."""
        self.now, self.numbered = "", 0
        """The newest message about the last seconds, and its number."""
        self.ended = threading.Event()
        self.steers: Any = None
        """Whose events go to the run."""
        self.sinks = Sinks(sinks)
        self.server = sync.serve(
            self._talk,
            sock=Door(port),
            process_request=self._answer,
            max_size=MOST_BYTES,
            open_timeout=MOST_GREETING_S,
        )
        self.port: int = self.server.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Until standard input ends."""
        for body in (self.server.serve_forever, self._tick):
            threading.Thread(target=body, daemon=True).start()
        with suppress(EOFError):
            while True:
                kind, length, now_s = HEADER.unpack(_read(HEADER.size))
                body = _read(length)
                self._take(kind, body, now_s)
                self._pass_on(kind, body, now_s)
        self.ended.set()
        self.sinks.end()
        self.server.shutdown()

    def _take(self, kind: int, body: bytes, now_s: float) -> None:
        with self.lock:
            if kind == PLAN:
                self.collector = Collector(json.loads(body))
                self.messages.append(json.dumps({"k": "plan", "plan": _shown(self.collector.plan)}))
            elif kind == ROWS and self.collector is not None:
                self.collector.add(body[8:], now_s, int.from_bytes(body[:8], "little"))
            elif kind == SPLIT and self.collector is not None:
                self.collector.split(json.loads(body), now_s)
            elif kind == SCENARIO:
                self.scenario = body.decode()
            elif kind == TEXT:
                self.messages.append(body.decode())

    def _pass_on(self, kind: int, body: bytes, now_s: float) -> None:
        """To the sinks."""
        if kind == PLAN:
            self.sinks.begin(json.loads(body))
        elif kind == ROWS:
            self.sinks.rows(body[8:], now_s)
        elif kind == TEXT:
            self.sinks.text(json.loads(body))

    def _tick(self) -> None:
        while not self.ended.wait(NOW_EVERY_S):
            with self.lock:
                if self.collector is None or not self.collector.rows:
                    continue
                now = self.collector.lately()
                self.now, self.numbered = json.dumps(now), self.numbered + 1
            self.sinks.take(now)

    def _answer(self, connection: Any, request: Any) -> Any:
        """Files, and the check for WebSockets: the token, and a request from our own page."""
        asked = urlsplit(request.path)
        if asked.path in FILES and asked.path != "/":
            return _file(connection, *FILES[asked.path])
        given = parse_qs(asked.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: the address lacks its token\n")
        if asked.path == "/live":
            origin = request.headers.get("Origin")
            if origin not in (None, f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"):
                return connection.respond(HTTPStatus.FORBIDDEN, "tcpsbed studio: another page's request\n")
            return None
        if asked.path == "/report" and (self.folder / "report.html").is_file():
            return _file(connection, self.folder / "report.html", "text/html", policy="")
        if asked.path == "/":
            return _file(connection, *FILES["/"])
        if asked.path == "/scenario.toml":
            with self.lock:
                told = [json.loads(text) for text in self.messages]
            return _text(connection, saved(self.scenario, told), "application/toml")
        return connection.respond(HTTPStatus.NOT_FOUND, "tcpsbed studio: no such page\n")

    def _talk(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        over = threading.Event()
        threading.Thread(target=self._send, args=(connection, over), daemon=True).start()
        with suppress(ConnectionClosed):
            for message in connection:
                with suppress(ValueError, TypeError, KeyError, RecursionError):
                    self._hear(connection, json.loads(message))
        over.set()
        with self.lock:
            self.steers = None if self.steers is connection else self.steers

    def _hear(self, connection: Any, said: dict[str, Any]) -> None:
        """An event for the run, from the one who steers."""
        if said["k"] != "event":
            return
        with self.lock:
            self.steers = self.steers or connection
            if self.steers is not connection:
                connection.send(
                    json.dumps({"k": "asked", "id": said["id"], "refused": "another viewer steers"})
                )
                return
        asked = {"id": str(said["id"])[:64], "event": {str(k): v for k, v in said["event"].items()}}
        print(json.dumps(asked), flush=True)

    def _send(self, connection: Any, over: threading.Event) -> None:
        """Sends what is new, at the viewer's pace."""
        from websockets.exceptions import ConnectionClosed

        told, seen, first, generation = 0, 0, 0, 0
        with suppress(ConnectionClosed):
            while not over.wait(EVERY_S):
                with self.lock:
                    out = self.messages[told:]
                    told = len(self.messages)
                    if self.collector is not None:
                        if generation != self.collector.generation:
                            first, generation = 0, self.collector.generation
                        if self.collector.bins > first:
                            out.append(json.dumps(self.collector.curves_from(first)))
                            first = self.collector.bins
                    if seen != self.numbered:
                        out.append(self.now)
                        seen = self.numbered
                for text in out:
                    connection.send(text)


def _shown(plan: dict[str, Any]) -> dict[str, Any]:
    """What a page needs of a plan."""
    keys = ("name", "seed", "duration_ns", "nodes", "components", "events")
    network = {key: plan["network"][key] for key in ("vertices", "links", "traffic")}
    flows = [
        {
            "name": flow["name"],
            "direction": flow["direction"],
            "period_ns": flow["period_ns"],
            "path": [stop["component"] for stop in flow["path"]],
        }
        for flow in plan["flows"]
    ]
    return {key: plan[key] for key in keys} | {"network": network, "flows": flows}


def saved(scenario: str, told: list[dict[str, Any]]) -> str:
    """The text of a scenario with what was done by hand as events: in virtual time it gives the same again."""
    done = [one for one in told if one["k"] == "asked" and "refused" not in one]
    return scenario + "".join(_table({"at": f"{one['at_ns'] / 1e9:.9f} s"} | one["event"]) for one in done)


def _table(event: dict[str, Any]) -> str:
    """An event of a scenario as TOML; JSON writes its texts, numbers and truth values in the same way."""
    return "".join(["\n[[events]]\n", *(f"{key} = {json.dumps(value)}\n" for key, value in event.items())])


def _file(connection: Any, file: Path, kind: str, policy: str = POLICY) -> Any:
    return _text(connection, file.read_text(encoding="utf-8"), kind, policy)


def _text(connection: Any, text: str, kind: str, policy: str = POLICY) -> Any:
    response = connection.respond(HTTPStatus.OK, text)
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = f"{kind}; charset=utf-8"
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if policy:
        response.headers["Content-Security-Policy"] = policy
    return response


def _read(length: int) -> bytes:
    found = sys.stdin.buffer.read(length)
    if len(found) < length:
        raise EOFError
    return found


def main(port: int, folder: Path, sinks: Sequence[str]) -> None:
    """Says its address on standard output, and serves until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when it is over
    os.nice(5)
    try:
        studio = Studio(port, folder, sinks)
    except OSError as error:
        allowed = "another --port, or 0 for a free one"
        print(json.dumps({"error": f"port {port}: {error.strerror}", "allowed": allowed}), flush=True)
        return
    except TcpsbedError as error:
        print(json.dumps({"error": error.text, "allowed": error.allowed}), flush=True)
        return
    print(json.dumps({"address": studio.address, "sinks": studio.sinks.where}), flush=True)
    studio.serve()
