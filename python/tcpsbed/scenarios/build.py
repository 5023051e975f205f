"""Scenarios of files, for the commands and rooms that have overrides as texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcpsbed.scenarios.load import tables
from tcpsbed.scenarios.model.scenario import Scenario


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Reads the scenario in a file.

    Parameters
    ----------
    path
        The file: TOML, or a spreadsheet (`.xlsx`).
    overrides
        Texts such as `traffic.cbr.rate="310 kbit/s"`, applied in order.

    Raises
    ------
    ConfigError
        If the scenario is invalid: one message with file, key, what was found and what is allowed.
    """
    return Scenario.of(tables(path, overrides))
