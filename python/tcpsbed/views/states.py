"""States of supervisors and displays: how long each state lasted, and why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.errors import counted
from tcpsbed.views.numbers import count, finite, ms, percent, seconds

MARKED = 12
"""Changes that the curves over time are marked with, if there are no more."""
AMISS = ("degraded", "hold", "safe stop", "predicted")
"""States that have a cause to look for."""
MOSTLY = 0.5
"""Share of the time beyond which a supervisor that limits the motion is told."""


def spent(summary: Mapping[str, Any]) -> list[str]:
    """For each component that has states, how long it was in each, how often it changed, and what it did last."""
    return [
        f"{watched['component']} ({watched['flow']}) "
        + ", ".join(f"{name} {seconds(time)}" for name, time in watched["spent_s"].items())
        + f", {counted(watched['count'], 'change')}"
        + _last(watched)
        + _causes(watched)
        for watched in summary.get("states") or ()
    ]


def _causes(watched: Mapping[str, Any]) -> str:
    """What led to each state in which commands are not followed as they come, and how often."""
    found = {name: causes for name, causes in (watched.get("causes") or {}).items() if name in AMISS}
    said = "; ".join(
        f"{name} because {', '.join(f'{cause} ({count(times)})' for cause, times in causes.items())}"
        for name, causes in found.items()
    )
    return f" ({said})" if said else ""


def held_back(summary: Mapping[str, Any]) -> list[str]:
    """A sentence for each supervisor whose limits keep the follower from its commands most of the time."""
    return [
        f"{watched['component']} ({watched['flow']}): its limits kept the follower farther than near from its commands "
        f"{percent(watched['limited'])} of the time: they move faster than speed (recovering, degraded: slowly times that). "
        "Raise speed in the params of its hook, or move more slowly"
        for watched in summary.get("states") or ()
        if (finite(watched.get("limited")) or 0) > MOSTLY
    ]


def _last(watched: Mapping[str, Any]) -> str:
    """The newest change of a component, if it is among those that the summary lists."""
    if not watched["changes"] or watched["count"] > len(watched["changes"]):
        return ""
    last = watched["changes"][-1]
    why = f", because {last['cause']}" if last.get("cause") else ""
    age = (
        f", newest accepted command {ms(last['age_ms'])} ms old"
        if finite(last.get("age_ms")) is not None
        else ""
    )
    return f", the last at {finite(last['t_s']) or 0:.3f} s: {last['from']} → {last['to']}{why}{age}"


def marks(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Changes as events of the curves over time; none if there are too many."""
    found = [
        {"t_s": change["t_s"], "name": f"{watched['component']}: {change['to']}"}
        for watched in summary.get("states") or ()
        for change in watched["changes"]
    ]
    return found if len(found) <= MARKED else []
