"""Recordings that experiments take and that are no part of the project: TCPSBED_DATA, or beside the tree."""

from __future__ import annotations

import os
from pathlib import Path

from tcpsbed.reproduce.expected import TREE

_named = os.environ.get("TCPSBED_DATA")
BESIDE = TREE.parent / "shared/data"
DATA = Path(_named) if _named else BESIDE if BESIDE.is_dir() else TREE / "data"
"""The folder; without the variable `shared/data` beside the source tree, else `data` in it."""


def absent(what: str) -> str:
    """Why an item cannot be reproduced without a recording."""
    return f"needs {what} (set TCPSBED_DATA)"
