"""Sections about hooks that watch over a flow: their changes of state, and how long each state lasted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.report import markup
from tcpsbed.report.folder import RunFolder
from tcpsbed.report.markup import Column, Html, words
from tcpsbed.report.numbers import count, finite, ms, seconds

SHOWN = 40
"""Changes of a flow at a component that are shown; `summary.json` lists more."""
MARKED = 12
"""Changes that the curves over time are marked with, if there are no more."""


def section(run: RunFolder) -> Html:
    """Changes of state, and the time in each."""
    columns, rows = changed(run.summary)
    return markup.section(
        "states",
        "Safety and display",
        markup.table(columns, rows) if rows else "",
        markup.note("Time in each state: " + "; ".join(spent(run.summary)) + ".") if rows else "",
    )


def changed(summary: Mapping[str, Any]) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the changes, for the page and the terminal."""
    rows = [
        [
            watched["component"],
            watched["flow"],
            f"{finite(change['t_s']) or 0:.3f}",
            change["from"],
            change["to"],
            ms(change.get("age_ms")),
        ]
        for watched in summary.get("states") or ()
        for change in watched["changes"][:SHOWN]
    ]
    columns = [words("component"), words("flow"), Column("at", "s"), words("from"), words("to")]
    return [*columns, Column("age of the newest", "ms")], rows


def spent(summary: Mapping[str, Any]) -> list[str]:
    """For each component that has states, how long it was in each and how often it changed."""
    return [
        f"{watched['component']} ({watched['flow']}) "
        + ", ".join(f"{name} {seconds(time)}" for name, time in watched["spent_s"].items())
        + f", {count(watched['count'])} changes"
        for watched in summary.get("states") or ()
    ]


def marks(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Changes as events of the curves over time; none where they are too many to be told apart."""
    found = [
        {"t_s": change["t_s"], "name": f"{watched['component']}: {change['to']}"}
        for watched in summary.get("states") or ()
        for change in watched["changes"]
    ]
    return found if len(found) <= MARKED else []
