"""A plain progress bar on standard error: drawn on a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

CELLS = 30
EVERY_S = 0.1
LINE_S = 10.0
"""Time between two lines where there is no terminal."""


class Beat:
    """Calls a function with the seconds since it began, about every `LINE_S`, until it is stopped: slow is not stuck."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(tell,), daemon=True)
        self.thread.start()

    def _run(self, tell: Callable[[float], None]) -> None:
        begun = time.monotonic()
        while not self.over.wait(LINE_S):
            tell(time.monotonic() - begun)

    def stop(self) -> None:
        """No further call."""
        self.over.set()
        self.thread.join()


class Progress:
    """Draws `[#####.....]  42 %  3 s left`; call it with the share done, 0 to 1. In a file or pipe long work gets lines.

    It is a context: at its end the bar goes, and no further line comes.
    """

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label = label
        self.quiet = quiet
        self.drawing = not quiet and sys.stderr.isatty()
        self.begun = time.monotonic()
        self.drawn = 0.0 if self.drawing else self.begun
        self.share = self.base = 0.0
        """The share that is done, and what of it was done before the work began."""
        self.note = ""
        """What is said beside the share."""
        self.beat = None if quiet or self.drawing else Beat(lambda _: self._draw(self.share))

    def __call__(self, share: float) -> None:
        """Draws the bar, unless it was just drawn. The work begins with the last call that has nothing done."""
        if share <= 0:
            self.begun = time.monotonic()
        self.share = share
        self._draw(share)

    def _draw(self, share: float) -> None:
        now = time.monotonic()
        if self.quiet or (
            now - self.drawn < (EVERY_S if self.drawing else LINE_S) and not (self.drawing and share >= 1)
        ):
            return
        self.drawn = now
        done = round(CELLS * share)
        new = share - self.base
        left = (now - self.begun) * (1 - share) / new if new > min(0.01, (1 - self.base) / 100) else None
        rest = "".join(f"  {one}" for one in (self.note, "" if left is None else f"{left:.0f} s left") if one)
        if not self.drawing:
            with suppress(OSError):
                print(f"{self.label} {100 * share:.0f} %{rest}", file=sys.stderr, flush=True)
            return
        with suppress(OSError):  # a terminal that was closed ends no run
            print(
                f"\r{self.label} [{'#' * done}{'.' * (CELLS - done)}] {100 * share:3.0f} %{rest}\x1b[K",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        """Removes the bar, for another line."""
        if self.drawing:
            with suppress(OSError):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.beat is not None:
            self.beat.stop()
        self.clear()
