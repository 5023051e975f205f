"""The table of metrics, from which `summary.json`, its documentation, tables, report, comparisons and limits come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.metrics import echo, flow, media, network, place, run, split
from tcpsbed.analysis.metrics.metric import ABSENT, LIST, STATISTICS, Metric, made

__all__ = ["ABSENT", "HEAD", "LIST", "STATISTICS", "VERSION", "Metric", "made", "section", "summary"]

VERSION = run.VERSION
HEAD = run.HEAD
"""The run itself."""
SUMMARY: tuple[Metric, ...] = (
    *run.HEAD,
    *flow.SECTIONS,
    split.SPLIT,
    split.LARGEST,
    *echo.SECTIONS,
    *media.SECTIONS,
    *network.SECTIONS,
    place.STAGES,
    place.COMPONENTS,
    place.NODES,
    place.ROBOTS,
    network.EMULATOR,
    network.PROGRAMS,
    place.HOSTS,
    network.ENDPOINTS,
    place.BOARDS,
    place.CLOCKS,
    *run.TAIL,
)
"""The content of `summary.json`, in its order."""


def summary(info: Mapping[str, Any], told: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `summary.json` of a run.

    Parameters
    ----------
    info
        From `facts.scenario_info`, and `media` by flow.
    told
        What the run told about itself (`result.json`).
    rows
        What its rows say (`_tcps.analyse`).
    """
    source = {**info, "told": told, "rows": rows, "ran_s": rows["end_ns"] / 1e9}
    found: dict[str, Any] = made(SUMMARY, {**source, "split": split.by_flow(source)})
    return found


def section(key: str) -> Metric:
    """A part of the summary by its key."""
    return next(metric for metric in SUMMARY if metric.key == key)
