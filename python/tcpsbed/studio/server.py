"""The page of a run, in a process of its own: takes frames of the run on standard input.

```text
browser ── GET /report?token=… ──► report.html of the run, when it is over
        ── GET /more.json?token=… ──► what that has and this page has not: tables, distributions
        ── GET /scenario.toml?token=… ──► the scenario with what was done by hand; /profile.toml its network
        ── /ws, /pictures, /near ──► the operator of a run that has one (console.server)
        ── /live?token=… ──►  {"k": "shows" | "plan" | "steered" | "bins" | "events" | "now" | "asked" | "over", …}
           {"k": "event", "id": n, "event": {…}} ──► one line of JSON on standard output; answered by "asked"
                                ◄── {"k": "hand", "is": "moved" | "away" | "back", "t_s": …}: the operator's; first moved
           {"k": "ask" | "give" | "keep" | "step"} ──► control and the tour, answered by "viewers" to all (viewers.py)
                                ◄── {"k": "refused", "counts": {what: number}}, once a second where it has changed
```
When the run is over, "now" is about the whole run, from its summary.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.analysis import outages
from tcpsbed.console.server import Console
from tcpsbed.errors import TcpsbedError, one_line
from tcpsbed.media.line import folder as console_folder
from tcpsbed.proxy import saved as profiles
from tcpsbed.scenarios.dump import dump_document, value_text
from tcpsbed.scenarios.units import duration_ns
from tcpsbed.studio import freeze
from tcpsbed.studio.collector import Collector
from tcpsbed.studio.facts import FACTS
from tcpsbed.studio.feed import HEADER, OVER, PLAN, ROWS, SCENARIO, SPLIT, TEXT
from tcpsbed.studio.ledger import Moments
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.motion import Motion
from tcpsbed.studio.sinks.running import Sinks
from tcpsbed.studio.site import EVERY_S, OF_FILES, POLICY, Live, asked
from tcpsbed.studio.whole import shown, whole
from tcpsbed.views.folder import open_folder
from tcpsbed.views.glance import glance

HAND = "tcpsbed.console.hooks:Hand"
"""The hook of a scenario that a hand in the browser steers."""
FIRST_NS = 5_000_000_000
"""Time before the first change of a scenario that was saved while a hand in the browser steered."""
MOST_EVENT = 10_000
"""Longest event by hand, as JSON."""
NOW_EVERY_S = 0.25
"""Time between two analyses of the last seconds."""
REFUSED_S = 1.0
"""Time between two messages about what was refused."""
LAST_S = 4 * EVERY_S
"""Time that viewers have for the last messages."""


class Studio(Live):
    """Serves one run.

    Parameters
    ----------
    listening : Listening
        Where.
    folder : Path
        The run's folder, as the user knows it.
    sinks : sequence of str
        Where its data goes besides, as `--sink` names it.
    console : Console, optional
        What the run's operator talks to.
    """

    watchable = True

    def __init__(
        self, listening: Listening, folder: Path, sinks: Sequence[str] = (), console: Console | None = None
    ) -> None:
        super().__init__(listening, "index.html", console)
        self.folder = folder
        self.collector: Collector | None = None
        self.scenario = ""
        self.messages: list[str] = []
        """What every viewer gets once, from the first on."""
        self.now, self.numbered = "", 0
        """The newest message about the last seconds, or about the whole run, and its number."""
        self.over, self.more = False, ""
        """Whether the run is over, and what `/more.json` has then."""
        self.ended = threading.Event()
        self.zero_s = 0.0
        """When the run began, on the monotonic clock."""
        self.sinks = Sinks(sinks)
        if console is not None:
            console.showed = self.sinks.picture
            console.stands = self._stands

    def serve(self) -> None:
        """Until standard input ends."""
        self.start()
        threading.Thread(target=self._tick, daemon=True).start()
        with suppress(EOFError):
            while True:
                kind, length, now_s = HEADER.unpack(_read(HEADER.size))
                body = _read(length)
                self._take(kind, body, now_s)
                self._pass_on(kind, body, now_s)
        self.ended.set()
        self.sinks.end()
        time.sleep(LAST_S)
        self.stop()

    def _take(self, kind: int, body: bytes, now_s: float) -> None:
        with self.lock:
            if kind == PLAN:
                plan = json.loads(body)
                self.collector = Collector(plan, Moments.of(self.scenario))
                self.messages.append(
                    documents.strict({"k": "plan", "plan": shown(plan) | {"motion": Motion(plan).lines}})
                )
            elif kind == ROWS and self.collector is not None:
                self.zero_s = time.monotonic() - now_s
                self.collector.add(body[8:], now_s, int.from_bytes(body[:8], "little"))
            elif kind == SPLIT and self.collector is not None:
                self.collector.split(json.loads(body), now_s)
            elif kind == SCENARIO:
                self.scenario = body.decode()
            elif kind == TEXT:
                self.messages.append(body.decode())
                told = json.loads(body)
                if "closing" in told and self.collector is not None:
                    self.collector.closing = outages.Passing(told["closing"], told["at_ns"])
            elif kind == OVER and self.collector is not None:
                self._end(json.loads(body))

    def _stands(self, what: str) -> None:
        """The hand is moved for the first time, away or back; called while the console judges it, so without the lock."""
        if not self.over:
            t_s = time.monotonic() - self.zero_s if self.zero_s else 0.0
            self.messages.append(documents.strict({"k": "hand", "is": what, "t_s": t_s}))

    def _end(self, summary: dict[str, Any]) -> None:
        """From now on the numbers are those of the whole run."""
        assert self.collector is not None
        self.collector.bins += 1  # the last one is over, too
        self.over, self.numbered = True, self.numbered + 1
        seen = self.collector
        told = {"rows": seen.rows, "left_out": seen.left_out, "events": seen.events, "gaps": seen.gaps}
        now = seen.health() | told | whole(summary, shown(seen.plan))
        now["unseen"] += seen.unseen
        self.now = documents.strict(now)
        told = {key: summary.get(key, []) for key in ("errors", "disturbances", "emulator")}
        report = str(self.report) if self.report.is_file() else ""
        self.messages.append(documents.strict({"k": "over", "report": report} | told))

    @property
    def report(self) -> Path:
        """The run's report, once it is there."""
        return self.folder / "report.html"

    def _pass_on(self, kind: int, body: bytes, now_s: float) -> None:
        """To the sinks."""
        if kind == PLAN:
            self.sinks.begin(json.loads(body), self.scenario)
        elif kind == ROWS:
            self.sinks.rows(body[8:], now_s)
        elif kind == TEXT:
            self.sinks.text(json.loads(body))

    def _tick(self) -> None:
        while not self.ended.wait(NOW_EVERY_S):
            with self.lock:
                if self.collector is None or not self.collector.rows or self.over:
                    continue
                now = self.collector.lately()
                self.now, self.numbered = documents.strict(now), self.numbered + 1
            self.sinks.take(now)

    def text(self, path: str) -> tuple[str, str, str] | None:
        """The report, the scenario, and what the page asks about the scenario's kinds."""
        if path in FACTS:
            return FACTS[path](), "application/json", POLICY
        if path == "/more.json" and self.over:
            return self._more(), "application/json", POLICY
        if path == "/report" and self.report.is_file():
            return self.report.read_text(encoding="utf-8"), "text/html", OF_FILES
        if path == "/scenario.toml":
            with self.lock:
                told = [json.loads(text) for text in self.messages]
            return saved(self.scenario, told), "application/toml", POLICY
        if path == "/profile.toml" and self.collector is not None:
            with self.lock:
                told = [json.loads(text) for text in self.messages]
            text = profiles.profile(self.scenario, told, self.collector.plan["network"])
            return text, "application/toml", POLICY
        return super().text(path)

    def _more(self) -> str:
        """Read once; of a folder that cannot be read, why."""
        if not self.more:
            try:
                with documents.trusted(self.folder):
                    self.more = documents.strict(freeze.more(*glance(open_folder(self.folder))))
            except (TcpsbedError, OSError) as error:
                return documents.strict({"k": "more", "refused": str(error)})
        return self.more

    def came(self, viewer: Any) -> None:
        """It has the same number as before if it has loaded the page again, or has connected again, perhaps before its old
        connection is known to be dead.
        """
        if viewer.watches:
            with self.lock:
                self.viewers.watch(1)
            return
        viewer.page = asked(viewer, "page")
        with self.lock:
            number = self.numbers.get(viewer.page) if viewer.page else None
            if number is None:
                number = self.viewers.enter(asked(viewer, "viewer"), takes=self.console is not None)
            self.numbers |= {viewer: number} | ({viewer.page: number} if viewer.page else {})
        self._settled()

    def gone(self, viewer: Any) -> None:
        """Another one may steer."""
        if viewer.watches:
            with self.lock:
                self.viewers.watch(-1)
            return
        with self.lock:
            number = self.numbers.pop(viewer)
            if (
                any(one.page == viewer.page for one in self.numbers if not isinstance(one, str))
                and viewer.page
            ):
                return  # the same page has connected again
            if self.numbers.get(viewer.page) == number:
                del self.numbers[viewer.page]
            self.viewers.leave(number)
        self._settled()

    def _settled(self) -> None:
        """The hand may be another viewer's now."""
        if self.console is not None:
            self.console.settled()

    def hear(self, viewer: Any, said: dict[str, Any]) -> None:
        """An event for the run, from the one who steers; or who steers from now on."""
        with self.lock:
            number = self.numbers[viewer]
            if self._away and said["k"] in ("ask", "event") and self.viewers.steers != number:
                self.viewers.release()  # a page that is open still, and says nothing any more
            if said["k"] != "event":
                self.viewers.hear(number, said)
                refused = ""
            else:
                event: dict[str, Any] = {"id": str(said["id"])[:64], "by": number}
                asked = said["event"]
                event |= {"event": asked, "asked_s": time.monotonic() - self.zero_s}
                if not isinstance(asked, dict):
                    event["event"] = {}
                    refused = 'an event is a table; example: {"link": "line", "delay": "20 ms"}'
                elif len(json.dumps(asked)) > MOST_EVENT:
                    event["event"] = {}
                    refused = f"an event of more than {MOST_EVENT} characters"
                else:
                    refused = "" if self.viewers.may(number) else f"viewer {self.viewers.steers} steers"
        self._settled()
        if said["k"] != "event":
            return
        if refused:
            viewer.send(documents.strict({"k": "asked", "refused": refused} | event))
        else:
            print(f"{json.dumps(event)}\n", end="", flush=True)  # in one piece, beside those of other viewers

    def all(self) -> list[str]:
        """Messages, bins and numbers."""
        with self.lock:
            if self.collector is None:
                return list(self.messages)
            events = {"k": "events", "events": self.collector.events}
            now = [self.now] if self.now else []
            return [
                *self.messages,
                documents.strict(self.collector.curves_from(0)),
                documents.strict(events),
                *now,
            ]

    def news(self, viewer: Any) -> Iterator[list[str]]:
        """Messages, bins that are over, and the newest numbers."""
        number, changes = self.numbers.get(viewer), -1
        refused: dict[str, int] = {}
        next_s = 0.0
        told, seen, first, step, events = 0, 0, 0, 0, 0
        drawn: tuple[Any, int] = (None, 0)
        while True:
            with self.lock:
                out = self.messages[told:]
                told = len(self.messages)
                if changes != self.viewers.changes:
                    out.append(self.viewers.told(number))
                    changes = self.viewers.changes
                if self.collector is not None:
                    if drawn[0] is not self.collector:
                        events = 0
                    if drawn != (self.collector, self.collector.generation):
                        first, step, drawn = 0, 0, (self.collector, self.collector.generation)
                    if len(self.collector.events) > events:
                        more = self.collector.events[events:]
                        out.append(documents.strict({"k": "events", "events": more}))
                        events += len(more)
                    first = min(first, self.collector.changed_since(step))
                    step = self.collector.steps
                    if self.collector.bins > first:
                        out.append(documents.strict(self.collector.curves_from(first)))
                        first = self.collector.bins
                if seen != self.numbered:
                    out.append(self.now)
                    seen = self.numbered
            if time.monotonic() > next_s and refused != (counts := self.refused()):
                out.append(documents.strict({"k": "refused", "counts": counts}))
                refused, next_s = counts, time.monotonic() + REFUSED_S
            yield out


