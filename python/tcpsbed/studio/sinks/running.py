"""The sinks of a page, each with a thread and a bounded queue of its own."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tcpsbed.analysis.records import FIELDS, KINDS
from tcpsbed.door import Sink
from tcpsbed.errors import one_line
from tcpsbed.hooks import told
from tcpsbed.studio.sinks import opened

EVENT = 1 + KINDS.index("event")
ROW = np.dtype(FIELDS)
MOST_WAITING = 40
"""Calls that wait for a sink: those of about 2 s."""
PICTURES_S = 0.1
"""Time between two pictures, at least."""
LAST_S = 1.0
"""Time that the sinks have for what waits at the end."""


class Sinks:
    """All sinks of a page.

    Parameters
    ----------
    texts : sequence of str
        `NAME` or `NAME=TARGET` of each.

    Raises
    ------
    TcpsbedError
        If one of them cannot be opened.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.events: list[str] = []
        """Names of the scenario's events, then of changes by hand, in the order of their numbers."""
        self.begun = self.ended = False
        self.next_picture_s = 0.0
        self.running = [Running(text.partition("=")[0], opened(text), self._named) for text in texts]

    @property
    def where(self) -> list[str]:
        """What the user opens, by the name of the sink."""
        return [f"{one.name}: {one.sink.where}" for one in self.running if one.sink.where]

    def begin(self, plan: dict[str, Any], scenario: str = "") -> None:
        """The run begins. Once only: rows that are sent again, for the page, are not the sinks'."""
        if self.begun:
            self.end()
            return
        self.begun = True
        self.events = [event["name"] for event in plan["events"]]
        for one in self.running:
            one.sink.scenario = scenario
        self._put("begin", plan)

    def rows(self, content: bytes, now_s: float) -> None:
        """New rows, and events among them."""
        if self.running:
            self._put("rows", np.frombuffer(content, ROW), now_s)

    def take(self, now: dict[str, Any]) -> None:
        """The numbers of the last seconds."""
        self._put("take", now)

    def picture(self, t_s: float, jpeg: bytes) -> None:
        """What the operator is shown."""
        if self.running and self.begun and t_s >= self.next_picture_s:
            self.next_picture_s = t_s + PICTURES_S
            self._put("picture", t_s, jpeg)

    def text(self, message: dict[str, Any]) -> None:
        """A message of the run for pages: changes by hand, and that the run is over."""
        if message["k"] == "asked" and "refused" not in message:
            self.events.append(message["event"].get("name", "change by hand"))
        if message["k"] == "over":
            self.end()

    def end(self) -> None:
        """The run is over; returns when the sinks have taken it in, or have had their time."""
        self.ended = True
        for one in self.running:
            one.end()
        for one in self.running:
            one.thread.join(LAST_S)

    def _put(self, method: str, *given: Any) -> None:
        for one in self.running if not self.ended else ():
            one.put(method, *given)

    def _named(self, number: int) -> str:
        return self.events[number] if number < len(self.events) else f"event {number}"


class Running:
    """A sink and the thread that calls it."""

    def __init__(self, name: str, sink: Sink, named: Callable[[int], str]) -> None:
        self.name, self.sink, self.named = name, sink, named
        self.waiting: queue.Queue[tuple[str, tuple[Any, ...]]] = queue.Queue(MOST_WAITING)
        self.missed = 0
        """Calls that the sink was too slow for."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def put(self, method: str, *given: Any) -> None:
        """Lets the sink be called when it is ready; never waits."""
        try:
            self.waiting.put_nowait((method, given))
        except queue.Full:
            self.missed += self.thread.is_alive()

    def end(self) -> None:
        """Lets the sink come to its end behind what waits."""
        with suppress(queue.Full):
            self.waiting.put(("end", ()), timeout=LAST_S if self.thread.is_alive() else 0)

    def _run(self) -> None:
        try:
            method = ""
            while method != "end":
                method, given = self.waiting.get()
                getattr(self.sink, method)(*given)
                if method == "rows":
                    self._tell_events(*given)
        except (Exception, SystemExit) as error:  # whatever a sink does, run and page go on
            self._say(f"{told(error)}; the run and the page go on without it")
        if self.missed:
            self._say(f"missed {self.missed} calls because it was too slow")

    def _tell_events(self, rows: np.ndarray[Any, Any], _: float) -> None:
        for row in rows[rows["kind"] == EVENT]:
            self.sink.event(float(row["time"]) / 1e9, self.named(int(row["index"])))

    def _say(self, what: str) -> None:
        print(f"tcpsbed: sink {self.name}: {one_line(what)}", file=sys.stderr, flush=True)
