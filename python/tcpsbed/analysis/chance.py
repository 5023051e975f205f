"""Whether anything in a compiled scenario is drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tcpsbed.scenarios.model.entries import Entry, entries

ROOMS = ("delay", "queue", "loss", "traffic")
"""Rooms whose entries stand in a plan by their `kind`."""
MORE = ("nr", "users", "forge", "tamper", "flood")
"""Kinds that draw and are no entry of a room: a radio link, users of the network, and attacks."""
SHARES = ("loss", "duplicate", "corrupt", "share")
"""Keys of links and of events whose value is a probability, or a model of one."""


def draws(plan: Mapping[str, Any]) -> bool:
    """Whether built-in code draws random numbers in a run of this plan; user code is not examined.

    Random phases are in the plan as starts of sources, so that `scenario.phases` has to be asked as well.
    """
    transports = entries("transport")
    for channel in plan.get("channels", ()):
        if (entry := transports.get(channel["transport"])) and _entry_draws(
            entry, channel.get("params") or {}
        ):
            return True
    if any(len(probe["points"]) > 1 for probe in plan.get("probes", ())):  # their order
        return True
    return _draws([plan.get(key) for key in ("nodes", "flows", "network", "events")])


@cache
def _by_kind() -> dict[str, Entry]:
    return {name: entry for room in ROOMS for name, entry in entries(room).items()}


def _entry_draws(entry: Entry, given: Mapping[str, Any]) -> bool:
    """Whether what an entry makes of these parameters draws."""
    draws = entry["draws"]
    if isinstance(draws, bool):
        return draws
    key, value = draws
    return bool(given.get(key, value) != value)


def _draws(value: Any) -> bool:
    if isinstance(value, Mapping):
        kind = value.get("kind")
        entry = _by_kind().get(kind) if isinstance(kind, str) else None
        if kind in MORE or (entry and _entry_draws(entry, value)) or any(value.get(key) for key in SHARES):
            return True
        return any(_draws(part) for key, part in value.items() if key != "run")
    return isinstance(value, list) and any(map(_draws, value))
