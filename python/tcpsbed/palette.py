"""Colours of report, figures and live tables; and the import of matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tcpsbed.errors import DataError

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#8E4B87", "#B07D00", "#3A3A3A", "#56B4E9", "#CC79A7")
"""Colours that stay apart for colour-blind readers and on grey paper, after Okabe and Ito (2008), darkened for lines."""
ON_DARK = ("#56B4E9", "#F0813A", "#2FBF97", "#CC79A7", "#F0E442", "#D0D5DB", "#8FA8FF", "#E69F00")
"""The same on a dark ground, after Okabe and Ito (2008), lightened for lines."""
PAPER, INK, SOFT, RULE = "#FFFFFF", "#1B1F24", "#5B6570", "#DFE3E8"
"""Of figures: ground, text, what stands back, and grids."""
DARK_PAPER, DARK_INK, DARK_SOFT, DARK_RULE = "#0D1117", "#E6EDF3", "#9AA5B1", "#2B333D"
COMPONENT, LINK = "#0072B2", "#E69F00"
"""Of components and links wherever a path is drawn as bars; `studio.css` has the same two."""
LOST = "#B00020"
"""Of what was lost, and of what disturbed a run."""


def matplotlib(part: str = "") -> Any:
    """matplotlib, or a module of it, such as `figure`.

    Raises
    ------
    DataError
        If it is not installed.
    """
    try:
        whole = import_module("matplotlib")
        return import_module(f"matplotlib.{part}") if part else whole
    except ImportError:
        raise DataError(
            "found no matplotlib, which figures need", allowed="pip install 'tcpsbed[plot]'"
        ) from None


def drawable() -> bool:
    """Whether figures can be drawn here."""
    try:
        matplotlib("figure")
    except DataError:
        return False
    return True
