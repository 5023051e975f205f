"""Tables of any part of a summary: columns, headings, units and how numbers are shown come from the table of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcpsbed.analysis import stats
from tcpsbed.analysis.metrics import HEAD, LIST, STATISTICS, Metric
from tcpsbed.views import markup, numbers
from tcpsbed.views.markup import Column, Html, bar, words
from tcpsbed.views.numbers import NONE, count, finite

Shown = Callable[[Any], str]

SHOWN: dict[str, tuple[Shown, str]] = {
    "ms": (numbers.ms, "ms"),
    "ns": (numbers.us, "µs"),
    "s": (lambda value: NONE if finite(value) is None else numbers.grouped(value, 3), "s"),
    "count": (count, ""),
    "share": (numbers.percent, ""),
    "load": (numbers.percent, ""),
    "bit/s": (numbers.rate, ""),
    "B": (numbers.size, ""),
    "dB": (numbers.general, "dB"),
    "ppm": (numbers.general, "ppm"),
    "1/s": (numbers.general, "1/s"),
    "ratio": (numbers.general, ""),
    "": (numbers.general, ""),
}
"""By the unit of a metric: how a number is shown, and the unit that its column names."""
PERCENTILES = tuple(name for name in STATISTICS if name[0] == "p")
"""Statistics that are read from histograms."""
DRAWN = frozenset([
    *(part.key for part in HEAD), "errors", "disturbances", "attacked", "supervisors", "protection",
    "flows", "path", "points", "echo", "largest", "events", "programs", "stalls",
])  # fmt: skip
"""Parts of a summary that have more to them than tables, or are told in words."""
MOST = 40
"""Entries of a list inside a row that are shown; `summary.json` has more."""
STATISTIC = {"p999": "p99.9", "ci95": "±", "ci95_batch": "± in batches"}


@dataclass(frozen=True)
class Field:
    """A column of a table: a metric, or a statistic of one, where it lies in a row, and the table that it is in."""

    metric: Metric
    path: tuple[str, ...]
    statistic: str = ""
    table: str = ""

    @property
    def title(self) -> str:
        """Its heading outside a group."""
        if self.statistic == "n":
            return "n"
        alone = self.statistic == "mean" and "ci95" in self.metric.shown
        statistic = "" if alone else STATISTIC.get(self.statistic, self.statistic)
        return f"{self.metric.title} {statistic}".strip()

    @property
    def unit(self) -> str:
        """What its column names."""
        return "" if self.statistic == "n" else SHOWN.get(self.metric.unit, ("", self.metric.unit))[1]

    @property
    def name(self) -> str:
        """The column of a table of runs: `delay_ms.p99` is `delay_p99_ms`."""
        first, *rest = self.path if not self.statistic else (*self.path, self.statistic)
        stem = first.removesuffix("_ms") if rest else first
        return "_".join([stem, *rest]) + ("_ms" if stem != first else "")

    def bin(self, *values: float) -> float:
        """Width of the bin of such values together, in their unit; 0 where it does not come from a histogram."""
        return stats.BIN * sum(map(abs, values)) if self.statistic in PERCENTILES else 0.0

    def read(self, row: Mapping[str, Any]) -> Any:
        """Its value in a row, or `None`."""
        first, *rest = (*self.path, self.statistic) if self.statistic else self.path
        value = row.get(first)
        for key in rest:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def number(self, row: Mapping[str, Any]) -> float | None:
        """Its value, if that is a finite number."""
        return finite(self.read(row))

    def shown(self, value: Any) -> str:
        """A value as people read it."""
        if self.metric.rare and not value:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return numbers.place(value)
        if isinstance(value, Mapping):
            return ", ".join(f"{key} {self.shown(one)}" for key, one in value.items())
        if isinstance(value, list | tuple):
            return ", ".join(map(self.shown, value))
        known = SHOWN.get(self.metric.unit, SHOWN[""])  # a user's metric has any unit
        return (count if self.statistic == "n" else known[0])(value)

    def difference(self, value: Any) -> str:
        """A difference of two values as people read it: that of shares is in percentage points."""
        return self.shown(value).replace(" %", " points")


@dataclass(frozen=True)
class Table:
    """A heading, columns, and cells."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]

    def beside(self, place: int, column: Column, cells: Iterable[object]) -> Table:
        """The table with one more column at a place."""
        at = place if place >= 0 else len(self.columns) + 1 + place
        rows = ((*row[:at], cell, *row[at:]) for row, cell in zip(self.rows, cells, strict=True))
        return replace(self, columns=(*self.columns[:at], column, *self.columns[at:]), rows=tuple(rows))


def fields(parts: Sequence[Metric], *, brief: bool = False) -> list[Field]:
    """The columns of rows that are made of these metrics; lists inside them are tables of their own.

    Parameters
    ----------
    parts
        What a row is made of.
    brief
        Whether only what the terminal shows.
    """
    return list(_fields(parts, (), "", brief))


