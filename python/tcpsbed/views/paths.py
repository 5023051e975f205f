"""A flow's path through components and links from summary.json, without places that take no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.views.numbers import count, statistic

Part = Mapping[str, Any]

LOSS = (
    "Loss: share of the samples sent until measure.grace (1 s unless set) before the end; later ones that have not arrived "
    "are in flight, not lost."
)
"""Why `loss` is not `lost` over `sent`."""


def total_ms(path: Sequence[Part]) -> float:
    """Mean delay end to end."""
    return sum(mean_ms(part) for part in path)


def mean_ms(part: Part) -> float:
    """Mean time spent in one place."""
    return statistic(part["latency_ms"]) or 0.0


def busy(path: Sequence[Part]) -> list[Part]:
    """The places that ever took time; all of them if none did."""
    return [part for part in path if not _idle(part)] or list(path)


def idle(path: Sequence[Part]) -> str:
    """A sentence about the components that took no time; empty if there are none."""
    names = [str(part["name"]) for part in path if _idle(part) and part["what"] == "component"]
    return f"Took no time: {', '.join(names)}." if names and len(busy(path)) < len(path) else ""


def renumbered(name: str, flow: Mapping[str, Any]) -> str:
    """A sentence about a flow whose samples are renumbered on the path; otherwise empty."""
    places = ", ".join(map(str, flow.get("resampled_at") or ()))
    if not places:
        return ""
    return (
        f"{name}: {places} sends samples at its own period. Delivered samples and delays count only those that were made "
        f"from new input; {count(flow.get('repeated') or 0)} more repeated old input. Lost is the sum of the losses before "
        "and behind it."
    )


def _idle(part: Part) -> bool:
    return mean_ms(part) == 0 and (statistic(part["latency_ms"], "max") or 0.0) == 0
