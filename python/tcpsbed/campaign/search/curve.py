"""Two factors: the curve along which a condition turns, followed cell by cell.

```text
 no  no  no │yes        1. a glance at 5 x 5 points: between which neighbours does the answer turn?
 no  no ┌───┘yes        2. bisection between two of them, to one edge of the grid
 no  no │yes yes        3. from cell to cell across the edges whose ends differ, to the end of the curve
 no ┌───┘yes yes        4. again, for glances that the curves so far do not explain
```
The cells are those of marching cubes in two dimensions (Lorensen and Cline 1987). Points off the curve never run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from tcpsbed.campaign.search.votes import Asking, Batch, Index, Votes, quarters

Edge = tuple[Index, Index]
"""Two neighbours on the grid, the lower first."""


@dataclass(frozen=True)
class Traced:
    """What was found along the curve.

    Attributes
    ----------
    known
        Votes by point: those that were tested.
    glanced
        Those that ran under two seeds only.
    edges
        Neighbours between which it turns, in order of their numbers.
    """

    known: dict[Index, Votes]
    glanced: dict[Index, Votes]
    edges: tuple[Edge, ...]

    @property
    def segments(self) -> list[Edge2]:
        """Pairs of edges that the curve joins within a cell."""
        crossed, found = set(self.edges), []
        for cell in sorted({cell for edge in self.edges for cell in beside(edge)}):
            inside = [edge for edge in around(cell) if edge in crossed]
            found += [(inside[n], inside[n + 1]) for n in range(0, len(inside) - 1, 2)]
        return found


Edge2 = tuple[Edge, Edge]


def around(cell: Index) -> tuple[Edge, ...]:
    """The four edges of the cell whose lowest corner is this: left, bottom, right, top."""
    i, j = cell
    a, b, c, d = (i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)
    return (a, d), (a, b), (b, c), (d, c)


def beside(edge: Edge) -> tuple[Index, Index]:
    """The cells on both sides of an edge, also those beyond the grid."""
    (i, j), (k, _) = edge
    return ((i, j), (i, j - 1)) if k > i else ((i, j), (i - 1, j))


# [Lorensen 1987] cells whose corners differ
def traced(columns: int, rows: int) -> Asking[Traced]:
    """Follows the curve over points (0, 0) to (columns, rows)."""
    known: dict[Index, Votes] = {}

    def test(points: Iterable[Index]) -> Asking[None]:
        missing = tuple(dict.fromkeys(point for point in points if point not in known))
        if missing:
            known.update((yield Batch(missing)))

    def turns(edge: Edge) -> bool:
        a, b = edge
        return a in known and b in known and known[a].majority != known[b].majority

    across, up = quarters(columns), quarters(rows)
    glanced = dict((yield Batch(tuple((i, j) for j in up for i in across), glance=True)))
    pairs = [((a, j), (b, j)) for j in up for a, b in pairwise(across)]
    pairs += [((i, a), (i, b)) for i in across for a, b in pairwise(up)]
    for first, last in pairs:
        if glanced[first].majority == glanced[last].majority or any(map(turns, _between(first, last))):
            continue
        yield from test([first, last])
        if known[first].majority == known[last].majority:
            continue
        line = [first, *(edge[1] for edge in _between(first, last))]
        low, high = 0, len(line) - 1
        while high - low > 1:
            middle = (low + high) // 2
            yield from test([line[middle]])
            same = known[line[middle]].majority == known[first].majority
            low, high = (middle, high) if same else (low, middle)
        waiting = set(beside((line[low], line[high])))
        seen: set[Index] = set()
        while waiting:
            cells = [(i, j) for i, j in sorted(waiting) if 0 <= i < columns and 0 <= j < rows]
            seen |= waiting
            yield from test(point for cell in cells for edge in around(cell) for point in edge)
            crossed = [edge for cell in cells for edge in around(cell) if turns(edge)]
            waiting = {cell for edge in crossed for cell in beside(edge)} - seen
    edges = {edge for i, j in known for edge in (((i, j), (i + 1, j)), ((i, j), (i, j + 1))) if turns(edge)}
    return Traced(known, glanced, tuple(sorted(edges)))


def _between(first: Index, last: Index) -> Iterator[Edge]:
    """Edges from a point to one that is further along an axis."""
    (i, j), (k, m) = first, last
    points = [(n, j) for n in range(i, k + 1)] if k > i else [(i, n) for n in range(j, m + 1)]
    yield from pairwise(points)
