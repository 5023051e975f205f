"""The result of a search over two factors: the curve in pieces, and where it crosses the grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpsbed.campaign.search.curve import Edge, Traced
from tcpsbed.campaign.search.found import Found, Point, crossing
from tcpsbed.campaign.search.votes import Index, Votes
from tcpsbed.errors import counted
from tcpsbed.views import text
from tcpsbed.views.markup import Column


@dataclass(frozen=True)
class Crossing:
    """Where the curve crosses a line of the grid: the place, and the points on both sides, in units of the factors."""

    at: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]


@dataclass(frozen=True)
class BoundaryCurve(Found):
    """The curve along which a condition turns, over two factors.

    Attributes
    ----------
    traced
        What was found, by numbers of values.
    """

    traced: Traced

    @property
    def votes(self) -> dict[Index, Votes]:
        """Votes by point."""
        return self.traced.glanced | self.traced.known

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Points that ran."""
        return self._points(self.votes, list(self.traced.glanced.keys() - self.traced.known.keys()))

    @property
    def there(self) -> bool:
        """Whether there is a curve."""
        return bool(self.traced.edges)

    def draw(self, file: Path | str, style: str = "page", *, force: bool = False) -> Path:
        """Draws it; see `Found.draw`."""
        from tcpsbed.campaign.search import picture

        return picture.curve(self, Path(file), style, force=force)

    @property
    def crossings(self) -> tuple[Crossing, ...]:
        """Where the curve crosses lines of the grid."""
        return tuple(map(self._crossing, self.traced.edges))

    @property
    def segments(self) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """The curve in pieces, each within one cell."""
        return [(self._crossing(a).at, self._crossing(b).at) for a, b in self.traced.segments]

    def _crossing(self, edge: Edge) -> Crossing:
        low, high = (tuple(f.numbers[n] for f, n in zip(self.factors, p, strict=True)) for p in edge)
        votes = self.traced.known[edge[0]], self.traced.known[edge[1]]
        x, y = (
            crossing(self.condition, (a, b), votes) if a != b else a for a, b in zip(low, high, strict=True)
        )
        return Crossing((x, y), (low[0], low[1]), (high[0], high[1]))

    @property
    def rows(self) -> list[tuple[float, list[tuple[float, float]]]]:
        """For each value of the second factor the cells of the first in which the condition turns."""
        first, second = self.factors
        found: dict[int, list[tuple[float, float]]] = {}
        for (i, j), (k, _) in self.traced.edges:
            if k > i:
                found.setdefault(j, []).append((first.numbers[i], first.numbers[k]))
        return [(second.numbers[j], sorted(of)) for j, of in sorted(found.items())]

    @property
    def sentences(self) -> list[str]:
        """The result, then what a reader has to know about it."""
        of, (first, second) = self.condition.text, self.factors
        if not self.traced.edges:
            some = next(iter(self.traced.glanced.values())).majority
            place = "every point" if some else "no point"
            result = f"NO boundary: {of} holds at {place} that ran; take wider ranges."
            return [result, *self.unchanged, *self.context.remarks, self.cost]
        ends = [self._crossing(edge).at for edge in (self.traced.edges[0], self.traced.edges[-1])]
        told = [f"({first.shown(x)}, {second.shown(y)})" for x, y in ends]
        result = f"{of} turns along a curve over ({first.key}, {second.key}) from {told[0]} to {told[1]}."
        open_ = sum(votes.answer is None for votes in self.traced.known.values())
        return [result, self._accuracy(open_), *self.unchanged, *self.context.remarks, self.cost]

    def _accuracy(self, open_: int) -> str:
        first, second = self.factors
        cell = " x ".join(one.shown(one.numbers[1] - one.numbers[0]) for one in (first, second))
        told = f"The curve is that of the grid within one cell, {cell}; each answer is wrong in at most 2.5 %"
        if not open_:
            return f"{told}."
        of = counted(len(self.traced.known), "point")
        return f"{told}, but {open_} of {of} stayed undecided after {self.context.seeds} seeds and have that of most seeds."

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `search.json`."""
        return super().figures | {
            "crossings": [vars(one) for one in self.crossings],
            "segments": self.segments,
        }

    def __str__(self) -> str:
        first, second = self.factors
        columns = [Column(second.key, second.unit), Column(f"turns between, {first.key}", first.unit)]
        lines = [
            [f"{y:.6g}", ", ".join(f"{low:.6g} … {high:.6g}" for low, high in cells)]
            for y, cells in self.rows
        ]
        shown = f"{text.table(columns, lines)}\n" if lines else ""
        return f"{shown}{chr(10).join(self.sentences)}"
