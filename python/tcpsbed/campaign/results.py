"""Results of a sweep: means over seeds with intervals, per combination of values and flow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.campaign.grid import Axis
from tcpsbed.views import text
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE
from tcpsbed.views.spread import REMEDY, UNCHANGED
from tcpsbed.views.tables import field

Row = Mapping[str, Any]


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
        """Seeds whose runs were disturbed."""
        return sum(bool(row.get("disturbed")) for row in self.by_seed.values())

    @property
    def unchanged(self) -> bool:
        """Whether all seeds gave the same records: that is one run, and has no interval."""
        return unchanged([str(row.get("records_sha256", "")) for row in self.by_seed.values()])

    def mean(self, column: str) -> Interval | None:
        """Mean over seeds with its interval; None without a number."""
        values = [row[column] for row in self.by_seed.values() if row.get(column) is not None]
        return interval(values[:1] if self.unchanged else values) if values else None

    def against(self, first: Group, column: str) -> Interval | None:
        """Mean difference to another combination, seed by seed, with its interval: what seeds share cancels."""
        pairs = [
            (row[column], first.by_seed[seed][column])
            for seed, row in self.by_seed.items()
            if seed in first.by_seed
        ]
        known = [a - b for a, b in pairs if a is not None and b is not None]
        same = self.unchanged and first.unchanged
        return interval(known[:1] if same else known) if known else None


def groups(rows: Sequence[Row], axes: Sequence[Axis]) -> dict[str, list[Group]]:
    """All groups of each flow, in the order of the grid."""
    found: dict[tuple[str, tuple[str, ...]], dict[int, Row]] = {}
    for row in rows:
        found.setdefault((row["flow"], tuple(row[a.key] for a in axes)), {})[row["seed"]] = row
    by_flow: dict[str, list[Group]] = {}
    for (flow, values), by_seed in found.items():
        by_flow.setdefault(flow, []).append(Group(values, flow, by_seed))
    return by_flow


COLUMNS = tuple(
    field(metrics.section("flows").parts, name) for name in ("delay_ms.mean", "delay_ms.p99", "loss")
)
"""Numbers of tables and figures."""


def cells_of(group: Group, first: Group) -> list[str]:
    """A group's line of a table: seeds, how many of them were disturbed, means with intervals, paired difference."""
    shown = ["1" if group.unchanged else str(len(group.by_seed)), str(group.disturbed or NONE)]
    for column in COLUMNS:
        shown += _pair(group.mean(column.name), column.shown)
    late = COLUMNS[1]
    return shown + (
        _pair(group.against(first, late.name), late.shown) if group is not first else [NONE, NONE]
    )


def _pair(found: Interval | None, shown: Callable[[Any], str]) -> list[str]:
    return [NONE, NONE] if found is None else [shown(found.mean), shown(found.half)]


def headings(axes: Sequence[Axis]) -> list[Column]:
    """Columns that fit `cells_of`, after one for each axis."""
    columns = [words(a.key) for a in axes] + [Column("seeds"), Column("disturbed")]
    for column in COLUMNS:
        columns += [Column(column.title, column.unit), Column("±", column.unit)]
    return [*columns, Column("p99 against first", "ms"), Column("±", "ms")]


def remark(rows: Sequence[Row], axes: Sequence[Axis]) -> str:
    """A remark if seeds change nothing; otherwise empty."""
    found = {group.values: group.unchanged for flow in groups(rows, axes).values() for group in flow}
    same = sum(found.values())
    if not same:
        return ""
    place = "" if same == len(found) else f" at {same} of {len(found)} combinations"
    return f"{UNCHANGED}{place}; one run each, and no interval. {REMEDY}"


def tables(rows: Sequence[Row], axes: Sequence[Axis]) -> str:
    """A plain table a flow for the terminal."""
    parts = []
    for flow, found in groups(rows, axes).items():
        lines = [[*group.values, *cells_of(group, found[0])] for group in found]
        parts.append(f"{flow}\n" + text.table(headings(axes), lines))
    return "\n".join(parts)