def saved(scenario: str, told: list[dict[str, Any]]) -> str:
    """The text of a scenario with what was done by hand as events: in virtual time it gives the same again.

    Where a hand in the browser steers, no run gives the same again: the first change comes `FIRST_NS` after the last event
    of the scenario before it, however long nothing was changed.
    """
    document = tomllib.loads(scenario)
    head = _started(document) + _portable(document)
    events = document.pop("events", [])
    done = [one for one in told if one["k"] == "asked" and "refused" not in one]
    first_ns, own_ns = (
        min((one["at_ns"] for one in done), default=0),
        [duration_ns(one["at"]) for one in events],
    )
    waits = _is_steered(document) and max(own_ns, default=0) <= first_ns
    sooner_ns = max(first_ns - max(own_ns, default=0) - FIRST_NS, 0) if waits else 0
    events += [{"at": f"{(one['at_ns'] - sooner_ns) / 1e9:.9f} s"} | one["event"] for one in done]
    return (
        head
        + dump_document(document)
        + "".join(
            "\n".join(["\n[[events]]", *(f"{key} = {value_text(value)}" for key, value in event.items()), ""])
            for event in events
        )
    )


def _is_steered(document: dict[str, Any]) -> bool:
    """Whether a hand in the browser steers a scenario."""
    hooks = document.get("hooks", {}).values()
    return HAND in [one.get("run") if isinstance(one, dict) else one for one in hooks]


