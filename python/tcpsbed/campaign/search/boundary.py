"""The result of a search along one factor: the boundary with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcpsbed.campaign.search.asked import Factor
from tcpsbed.campaign.search.bisection import Line
from tcpsbed.campaign.search.found import Found, Point, crossing
from tcpsbed.campaign.search.votes import Index, Votes
from tcpsbed.errors import counted


@dataclass(frozen=True)
class Boundary(Found):
    """Where a condition begins, or ceases, to hold along a factor.

    Attributes
    ----------
    line
        What bisection found, by numbers of values.
    """

    line: Line

    @property
    def factor(self) -> Factor:
        """The factor."""
        return self.factors[0]

    @property
    def votes(self) -> dict[Index, Votes]:
        """Votes by point."""
        return {(place,): votes for place, votes in self.line.known.items()}

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Points that ran, along the factor."""
        return self._points(self.votes, [(place,) for place in self.line.glanced])

    @property
    def there(self) -> bool:
        """Whether there is one boundary."""
        return self.line.high is not None

    def draw(self, file: Path | str, style: str = "page", *, force: bool = False) -> Path:
        """Draws it; see `Found.draw`."""
        from tcpsbed.campaign.search import picture

        return picture.along(self, Path(file), style, force=force)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends of the 95 % interval of the boundary, in the unit of the factor; None where there is not one boundary."""
        low, high = self.line.low, self.line.high
        return None if low is None or high is None else (self.factor.numbers[low], self.factor.numbers[high])

    @property
    def value(self) -> float | None:
        """The boundary: where the line through the medians of neighbouring points crosses the limit."""
        low, high, known = self.line.low, self.line.high, self.line.known
        if low is None or high is None:
            return None
        inside = [place for place in sorted(known) if low <= place <= high]
        for a, b in pairwise(inside):
            if known[b].majority == self.line.rising:
                numbers = self.factor.numbers
                return crossing(self.condition, (numbers[a], numbers[b]), (known[a], known[b]))
        return None

    @property
    def reversing(self) -> tuple[int, int]:
        """Seeds whose answer turns more than once within what ran, and all seeds that ran at several values."""
        return self.line.reversing

    @property
    def sentences(self) -> list[str]:
        """The result, then what a reader has to know about it."""
        return [self._result, *self._remarks, *self.unchanged, *self.context.remarks, self.cost]

    @property
    def _result(self) -> str:
        key, of, line = self.factor.key, self.condition.text, self.line
        if line.turns:
            pairs = " and ".join(f"{self._at(a)} and {self._at(b)}" for a, b in line.turns)
            return (
                f"NOT monotone: {of} turns more than once along {key}, between {pairs}; no boundary is given."
            )
        if self.interval is None or self.value is None:
            ends = {place: line.known[place] for place in (0, self.factor.cells)}
            said = [
                f"{self._at(n)} ({sum(v.holding)} of {counted(v.seeds, 'seed')} hold)"
                for n, v in ends.items()
            ]
            first, last = (votes.answer for votes in ends.values())
            if None in (first, last):
                return f"NO boundary: {of} is not decided at both ends of {key}, {' and '.join(said)}."
            place = "both ends" if first else "neither end"
            return f"NO boundary: {of} holds at {place} of {key}, {' and '.join(said)}; take a wider range."
        shown = self.factor.shown
        low, high = self.interval
        how = "begins" if line.rising else "ceases"
        return (
            f"{of} {how} to hold at {key} = {shown(self.value)}, 95 % interval {shown(low)} to {shown(high)}."
        )

    @property
    def _remarks(self) -> list[str]:
        low, high = self.line.low, self.line.high
        several, of = self.reversing
        found = []
        if low is not None and high is not None and high - low > 1:
            inside = sum(low < place < high for place in self.line.known)
            found.append(
                f"The interval has {high - low} cells of the grid: {counted(inside, 'value')} in it stayed undecided "
                f"after {self.context.seeds} seeds; more --seeds make it narrower."
            )
        if several:
            found.append(
                f"The answer of {several} of {of} seeds turns more than once along {self.factor.key}: the 95 % assume that "
                "it does not. A single decision is wrong in at most 2.5 %."
            )
        return found

    def _at(self, place: int) -> str:
        return self.factor.shown(self.factor.numbers[place])

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `search.json`."""
        found = {"value": self.value, "interval": self.interval, "rising": self.line.rising}
        turns = [[self.factor.numbers[n] for n in pair] for pair in self.line.turns]
        return super().figures | found | {"turns": turns, "reversing": self.reversing}
