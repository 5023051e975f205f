"""Where a search runs its cells: those of a campaign in one folder, with one set of workers for all batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcpsbed.campaign.grid import Axis, Cell
from tcpsbed.campaign.survey import Survey, Told
from tcpsbed.campaign.worker import Here, Job, Place, width_of
from tcpsbed.errors import DataError, counted, one_line
from tcpsbed.views.metric import Metric

Values = tuple[str, ...]
"""A point as overrides write it."""


class CellFailed(DataError):
    """A run failed, without which the search cannot go on."""


@dataclass(frozen=True)
class Runs:
    """The runs at a point, in the order of their seeds; and whether further seeds would change nothing."""

    values: Values
    by_seed: tuple[tuple[int, list[dict[str, Any]]], ...]
    unchanged: bool

    def numbers(self, metric: Metric) -> tuple[float, ...]:
        """A metric under each seed.

        Raises
        ------
        DataError
            If a run has none.
        """
        found = []
        for seed, rows in self.by_seed:
            row: Mapping[str, Any] = next((row for row in rows if row["flow"] == metric.flow), {})
            if row.get(metric.key) is None:
                amiss = f"has no value at {', '.join(self.values)}, seed {seed}"
                allowed = "a metric that every run has, another range, or a longer --duration"
                raise DataError(amiss, key=metric.path, allowed=allowed)
            found.append(float(row[metric.key]))
        return tuple(found)


@dataclass
class Ground:
    """Runs points as they are asked for.

    Parameters
    ----------
    survey : Survey
        Axes with all their values, the most seeds, and the rule by which a point has enough of them.
    told : callable
        Hears of (done, expected, job, failure) as cells end.
    width : int, optional
        Cells at a time.
    cluster : callable, optional
        Makes the place where cells run.
    """

    survey: Survey
    told: Told
    width: int | None = None
    cluster: Callable[[Sequence[Job]], Place] | None = None
    expected: int = 1
    found: dict[Values, Runs] = field(default_factory=dict)
    _jobs: dict[Values, list[Job]] = field(default_factory=dict)
    _first: tuple[Survey, Job] | None = None
    _place: Place | None = None

    def measure(self, points: Sequence[Values], seeds: int) -> dict[Values, Runs]:
        """The runs of points under at most so many seeds: those that are there, and those that are missing.

        Raises
        ------
        ConfigError
            If a file that cells read has changed since the first.
        CellFailed
            If a cell fails.
        """
        design = replace(self.survey.design, points=tuple(points))
        whole = replace(self.survey, design=design)
        self._jobs |= {values: [] for values in points}
        for job in whole.jobs():
            self._jobs[job.cell.values].append(job)
        if self._first is None:
            self._first = whole, self._jobs[points[0]][0]
        else:
            self._first[0].refuse_changed(self._first[1])
        self.describe()
        part, before = whole.under(self.survey.seeds[:seeds]), self.runs

        def told(done: int, number: int, job: Job, failure: str | None) -> None:
            self.told(before + done, max(self.expected, before + number), job, failure)

        failures = part.run(self.width, told, cluster=self._places, alone=False)
        if failures:
            first = one_line(next(iter(failures.values())))
            amiss = f"{counted(len(failures), 'cell')} failed: {first}"
            allowed = f"values with which each runs; the messages are in {self.survey.out / 'failed'}"
            raise CellFailed(amiss, file=self.survey.file, allowed=allowed)
        summaries = list(part.summaries(part.jobs()))
        for values in points:
            self.found[values] = self._cut(
                part, [(job.cell, of) for job, of in summaries if job.cell.values == values]
            )
        return {values: self.found[values] for values in points}

    @property
    def runs(self) -> int:
        """How many runs the search used."""
        return sum(len(one.by_seed) for one in self.found.values())

    @property
    def disturbed(self) -> int:
        """How many of them were disturbed."""
        rows = [rows for one in self.found.values() for _, rows in one.by_seed]
        return sum(any(row["disturbed"] for row in of) for of in rows)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each run that was used, and each flow."""
        return [
            row
            for values in sorted(self.found, key=self._order)
            for _, rows in self.found[values].by_seed
            for row in rows
        ]

    def describe(self, *, ended: bool = False) -> Survey:
        """Writes what the folder holds, for those who read campaigns; the survey of it. Once `ended`, nothing is missing."""
        points = sorted(self._jobs, key=self._order)
        axes = []
        for number, axis in enumerate(self.survey.axes):
            used = dict.fromkeys(values[number] for values in points)
            axes.append(Axis(axis.key, tuple(v for v in axis.values if v in used) or tuple(used)))
        design = replace(self.survey.design, points=tuple(points))
        survey = replace(self.survey, axes=tuple(axes), design=design)
        survey.describe([job for values in points for job in self._jobs[values]], () if ended else None)
        return survey

    def close(self) -> None:
        """Ends what runs."""
        if self._place is not None:
            self._place.stop()

    def _order(self, values: Values) -> tuple[int, ...]:
        """Its place on axes whose values are known; points on others stay in the order in which they were asked for."""
        pairs = zip(self.survey.axes, values, strict=True)
        return tuple(axis.values.index(value) for axis, value in pairs if axis.values)

    def _cut(self, part: Survey, runs: list[tuple[Cell, dict[str, Any]]]) -> Runs:
        """As many seeds as the rule asks for, also where an earlier search has left more: the same call finds the same."""
        kept = next(
            (runs[:n] for n in part.looks() if part.unchanged(runs[:n]) or part.narrow(runs[:n])), runs
        )
        by_seed = tuple((cell.seed, part.rows_of(cell, summary)) for cell, summary in kept)
        return Runs(kept[0][0].values, by_seed, part.unchanged(kept))

    def _places(self, jobs: Sequence[Job]) -> Place:
        if self._place is None:
            width = self.width or width_of(self.survey.world)
            here = Here(self.survey.file, self.survey.out / "work", width)
            self._place = here if self.cluster is None else self.cluster(jobs)
        return self._place
