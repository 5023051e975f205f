"""The start page: scenarios to start, and the runs of a folder to look at.

```text
        ── /live?token=… ──►  {"k": "shelves" | "runs" | "started", …}
           {"k": "start", "id": n, "card": name, "world": "virtual" | "real"} ──► a run with a page of its own
           {"k": "show", "id": n, "folder": one that "runs" told} ──► the page of that run
           {"k": "draw", "card": name} ──► {"k": "drawn", …}: the network of its scenario
           {"k": "compare", "id": n, "folders": [two of them]} ──► {"k": "compared", …}: their numbers by flow
```
A page names cards and folders that it was told of, never a path of its own.
"""

from __future__ import annotations

import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.errors import TcpsbedError
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.pages import Pages
from tcpsbed.studio.shelves import Card, beside, shelves
from tcpsbed.studio.site import Live
from tcpsbed.views.numbers import finite

LOOK_S = 2.0
"""Time between two readings of the working folder and the folder of runs."""
MOST_WISHES = 500
"""Drawings that are waited for."""
HERE = "In this folder"
WORLDS = {"virtual": ("--world", "virtual", "--pace", "1"), "real": ("--world", "real")}


class Gallery(Live):
    """Serves the start page.

    Parameters
    ----------
    listening : Listening
        Where; the pages that it starts take free ports there.
    runs : callable
        Lists the runs, the newest first: a dictionary each, with its `folder` and whether its page can be `shown`.
    folder : str
        Where they are, for people.
    """

    alive = True

    def __init__(self, listening: Listening, runs: Callable[[], list[dict[str, Any]]], folder: str) -> None:
        super().__init__(listening, "gallery.html")
        self.runs, self.folder, self.pages = runs, folder, Pages(listening)
        self.shipped = shelves()
        self.cards: dict[str, Card] = {}
        self.folders: set[str] = set()
        self.told: list[str] = []
        """The messages about cards and runs, as they are now."""
        self.ended = threading.Event()
        self.wishes: queue.Queue[tuple[Any, Card]] = queue.Queue(MOST_WISHES)
        """Cards to draw, and for whom."""
        self.drawn: dict[Card, tuple[int, str]] = {}
        """Drawings, and when the file of each was changed, ns."""
        self.look()

    def start(self) -> None:
        """Serves in a thread, and looks at the folders in another."""
        super().start()
        threading.Thread(target=self._watch, daemon=True).start()
        threading.Thread(target=self._draw, daemon=True).start()

    def stop(self) -> None:
        """Takes no further viewers, and ends the pages that were started here."""
        self.ended.set()
        super().stop()
        self.pages.stop()

    def _watch(self) -> None:
        while not self.ended.wait(LOOK_S):
            with suppress(OSError):  # a folder that goes while it is read
                self.look()

    def _draw(self) -> None:
        """One drawing after the other, since each compiles a network."""
        while not self.ended.is_set():
            with suppress(queue.Empty):
                viewer, card = self.wishes.get(timeout=LOOK_S)
                changed_ns = _changed_ns(card.file)
                if self.drawn.get(card, (-1, ""))[0] != changed_ns:
                    told = {"k": "drawn", "card": card.name} | drawing(card)
                    self.drawn[card] = changed_ns, documents.strict(told)
                _tell(viewer, self.drawn[card][1])

    def look(self) -> None:
        """Reads the folders."""
        shown = {HERE: beside()} | self.shipped
        rows = self.runs()
        told = [{"title": title, "cards": [card.told() for card in cards]} for title, cards in shown.items()]
        messages = [
            documents.strict({"k": "shelves", "shelves": [shelf for shelf in told if shelf["cards"]]}),
            documents.strict({"k": "runs", "folder": self.folder, "rows": rows}),
        ]
        with self.lock:
            self.cards = {card.name: card for cards in shown.values() for card in cards}
            self.folders = {row["folder"] for row in rows if row["shown"]}
            self.told = messages

    def all(self) -> list[str]:
        """Cards and runs."""
        with self.lock:
            return list(self.told)

    def news(self, viewer: Any) -> Iterator[list[str]]:
        """Cards and runs, when they have changed."""
        seen = ["", ""]
        while True:
            with self.lock:
                now = self.told
            yield [text for text, before in zip(now, seen, strict=True) if text != before]
            seen = now

    def hear(self, viewer: Any, said: dict[str, Any]) -> None:
        """Starts a page or reads two runs, and tells the viewer who asked."""
        ask: Callable[[], dict[str, Any]]
        answer = {"k": "started", "id": said["id"]} if said["k"] != "draw" else {}
        with self.lock:
            if said["k"] == "start":
                card, world = self.cards[said["card"]], WORLDS[said["world"]]
                if not card.startable:
                    return
                words, alone = (str(card.file), *world), said["world"] == "real"
                ask = lambda: {"address": self.pages.start(card.name, words, exclusive=alone)}  # noqa: E731
            elif said["k"] == "draw":
                with suppress(queue.Full):
                    self.wishes.put_nowait((viewer, self.cards[said["card"]]))
                return
            elif (
                said["k"] == "compare"
                and len(said["folders"]) == 2
                and self.folders.issuperset(said["folders"])
            ):
                first, second = said["folders"]
                answer |= {"k": "compared", "folders": [first, second]}
                ask = lambda: {"flows": compared(first, second)}  # noqa: E731
            elif said["k"] == "show" and said["folder"] in self.folders:
                ask = lambda: {"address": self.pages.show(said["folder"], (said["folder"],))}  # noqa: E731
            else:
                return
        threading.Thread(target=_answer, args=(viewer, answer, ask), daemon=True).start()


