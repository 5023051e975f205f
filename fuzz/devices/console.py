"""Messages of browsers to the console: hand, gamepad and head, pings, and answers of a study."""

from __future__ import annotations

import json
import math
import queue
import tempfile
import threading
from pathlib import Path

from tcpsbed.console.server import Console
from tcpsbed.lab.study.conductor import Conductor
from tcpsbed.lab.study.ratings import GRADES, SCALES
from tcpsbed.media.line import POSE, STATE

MODULES = ("tcpsbed.console.server", "tcpsbed.lab.study.conductor", "tcpsbed.lab.study.ratings")
JSON = True


class Listener(Console):
    """A console that looks at what it would tell the run."""

    def _tell(self, hook: str, content: bytes) -> None:
        *values, at_ns = (STATE if hook == "hand" else POSE).unpack(content)
        assert hook in ("hand", "head") and at_ns > -(1 << 62) and all(map(math.isfinite, values))
        assert all(abs(value) <= (1.0 if hook == "hand" else 100.0) for value in values[:4])


_folder = tempfile.TemporaryDirectory(prefix="tcpsbed-fuzz-")
_console = Listener(Path(_folder.name))


def target(data: bytes) -> None:
    """Messages, a line each; the study has asked for grades."""
    asked = Conductor.__new__(Conductor)
    asked._lock, asked._step, asked._awaited = threading.Lock(), 3, "rate"
    answers = asked.answers = queue.Queue()
    _console.answer = asked.hear
    for line in data.split(b"\n"):
        for message in (line, line.decode("utf-8", "replace")):
            before = _console.refused
            answer = _console._hear(message, _console)
            assert answer is None or answer["k"] == "pong"
            json.dumps(answer, allow_nan=False)
            assert _console.refused - before in ((0,) if answer else (0, 1))
    while not answers.empty():
        grades = answers.get()
        assert set(grades) == set(SCALES) and all(grade in GRADES for grade in grades.values())
