"""Results of searches: what was found, in which runs, and how sure it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.frame import Frame, field
from tcpsbed.campaign.design import Condition
from tcpsbed.campaign.search.asked import Factor
from tcpsbed.campaign.search.votes import Index, Votes
from tcpsbed.errors import counted
from tcpsbed.views import markup, text
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import seconds
from tcpsbed.views.spread import REMEDY, UNCHANGED

if TYPE_CHECKING:
    import pyarrow as pa

ANSWERS = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True)
class Context:
    """What all searches have in common.

    Attributes
    ----------
    name, world
        The scenario, and where it ran.
    duration_ns
        Of each run.
    first_seed, seeds
        The first seed, and the most of them at a point.
    folder
        Results: `search.json`, `search.html`, `sweep.parquet` and a file for each run.
    runs
        Runs that the search used.
    disturbed
        Those of them that were disturbed.
    words
        The command line, without the scenario.
    """

    name: str
    world: str
    duration_ns: int
    first_seed: int
    seeds: int
    folder: Path
    runs: int
    disturbed: int
    words: tuple[str, ...]

    @property
    def figures(self) -> dict[str, Any]:
        """Its part of `search.json`."""
        return {
            "scenario": self.name,
            "world": self.world,
            "duration_s": self.duration_ns / 1e9,
            "words": self.words,
            "seed": self.first_seed,
            "seeds": self.seeds,
            "runs": self.runs,
            "disturbed": self.disturbed,
        }

    def spent(self, points: int) -> str:
        """How many runs there were, how long, and at how many points."""
        span = seconds(self.duration_ns / 1e9)
        return f"{counted(self.runs, 'run')} of {span} at {counted(points, 'point')}"

    @property
    def remarks(self) -> list[str]:
        """A sentence if runs were disturbed."""
        if not self.disturbed:
            return []
        were = "runs were" if self.disturbed > 1 else "run was"
        return [f"{self.disturbed} {were} disturbed: check before trusting the numbers."]


@dataclass(frozen=True)
class Point:
    """A point that ran.

    Attributes
    ----------
    values
        Values of the factors as the scenario takes them.
    seeds, holding
        Seeds that ran, and those under which the condition holds.
    middle
        Median of the metric, in its unit.
    answer
        Whether the condition holds in more than half of all seeds; None: undecided.
    glance
        Whether only two seeds were asked for.
    """

    values: tuple[str, ...]
    seeds: int
    holding: int
    middle: float
    answer: bool | None
    glance: bool = False


@dataclass(frozen=True)
class Found(Frame):
    """What a search found; `print` shows it, `.to_pandas()` has a row for each point.

    Attributes
    ----------
    context
        Scenario, world, seeds, folder and number of runs.
    factors
        What was varied.
    condition
        What was asked for.
    """

    context: Context
    factors: tuple[Factor, ...]
    condition: Condition

    @property
    @abstractmethod
    def points(self) -> tuple[Point, ...]:
        """Points that ran, in the order of the grid."""

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """The result first, then what a reader has to know about it."""

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether there is a boundary."""

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `search.json`."""
        return self.context.figures | {
            "condition": self.condition.text,
            "factors": [one.figures for one in self.factors],
            "grid_runs": self.grid_runs,
            "sentences": self.sentences,
            "points": [vars(point) for point in self.points],
            "votes": [[index, one.values, one.unchanged] for index, one in sorted(self.votes.items())],
        }

    @property
    def grid_runs(self) -> int:
        """Runs of every point of the grid under all seeds."""
        number = self.context.seeds
        for one in self.factors:
            number *= len(one.values)
        return number

    @property
    def cost(self) -> str:
        """How many runs there were, and how many the whole grid has."""
        whole = f"the whole grid under {self.context.seeds} seeds has {self.grid_runs}"
        return f"{self.context.spent(len(self.points))}; {whole}."

    @property
    def unchanged(self) -> list[str]:
        """A sentence where seeds change nothing."""
        same = sum(votes.unchanged for votes in self.votes.values())
        if not same:
            return []
        place = "" if same == len(self.votes) else f" at {same} of {len(self.votes)} points"
        return [f"{UNCHANGED}{place}; two runs each. {REMEDY}"]

    @property
    @abstractmethod
    def votes(self) -> dict[Index, Votes]:
        """Votes by point."""

    @property
    def table(self) -> tuple[list[Column], list[list[str]]]:
        """A line for each point."""
        of = self.condition.metric.column
        heads = [words(one.key) for one in self.factors]
        columns = [
            *heads,
            Column("seeds"),
            Column("hold"),
            Column(f"median {of.title}", of.unit),
            words("answer"),
        ]
        lines = [
            [
                *one.values,
                str(one.seeds),
                str(one.holding),
                of.shown(one.middle),
                "glance" if one.glance and one.answer is None else ANSWERS[one.answer],
            ]
            for one in self.points
        ]
        return columns, lines

    @abstractmethod
    def draw(self, file: Path | str, style: str = "page", *, force: bool = False) -> Path:
        """Draws it into a file, such as `search.svg`, in a style of `tcpsbed plot`; needs matplotlib.

        With `force` also over a file that tcpsbed did not write.

        Raises
        ------
        ConfigError, DataError
            If the file may not be overwritten, or matplotlib is not installed.
        """

    def to_arrow(self) -> pa.Table:
        """A row for each point: values of the factors (numbers in their unit), seeds, hold, median, answer, glance."""
        import pyarrow

        metric = self.condition.metric
        fields = [field(one.key, pyarrow.float64(), one.unit) for one in self.factors]
        fields += [field(name, pyarrow.int64()) for name in ("seeds", "hold")]
        fields += [field(f"median_{metric.key}", pyarrow.float64(), metric.column.metric.unit)]
        fields += [field("answer", pyarrow.bool_()), field("glance", pyarrow.bool_())]
        rows = [
            [
                *(factor.number(value) for factor, value in zip(self.factors, one.values, strict=True)),
                *(one.seeds, one.holding, one.middle, one.answer, one.glance),
            ]
            for one in self.points
        ]
        names = [one.name for one in fields]
        table = [dict(zip(names, row, strict=True)) for row in rows]
        return pyarrow.Table.from_pylist(table, pyarrow.schema(fields))

    def __str__(self) -> str:
        return f"{text.table(*self.table)}\n{chr(10).join(self.sentences)}"

    def _repr_html_(self) -> str:
        head, *rest = self.sentences
        columns, lines = self.table
        return f"<p><b>{markup.escaped(head)}</b></p>{markup.listing(rest)}{markup.table(columns, lines)}"

    def _points(self, votes: dict[Index, Votes], glanced: Sequence[Index]) -> tuple[Point, ...]:
        return tuple(
            Point(
                tuple(factor.values[n] for factor, n in zip(self.factors, index, strict=True)),
                one.seeds,
                sum(one.holding),
                one.middle,
                one.answer,
                index in glanced,
            )
            for index, one in sorted(votes.items())
        )


def crossing(condition: Condition, places: tuple[float, float], votes: tuple[Votes, Votes]) -> float:
    """Where the line through two medians crosses the limit; the middle where it does not."""
    (a, b), (first, last) = places, (one.middle for one in votes)
    share = (condition.limit - first) / (last - first) if last != first else 0.5
    return a + (b - a) * (share if 0 <= share <= 1 else 0.5)
