"""Spans of time in the form of the plan (`tcps_core::dist::Dist`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpsbed.scenarios.compile.files import column, existing
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.model.span import HistogramFile, Span, TraceFile
from tcpsbed.scenarios.origin import Key

_MOST_NS = 1e15
_MOST_COUNT = 2**32
_FACTORS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def dist(scenario: Scenario, key: Key, span: Span) -> dict[str, Any]:
    """The delay model of a span; measured spans are read from their files."""
    if isinstance(span, TraceFile):
        return {"kind": "trace", "spans_ns": _trace(scenario, key, span)}
    return _histogram(scenario, key, span) if isinstance(span, HistogramFile) else span.plan


def _trace(scenario: Scenario, key: Key, span: TraceFile) -> list[int]:
    path = existing(scenario, (*key, "trace"), span.trace)
    title, values = column(scenario, key, path, span.column)
    return _spans(scenario, key, path, values, span.unit or title.rpartition("_")[2])


def _histogram(scenario: Scenario, key: Key, span: HistogramFile) -> dict[str, Any]:
    """The edges of the bins, one more than there are bins, and the counts of the bins."""
    path = existing(scenario, (*key, "histogram"), span.histogram)
    title, values = column(scenario, key, path, 0)
    _, counts = column(scenario, key, path, 1)
    edges = _spans(scenario, key, path, values, span.unit or title.rpartition("_")[2])
    whole = all(0 <= count < _MOST_COUNT and count == int(count) for count in counts)
    if edges != sorted(set(edges)) or not whole or counts[-1] != 0 or not any(counts):
        found = f"found {path.name}, which is not a histogram"
        allowed = "a line a bin: where it begins, rising, and its count; a last line with count 0"
        raise scenario.error((*key, "histogram"), found, allowed)
    return {"kind": "histogram", "edges_ns": edges, "counts": [int(count) for count in counts[:-1]]}


def _spans(scenario: Scenario, key: Key, path: Path, values: list[float], unit: str) -> list[int]:
    """Spans in nanoseconds."""
    if unit not in _FACTORS:
        raise scenario.error(
            (*key, "unit"), f"found no unit for {path.name}", "ns, us, ms, s, or a column named like delay_ms"
        )
    spans = [value * _FACTORS[unit] for value in values]
    if not all(0 <= span <= _MOST_NS for span in spans):
        found = f"found a span in {path.name} that is negative, no number or too long"
        raise scenario.error(key, found, "spans of time from 0 to 11 days")
    return [round(span) for span in spans]
