"""Conditions compared seed by seed: runs with further seeds, or the combinations of a sweep; what seeds share cancels.

```text
d = this - baseline, of each seed that both ran      mean ± t interval, bootstrap interval, Hedges' g, p, p by Holm
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpsbed.analysis import metrics, stats
from tcpsbed.analysis.frame import Frame
from tcpsbed.analysis.frame import field as column_
from tcpsbed.analysis.stats import Paired, Test
from tcpsbed.errors import DataError, counted
from tcpsbed.nearest import close_match
from tcpsbed.views import text
from tcpsbed.views.folder import RunFolder, cells_in
from tcpsbed.views.markup import Column, words
from tcpsbed.views.metric import EFFECTS, Metric, effects, of_effects
from tcpsbed.views.numbers import NONE, grouped, half_shown
from tcpsbed.views.spread import UNCHANGED
from tcpsbed.views.tables import Field, Table, field

if TYPE_CHECKING:
    import pyarrow as pa

SEEDS = "seeds"
"""Folder of further seeds in a run's folder."""
METRICS: dict[str, Field] = {
    name: field(metrics.section("flows").parts, name) for name in ("delay_ms.mean", "delay_ms.p99", "loss")
}
"""Numbers of each flow that are compared where none are asked for; of each attack it is what was accepted."""
LEVEL = 0.05
"""Largest corrected p, and the share outside of an interval, at which a difference is taken as shown."""
TITLE = "paired by seed"
NOTE = (
    "Differences on common seeds: ± is a 95 % interval (Student's t), bootstrap another (BCa), g is Hedges' g of the "
    "differences, p that of a paired t-test, p Holm corrected for all tests here (Holm 1979)."
)


