"""Scenarios of texts."""

from __future__ import annotations

from collections.abc import Sequence

from tcpsbed.runs.given import given
from tcpsbed.scenarios import Scenario

SHORT = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "200 Hz"
[links.wan]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "1 ms"
loss = "10 %"
[measure]
grace = "10 ms"
"""
"""One flow over a link that loses a tenth, for a second: seeds differ."""


def loaded(text: str, changes: Sequence[str] = ()) -> Scenario:
    """The scenario in a text, with overrides."""
    with given(text, set=changes) as asked:
        return asked.scenario
