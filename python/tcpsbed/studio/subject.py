"""The page of a study's subject: the operator's picture and hand, and the questions. It has nothing else of a run."""

from __future__ import annotations

from tcpsbed.console.server import Console
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.site import PAGE, Site

LOADED = ("dom.js", "hand.js", "pane.css", "pictures.js", "stage.js", "studio.css", "study.js", "xr.js")


class Subject(Site):
    """Serves studies, one after the other. Parameters as of `Site`.

    Subjects see neither the undelayed picture nor what the studio shows: its files and its WebSocket are not there.
    """

    files = {f"/{name}": PAGE / name for name in LOADED}  # noqa: RUF012 - as of Site

    def __init__(self, listening: Listening, console: Console) -> None:
        super().__init__(listening, "study.html", console)
        del self.sockets["/near"]
