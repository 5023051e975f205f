"""Recordings that tests may use and that are no part of the project: in the folder that TCPSBED_DATA names."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ["TCPSBED_DATA"])
"""Set by `tests/conftest.py` where it was not."""


def recorded(path: str) -> Path:
    """The file, or a visible skip where it is absent."""
    if not (DATA / path).exists():
        pytest.skip(f"no {path} in {DATA} (set TCPSBED_DATA)")
    return DATA / path
