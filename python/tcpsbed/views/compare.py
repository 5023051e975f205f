"""Runs side by side: every metric of a flow in each run, with difference and ratio to the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.frame import Frame, field
from tcpsbed.errors import DataError
from tcpsbed.views import charts, markup, paired, paths, tables, text
from tcpsbed.views.charts import Chart
from tcpsbed.views.folder import RunFolder, open_folder
from tcpsbed.views.markup import Column, words
from tcpsbed.views.metric import EFFECTS, Metric, effects, named, of_effects
from tcpsbed.views.numbers import NONE, finite, nothing, seconds
from tcpsbed.views.paired import Comparison
from tcpsbed.views.sentence import Said
from tcpsbed.views.tables import Field, Table

if TYPE_CHECKING:
    import pyarrow as pa


OF_ATTACKS = ("sent", "accepted", "accepted_share", "refused", "hold_ms", "safe_stop_ms")
"""Metrics of attacks that are compared."""


@dataclass(frozen=True)
class Row:
    """A metric of a flow in every run.

    Attributes
    ----------
    flow
        Name of the flow.
    metric
        The metric, and the statistic of it.
    values
        A number for each run; `None` if it has none.
    """

    flow: str
    metric: Field
    values: tuple[float | None, ...]

    def difference(self, run: int) -> float | None:
        """A run's value minus that of the first; `None` if one has none."""
        first, value = self.values[0], self.values[run]
        return None if first is None or value is None else value - first

    def ratio(self, run: int) -> float | None:
        """A run's value over that of the first; `None` if one has none, or the first is 0."""
        first, value = self.values[0], self.values[run]
        return None if not first or value is None else value / first