def kept(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """What is kept of a summary where these are compared."""
    usual = () if metrics else (EFFECTS,)
    return tuple(dict.fromkeys(("records_sha256", "flows", *usual, *(one.part for one in metrics))))


@dataclass(frozen=True)
class Condition:
    """What is compared.

    Attributes
    ----------
    name : str
        What tables call it.
    by_seed : mapping
        Summaries of its runs.
    base : int or None
        Place of its baseline in the list of conditions; its own place: it is one; None: its baseline has no results.
    factors : mapping
        Its values of the factors that vary; empty where it has only a name.
    """

    name: str
    by_seed: Mapping[int, Mapping[str, Any]]
    base: int | None = 0
    factors: Mapping[str, str] = field_(default_factory=dict)

    @property
    def unchanged(self) -> bool:
        """Whether all seeds gave the same records, so that there is one value."""
        hashes = {str(one.get("records_sha256") or "") for one in self.by_seed.values()}
        return len(self.by_seed) > 1 and len(hashes) == 1 and "" not in hashes

    @property
    def flows(self) -> list[str]:
        """Flows that some run has."""
        return list(dict.fromkeys(name for of in self.by_seed.values() for name in of.get("flows") or ()))


class Sides(NamedTuple):
    """Two conditions in words: what they share, and each by what it does not."""

    place: str
    this: str
    that: str


@dataclass(frozen=True)
class Difference:
    """A number in a condition, less that in its baseline."""

    metric: Metric
    condition: str
    base: str
    before: float
    found: Paired
    t: Test | None
    sides: Sides

    @property
    def sign(self) -> int:
        """1 where it is shown to be higher than in the baseline, -1 where lower, 0 where no difference is shown."""
        mean = self.found.difference
        if mean.half is None or mean.half >= abs(mean.mean) or mean.n < stats.FEWEST_TESTED:
            return 0
        if self.t is not None and self.t.p_holm is not None and self.t.p_holm > LEVEL:
            return 0
        return 1 if mean.mean > 0 else -1

    @property
    def what(self) -> str:
        """Flow and number."""
        return f"{self.metric.flow}, {self.metric.title}"

    @property
    def verdict(self) -> str:
        """A sentence: which is lower and by how much, or that no difference is shown."""
        mean, shown, (place, this, that) = self.found.difference, self.metric.column.difference, self.sides
        unit = f" {self.metric.column.unit}" if self.metric.column.unit else ""
        what, pairs = f"{self.what} at {place}" if place else self.what, f"{mean.n} pairs"
        said = f"{this} is {'higher' if self.sign > 0 else 'lower'} than {that}"
        said = said if self.sign else f"no difference shown between {this} and {that}"
        if mean.half is None or self.t is None:
            if mean.n < stats.FEWEST_TESTED:
                return f"{what}: {said}: {pairs} are too few."
            if mean.mean == 0:
                return f"{what}: no difference between {this} and {that} in any of {pairs}."
            if not self.sign:
                return f"{what}: {said}: {pairs}."
            return f"{what}: {said} by {shown(abs(mean.mean))}{unit} in each of {pairs}."
        ends = f"{shown(mean.mean - mean.half)} to {shown(mean.mean + mean.half)}"
        p = "not corrected, " if self.t.p_holm is None else f"corrected p {_equal(_p(self.t.p_holm))}, "
        if not self.sign and mean.half < abs(mean.mean):
            p = f"which leaves 0 out, but {p.removesuffix(', ')} is above {LEVEL:g}, "
        return f"{what}: {said}: mean difference {shown(mean.mean)}{unit} (95 % interval {ends}, {p}{pairs})."


@dataclass(frozen=True, repr=False)
class Comparison(Frame):
    """Conditions and the numbers in which they are compared; `.to_pandas()` has a line for each number and condition.

    Attributes
    ----------
    conditions
        Each with its baseline.
    metrics
        What was asked for; empty: `METRICS` of every flow, and the accepted share of every attack. All tests are
        corrected together, and no others.
    """

    conditions: Sequence[Condition]
    metrics: Sequence[Metric] = ()

    @cached_property
    def asked(self) -> list[Metric]:
        """The numbers that are compared."""
        if self.metrics:
            return list(self.metrics)
        flows = dict.fromkeys(name for one, _ in self._compared for name in one.flows)
        usual = [Metric(f"{flow}.{name}", flow, one) for flow in flows for name, one in METRICS.items()]
        attacks = effects([one for pair in self._compared for of in pair for one in of.by_seed.values()])
        share = "accepted_share"
        [column] = of_effects(share)
        return usual + [Metric(f"{name}.{share}", name, column, EFFECTS) for name in attacks]

    @property
    def _compared(self) -> list[tuple[Condition, Condition]]:
        return [
            (self.conditions[one.base], one)
            for place, one in enumerate(self.conditions)
            if one.base is not None and one.base != place
        ]

    @cached_property
    def differences(self) -> list[Difference]:
        """Every number of each condition less its baseline, where they have two seeds in common."""
        found = [
            _difference(both, first, other, one)
            for one in self.asked
            for first, other in self._compared
            if len(both := _pairs(first, other, one)) > 1
        ]
        tests = stats.corrected([one.t for one in found])
        return [replace(one, t=test) for one, test in zip(found, tests, strict=True)]

    @cached_property
    def tables(self) -> list[Table]:
        """A table for each flow; none where no two conditions have two seeds in common."""
        columns = (
            *map(words, ("metric", "unit", "condition")),
            *map(Column, ("seeds", "baseline", "difference", "±")),
            words("bootstrap"),
            *map(Column, ("g", "p", "p Holm")),
        )
        return [
            Table(flow, columns, tuple(_line(one) for one in self.differences if one.metric.flow == flow))
            for flow in dict.fromkeys(one.metric.flow for one in self.differences)
        ]

    @property
    def notes(self) -> list[str]:
        """What to know of the tables."""
        said = []
        if self.differences:
            bases = list(dict.fromkeys(first.name for first, _ in self._compared))
            shared = (
                "Baselines, each for the conditions with its other values" if len(bases) > 1 else "Baseline"
            )
            said = [f"{shared}: {'; '.join(bases)}.", f"{NOTE} {counted(self._tests, 'test')}."]
        if alone := [one.name for one in self.conditions if one.base is None]:
            said.append(f"Their baseline has no result yet, and they are not compared: {'; '.join(alone)}.")
        if same := [one.name for one in self.conditions if one.unchanged]:
            said.append(f"{UNCHANGED}, and there is no interval: {'; '.join(same)}")
        known = {one.metric.path for one in self.differences}
        if absent := [one.path for one in self.metrics if one.path not in known]:
            missing = "no two conditions have its values of two seeds in common (--seeds 10 runs ten)"
            said.append(f"Not compared: {', '.join(absent)}: {missing}.")
        several = any(len(one.by_seed) > 1 for one in self.conditions)
        return [*said, *([stats.REMEDY] if several and not stats.available() else [])]

    @property
    def _tests(self) -> int:
        return sum(one.t is not None and one.t.p is not None for one in self.differences)

    @property
    def verdicts(self) -> list[str]:
        """A sentence for each number and condition; at the end one for each over the values of the other factors."""
        return [*(one.verdict for one in self.differences), *self._overall]

    @property
    def _overall(self) -> list[str]:
        """Of conditions that differ alike from their baselines in several rows: in how many they are lower or higher."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for one in self.differences:
            found.setdefault((one.what, one.sides.this, one.sides.that), []).append(one.sign)
        said = {-1: "lower in", 1: "higher in", 0: "no difference shown in"}
        return [
            f"{what}: {this} against {that}: "
            + ", ".join(f"{word} {signs.count(n)} of {len(signs)}" for n, word in said.items() if n in signs)
            + "."
            for (what, this, that), signs in found.items()
            if len(signs) > 1
        ]

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `flow`, `metric` (its path), `unit`, `condition`, `baseline`, `seeds`, `before` (mean of the
        baseline), `difference`, `half` (of its 95 % interval), `g`, `p` and `p_holm`; values are in the unit of their line.
        """
        import pyarrow

        word, number = pyarrow.string(), pyarrow.float64()
        kinds = dict.fromkeys(("flow", "metric", "unit", "condition", "baseline"), word) | {
            "seeds": pyarrow.int64()
        }
        kinds |= dict.fromkeys(("before", "difference", "half", "g", "p", "p_holm"), number)
        lines = [
            (
                *(one.metric.flow, one.metric.path, one.metric.column.metric.unit, one.condition, one.base),
                *(mean.n, one.before, mean.mean, mean.half),
                *((one.t.effect, one.t.p, one.t.p_holm) if one.t else (None,) * 3),
            )
            for one in self.differences
            for mean in (one.found.difference,)
        ]
        schema = pyarrow.schema([column_(name, kind) for name, kind in kinds.items()])
        return pyarrow.Table.from_pylist([dict(zip(kinds, line, strict=True)) for line in lines], schema)

    def __str__(self) -> str:
        """The tables, notes and verdicts for the terminal; empty if there are none and no reason why."""
        shown = [f"{one.title}, {TITLE}\n{text.table(one.columns, one.rows)}" for one in self.tables]
        said = "".join(f"{line}\n" for line in self.verdicts)
        return "\n".join([*shown, *(f"{line}\n" for line in self.notes), *([said] if said else [])])

    __repr__ = __str__

    def refuse_unknown(self, key: str) -> None:
        """Raises DataError if one of the numbers is of a flow that no condition has."""
        flows = list(dict.fromkeys(name for one in self.conditions for name in one.flows))
        for one in self.metrics:
            if not one.listed and one.flow not in flows:
                raise DataError(
                    f'found "{one.flow}", which is not a flow', key=key, allowed=close_match(one.flow, flows)
                )


def of_runs(
    runs: Sequence[RunFolder], names: Sequence[str], metrics: Sequence[Metric] = ()
) -> list[Condition]:
    """Runs with their further seeds."""
    return [
        Condition(
            name,
            {run.summary["seed"]: run.summary}
            | {one.summary["seed"]: one.part(*kept(metrics)) for one in cells_in(run.path / SEEDS)},
        )
        for run, name in zip(runs, names, strict=True)
    ]


def _difference(
    both: Sequence[tuple[float, float]], first: Condition, other: Condition, one: Metric
) -> Difference:
    width = one.column.bin(*(max(map(abs, values)) for values in zip(*both, strict=True)))
    found = stats.paired([value - before for before, value in both], width)
    mean = sum(before for before, _ in both) / len(both)
    return Difference(one, other.name, first.name, mean, found, found.t, _sides(first, other))


def _sides(first: Condition, other: Condition) -> Sides:
    apart = [key for key, value in other.factors.items() if first.factors.get(key) != value]
    if not apart:
        return Sides("", other.name, first.name)
    this, that = ({key: one.factors[key] for key in apart} for one in (other, first))
    place = {key: value for key, value in other.factors.items() if key not in apart}
    return Sides(pairs(place), pairs(this), that[apart[0]] if len(apart) == 1 else pairs(that))


def pairs(factors: Mapping[str, str]) -> str:
    """Factors with their values in words."""
    return ", ".join(f"{key}={value}" for key, value in factors.items())


def _pairs(first: Condition, other: Condition, wanted: Metric) -> list[tuple[float, float]]:
    if first.unchanged and other.unchanged:
        return []
    found = []
    for seed in sorted(first.by_seed.keys() & other.by_seed.keys()):
        before, value = (wanted.number(one.by_seed[seed]) for one in (first, other))
        if before is not None and value is not None:
            found.append((before, value))
    return found


def _line(one: Difference) -> tuple[str, ...]:
    column, mean, drawn = one.metric.column, one.found.difference, one.found.bootstrap
    shown = column.difference
    return (
        one.metric.title,
        column.unit,
        one.condition,
        str(mean.n),
        column.shown(one.before),
        ("+" if mean.mean > 0 else "") + shown(mean.mean),
        half_shown(mean.half, shown),
        NONE if drawn is None else f"{shown(drawn[0])} to {shown(drawn[1])}",
        NONE if one.t is None else grouped(one.t.effect, 2),
        _p(one.t.p if one.t else None),
        _p(one.t.p_holm if one.t else None),
    )


def _p(value: float | None) -> str:
    if value is None:
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _equal(p: str) -> str:
    """A p-value behind its letter: `= 0.020`, `< 0.001`."""
    return f"< {p[1:]}" if p.startswith("<") else f"= {p}"
