"""The page of a sweep, also while it fills.

```text
        ── GET /report?token=… ──► sweep.html, once the sweep has written it
        ── /live?token=… ──►  {"k": "sweep", …}, whenever a cell has ended
```
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.site import OF_FILES, Live

LOOK_S = 0.5
"""Time between two readings of the folder."""


class SweepPage(Live):
    """Serves a sweep.

    Parameters
    ----------
    listening : Listening
        Where.
    folder : Path
        Its folder.
    look : callable
        What is in it now (`campaign.filling.Filling.look`).
    """

    alive = True

    def __init__(self, listening: Listening, folder: Path, look: Callable[[], dict[str, Any]]) -> None:
        super().__init__(listening, "sweep.html")
        self.report, self.name, self.look = folder / "sweep.html", folder.name, look
        self.ended = threading.Event()
        self.now = self._told()

    def start(self) -> None:
        """Serves in a thread, and looks at the folder in another."""
        super().start()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Takes no further viewers."""
        self.ended.set()
        super().stop()

    def _told(self) -> str:
        return documents.strict({"k": "sweep", "name": self.name} | self.look())

    def _watch(self) -> None:
        while not self.ended.wait(LOOK_S):
            self.now = self._told()

    def text(self, path: str) -> tuple[str, str, str] | None:
        """The page that the sweep itself writes."""
        if path == "/report" and self.report.is_file():
            return self.report.read_text(encoding="utf-8"), "text/html", OF_FILES
        return super().text(path)

    def all(self) -> list[str]:
        """The sweep."""
        return [self.now]

    def news(self, viewer: Any) -> Iterator[list[str]]:
        """The sweep, when it has changed."""
        seen = ""
        while True:
            now = self.now
            yield [now] if now != seen else []
            seen = now
