"""The tables of `docs/summary.md` from the table of metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics.metric import LIST, Metric

PLACE = re.compile(r"(<!-- metrics:(\w+) -->\n).*?(<!-- /metrics -->)", re.DOTALL)
"""Where a table is: of a part of the summary by its key, or of all that have no table of their own (`rest`)."""


def drawn(text: str) -> str:
    """The page with its tables as they are now."""
    own = {match[2] for match in PLACE.finditer(text)}
    rest = [metric for metric in metrics.SUMMARY if metric.key not in own]

    def table(match: re.Match[str]) -> str:
        if match[2] == "rest":
            return match[1] + _table(rest) + match[3]
        part = metrics.section(match[2])
        return f"{match[1]}`{part.key}`: {part.meaning}.\n\n{_table(part.parts)}{match[3]}"

    return PLACE.sub(table, text)


def listed() -> Iterator[tuple[str, Metric]]:
    """Every key of `summary.json` with its metric."""
    return _rows(metrics.SUMMARY, "", {})


def _table(table: Sequence[Metric]) -> str:
    rows = "".join(
        f"| `{key}` | {'share' if metric.unit == 'load' else metric.unit} | {metric.meaning} |\n"
        for key, metric in _rows(table, "", {})
    )
    return f"| key | unit | meaning |\n|---|---|---|\n{rows}"


def _rows(table: Sequence[Metric], above: str, told: dict[int, str]) -> Iterator[tuple[str, Metric]]:
    """Keys and their meanings, parts below their whole; a part of two metrics appears once."""
    for metric in table:
        key = f"{above}{metric.key}"
        yield key, metric
        if told.setdefault(id(metric.parts), key) == key and metric.parts:
            inside = {"": ".", LIST: "[]."}.get(metric.each, f".{metric.each.upper()}.")
            yield from _rows(metric.parts, f"{key}{inside}", told)
