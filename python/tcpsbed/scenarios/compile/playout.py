"""Playout at the last component of a flow."""

from __future__ import annotations

from typing import Any

from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.compile.book import Book, Way
from tcpsbed.scenarios.units import parameters


def playout(book: Book, way: Way) -> dict[str, Any] | None:
    """The policy of a flow as the plan has it: its kind and its parameters in SI; `None` for none.

    Raises
    ------
    ConfigError
        If the policy has no such parameters, or the flow crosses no boundary at which something could wait.
    """
    policy = way.model.playout
    if policy is None:
        return None
    key = (*way.key, "playout")
    if len(way.path) < 2:
        found = f"found playout of a flow that stays at {way.path[0].name}"
        raise book.scenario.error(key, found, "playout at the end of a path")
    given = policy.parameters()
    builtins.rehearse(book.scenario, key, "playout", policy.kind, given, "")
    return {"kind": policy.kind} | parameters(given)