def _started(document: dict[str, Any]) -> str:
    """A comment with the command that starts a scenario: `console` where a hand in the browser steers it."""
    if _is_steered(document):
        return "# Start it with: tcpsbed console FILE (a hand in the browser steers it; with tcpsbed run it rests)\n"
    return "# Start it with: tcpsbed run FILE\n"


def _portable(document: dict[str, Any]) -> str:
    """Takes the folder of this computer out of a scenario: it goes where no file is named in it, and has a name of its own
    where it comes with tcpsbed. Otherwise a comment in front says which files belong to the scenario.
    """
    from tcpsbed import shipped
    from tcpsbed.scenarios.model.scenario import named_in

    base = document.pop("base", None)
    if base is None:
        return ""
    names = {name for name in named_in(document, Path(base), folders=True) if not Path(name).is_absolute()}
    if not names:
        return ""
    document["base"] = shipped.base_of(Path(base)) or base
    if document["base"] != base:
        return ""
    tables = [
        one["security"]
        for one in document.get("channels", {}).values()
        if isinstance(one.get("security"), dict)
    ]
    names -= {key for one in tables if isinstance(key := one.get("key_file"), str)}
    if not names:
        return "# base is a folder of this computer, with the keys of this scenario.\n"
    beside = ", ".join(map(one_line, sorted(names)))
    return (
        "# base is a folder of this computer. To give this file to somebody else, remove base\n"
        f"# and put the files that it names beside it: {beside}\n"
    )


def _read(length: int) -> bytes:
    found = sys.stdin.buffer.read(length)
    if len(found) < length:
        raise EOFError
    return found


def main(listening: Listening, folder: Path, sinks: Sequence[str]) -> None:
    """Says its addresses on standard output, and serves until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when it is over
    place = console_folder()
    try:
        console = Console(place) if place else None
    except FileNotFoundError:  # the command has ended meanwhile, and its folder with it
        return
    if console is None:
        os.nice(5)  # an operator's hand waits for nobody
    else:
        console.told = lambda what: print(f"console: {what}", file=sys.stderr, flush=True)
    try:
        studio = Studio(listening, folder, sinks, console)
    except TcpsbedError as error:
        print(json.dumps({"error": error.text, "allowed": error.allowed}), flush=True)
        return
    told = {key: getattr(studio, key) for key in ("address", "watch", "fingerprint")}
    print(json.dumps(told | {"sinks": studio.sinks.where}), flush=True)
    studio.serve()
