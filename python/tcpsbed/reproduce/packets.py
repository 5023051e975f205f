"""Delays of RTP samples, read off the rows of packets: one at a time with their echoes, and streamed. [PROTOCOLS 5]

```
 leader    ──transmit──► up ──receive──► follower
           ◄──receive── down ◄──transmit──        turn: from the receive stamp to the echo
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpsbed.analysis import Run

TRANSMIT, RECEIVE, DELIVERED = 16, 17, 2
LEADER, FOLLOWER = 0, 1
STACK_BYTES = 8 + 20 + 26
"""UDP, IPv4 and the link's header."""
DATA_BYTES = 16 + 12 + STACK_BYTES
"""A sample and RTP, with what is below."""


@dataclass(frozen=True)
class Delays:
    """Delays of each packet in ms, in the order of numbers, and when it left in s; `turn` is the follower's part of the
    way back, `lost` are packets without an echo.
    """

    sent_s: NDArray[np.float64]
    up: NDArray[np.float64]
    turn: NDArray[np.float64]
    down: NDArray[np.float64]
    trip: NDArray[np.float64]
    lost: int
    in_order: bool


def stop_and_wait(run: Run) -> Delays:
    """Reads the rows of packets: data leaves the leader, comes to the follower; its echo comes back."""
    rows = run.records
    rows = rows[rows["flow"] == 0]
    node, kind, size = rows["node"], rows["kind"], rows["size"]
    left = rows[(kind == TRANSMIT) & (node == LEADER) & (size == DATA_BYTES)]
    came = rows[kind == DELIVERED]
    back = rows[(kind == RECEIVE) & (node == LEADER)]
    echo = rows[(kind == TRANSMIT) & (node == FOLLOWER) & (size == DATA_BYTES + 1)]
    sent, at, echoed = _times(left), _times(came), _times(echo)
    trip = {int(r["index"]): int(r["value"]) for r in back}
    numbers = [i for i in sent if i in at and i in trip and i in echoed]

    def ms(values: list[int]) -> NDArray[np.float64]:
        return np.array(values, dtype=np.float64) / 1e6

    up, turn, both = (
        ms([at[i] - sent[i] for i in numbers]),
        ms([echoed[i] - at[i] for i in numbers]),
        ms([trip[i] for i in numbers]),
    )
    in_order = bool(np.all(np.diff(came["index"].astype(np.int64)) > 0))
    sent_s = ms([sent[i] for i in numbers]) / 1e3
    return Delays(sent_s, up, turn, both - up - turn, both, len(sent) - len(numbers), in_order)


def _times(rows: NDArray[np.void]) -> dict[int, int]:
    """The first moment of each number, in ns."""
    found: dict[int, int] = {}
    for row in rows:
        found.setdefault(int(row["index"]), int(row["time"]))
    return found


def streamed(run: Run) -> NDArray[np.float64]:
    """One-way delays of all samples in ms, in the order of arrival."""
    rows = run.records
    rows = rows[rows["kind"] == DELIVERED]
    return np.asarray(rows["value"], dtype=np.float64) / 1e6