def drawing(card: Card) -> dict[str, Any]:
    """The places of a scenario's network and the pairs that links join; nothing where it cannot be read."""
    from tcpsbed import scenarios

    try:
        scenario = scenarios.load(card.file)
        with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
            network = scenarios.compile_network(scenario, folder)
    except Exception:  # whatever somebody's file holds, the others are drawn
        return {"places": [], "pairs": [], "nodes": 0}
    nodes = len(dict.fromkeys(component.node for component in scenario.components.values()))
    pairs = [[link["from"], link["to"]] for link in network["links"]]
    return {"places": network["vertices"], "pairs": pairs, "nodes": nodes}


def _changed_ns(file: Path) -> int:
    """When a file was changed, ns; 0 where it is not there."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def compared(first: str, second: str) -> list[dict[str, Any]]:
    """Numbers of the flows of two runs, those of the first run in front."""
    from tcpsbed.views.folder import RunFolder

    with documents.trusted(f"{first} or {second}"):
        runs = [RunFolder(Path(folder)).summary["flows"] for folder in (first, second)]
        return [
            {"flow": name, "numbers": _numbers([flows.get(name, {}) for flows in runs])}
            for name in dict.fromkeys([*runs[0], *runs[1]])
        ]


def _numbers(flows: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Numbers of a flow in each run."""
    numbers = {
        f"{key} (ms)": [finite((flow.get("delay_ms") or {}).get(key)) for flow in flows]
        for key in ("mean", "p50", "p99")
    }
    return numbers | {key: [finite(flow.get(key)) for flow in flows] for key in ("loss", "delivered")}


def _tell(viewer: Any, text: str) -> None:
    from websockets.exceptions import ConnectionClosed

    with suppress(ConnectionClosed):  # who asked has gone
        viewer.send(text)


def _answer(viewer: Any, answer: dict[str, Any], ask: Callable[[], dict[str, Any]]) -> None:
    try:
        found = ask()
    except (TcpsbedError, OSError) as error:
        found = {"refused": str(error)}
    _tell(viewer, documents.strict(answer | found))
