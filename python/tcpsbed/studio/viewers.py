"""Who looks at a run, and which of them steers it."""

from __future__ import annotations

import json
from typing import Any

MOST_KEYS = 1000
"""Viewers that are known again after they reload the page."""
MOST_STEPS = 99
"""Steps of a tour."""


class Viewers:
    """Numbers viewers, and gives control to one of them. Callers hold their own lock.

    Nobody steers at first: the first change takes control, and of a run with an operator the first viewer has it from the
    start. The viewer who steers may hand it over or let it go, and loses it to the next who changes something while its page
    is closed. The hand never takes control: it is not moved by accident.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """By the key that a browser's tab keeps when it reloads."""
        self.keys: dict[int, str] = {}
        """And the other way round."""
        self.here: set[int] = set()
        self.asking: list[int] = []
        self.last = 0
        self.holder: int | None = None
        self.watching = 0
        """Those who have the other address, and never steer."""
        self.step = 0
        """Which step of the tour whoever steers has open, from 0: the others' tours follow."""
        self.changes = 0
        """Counts changes, so that each viewer is told of them."""

    @property
    def steers(self) -> int | None:
        """Who steers; None while nobody does, or while that viewer's page is closed."""
        return self.holder if self.holder in self.here else None

    def enter(self, key: str, *, takes: bool = False, away: bool = False) -> int:
        """The viewer's number: the same as before for one that has reloaded the page.

        With `takes` it takes control if nobody else could: it is alone, or has no page to ask on and the operator is
        `away`.
        """
        number = self.numbers.get(key)
        if number is None or number in self.here:
            self.last += 1
            number = self.last
            if key and len(self.numbers) < MOST_KEYS:
                self.numbers[key], self.keys[number] = number, key
        self.here.add(number)
        if takes and (away or (self.steers is None and self.here == {number})):
            self.holder = number
        self.changes += 1
        return number

    def watch(self, more: int) -> None:
        """So many more only watch."""
        self.watching += more
        self.changes += 1

    def leave(self, number: int) -> None:
        """The viewer's page is closed or reloads; control stays with its tab, which may be here again by now."""
        self.here.discard(number)
        again = [one for one in self.here if self.keys.get(one) == self.keys.get(number, one)]
        if self.holder == number and again:
            self.holder = again[0]
        self._answered(number)

    def may(self, number: int) -> bool:
        """Whether this viewer may change the run; it takes control if nobody has it."""
        if self.steers is None:
            self.holder = number
            self._answered(number)
        return self.holder == number

    def hear(self, number: int, said: dict[str, Any]) -> None:
        """A request for control, its transfer to another viewer, its release, or a step of the tour."""
        if said["k"] == "ask" and not self.may(number) and number not in self.asking:
            self.asking.append(number)
            self.changes += 1
        elif said["k"] == "give" and self.steers == number and said.get("to") in {None, *self.here}:
            self.holder = said.get("to")
            self._answered(self.holder)
        elif said["k"] == "step" and self.steers == number:
            self.step = int(min(max(said["n"], 0), MOST_STEPS))
            self.changes += 1
        elif said["k"] == "keep" and self.steers == number:
            self.asking.clear()
            self.changes += 1

    def release(self) -> None:
        """Nobody steers any more: the next who wants control gets it."""
        self.holder = None
        self.changes += 1

    def told(self, number: int | None) -> str:
        """What this viewer's page is told; `None`: one that only watches."""
        return json.dumps(
            {
                "k": "viewers",
                "you": number,
                "here": sorted(self.here),
                "steers": self.steers,
                "asking": self.asking,
                "watching": self.watching,
                "step": self.step,
            }
        )

    def _answered(self, number: int | None) -> None:
        self.asking = [one for one in self.asking if one != number]
        self.changes += 1
