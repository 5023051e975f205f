"""Results over several seeds: `across_seeds` of a summary, as rows of a table and as a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.clocks import SIMULATED
from tcpsbed.views.tables import Table, tables

UNCHANGED = "seeds change nothing: nothing here is random"
"""Of runs whose records are the same under several seeds."""
REMEDY = 'phases = "random" in the scenario gives every source a random phase, drawn from the seed'


def sentence(summary: Mapping[str, Any]) -> str:
    """The number of seeds behind the numbers; empty in real time, where a seed does not repeat a run."""
    across = summary.get("across_seeds") or {}
    seeds, failed = (list(across.get(key) or ()) for key in ("seeds", "failed"))
    if across.get("unchanged"):
        return f"Seeds {seeds[0]} and {seeds[1]} gave the same records: {UNCHANGED}. One run, no interval. {REMEDY}."
    if len(seeds) > 1:
        lost = f"; {len(failed)} seeds failed and are missing" if failed else ""
        disturbed = ", ".join(map(str, across.get("disturbed") or ()))
        lost += f"; DISTURBED: seeds {disturbed}" if disturbed else ""
        return (
            f"Means over {len(seeds)} seeds with the 95 % interval; all else is about seed {seeds[0]}{lost}."
        )
    if failed:
        return f"One seed, because {len(failed)} others failed: no interval."
    if summary.get("world") not in SIMULATED or not seeds:
        return ""
    if summary.get("random") is False:
        return f"Nothing here is random: other seeds give the same records. {REMEDY}."
    return "One seed: other seeds may give other numbers. --seeds 10 gives intervals across seeds."


def table(summary: Mapping[str, Any]) -> Table | None:
    """The means of every flow; none of a single seed."""
    across = summary.get("across_seeds") or {}
    if len(across.get("seeds") or ()) < 2 or across.get("unchanged"):
        return None
    return next(iter(tables(metrics.section("across_seeds").part("flows"), across.get("flows"))), None)
