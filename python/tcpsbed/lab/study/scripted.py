"""A scripted subject: the same WebSocket and answers, with grades by the delay that it measures.

It moves the hand in a circle, reads time and moment of each picture, and grades the median of a condition against that
of the reference: a grade less for each `ms_per_grade`. Which condition it is, it is not told either.
"""

from __future__ import annotations

import json
import math
import random
import threading
import time
from contextlib import suppress
from statistics import median
from typing import Any

import numpy as np

from tcpsbed.errors import WorldError
from tcpsbed.lab.study.ratings import SCALES
from tcpsbed.media import picture_code
from tcpsbed.media.line import HEAD
from tcpsbed.media.packages import need

MOVES_S = 0.02
"""Time between the events of its hand."""


class ScriptedSubject:
    """Answers a study until it is done.

    Parameters
    ----------
    address
        What the console prints, with its token.
    seed
        Of the noise on its grades.
    ms_per_grade
        Milliseconds more than the reference that cost a grade.
    noise
        Standard deviation of what is added to a grade before it is rounded.
    """

    def __init__(self, address: str, seed: int, ms_per_grade: float = 20.0, noise: float = 0.3) -> None:
        self.address = address.replace("http", "ws", 1)
        self.noise = random.Random(seed)
        self.ms_per_grade, self.sd = ms_per_grade, noise
        self.seen_ms: list[float] = []
        self.reference_ms, self.what = math.nan, ""
        self.moving = threading.Event()
        self.done = threading.Event()

    def answer_all(self) -> None:
        """Goes through the study of one subject.

        Raises
        ------
        WorldError
            If the scenario shows no pictures to rate by, the study no reference to compare them with, or the console is gone
            before the study is done.
        """
        client: Any = need("websockets.sync.client", "a scripted subject", "console")
        words = client.connect(self.address.replace("/?", "/ws?"), compression=None)
        pictures = client.connect(self.address.replace("/?", "/pictures?"), compression=None, max_size=None)
        helpers = [
            threading.Thread(target=body, args=(line,), daemon=True)
            for body, line in ((self._move, words), (self._look, pictures))
        ]
        for helper in helpers:
            helper.start()
        try:
            for message in words:
                told = json.loads(message)
                if told["k"] == "study" and not self._follow(words, told):
                    return
            raise WorldError(
                "the console closed the connection of a scripted subject",
                allowed="a console that stays open until the study ends",
            )
        finally:
            self.done.set()
            words.close()
            pictures.close()
            for helper in helpers:
                helper.join(5.0)

    def _follow(self, words: Any, told: dict[str, Any]) -> bool:
        """Does what the page asks; false when there is nothing more."""
        phase = told["phase"]
        if phase == "run":
            self.what, self.seen_ms = told["what"], []
            self.moving.set()
            return True
        self.moving.clear()
        if self.what in ("training", "reference"):
            self.reference_ms, self.what = self._seen(), ""
        answer = {"k": "study", "n": told["n"], "do": phase}
        if phase in ("go", "done"):
            words.send(json.dumps(answer))
        elif phase == "rate":
            words.send(json.dumps(answer | {"grades": self._grades()}))
        return bool(phase != "done")

    def _seen(self) -> float:
        if not self.seen_ms:
            raise WorldError(
                "a scripted subject saw no picture whose time it can read",
                allowed='a scenario with a picture at display = "console" and its stamp',
            )
        return median(self.seen_ms)

    def _grades(self) -> dict[str, int]:
        if math.isnan(self.reference_ms):
            raise WorldError(
                "a scripted subject was shown no reference to grade against",
                allowed="training above 0 s, or pairs = true",
            )
        worse = (self._seen() - self.reference_ms) / self.ms_per_grade
        return {s: min(max(round(5.0 - worse + self.noise.gauss(0.0, self.sd)), 1), 5) for s in SCALES}

    def _move(self, words: Any) -> None:
        """Sends events of the hand while something is shown."""
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while not self.done.wait(MOVES_S):
                if self.moving.is_set():
                    at = 2 * math.pi * time.monotonic()
                    point = [0.0, 0.5 * math.cos(at), 0.5 * math.sin(at), 0.0, 0.0, 0.0]
                    words.send(json.dumps({"k": "hand", "p": [point]}))

    def _look(self, pictures: Any) -> None:
        """Notes the age of each picture as it comes."""
        from websockets.exceptions import ConnectionClosed

        turbo: Any = need("simplejpeg", "a scripted subject", "media")
        with suppress(ConnectionClosed):
            for content in pictures:
                now_ns = time.monotonic_ns()
                _, _, _, offset_ns = HEAD.unpack_from(content)
                code = picture_code.read(np.asarray(turbo.decode_jpeg(content[HEAD.size :])))
                if code is not None and self.moving.is_set():
                    self.seen_ms.append((now_ns - offset_ns - code[0]) / 1e6)
