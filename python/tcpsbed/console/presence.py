"""Whether an operator is present: a connected browser with a recent message, which may move the hand.

```text
none yet ── came ──► there ◄── came, said something, got the hand ── away ◄── left, let go, or is silent for SILENT_S
```
Before the first operator the hand rests; while one who was there is away, there are no commands.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

SILENT_S = 3.0
"""A page says something four times a second, and once a second where the browser does not show it."""


class Presence:
    """Keeps count of browsers; threads may call it as they like.

    Parameters
    ----------
    changed
        Told when the operator is away, and when one is there again.
    still_away
        Called by `look` while the operator is away, and by no other thread while one comes back.
    may
        Whether a browser may move the hand; it waits for nobody.
    """

    def __init__(
        self,
        changed: Callable[[bool], None],
        still_away: Callable[[], None],
        may: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.changed, self.still_away, self.may = changed, still_away, may
        self.away = False
        self._met = False
        """Whether there has been an operator."""
        self._heard_s: dict[Any, float] = {}
        """When each browser that is connected was heard."""
        self._lock = threading.Lock()

    def heard(self, browser: Any) -> bool:
        """A browser has connected, or a message of it arrived. Whether it may move the hand."""
        with self._lock:
            self._heard_s[browser] = time.monotonic()
            may = self.may(browser)
            if may:
                self._met = True
                self._settle(away=False)
            return may

    def left(self, browser: Any) -> None:
        """A browser has gone."""
        with self._lock:
            self._heard_s.pop(browser, None)
            self._judge()

    def look(self) -> bool:
        """Whether the operator is away: has lost the hand to nobody, or has been silent for too long."""
        with self._lock:
            self._judge()
            if self.away:
                self.still_away()
            return self.away

    def _judge(self) -> None:
        since_s = time.monotonic() - SILENT_S
        there = any(at_s > since_s and self.may(one) for one, at_s in self._heard_s.items())
        self._settle(away=self._met and not there)

    def _settle(self, *, away: bool) -> None:
        if away != self.away:
            self.away = away
            self.changed(not away)
