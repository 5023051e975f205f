"""One table of metrics: what is in it is in the summary, in its documentation, in tables, on the page and in limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import Metric
from tcpsbed.analysis.metrics.page import drawn


def every(table: tuple[Metric, ...], path: str = "") -> Iterator[tuple[str, Metric]]:
    for metric in table:
        yield f"{path}{metric.key}", metric
        yield from every(metric.parts, f"{path}{metric.key}.")


def test_units_are_those_that_keys_name() -> None:
    units = {"ms": "ms", "ns": "ns", "bps": "bit/s", "s": "s", "db": "dB", "ppm": "ppm", "bytes": "B"}
    for path, metric in every(metrics.SUMMARY):
        ending = metric.key.rpartition("_")[2] if "_" in metric.key else ""
        if ending in units and not metric.parts and not metric.key.endswith("per_s"):
            assert metric.unit == units[ending], path


def test_the_documentation_is_that_of_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "summary.md").read_text(encoding="utf-8")
    assert drawn(page) == page, "stale: tools/summary.py --write"
    assert all(metric.meaning for _, metric in every(metrics.SUMMARY))


def test_a_metric_is_taken_computed_or_left_out() -> None:
    table = (
        Metric("sent"),
        Metric("delay_ms", unit="ms"),
        Metric("twice", of=lambda source: 2 * source["sent"]),
        Metric("links", parts=(Metric("name"),)),
        Metric("by_name", parts=(Metric("name"),), each="flow"),
        Metric("absent"),
    )
    source: dict[str, Any] = {
        "sent": 2,
        "delay_ns": {"n": 3, "mean": 2e6},
        "links": [{"name": "l1", "more": 1}],
        "by_name": {"haptic": [{"name": "a"}], "video": {"name": "b"}},
    }
    assert metrics.made(table, source) == {
        "sent": 2,
        "delay_ms": {"n": 3, "mean": 2.0},
        "twice": 4,
        "links": [{"name": "l1"}],
        "by_name": {"haptic": [{"name": "a"}], "video": {"name": "b"}},
    }