def _fields(parts: Sequence[Metric], above: tuple[str, ...], table: str, brief: bool) -> Iterator[Field]:
    for metric in parts:
        path, place = (*above, metric.key), metric.table or table
        if metric.each:
            continue
        if metric.parts:
            yield from _fields(metric.parts, path, place, brief)
            continue
        shown = metric.shown if metric.brief is None or not brief else metric.brief
        for statistic in shown:
            yield Field(metric, path, statistic, place)


def field(parts: Sequence[Metric], name: str) -> Field:
    """A number by its dotted name, such as `delay_ms.p99`."""
    metric: Metric | None = None
    path: list[str] = []
    statistic: list[str] = []
    for key in name.split("."):
        found = next((one for one in parts if one.key == key), None)
        if found is None or statistic:
            statistic.append(key)
        else:
            metric, parts = found, found.parts
            path.append(key)
    if metric is None:
        raise KeyError(name)
    return Field(metric, tuple(path), ".".join(statistic))


def laid(
    columns: Sequence[Field], rows: Sequence[Mapping[str, Any]], title: str = "", *, drawn: bool = False
) -> Table:
    """A table of these rows; `drawn` puts a bar before each share of the time."""
    heads = []
    for number, one in enumerate(columns):
        values = [value for row in rows if (value := one.read(row)) is not None]
        kind = "number" if one.metric.unit or all(finite(value) is not None for value in values) else "words"
        follows = number > 0 and columns[number - 1].path == one.path and one.statistic != "n"
        head = STATISTIC.get(one.statistic, one.statistic) if follows else one.title
        heads.append(Column(head, one.unit, kind, one.metric.meaning))
    cells = tuple(tuple(one.shown(one.read(row)) for one in columns) for row in rows)
    table = Table(title, tuple(heads), cells)
    for number, one in reversed(list(enumerate(columns))):
        if drawn and one.metric.unit == "load":
            table = table.beside(number, bar(""), (markup.lane(one.number(row) or 0.0, 1.0) for row in rows))
    return table


def tables(part: Metric, found: Any, *, brief: bool = False) -> list[Table]:
    """All tables of a part of a summary that have anything in them, its own first.

    Parameters
    ----------
    part
        The part.
    found
        What the summary has of it.
    brief
        Whether only what the terminal shows.
    """
    return [table for table in _tables(part, [((), found)], (), brief) if table.rows]


def on_page(part: Metric, found: Any) -> list[Html]:
    """All tables of a part of a summary, for the page; its own has no heading."""
    return [
        titled(table) if table.title != part.title else markup.block(_html(table))
        for table in tables(part, found)
    ]


def titled(table: Table) -> Html:
    """A table for the page, below its heading."""
    return markup.block(markup.heading(table.title), _html(table))


def _html(table: Table) -> Html:
    return markup.table(table.columns, table.rows)


Named = tuple[tuple[str, ...], Any]
"""Something with the names of what it is a part of."""


def _tables(part: Metric, found: Sequence[Named], heads: tuple[str, ...], brief: bool) -> Iterator[Table]:
    if part.each not in ("", LIST):
        heads = (*heads, part.each)
    rows = [row for names, one in found for row in _rows(part, names, one)]
    if not part.parts:
        own = Field(replace(part, each=""), (part.key,))
        yield _named(part.title, heads, [(names, {part.key: one}) for names, one in rows], [own], brief)
        return
    columns = fields(part.parts, brief=brief)
    named = [] if heads else _identity(columns)
    for title in dict.fromkeys(one.table for one in columns):
        chosen = [one for one in columns if one.table == title]
        yield _named(title or part.title, heads, rows, chosen if not title else [*named, *chosen], brief)
    heads = (*heads, *(one.title for one in named))
    for metric in part.parts:
        if metric.each and metric.shown:
            inner = [
                ((*names, *(one.shown(one.read(row)) for one in named)), _few(row.get(metric.key)))
                for names, row in rows
            ]
            yield from _tables(metric, inner, heads, brief)


def _rows(part: Metric, names: tuple[str, ...], found: Any) -> Iterator[Named]:
    """The rows of a part, each with the names of where it is."""
    if isinstance(found, list | tuple):
        yield from ((names, one) for one in found)
    elif isinstance(found, Mapping) and part.each not in ("", LIST):
        for name, one in found.items():
            inner = one if isinstance(one, list | tuple) else [one]
            yield from (((*names, numbers.place(name)), row) for row in inner)
    elif found:
        yield names, found


def _few(found: Any) -> Any:
    return found[:MOST] if isinstance(found, list) else found


def _identity(columns: Sequence[Field]) -> list[Field]:
    """The columns that identify a row: the texts before the first number."""
    first = next((number for number, one in enumerate(columns) if one.metric.unit), 0)
    return list(columns[:first])


def _named(
    title: str, heads: Sequence[str], rows: Sequence[Named], columns: Sequence[Field], brief: bool
) -> Table:
    """A table with the names of its rows in front, without empty rows."""
    table = laid(columns, [row for _, row in rows], title, drawn=not brief)
    cells = [(*names, *line) for (names, _), line in zip(rows, table.rows, strict=True)]
    mine = len(heads) or len(_identity(columns))
    kept = tuple(line for line in cells if any(str(cell) not in ("", NONE) for cell in line[mine:]))
    return Table(title, (*map(words, heads), *table.columns), kept)
