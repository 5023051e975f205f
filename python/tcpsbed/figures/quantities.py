"""Metrics by their path in `summary.json`, as `compare` and `sweep` name them: `haptic.delay_ms.p99`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import STATISTICS, Metric
from tcpsbed.errors import DataError
from tcpsbed.nearest import nearest_all
from tcpsbed.views.numbers import finite
from tcpsbed.views.tables import Field, field, fields

FLOWS = "flows"
STATISTIC = {"p50": "median", "p999": "p99.9", "max": "maximum", "min": "minimum"}
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
EXAMPLE = "a metric by its path, such as haptic.delay_ms.p99 (tcpsbed docs summary)"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One metric of one flow, link or other named part.

    Attributes
    ----------
    path
        As the user wrote it.
    section, name
        Where it is: `flows` and the name of the flow, for example.
    field
        What it is there.
    unit
        Of its numbers.
    """

    path: str
    section: str
    name: str
    field: Field
    unit: str

    @property
    def spread(self) -> bool:
        """Whether it is a whole distribution, not a number."""
        return _spread(self.field.metric) and not self.field.statistic

    @property
    def title(self) -> str:
        """How it is called where people read it."""
        statistic = STATISTIC.get(self.field.statistic, self.field.statistic)
        named = self.name if self.field.metric.key == "value" else f"{self.name} {self.field.metric.title}"
        return f"{named.strip()}{f', {statistic}' if statistic else ''}"

    def number(self, summary: Row) -> float | None:
        """Its value in a summary, if that is a finite number."""
        row = dict(_rows(metrics.section(self.section), summary)).get(self.name)
        return None if row is None else self.field.number(row)


def quantity(path: str, summary: Row, key: str = "--y") -> Quantity:
    """The metric with this path in a summary.

    Raises
    ------
    DataError
        If there is none; names the nearest.
    """
    for section, name, parts, row in _named(summary):
        above = _above(section, name)
        for before in (name, above) if section.key == FLOWS else (above,):
            if before and not path.startswith(f"{before}."):
                continue
            found = _field(parts, path.removeprefix(f"{before}."), row)
            if found is not None:
                unit = str(row.get("unit") or "") if section.key == "metrics" else found.metric.unit
                return Quantity(path, section.key, name, found, "count" if found.statistic == "n" else unit)
    near = nearest_all(path, list(_known(summary)))[:3]
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise DataError(f'found "{path}"{meant}', key=key, allowed=EXAMPLE)


def _field(parts: Sequence[Metric], name: str, row: Row) -> Field | None:
    try:
        found = field(parts, name)
    except KeyError:
        return None
    if found.metric.parts or found.metric.each or "." in found.statistic:
        return None
    if found.statistic and found.statistic not in ("n", "sd", *STATISTICS, *found.metric.shown):
        return None
    if found.statistic and not _spread(found.metric):
        return None
    alone = not found.metric.unit and not found.statistic and finite(found.read(row)) is None
    return None if alone and found.metric.shown == ("",) and found.metric.key != "value" else found


def _spread(metric: Metric) -> bool:
    return not set(metric.shown).isdisjoint(STATISTICS)


def _named(summary: Row) -> Iterator[tuple[Metric, str, Sequence[Metric], Row]]:
    """Sections of a summary with the names in them: what is named, its metrics and its row."""
    for section in metrics.SUMMARY:
        for name, row in _rows(section, summary):
            yield section, name, section.parts or (section,), row


def _above(section: Metric, name: str) -> str:
    """What comes before a metric in its path."""
    return _joined(section.key * bool(section.parts), name)


def _rows(section: Metric, summary: Row) -> Iterator[tuple[str, Row]]:
    """The rows of a section by name; of one number, what that is in."""
    found = summary.get(section.key)
    if found is None:
        return
    if not section.each:
        yield "", found if section.parts else summary
    elif isinstance(found, Mapping):
        for name, one in found.items():
            if isinstance(one, Mapping):
                yield name, one
            else:
                yield from ((_joined(name, _identity(section.parts, row)), row) for row in one)
    else:
        yield from ((_identity(section.parts, row), row) for row in found)


def _identity(parts: Sequence[Metric], row: Row) -> str:
    """Of a row of a list: the texts before its first number."""
    names = []
    for metric in parts:
        value = row.get(metric.key)
        if metric.unit or not isinstance(value, str):
            break
        names.append(value)
    return _joined(*names)


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))


def _known(summary: Row) -> Iterator[str]:
    """Paths of all numbers in a summary; those of flows without the name of their section, too."""
    for section, name, parts, row in _named(summary):
        inner = {_joined(*one.path, last): None for one in fields(parts) for last in ("", one.statistic)}
        for path in inner:
            if _field(parts, path, row) is not None:
                yield _joined(name if section.key == FLOWS else _above(section, name), path)


def scale(unit: str, values: Sequence[float | None]) -> tuple[float, str]:
    """Factor and unit in which values are easy to read: shares in percent, rates and sizes with a prefix."""
    if unit in ("share", "load"):
        return 100.0, "%"
    if unit == "ns":
        return 1e-3, "µs"
    if unit in ("bit/s", "B"):
        largest = max((abs(value) for value in values if value is not None), default=0.0)
        factor, prefix = next((one for one in PREFIXES if largest >= one[0]), (1.0, ""))
        return 1 / factor, f"{prefix}{unit}"
    return 1.0, "" if unit in ("count", "ratio") else unit


def axis(title: str, unit: str) -> str:
    """The label of an axis."""
    return f"{title} ({unit})" if unit else title
