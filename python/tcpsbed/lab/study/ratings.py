"""Questions to subjects and their ratings: a line of JSON per rating, on the disk before the next question.

Degradation category rating: how much worse than the reference, on five grades (ITU-T P.800 Annex D, P.910 clause 6.2).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tcpsbed.errors import DataError

SCALES = {
    "transparency": "Touching the place as if your own hand were there: compared with the reference, the degradation is …",
    "smoothness": "Smoothness of what you felt and saw: compared with the reference, the degradation is …",
    "overall": "The experience as a whole: compared with the reference, the degradation is …",
}
"""What is rated, with the question. [Gokhale 2017]"""
# [Gokhale 2017] 5 imperceptible to 1 very annoying, in the words of ITU-T P.910
GRADES = {
    5: "imperceptible",
    4: "perceptible, but not annoying",
    3: "slightly annoying",
    2: "annoying",
    1: "very annoying",
}
"""The grades."""


@dataclass(frozen=True)
class Rating:
    """What a subject answered to one condition, and what was measured of it."""

    subject: int
    """From 1 on."""
    position: int
    """Its place in the subject's order, from 1 on."""
    condition: str
    grades: dict[str, int]
    """Scale and grade."""
    at: str
    """When, in ISO 8601."""
    run: str
    """The run's folder within that of the study."""
    delay_ms: dict[str, float] = field(default_factory=dict)
    """Mean delay of each flow."""
    glass_ms: float | None = None
    """Median from camera to display."""
    disturbances: int = 0
    """Number of disturbances in the summary of the run, to be checked before its result is trusted."""
    away: int = 0
    """How often the browser went away meanwhile."""


def grades_of(said: Any) -> dict[str, int]:
    """The grades in an answer.

    Raises
    ------
    ValueError
        If it is not one grade for each scale.
    """
    if not isinstance(said, dict) or set(said) != set(SCALES):
        raise ValueError("scales")
    if not all(type(grade) is int and grade in GRADES for grade in said.values()):
        raise ValueError("grades")
    return {scale: said[scale] for scale in SCALES}


def _check(rating: Rating) -> None:
    """Raises TypeError if something in a rating is not of its kind, grades aside."""
    texts = (rating.condition, rating.at, rating.run)
    counts = (rating.subject, rating.position, rating.disturbances, rating.away)
    spans = [] if rating.glass_ms is None else [rating.glass_ms]
    spans += rating.delay_ms.values() if isinstance(rating.delay_ms, dict) else [rating.delay_ms]
    kinds = [
        *((text, str) for text in texts),
        *((n, int) for n in counts),
        *((ms, int | float) for ms in spans),
    ]
    if any(not isinstance(value, kind) or isinstance(value, bool) for value, kind in kinds):
        raise TypeError("kind")


class Store:
    """The folder of a study; nothing is read before `read`, and nothing written before `leading`.

    Parameters
    ----------
    folder
        Made by whoever leads a subject.
    fingerprint
        Of the study; ratings of another one are not mixed in.
    scripted
        Whether subjects are scripts; they are not mixed with people.
    """

    def __init__(self, folder: Path, fingerprint: str, *, scripted: bool = False) -> None:
        self.folder, self.file, self.head = folder, folder / "ratings.jsonl", folder / "study.json"
        self.about = {"study": fingerprint, "scripted": scripted}
        self.ratings: list[Rating] = []

    def read(self) -> None:
        """Takes up the ratings so far and writes nothing: another terminal may be about to.

        Raises
        ------
        DataError
            If the folder is not there or that of another study, or a rating in it cannot be read.
        """
        try:
            self._compare(self.head.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            raise DataError(
                "found no study", file=self.folder, allowed="the --out of a study that somebody has begun"
            ) from None
        self._take_up()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """The folder for oneself, with the ratings so far; it is made if it is not there.

        Raises
        ------
        DataError
            If another process leads a subject in this folder, or as of `read`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.head.open("a+", encoding="utf-8", errors="replace") as head:
            try:
                fcntl.flock(head, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(
                    "found another terminal that leads a subject in this folder",
                    file=self.head,
                    allowed="one at a time, or another --out",
                ) from None
            head.seek(0)
            if found := head.read():
                self._compare(found)
            else:
                head.write(json.dumps(self.about) + "\n")
                head.flush()
                os.fsync(head.fileno())
            self._take_up()
            yield

    def _compare(self, text: str) -> None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if found != self.about:
            raise DataError(
                "found the ratings of another study, or of people and not of scripts",
                file=self.head,
                allowed="the file of that study as it was, or another --out",
            )

    def _take_up(self) -> None:
        """All ratings; not the beginning of one that is being written, or was when the power went."""
        whole = self._whole()
        self.ratings = [self._rating(number, line) for number, line in enumerate(whole.splitlines(), 1)]

    def _whole(self) -> bytes:
        """The lines that are complete."""
        text = self.file.read_bytes() if self.file.exists() else b""
        return text[: text.rfind(b"\n") + 1]

    def _rating(self, number: int, line: bytes) -> Rating:
        try:
            rating = Rating(**json.loads(line))
            grades_of(rating.grades)
            _check(rating)
        except (ValueError, TypeError, RecursionError):
            raise DataError(
                "found no rating", file=self.file, line=number, allowed="lines as tcpsbed study wrote them"
            ) from None
        return rating

    def save(self, rating: Rating) -> None:
        """Adds a rating behind the last one that is complete; when this returns it is on the disk."""
        end = len(self._whole())
        with self.file.open("ab") as file:
            file.truncate(end)
            file.write(json.dumps(asdict(rating)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.ratings.append(rating)

    def of(self, subject: int) -> dict[str, Rating]:
        """What a subject has rated, by condition."""
        return {rating.condition: rating for rating in self.ratings if rating.subject == subject}

    def next_subject(self, conditions: int) -> int:
        """The first subject who has not rated all conditions."""
        subject = 1
        while len(self.of(subject)) >= conditions:
            subject += 1
        return subject
