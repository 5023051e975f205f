"""Whether an operator is present: a connected browser with a recent message.

```text
none yet ── came ──► there ◄── came, or said something ── away ◄── the last one left, or all are silent for SILENT_S
```
Before the first browser the hand rests; while an operator who was there is away, there are no commands.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

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
    """

    def __init__(self, changed: Callable[[bool], None], still_away: Callable[[], None]) -> None:
        self.changed, self.still_away = changed, still_away
        self.away = False
        self._here = 0
        self._heard_s = 0.0
        self._lock = threading.Lock()

    def came(self) -> None:
        """A browser has connected."""
        with self._lock:
            self._here += 1
            self._there()

    def heard(self) -> None:
        """A message from the browser arrived."""
        with self._lock:
            self._there()

    def left(self) -> None:
        """A browser has gone."""
        with self._lock:
            self._here -= 1
            if self._here == 0:
                self._settle(away=True)

    def look(self) -> bool:
        """Whether the operator is away; where all browsers have been silent for too long, that is so from now on."""
        with self._lock:
            if self._here and time.monotonic() - self._heard_s > SILENT_S:
                self._settle(away=True)
            if self.away:
                self.still_away()
            return self.away

    def _there(self) -> None:
        self._heard_s = time.monotonic()
        if self._here:
            self._settle(away=False)

    def _settle(self, *, away: bool) -> None:
        if away != self.away:
            self.away = away
            self.changed(not away)
