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

TWO_NODES = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
sample = "64 B"
sink = "count"
[flows.haptic]
sample = "64 B"
source = "generated"
[links.wan]
from = "a"
to = "b"
delay = "5 ms"
rate = "10 Mbit/s"
[channels.session]
flows = ["kinematic", "haptic"]
"""  # line 18 is the last one
"""Two flows in one channel, which waits for its transport, its security and events."""


def loaded(text: str, changes: Sequence[str] = ()) -> Scenario:
    """The scenario in a text, with overrides."""
    with given(text, set=changes) as asked:
        return asked.scenario
