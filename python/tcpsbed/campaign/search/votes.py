"""What a search asks for, and what the seeds of a point answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from tcpsbed.campaign import sequential

T = TypeVar("T")
GLANCE = 2
"""Seeds of a glance."""
Index = tuple[int, ...]
"""A point of the grid: the number of its value on each axis."""


@dataclass(frozen=True)
class Batch:
    """Points whose cells run at the same time; with `glance` under two seeds only."""

    points: tuple[Index, ...]
    glance: bool = False


@dataclass(frozen=True)
class Votes:
    """Answers of the seeds at a point, in their order.

    Attributes
    ----------
    values
        The metric under each seed.
    holding
        Whether the condition holds.
    unchanged
        Whether seeds change nothing: then one of them says it all.
    """

    values: tuple[float, ...]
    holding: tuple[bool, ...]
    unchanged: bool = False

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.holding)

    @property
    def answer(self) -> bool | None:
        """Whether it holds in more than half of all seeds; `None`: the seeds that ran do not say."""
        return self.holding[0] if self.unchanged else sequential.decided(self.seeds, sum(self.holding))

    @property
    def majority(self) -> bool:
        """The answer, or that of most seeds that ran."""
        return 2 * sum(self.holding) > self.seeds if self.answer is None else self.answer

    @property
    def middle(self) -> float:
        """Median of the metric."""
        return median(self.values)


Answers = Mapping[Index, Votes]
Asking = Generator[Batch, Answers, T]
"""A search: yields the points that it wants to know, and returns what it found."""


def answered(asking: Asking[T], answers: Callable[[Batch], Answers]) -> T:
    """What a search finds, given who answers."""
    try:
        batch = next(asking)
        while True:
            batch = asking.send(answers(batch))
    except StopIteration as end:
        found: T = end.value
        return found


def quarters(cells: int) -> list[int]:
    """Numbers of the values at the ends and the quarters of an axis."""
    return sorted({round(cells * share / 4) for share in range(5)})
