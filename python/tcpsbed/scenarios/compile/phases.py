"""The phase of each source, with `phases = "random"`."""

from __future__ import annotations

import hashlib

from tcpsbed.scenarios.model.scenario import Scenario


def phase_ns(scenario: Scenario, source: str, period_ns: float) -> int:
    """A time within the first period, uniform, drawn for this source alone; 0 if phases are aligned.

    Parameters
    ----------
    scenario
        Says whether phases are random, and the seed.
    source
        Name of the flow or of the entry of background traffic: what others draw does not change it.
    period_ns
        Time between samples or packets.
    """
    if scenario.phases == "aligned":
        return 0
    drawn = hashlib.sha256(f"phase {scenario.seed} {source}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") * int(period_ns) >> 64