@dataclass(frozen=True)
class Compared(Frame):
    """Runs side by side; `.to_pandas()` has a line for each metric of each flow in each run.

    Attributes
    ----------
    folders, runs
        The runs, and a line for each with its letter.
    rows
        The metrics of the flows that all of them have, and of attacks.
    left_out
        Sentences about the other flows.
    metrics
        What is compared seed by seed; empty: delay and loss of every flow.
    """

    folders: tuple[RunFolder, ...]
    runs: Table
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    metrics: tuple[Metric, ...] = ()

    @property
    def flows(self) -> tuple[Table, ...]:
        """A table for each flow that all of the runs have."""
        return tuple(_table(name, self, rows) for name, rows in _by_flow(self.rows).items())

    @property
    def largest(self) -> tuple[str, ...]:
        """For each flow that all of the runs have, and each run, where most of the delay is."""
        said = [paths.largest(run.summary) for run in self.folders]
        every = [
            (letter, line)
            for flow in _by_flow(self.rows)
            for letter, lines in zip(letters(self.folders), said, strict=True)
            if (line := lines.get(flow))
        ]
        return tuple(f"{letter}, {line}" for letter, line in every)

    @property
    def one_seed(self) -> str:
        """Which seeds the tables are of, where runs have others besides."""
        several = any((run.summary.get("across_seeds") or {}).get("seeds", ())[1:] for run in self.folders)
        seeds = dict.fromkeys(str(run.summary.get("seed")) for run in self.folders)
        return f"Until here the numbers are those of one seed: {', '.join(seeds)}." if several else ""

    @cached_property
    def by_seed(self) -> Comparison:
        """The runs with their further seeds, compared seed by seed: `.differences`, `.verdicts`."""
        conditions = paired.of_runs(self.folders, letters(self.folders), self.metrics)
        return Comparison(conditions, self.metrics)

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `flow`, `metric`, `unit`, `run` (letter), `value`, and `difference` and `ratio` to the first
        run; values are in the unit of their line.
        """
        import pyarrow

        word, number = pyarrow.string(), pyarrow.float64()
        names = ("flow", "metric", "unit", "run", "value", "difference", "ratio")
        lines = [
            (
                row.flow,
                row.metric.name,
                row.metric.metric.unit,
                letter,
                row.values[i],
                row.difference(i),
                row.ratio(i),
            )
            for row in self.rows
            for i, letter in enumerate(letters(self.folders))
        ]
        fields = [field(name, word if i < 4 else number) for i, name in enumerate(names)]
        return pyarrow.Table.from_pylist(
            [dict(zip(names, line, strict=True)) for line in lines], pyarrow.schema(fields)
        )

    def __str__(self) -> str:
        return self.told(every=True)

    def told(self, *, every: bool) -> str:
        """The comparison as text, with every row, or without those that are equal in all runs and are not tested."""
        some = self.rows if every else self._unequal
        shown = (_table(name, self, rows) for name, rows in _by_flow(some).items())
        runs, *flows = (text.table(one.columns, one.rows) for one in (self.runs, *shown))
        left = len(self.rows) - len(some)
        rest = f"{left} of {len(self.rows)} rows do not differ, or their difference may be 0; --all shows them.\n"
        by_seed = str(self.by_seed)
        said = [*self.left_out, *([self.one_seed] if self.one_seed else [])]
        largest = "".join(f"{line}\n" for line in self.largest)
        return "\n".join(
            [
                runs,
                *flows,
                *[rest] * bool(left),
                *filter(None, [largest]),
                *(f"{line}\n" for line in said),
                *filter(None, [by_seed]),
            ]
        )

    @property
    def _unequal(self) -> list[Row]:
        """The rows that differ in some run, by value and over seeds, and those that are tested."""
        asked, named = {one.path for one in self.metrics}, letters(self.folders)
        tested = asked or {f"{name}.{metric}" for name in _by_flow(self.rows) for metric in paired.METRICS}
        found = []
        for row in self.rows:
            path = ".".join(filter(None, (row.flow, *row.metric.path, row.metric.statistic)))
            if path not in tested:
                others = zip(named[1:], row.values[1:], strict=True)
                unlike = [name for name, value in others if value != row.values[0]]
                if not unlike or set(unlike) <= set(_doubted(row.flow, row.metric, self.folders)):
                    continue
            found.append(row)
        return found

    def _repr_html_(self) -> str:
        shown = (markup.table(one.columns, one.rows) for one in (self.runs, *self.flows))
        said = [*self.left_out, *filter(None, [self.one_seed])]
        return "".join([*shown, markup.listing(self.largest), *map(markup.note, said)])


def compare(*runs: RunFolder | Path | str, metrics: Sequence[str] = ()) -> Compared:
    """Puts runs side by side, with the parameters of `tcpsbed.compare`.

    Raises
    ------
    DataError
        If there are fewer than two, if versions of tcpsbed differ, or if no flow is in all runs.
    ConfigError
        If a metric is none.
    """
    opened = tuple(run if isinstance(run, RunFolder) else open_folder(run) for run in runs)
    if len(runs) < 2:
        raise DataError(
            f"found {len(runs)} folder",
            key="compare",
            allowed="two run folders or more, such as runs/a runs/b",
        )
    _check_versions(opened)
    names = [
        name for name in opened[0].summary["flows"] if all(name in run.summary["flows"] for run in opened)
    ]
    if not names:
        known = "; ".join(f"{run.path}: {', '.join(run.summary['flows']) or 'none'}" for run in opened)
        raise DataError(
            f"no flow is in all runs ({known})", key="compare", allowed="runs with a flow of the same name"
        )
    rows = tuple(row for name in names for row in _rows(name, opened))
    rows += tuple(
        row for name in effects(run.summary for run in opened) for row in _effect_rows(name, opened)
    )
    asked = tuple(named(path, "--metric").dressed({}, opened[0].summary) for path in metrics)
    found = Compared(opened, _legend(opened), rows, tuple(_left_out(opened, names)), asked)
    found.by_seed.refuse_unknown("--metric")
    return found


def sentence(found: Compared) -> Said:
    """Of an attack of which unlike numbers were accepted, these; then the flow whose 99th percentile of the delay differs
    most, as a ratio, from that of the first run.

    A delay may be 0, or less than 0 by clocks that disagree: it has no ratio, and nothing is said of it.
    """
    return [*_accepted(found), *_latest(found)]


def _accepted(found: Compared) -> Said:
    """The attack whose accepted datagrams differ most."""
    named = letters(found.folders)
    apart = [
        (max(known) - min(known), row)
        for row in found.rows
        if row.metric.metric.key == "accepted" and (known := [one for one in row.values if one is not None])
    ]
    most, row = max(apart, key=lambda one: one[0], default=(0.0, None))
    if row is None or not most:
        return []
    told = (f"{row.metric.shown(value)} in {letter}" for letter, value in zip(named, row.values, strict=True))
    return [("bad", f"Of {row.flow.removeprefix(f'{EFFECTS}.')} {', '.join(told)} were accepted"), ("", ". ")]


def _latest(found: Compared) -> Said:
    """The flow whose delay differs most."""
    late = tables.field(metrics.section("flows").parts, "delay_ms.p99")
    first, *others = found.folders
    changes = [
        (abs(math.log(value / before)), flow, before, value, letter)
        for flow in _by_flow(found.rows)
        if flow in first.summary["flows"]
        if (before := late.number(first.summary["flows"][flow]) or 0.0) > 0
        for run, letter in zip(others, letters(found.folders)[1:], strict=True)
        if (value := late.number(run.summary["flows"][flow]) or 0.0) > 0
    ]
    if not changes:
        return [("", "No flow has a delay above 0 in two of these runs.")]
    _, flow, before, value, letter = max(changes)
    if value == before:
        return [("", f"The {late.title} of every flow is the same in all runs.")]
    change = f"from {late.shown(before)} to {late.shown(value)} {late.unit}"
    return [("much", f"The {late.title} of {flow} goes {change}"), ("", f", from A to {letter}.")]


def delays(found: Compared) -> Iterator[Chart]:
    """The distribution of the delay of each flow in every run."""
    for flow in _by_flow(found.rows):
        cdf = {
            letter: (curve["delay_ms"], curve["p"])
            for letter, run in zip(letters(found.folders), found.folders, strict=True)
            if (curve := run.series.get("cdf", {}).get(flow))
        }
        yield from charts.distribution(f"Delay of {flow}", "delay (ms)", cdf)[:1]


def _check_versions(runs: Sequence[RunFolder]) -> None:
    versions = [(run.summary.get("versions") or {}).get("tcpsbed", "unknown") for run in runs]
    if len(set(versions)) > 1:
        listed = ", ".join(f"{run.path}: {version}" for run, version in zip(runs, versions, strict=True))
        raise DataError(
            f"found different versions of tcpsbed ({listed})",
            key="compare",
            allowed="runs of one version; run the older scenario.toml again with this one",
        )


def letters(runs: Sequence[RunFolder]) -> list[str]:
    """Names of runs in the tables."""
    return [chr(ord("A") + i) if i < 26 else f"R{i + 1}" for i in range(len(runs))]


def _legend(runs: Sequence[RunFolder]) -> Table:
    rows = []
    for letter, run in zip(letters(runs), runs, strict=True):
        summary = run.summary
        amiss = [
            word
            for word, key in (("errors", "errors"), ("attacked", "attacked"), ("disturbed", "disturbances"))
            if summary.get(key)
        ]
        rows.append(
            (
                letter,
                str(run.path),
                run.name,
                summary.get("world"),
                summary.get("seed"),
                seconds(summary.get("duration_s")),
                ", ".join(amiss),
            )
        )
    columns = (
        words("run"),
        words("folder"),
        words("scenario"),
        words("world"),
        Column("seed"),
        Column("duration"),
        words(""),
    )
    return Table("Runs", columns, tuple(rows))


def _rows(name: str, runs: Sequence[RunFolder]) -> Iterator[Row]:
    """The metrics of a flow that some run has."""
    for metric in tables.fields(metrics.section("flows").parts):
        values = tuple(metric.number(run.summary["flows"][name]) for run in runs)
        if any(values if metric.metric.rare else (value is not None for value in values)):
            yield Row(name, metric, values)


def _effect_rows(name: str, runs: Sequence[RunFolder]) -> Iterator[Row]:
    """The metrics of an attack that some run has."""
    for column in of_effects(*OF_ATTACKS):
        values = tuple(Metric("", name, column, EFFECTS).number(run.summary) for run in runs)
        if any(value is not None for value in values):
            yield Row(name, column, values)


def _by_flow(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each flow, in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.flow, []).append(row)
    return found


def _table(name: str, found: Compared, rows: Sequence[Row]) -> Table:
    """The metrics of a flow, with differences and ratios."""
    named = letters(found.folders)
    columns = [words(name)] + [Column(letter) for letter in named]
    columns += [Column(f"{letter} − A") for letter in named[1:]] + [
        Column(f"{letter} / A") for letter in named[1:]
    ]
    columns.append(words(""))
    others = range(1, len(named))
    lines = [
        (
            f"{row.metric.title} ({row.metric.unit})" if row.metric.unit else row.metric.title,
            *map(row.metric.shown, row.values),
            *(_difference(row.difference(i), row.metric.shown) for i in others),
            *(_ratio(row.ratio(i)) for i in others),
            _doubt(_doubted(name, row.metric, found.folders)),
        )
        for row in rows
    ]
    return Table(name, tuple(columns), tuple(lines))


def _doubt(within: Sequence[str]) -> str:
    return f"{', '.join(within)}: may be 0 (means over seeds)" if within else ""


def _doubted(flow: str, metric: Field, runs: Sequence[RunFolder]) -> list[str]:
    """The runs whose difference from the first is within their intervals across seeds; none without intervals."""
    spread = [
        metric.read(((run.summary.get("across_seeds") or {}).get("flows") or {}).get(flow) or {}) or {}
        for run in runs
    ]
    means, halves = ([finite(one.get(key)) for one in spread] for key in ("mean", "ci95"))
    return [
        letter
        for letter, mean, half in zip(letters(runs)[1:], means[1:], halves[1:], strict=True)
        if None not in (mean, means[0], half, halves[0])
        and nothing(mean - means[0], math.hypot(half, halves[0]))  # type: ignore[operator,arg-type]
    ]


def _difference(value: float | None, shown: Callable[[Any], str]) -> str:
    return NONE if value is None else ("+" if value > 0 else "") + shown(value)


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _left_out(runs: Sequence[RunFolder], names: Sequence[str]) -> Iterator[str]:
    for letter, run in zip(letters(runs), runs, strict=True):
        if extra := [name for name in run.summary["flows"] if name not in names]:
            yield f"only in some runs, left out: {letter}: {', '.join(extra)}"
