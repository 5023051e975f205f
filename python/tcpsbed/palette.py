"""Colours of report, figures and live tables; and the import of matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tcpsbed.errors import DataError

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#8E4B87", "#B07D00", "#3A3A3A", "#56B4E9", "#CC79A7")
"""Colours that stay apart for colour-blind readers and on grey paper, after Okabe and Ito (2008), darkened for lines."""
COMPONENT, LINK = "#0072B2", "#E69F00"
"""Of components and links wherever a path is drawn as bars; `studio.css` has the same two."""
LOST = "#B00020"
"""Of what was lost, and of what disturbed a run."""


def matplotlib(part: str) -> Any:
    """A module of matplotlib, such as `figure`.

    Raises
    ------
    DataError
        If it is not installed.
    """
    try:
        import_module("matplotlib")
        return import_module(f"matplotlib.{part}")
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


@contextmanager
def drawn() -> Iterator[None]:
    """Axes that matplotlib makes inside take their colours in the palette's order."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    with rc_context({"axes.prop_cycle": cycler(color=PALETTE)}):
        yield
