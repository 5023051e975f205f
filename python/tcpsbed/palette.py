"""The colours of everything that is drawn: page, figures, live tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#8E4B87", "#B07D00", "#3A3A3A", "#56B4E9", "#CC79A7")
"""Colours that stay apart for colour-blind readers and on grey paper, after Okabe and Ito (2008), darkened for lines."""
COMPONENT, LINK = "#0072B2", "#E69F00"
"""Of components and links wherever a path is drawn as bars; `style.css` has the same two."""
LOST = "#B00020"
"""Of what was lost, and of what disturbed a run."""


@contextmanager
def drawn() -> Iterator[None]:
    """Axes that matplotlib makes inside take their colours in the palette's order."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    with rc_context({"axes.prop_cycle": cycler(color=PALETTE)}):
        yield
