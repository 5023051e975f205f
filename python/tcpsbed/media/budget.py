"""The rate that a transport allows, spent picture by picture: pictures that are too large are skipped.

```text
allowed bit/s ──► tick: what it adds ──► purse, at most half a second of it ──► picture: what it takes
```
An empty purse leaves the next picture out, so that the frame rate falls where the quality no longer can.
"""

from __future__ import annotations

SAVED_S = 0.5
"""What may be saved up: a picture that needs no other may be several times as large as the others."""


class Budget:
    """The purse of an encoder.

    Parameters
    ----------
    rate_hz
        Ticks a second.
    """

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = rate_hz
        self.left_bytes: float | None = None

    def allows(self, allowed_bps: float) -> bool:
        """A tick under this allowance: whether a picture may be sent."""
        most_bytes = SAVED_S * allowed_bps / 8.0
        had_bytes = most_bytes if self.left_bytes is None else self.left_bytes
        self.left_bytes = min(had_bytes + allowed_bps / 8.0 / self.rate_hz, most_bytes)
        return self.left_bytes > 0.0

    def spend(self, size: int) -> None:
        """A picture of so many bytes was sent."""
        self.left_bytes = (self.left_bytes or 0.0) - size
