"""Whether anything in a compiled scenario is drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DRAWN = {
    *("uniform", "normal", "exponential", "gumbel", "pareto", "empirical", "histogram"),  # spans of time
    *("red", "fq-codel", "random", "gilbert-elliott", "nr"),  # links
    *("poisson", "users"),  # background traffic
}
"""Kinds of objects of a plan that draw."""
SHARES = ("loss", "duplicate", "corrupt")
"""Keys of links and of events whose value is a probability, or a model of one."""
TRANSPORTS = ("tcp", "quic", "rtp")
"""Transports whose endpoints draw numbers."""


def draws(plan: Mapping[str, Any]) -> bool:
    """Whether built-in code draws random numbers in a run of this plan; user code is not examined.

    Random phases are in the plan as starts of sources, so that `scenario.phases` has to be asked as well.
    """
    if any(channel["transport"] in TRANSPORTS for channel in plan.get("channels", ())):
        return True
    if any(len(probe["points"]) > 1 for probe in plan.get("probes", ())):  # their order
        return True
    return _draws([plan.get(key) for key in ("nodes", "flows", "network", "events")])


def _draws(value: Any) -> bool:
    if isinstance(value, Mapping):
        if (
            value.get("kind") in DRAWN
            or value.get("vary", "constant") != "constant"
            or any(value.get(key) for key in SHARES)
        ):
            return True
        return any(_draws(part) for key, part in value.items() if key != "run")
    return isinstance(value, list) and any(map(_draws, value))
