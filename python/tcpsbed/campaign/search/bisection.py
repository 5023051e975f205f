"""One factor: the interval in which a condition begins, or ceases, to hold.

```text
 no      no       ?      yes               yes
 0 ───── L ───── M ───── H ─────────────── n      both sides of what stays undecided are halved, down to one cell
```
Bisection with a test of power one at each point, as in Waeber, Frazier and Henderson 2013. Seeds and their order are
the same everywhere. Where the answer of each seed turns once, a false "yes" below the boundary is one at the boundary
itself, and likewise a false "no" above: [L, H] misses it with a probability of at most 2/40, however many points were
tested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from tcpsbed.campaign.search.votes import Asking, Batch, Index, Votes, quarters


@dataclass(frozen=True)
class Line:
    """What bisection found.

    Attributes
    ----------
    known
        Votes by the number of the value.
    glanced
        Those of them that have a glance only.
    rising
        Whether the condition holds at the upper end.
    low, high
        Values between which it turns; None where it does not turn, or more than once.
    turns
        Values, two by two, between which it turns where that is more than once.
    """

    known: dict[int, Votes]
    glanced: frozenset[int]
    rising: bool
    low: int | None = None
    high: int | None = None
    turns: tuple[tuple[int, int], ...] = field(default=())

    @property
    def reversing(self) -> tuple[int, int]:
        """Of seeds that ran at several values: those whose answer turns more than once, and all."""
        by_seed: dict[int, list[bool]] = {}
        for place in sorted(self.known):
            for seed, holds in enumerate(self.known[place].holding):
                by_seed.setdefault(seed, []).append(holds)
        several = [answers for answers in by_seed.values() if len(answers) > 1]
        return sum(changes(answers) > 1 for answers in several), len(several)


def changes(answers: Iterable[bool]) -> int:
    """How often neighbours differ."""
    listed = list(answers)
    return sum(a != b for a, b in pairwise(listed))


# [Waeber 2013] bisection with noisy answers
def bisected(cells: int) -> Asking[Line]:
    """Searches values 0 to `cells`."""
    known: dict[int, Votes] = {}
    tested: set[int] = set()

    def test(places: Iterable[int], glance: bool = False) -> Asking[None]:
        points: tuple[Index, ...] = tuple((place,) for place in places)
        answers = yield Batch(points, glance)
        known.update({place: votes for (place,), votes in answers.items()})
        tested.update(() if glance else (place for (place,) in points))

    def glanced() -> frozenset[int]:
        return frozenset(known.keys() - tested)

    yield from test([0, cells])
    inner = [place for place in quarters(cells) if place not in known]
    if inner:
        yield from test(inner, glance=True)
    if changes(known[place].majority for place in sorted(known)) > 1:
        yield from test(inner)
    rising = known[cells].majority
    decided = {place: votes.answer for place, votes in sorted(known.items()) if place in (0, cells)}
    decided |= {place: known[place].answer for place in inner if known[place].answer is not None}
    if found := _turns(decided):
        return Line(known, glanced(), rising, turns=found)
    if None in decided.values() or decided[0] == decided[cells]:
        return Line(known, glanced(), rising)
    while True:
        low = max(place for place, votes in known.items() if votes.answer is (not rising))
        high = min(place for place, votes in known.items() if votes.answer is rising)
        if low > high:
            return Line(known, glanced(), rising, turns=_turns({p: v.answer for p, v in known.items()}))
        open_ = sorted(place for place in tested if low < place < high)
        gaps = [(low, open_[0]), (open_[-1], high)] if open_ else [(low, high)]
        middles = [(a + b) // 2 for a, b in gaps if b - a > 1]
        if not middles:
            return Line(known, glanced(), rising, low, high)
        yield from test(middles)


def _turns(answers: dict[int, bool | None]) -> tuple[tuple[int, int], ...]:
    """Neighbours that were decided and differ, if there is more than one pair."""
    decided = [place for place in sorted(answers) if answers[place] is not None]
    pairs = [(a, b) for a, b in pairwise(decided) if answers[a] != answers[b]]
    return tuple(pairs) if len(pairs) > 1 else ()
