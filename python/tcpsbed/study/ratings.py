"""What subjects are asked, and what they answered: a line of JSON for each rating, on the disk before the next question.

Degradation category rating: how much worse than the reference, on five grades (ITU-T P.800 Annex D, P.910 clause 6.2).
"""

from __future__ import annotations

import json
import os
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
# [Gokhale 2017] 5 imperceptible to 1 very annoying, as ITU-T P.800 and P.910 word it
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
    """What ought to be checked before the run is trusted: entries in its summary."""
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


class Store:
    """The folder of a study.

    Parameters
    ----------
    folder
        Made if it is not there.
    fingerprint
        Of the study; ratings of another one are not mixed in.
    scripted
        Whether subjects are scripts; they are not mixed with people.

    Raises
    ------
    DataError
        If the folder is that of another study, or a rating in it cannot be read.
    """

    def __init__(self, folder: Path, fingerprint: str, *, scripted: bool = False) -> None:
        self.folder, self.file = folder, folder / "ratings.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        about = {"study": fingerprint, "scripted": scripted}
        head = folder / "study.json"
        if head.exists():
            self._compare(head, about)
        else:
            _durably(head, json.dumps(about) + "\n")
        self.ratings = self._read()

    def _compare(self, head: Path, about: dict[str, Any]) -> None:
        try:
            found = json.loads(head.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if found != about:
            raise DataError(
                "found the ratings of another study, or of people and not of scripts",
                file=head,
                allowed="the file of that study as it was, or another --out",
            )

    def _read(self) -> list[Rating]:
        """All ratings; the beginning of one that was being written when the power went is taken away."""
        if not self.file.exists():
            return []
        text = self.file.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            with self.file.open("r+b") as file:
                file.truncate(len(whole))
        return [self._rating(number, line) for number, line in enumerate(whole.splitlines(), 1)]

    def _rating(self, number: int, line: bytes) -> Rating:
        try:
            rating = Rating(**json.loads(line))
            grades_of(rating.grades)
        except (ValueError, TypeError):
            raise DataError(
                "found no rating", file=self.file, line=number, allowed="lines as tcpsbed study wrote them"
            ) from None
        return rating

    def save(self, rating: Rating) -> None:
        """Adds a rating; when this returns it is on the disk."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(rating)) + "\n")
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


def _durably(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
