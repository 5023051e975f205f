"""Delays of RTP samples, read off the rows of packets: one at a time with their echoes, and streamed.

```
 leader    ──transmit──► up ──receive──► follower ─┐ turn: from the stamp of arrival until it has the sample
           ◄──receive──────── down ◄───────────────┘
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed import _tcps
from tcpsbed.datasets import pcapng

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpsbed import Run

TRANSMIT, RECEIVE, DELIVERED = 16, 17, 2
LEADER, FOLLOWER = 0, 1
FRAME_BYTES = 14 + 20 + 8 + 12 + 16
"""Of a sample in a capture: Ethernet, IPv4, UDP, RTP, and x, y, z and sound."""
DATA_BYTES = 16 + 12 + _tcps.STACK_BYTES
"""A sample and RTP, with what is below."""


@dataclass(frozen=True)
class Delays:
    """Delays of each packet in ms, in the order of numbers, and its send time in s; `turn` is the follower's part of
    the return path, `lost` are packets without an echo.
    """

    sent_s: NDArray[np.float64]
    up: NDArray[np.float64]
    turn: NDArray[np.float64]
    down: NDArray[np.float64]
    trip: NDArray[np.float64]
    lost: int
    in_order: bool


def stop_and_wait(run: Run) -> Delays:
    """Reads the rows of packets: data leaves the leader, comes to the follower; its echo comes back.

    What belongs together is found by time, as there is never more than one packet in flight: on the machine's clock a
    sample that was made late may be numbered as the next one, where its number follows from its time stamp.
    """
    rows = run.records
    node, kind, size = rows["node"], rows["kind"], rows["size"]
    ours = rows["flow"] == 0
    left = rows[ours & (kind == TRANSMIT) & (node == LEADER) & (size == DATA_BYTES)]
    came = rows[ours & (kind == DELIVERED)]
    arrived = rows["time"][(kind == RECEIVE) & (node == FOLLOWER) & (size == DATA_BYTES)]
    back = rows[ours & (kind == RECEIVE) & (node == LEADER)]
    sent = back["time"] - back["value"]
    there, at = _next(arrived, sent)
    had_one, had = _next(came["time"], at)
    whole = there & had_one & (at < back["time"]) & (had < back["time"])

    def ms(spans: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(spans[whole] / 1e6, dtype=np.float64)

    up, turn, trip = ms(at - sent), ms(had - at), ms(back["value"])
    in_order = bool(np.all(np.diff(came["index"].astype(np.int64)) > 0))
    lost = len(np.unique(left["index"])) - len(back)
    return Delays(ms(sent) / 1e3, up, turn, trip - up - turn, trip, lost, in_order)


def on_the_wire(run: Run) -> NDArray[np.float64]:
    """What the packets of data carried, in the order of their sending: x, y, z and sound, shape [n, 4]."""
    content = (run.folder / "packets.pcapng").read_bytes()
    samples = [frame[-16:] for frame in pcapng.frames(content) if len(frame) == FRAME_BYTES]
    return np.frombuffer(b"".join(samples), ">f4").reshape(-1, 4).astype(np.float64)


def _next(
    moments: NDArray[np.int64], after: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The first of the times at or after each given one, and whether there is any."""
    places = np.searchsorted(moments, after)
    there = places < len(moments)
    return there, np.append(moments, 0)[np.where(there, places, len(moments))]


def streamed(run: Run) -> NDArray[np.float64]:
    """One-way delays of all samples in ms, in the order of arrival."""
    rows = run.records
    rows = rows[rows["kind"] == DELIVERED]
    return np.asarray(rows["value"], dtype=np.float64) / 1e6
