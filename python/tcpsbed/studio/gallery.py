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

import json
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed.errors import TcpsbedError
from tcpsbed.studio.pages import Pages
from tcpsbed.studio.shelves import Card, beside, shelves
from tcpsbed.studio.site import Site

LOOK_S = 2.0
"""Time between two readings of the working folder and the folder of runs."""
MOST_WISHES = 500
"""Drawings that are waited for."""
HERE = "In this folder"
WORLDS = {"virtual": ("--world", "virtual", "--pace", "1"), "real": ("--world", "real")}


class Gallery(Site):
    """Serves the start page.

    Parameters
    ----------
    port : int
        A port of 127.0.0.1; 0 takes a free one.
    runs : callable
        Lists the runs, the newest first: a dictionary each, with its `folder` and whether its page can be `shown`.
    folder : str
        Where they are, for people.
    """

    alive = True

    def __init__(self, port: int, runs: Callable[[], list[dict[str, Any]]], folder: str) -> None:
        super().__init__(port, "gallery.html")
        self.runs, self.folder, self.pages = runs, folder, Pages()
        self.shipped = shelves()
        self.cards: dict[str, Card] = {}
        self.folders: set[str] = set()
        self.told: list[str] = []
        """The messages about cards and runs, as they are now."""
        self.ended = threading.Event()
        self.wishes: queue.Queue[tuple[Any, Card]] = queue.Queue(MOST_WISHES)
        """Cards to draw, and for whom."""
        self.drawn: dict[Card, str] = {}
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
                if card not in self.drawn:
                    self.drawn[card] = json.dumps({"k": "drawn", "card": card.name} | drawing(card))
                _tell(viewer, self.drawn[card])

    def look(self) -> None:
        """Reads the folders."""
        shown = {HERE: beside()} | self.shipped
        rows = self.runs()
        told = [{"title": title, "cards": [card.told() for card in cards]} for title, cards in shown.items()]
        messages = [
            json.dumps({"k": "shelves", "shelves": [shelf for shelf in told if shelf["cards"]]}),
            json.dumps({"k": "runs", "folder": self.folder, "rows": rows}),
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
        """Starts a page, and tells its address to the viewer who asked."""
        with self.lock:
            if said["k"] == "start":
                card, world = self.cards[said["card"]], WORLDS[said["world"]]
                if not card.startable:
                    return
                words = (str(card.file), *world)
                ask = lambda: self.pages.start(card.name, words, exclusive=said["world"] == "real")  # noqa: E731
            elif said["k"] == "draw":
                with suppress(queue.Full):
                    self.wishes.put_nowait((viewer, self.cards[said["card"]]))
                return
            elif (
                said["k"] == "compare"
                and len(said["folders"]) == 2
                and self.folders.issuperset(said["folders"])
            ):
                answer = {"k": "compared", "id": said["id"], "folders": said["folders"]}
                _tell(viewer, json.dumps(answer | {"flows": compared(*said["folders"])}))
                return
            elif said["k"] == "show" and said["folder"] in self.folders:
                ask = lambda: self.pages.show(said["folder"], (said["folder"],))  # noqa: E731
            else:
                return
        threading.Thread(target=_answer, args=(viewer, said["id"], ask), daemon=True).start()


def drawing(card: Card) -> dict[str, Any]:
    """The places of a scenario's network and the pairs that links join; nothing where it cannot be read."""
    from tcpsbed import scenarios

    try:
        scenario = scenarios.load(card.file)
        with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
            network = scenarios.compile_network(scenario, folder)
    except (TcpsbedError, OSError):
        return {"places": [], "pairs": [], "nodes": 0}
    nodes = len(dict.fromkeys(component.node for component in scenario.components.values()))
    pairs = [[link["from"], link["to"]] for link in network["links"]]
    return {"places": network["vertices"], "pairs": pairs, "nodes": nodes}


def compared(first: str, second: str) -> list[dict[str, Any]]:
    """Numbers of the flows of two runs, those of the first run in front."""
    from tcpsbed.views.folder import RunFolder

    runs = [RunFolder(Path(folder)).summary["flows"] for folder in (first, second)]
    found = []
    for name in dict.fromkeys([*runs[0], *runs[1]]):
        of = [flows.get(name, {}) for flows in runs]
        numbers: dict[str, list[Any]] = {
            f"{key} (ms)": [(flow.get("delay_ms") or {}).get(key) for flow in of]
            for key in ("mean", "p50", "p99")
        }
        numbers["loss"] = [flow.get("loss") for flow in of]
        numbers["delivered"] = [flow.get("delivered") for flow in of]
        found.append({"flow": name, "numbers": numbers})
    return found


def _tell(viewer: Any, text: str) -> None:
    from websockets.exceptions import ConnectionClosed

    with suppress(ConnectionClosed):  # who asked has gone
        viewer.send(text)


def _answer(viewer: Any, asked: Any, ask: Callable[[], str]) -> None:
    try:
        answer = {"address": ask()}
    except (TcpsbedError, OSError) as error:
        answer = {"refused": str(error)}
    _tell(viewer, json.dumps({"k": "started", "id": asked} | answer))
