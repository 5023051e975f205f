"""Recordings beside the project that tests may use: `../shared/data`, or the folder in TCPSBED_DATA."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def recorded(path: str) -> Path:
    """The file, or a visible skip where it is absent."""
    folder = Path(os.environ.get("TCPSBED_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / path).exists():
        pytest.skip(f"no {path} in {folder} (set TCPSBED_DATA)")
    return folder / path
