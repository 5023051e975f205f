"""Scenarios of texts."""

from __future__ import annotations

from collections.abc import Sequence

from tcpsbed.runs.given import given
from tcpsbed.scenarios import Scenario


def loaded(text: str, changes: Sequence[str] = ()) -> Scenario:
    """The scenario in a text, with overrides."""
    with given(text, set=changes) as asked:
        return asked.scenario
