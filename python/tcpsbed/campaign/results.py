"""Results of a sweep: means over seeds with intervals, per combination of values and flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.campaign.grid import Axis
from tcpsbed.views import text
from tcpsbed.views.markup import Column, words
from tcpsbed.views.metric import EFFECTS, Metric, of_effects
from tcpsbed.views.numbers import NONE, half_shown
from tcpsbed.views.spread import REMEDY, UNCHANGED
from tcpsbed.views.tables import Field, field

Row = Mapping[str, Any]


BINNED = "± is half of the bin, 0.05 % of the value"
"""How wide an interval is that would be narrower."""


def unchanged(hashes: Collection[str]) -> bool:
    """Whether the records of several runs are the same."""
    return len(hashes) > 1 and len(set(hashes)) == 1 and "" not in hashes


@dataclass(frozen=True)
class Group:
    """The rows of one combination of values and one flow, by seed."""

    values: tuple[str, ...]
    flow: str
    by_seed: Mapping[int, Row]

    @property
    def disturbed(self) -> int:
        """Seeds whose runs were disturbed; of runs that do not depend on the seed one stands for all."""
        found = sum(bool(row.get("disturbed")) for row in self.by_seed.values())
        return min(found, 1) if self.unchanged else found

    @property
    def unchanged(self) -> bool:
        """Whether all seeds gave the same records: that is one run, and has no interval."""
        return unchanged([str(row.get("records_sha256", "")) for row in self.by_seed.values()])

    def mean(self, column: Field, name: str = "") -> Interval | None:
        """Mean over seeds with its interval; None without a number. `name`: of the column, where it has another."""
        found = (row.get(name or column.name) for row in self.by_seed.values())
        values = [value for value in found if value is not None]
        return interval(values[:1] if self.unchanged else values, _bin(column, values)) if values else None

    def against(self, first: Group, column: Field) -> Interval | None:
        """Mean difference to another combination, seed by seed, with its interval: what seeds share cancels."""
        pairs = [
            (row.get(column.name), first.by_seed[seed].get(column.name))
            for seed, row in self.by_seed.items()
            if seed in first.by_seed
        ]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if not known:
            return None
        same = self.unchanged and first.unchanged
        width = sum(_bin(column, values) for values in zip(*known, strict=True))
        return interval([a - b for a, b in (known[:1] if same else known)], width)


def _bin(column: Field, values: Sequence[float]) -> float:
    """Width of the bin that the largest of these values lies in."""
    return column.bin(max(map(abs, values)))


def groups(rows: Sequence[Row], axes: Sequence[Axis]) -> dict[str, list[Group]]:
    """All groups of each flow, in the order of the grid."""
    found: dict[tuple[str, tuple[str, ...]], dict[int, Row]] = {}
    for row in rows:
        found.setdefault((row["flow"], tuple(row[a.key] for a in axes)), {})[row["seed"]] = row
    by_flow: dict[str, list[Group]] = {}
    for (flow, values), by_seed in found.items():
        by_flow.setdefault(flow, []).append(Group(values, flow, by_seed))
    return by_flow


def naming(combinations: Iterable[tuple[str, ...]]) -> list[int]:
    """The places of the values that name combinations: those of keys that vary, without a key that has the value of an
    earlier one in each (zipped factors).
    """
    columns = list(zip(*combinations, strict=True))
    varied = (place for place, column in enumerate(columns) if len(set(column)) > 1)
    return [place for place in varied if columns[place] not in columns[:place]]


COLUMNS = tuple(
    field(metrics.section("flows").parts, name) for name in ("delay_ms.mean", "delay_ms.p99", "loss")
)
"""Numbers of tables and figures, where no metrics are chosen."""


EFFECT_COLUMNS = of_effects("accepted_share", "hold_ms", "safe_stop_ms")
"""The same of attacks."""


@dataclass(frozen=True)
class Shown:
    """What tables and figures show of a campaign.

    Attributes
    ----------
    axes
        Keys and their values.
    columns, compared
        Metrics; and those whose difference to the baseline is shown.
    flows
        Flows that are shown; empty: all.
    baseline
        Values that everything is compared with, by key; empty: the first combination.
    labels
        What values and keys are called, by themselves.
    metrics
        The columns by flow, with the labels of some; empty: all columns of all flows.
    """

    axes: tuple[Axis, ...]
    columns: tuple[Field, ...] = COLUMNS
    compared: tuple[Field, ...] = COLUMNS[1:2]
    flows: tuple[str, ...] = ()
    baseline: Mapping[str, str] = dataclass_field(default_factory=dict)
    labels: Mapping[str, str] = dataclass_field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()

    def groups(self, rows: Sequence[Row]) -> dict[str, list[Group]]:
        """The groups of the flows that are shown."""
        found = groups(rows, self.axes)
        return {flow: of for flow, of in found.items() if not self.flows or flow in self.flows}

    def of(self, flow: str) -> Shown:
        """What is shown of a flow, or of an attack, which has other numbers."""
        attack = flow.startswith(f"{EFFECTS}.") and not self.metrics
        return replace(self, columns=EFFECT_COLUMNS, compared=EFFECT_COLUMNS[:1]) if attack else self

    def called(self, text: str) -> str:
        """A value or a key as people read it."""
        return self.labels.get(text, self.labels.get(text.strip("\"'"), text))

    def title(self, column: Field, flow: str = "") -> str:
        """What a column is called in the table of a flow, or where all flows call it the same."""
        found = {one.title for one in self.metrics if one.key == column.name and flow in ("", one.flow)}
        return found.pop() if len(found) == 1 else column.title

    def base_of(self, values: tuple[str, ...], first: tuple[str, ...]) -> tuple[str, ...]:
        """The combination that another is compared with: with the values of the baseline, or else the first."""
        pairs = zip(self.axes, values, strict=True)
        return tuple(self.baseline.get(axis.key, value) for axis, value in pairs) if self.baseline else first

    def base(self, found: Sequence[Group], group: Group) -> Group | None:
        """What a group is compared with, among those of its flow; `None` for the baseline itself."""
        wanted = self.base_of(group.values, found[0].values)
        base = next((one for one in found if one.values == wanted), None)
        return None if base is group else base

    def lines(self, found: Sequence[Group]) -> list[list[str]]:
        """Lines of a flow's table without the values: seeds, disturbed ones, means with intervals, paired differences."""
        return [self.of(group.flow)._line(group, self.base(found, group)) for group in found]

    def named(self, group: Group) -> list[str]:
        """The values of a line."""
        return [self.called(value) for value in group.values]

    def _line(self, group: Group, base: Group | None) -> list[str]:
        shown = ["1" if group.unchanged else str(len(group.by_seed)), str(group.disturbed or NONE)]
        for column in self.columns:
            shown += _pair(group.mean(column), column.shown)
        for column in self.compared:
            shown += [NONE, NONE] if base is None else _pair(group.against(base, column), column.difference)
        return shown

    def headings(self, flow: str = "") -> list[Column]:
        """Columns of the table of a flow, or of all: one for each axis, then those of `lines`."""
        columns = [words(self.called(a.key)) for a in self.axes] + [Column("seeds"), Column("disturbed")]
        those = self.of(flow)
        for column in those.columns:
            columns += [Column(self.title(column, flow), column.unit), Column("±", column.unit)]
        against = "baseline" if self.baseline else "first"
        for column in those.compared:
            title = "p99" if those.compared == COLUMNS[1:2] else self.title(column, flow)
            columns += [Column(f"{title} against {against}", column.unit), Column("±", column.unit)]
        return columns

    def cells(self, rows: Sequence[Row]) -> dict[str, list[list[str]]]:
        """The lines of each flow's table, below `headings`."""
        return {
            flow: [[*self.named(g), *line] for g, line in zip(found, self.lines(found), strict=True)]
            for flow, found in self.groups(rows).items()
        }

    def tables(self, rows: Sequence[Row]) -> str:
        """A plain table a flow for the terminal."""
        found = self.cells(rows)
        return "\n".join(f"{flow}\n{text.table(self.headings(flow), lines)}" for flow, lines in found.items())


