"""A run reduced to a readable size: the first of thousands of flows, and a note on the rest."""

from __future__ import annotations

from itertools import islice
from typing import Any

from tcpsbed.views.folder import RunFolder

MOST = 100
"""Flows, links, nodes and so on that are shown; `summary.json` and `series.json` have all."""
MOST_LINES = 2_000
"""Lines of a scenario."""
_WHOLE = ("errors", "disturbances", "attacked", "as_set", "supervisors", "protection", "queues")


def glance(run: RunFolder) -> tuple[RunFolder, str]:
    """The run, or the first entries of long lists; and a sentence on what is omitted."""
    long = {key: len(value) for key, value in run.summary.items() if _is_long(key, value)}
    lines = run.scenario.count("\n")
    if not long and lines <= MOST_LINES:
        return run, ""
    shown = RunFolder(run.path)
    vars(shown)["summary"] = {key: _cut(key, value) for key, value in run.summary.items()}
    vars(shown)["series"] = {key: _cut(key, value) for key, value in run.series.items()}
    if lines > MOST_LINES:
        vars(shown)["scenario"] = "\n".join(run.scenario.split("\n")[:MOST_LINES]) + "\n# and so on\n"
    else:
        vars(shown)["scenario"] = run.scenario
    counts = ", ".join(f"{MOST} of {count:,} ({key})" for key, count in long.items())
    said = f"Shown are the first {counts}; summary.json and series.json have all." if long else ""
    return shown, said


def _is_long(key: str, value: Any) -> bool:
    return isinstance(value, dict | list) and len(value) > MOST and key not in _WHOLE


def _cut(key: str, value: Any) -> Any:
    if not _is_long(key, value) or key == "t_s":
        return value
    return dict(islice(value.items(), MOST)) if isinstance(value, dict) else value[:MOST]
