"""A plain progress bar on standard error, drawn only on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

CELLS = 30
EVERY_S = 0.1


class Progress:
    """Draws `[#####.....]  42 %  3 s left`; call it with the share done, 0 to 1."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label = label
        self.drawing = not quiet and sys.stderr.isatty()
        self.begun = time.monotonic()
        self.drawn = 0.0

    def __call__(self, share: float) -> None:
        """Draws the bar if it was not drawn a moment ago."""
        now = time.monotonic()
        if not self.drawing or (now - self.drawn < EVERY_S and share < 1):
            return
        self.drawn = now
        done = round(CELLS * share)
        left = (now - self.begun) * (1 - share) / share if share > 0.01 else None
        rest = "" if left is None else f"  {left:.0f} s left"
        with suppress(OSError):  # a terminal that was closed ends no run
            print(
                f"\r{self.label} [{'#' * done}{'.' * (CELLS - done)}] {100 * share:3.0f} %{rest}\x1b[K",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        """Removes the bar."""
        if self.drawing:
            with suppress(OSError):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