def _pair(found: Interval | None, shown: Callable[[Any], str]) -> list[str]:
    return [NONE, NONE] if found is None else [shown(found.mean), half_shown(found.half, shown)]


def remarks(rows: Sequence[Row], shown: Shown) -> list[str]:
    """What to know of a table: seeds that change nothing, intervals as narrow as a bin, values that all seeds share."""
    every = groups(rows, shown.axes)
    found = {group.values: group.unchanged for flow in every.values() for group in flow}
    said = []
    if same := sum(found.values()):
        place = "" if same == len(found) else f" at {same} of {len(found)} combinations"
        said.append(f"{UNCHANGED}{place}; one run each, and no interval. {REMEDY}")
    binned, equal = Counter[str](), Counter[str]()
    for group in (group for of in shown.groups(rows).values() for group in of):
        for column in shown.of(group.flow).columns:
            mean, title = group.mean(column), shown.title(column, group.flow)
            if mean is None or mean.half is None:
                continue
            binned[title] += mean.half == column.bin(mean.mean) / 2 > 0
            equal[title] += mean.half == 0.0
    if titles := [title for title, number in binned.items() if number]:
        said.append(f"{', '.join(titles)}: seeds differ by less than a bin of the histogram; {BINNED}.")
    if titles := [title for title, number in equal.items() if number]:
        said.append(
            f"{', '.join(titles)}: where ± is 0, all seeds have the same value, not the same records."
        )
    return said


def tables(rows: Sequence[Row], axes: Sequence[Axis]) -> str:
    """A plain table a flow for the terminal, of a sweep."""
    return Shown(tuple(axes)).tables(rows)
