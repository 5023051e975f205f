"""Whether a scenario fits a world: what it would do otherwise than asked for is refused, with the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tcpsbed.errors import WorldError


def refuse(name: str, plan: Mapping[str, Any], unfit: Iterable[tuple[str, str, str]]) -> None:
    """Refuses a plan without links, and the first thing that does not fit.

    Parameters
    ----------
    name
        What carries the packets in place of the built-in network.
    plan
        The compiled scenario.
    unfit
        Place in the scenario, what was found there and what is allowed, of everything that does not fit.

    Raises
    ------
    WorldError
        With place, found and allowed.
    """
    if not plan["network"]["links"]:
        raise WorldError(
            f"links: found none, so {name} has nothing to carry; allowed: one or more, or --world real"
        )
    for place, found, allowed in unfit:
        raise WorldError(f"{place}: found {found}, which {name} does not do here; allowed: {allowed}")
