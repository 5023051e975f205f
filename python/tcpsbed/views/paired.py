"""Conditions compared seed by seed: runs with further seeds, or the combinations of a sweep; what seeds share cancels.

```text
d = this - baseline, of each seed that both ran      mean ± t interval, bootstrap interval, Hedges' g, p, p by Holm
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis import metrics, stats
from tcpsbed.analysis.stats import Paired, Test
from tcpsbed.views import text
from tcpsbed.views.folder import RunFolder, cells_in
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE, grouped, half_shown
from tcpsbed.views.spread import UNCHANGED
from tcpsbed.views.tables import Field, Table, field

SEEDS = "seeds"
"""Folder of further seeds in a run's folder."""
METRICS: dict[str, Field] = {
    name: field(metrics.section("flows").parts, name) for name in ("delay_ms.mean", "delay_ms.p99", "loss")
}
"""Numbers of each flow that are compared."""
KEPT = ("records_sha256", "flows")
"""What is kept of a summary."""
TITLE = "paired by seed"
NOTE = (
    "Differences on common seeds: ± is a 95 % interval (Student's t), bootstrap another (BCa), g is Hedges' g of the "
    "differences, p that of a paired t-test, p Holm corrected for all tests here (Holm 1979)."
)


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
    """

    name: str
    by_seed: Mapping[int, Mapping[str, Any]]
    base: int | None = 0

    @property
    def unchanged(self) -> bool:
        """Whether all seeds gave the same records, so that there is one value."""
        hashes = {str(one.get("records_sha256") or "") for one in self.by_seed.values()}
        return len(self.by_seed) > 1 and len(hashes) == 1 and "" not in hashes


@dataclass(frozen=True)
class Difference:
    """A number of a flow in a condition, less that in its baseline."""

    flow: str
    metric: Field
    condition: str
    before: float
    found: Paired
    t: Test | None


def of_runs(runs: Sequence[RunFolder], names: Sequence[str]) -> list[Condition]:
    """Runs with their further seeds."""
    return [
        Condition(
            name,
            {run.summary["seed"]: run.summary}
            | {one.summary["seed"]: one.part(*KEPT) for one in cells_in(run.path / SEEDS)},
        )
        for run, name in zip(runs, names, strict=True)
    ]


def differences(conditions: Sequence[Condition]) -> list[Difference]:
    """Every flow and metric of each condition less its baseline, where they have two seeds in common."""
    compared = [
        (conditions[one.base], one)
        for place, one in enumerate(conditions)
        if one.base is not None and one.base != place
    ]
    flows = (name for first, _ in compared for of in first.by_seed.values() for name in of.get("flows") or ())
    found = []
    for flow in dict.fromkeys(flows):
        for metric in METRICS.values():
            for first, other in compared:
                pairs = _pairs(first, other, flow, metric)
                if len(pairs) > 1:
                    width = metric.bin(*(max(map(abs, values)) for values in zip(*pairs, strict=True)))
                    paired = stats.paired([value - before for before, value in pairs], width)
                    mean = sum(before for before, _ in pairs) / len(pairs)
                    found.append(Difference(flow, metric, other.name, mean, paired, paired.t))
    tests = stats.corrected([one.t for one in found])
    return [
        Difference(one.flow, one.metric, one.condition, one.before, one.found, test)
        for one, test in zip(found, tests, strict=True)
    ]


def _pairs(first: Condition, other: Condition, flow: str, metric: Field) -> list[tuple[float, float]]:
    if first.unchanged and other.unchanged:
        return []
    found = []
    for seed in sorted(first.by_seed.keys() & other.by_seed.keys()):
        before, value = (
            metric.number((one.by_seed[seed].get("flows") or {}).get(flow) or {}) for one in (first, other)
        )
        if before is not None and value is not None:
            found.append((before, value))
    return found


def tables(conditions: Sequence[Condition]) -> list[Table]:
    """A table for each flow; none where no two conditions have two seeds in common."""
    found = differences(conditions)
    columns = (
        *map(words, ("metric", "unit", "condition")),
        *map(Column, ("seeds", "baseline", "difference", "±")),
        words("bootstrap"),
        *map(Column, ("g", "p", "p Holm")),
    )
    return [
        Table(flow, columns, tuple(_line(one) for one in found if one.flow == flow))
        for flow in dict.fromkeys(one.flow for one in found)
    ]


def told(conditions: Sequence[Condition]) -> str:
    """The tables for the terminal; empty if there are none and no reason why."""
    found = tables(conditions)
    lines = [f"{one.title}, {TITLE}\n{text.table(one.columns, one.rows)}" for one in found]
    return "\n".join([*lines, *(f"{line}\n" for line in notes(conditions))])


def notes(conditions: Sequence[Condition]) -> list[str]:
    """What to know of the tables."""
    said = []
    if tables(conditions):
        bases = list(dict.fromkeys(conditions[one.base].name for one in conditions if one.base is not None))
        shared = "Baselines, each for the conditions with its other values" if len(bases) > 1 else "Baseline"
        said = [f"{shared}: {'; '.join(bases)}.", NOTE]
    if alone := [one.name for one in conditions if one.base is None]:
        said.append(f"Their baseline has no result yet, and they are not compared: {'; '.join(alone)}.")
    if same := [one.name for one in conditions if one.unchanged]:
        said.append(f"{UNCHANGED}, and there is no interval: {'; '.join(same)}")
    several = any(len(one.by_seed) > 1 for one in conditions)
    return [*said, *([stats.REMEDY] if several and not stats.available() else [])]


def _line(one: Difference) -> tuple[str, ...]:
    mean, shown = one.found.difference, one.metric.difference
    drawn = one.found.bootstrap
    return (
        one.metric.title,
        one.metric.unit,
        one.condition,
        str(mean.n),
        one.metric.shown(one.before),
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
