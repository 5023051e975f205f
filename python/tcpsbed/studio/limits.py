"""What strangers and viewers may ask of a page: connections, tokens, messages and bytes, each with a rate.

`websockets` bounds a message (`max_size`), what waits (`max_queue`) and the time without an answer to its ping; here is
what it leaves open.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

MOST_ADDRESSES = 1000
"""Addresses that are remembered, those seen last."""


class Bucket:
    """Lets so much through in a second, and so much at once.

    Parameters
    ----------
    rate : float
        A second.
    most : float
        At once; as much may be owed.
    """

    def __init__(self, rate: float, most: float) -> None:
        self.rate, self.most = rate, most
        self.left, self.seen_s = most, time.monotonic()

    def take(self, amount: float = 1.0) -> bool:
        """Whether it lets this through; what it does not counts too, so that a flood does not get its share."""
        now_s = time.monotonic()
        self.left = min(self.left + (now_s - self.seen_s) * self.rate, self.most)
        self.seen_s = now_s
        within = self.left >= amount
        self.left = max(self.left - amount, -self.most - amount)
        return within

    @property
    def flooded(self) -> bool:
        """Whether as much as it lets through at once came on top of that."""
        return self.left < -self.most


class ByAddress:
    """A bucket for each address, and for IPv6 for each network of 64 bits. Parameters as of `Bucket`."""

    def __init__(self, rate: float, most: float) -> None:
        self.made = partial(Bucket, rate, most)
        self.buckets: OrderedDict[str, Bucket] = OrderedDict()
        self.lock = threading.Lock()

    def take(self, address: str) -> bool:
        """Whether the bucket of this address lets one through."""
        place = network(address)
        with self.lock:
            bucket = self.buckets.pop(place, None) or self.made()
            self.buckets[place] = bucket
            if len(self.buckets) > MOST_ADDRESSES:
                self.buckets.popitem(last=False)
            return bucket.take()


def network(address: str) -> str:
    """Who an address belongs to: the address itself, or a network of 64 bits of IPv6."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


class Refusals:
    """Counts what was refused, by what it was; threads may call it as they like."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, what: str) -> None:
        """One more."""
        with self.lock:
            self._counts[what] += 1

    def counts(self) -> dict[str, int]:
        """How many of each."""
        with self.lock:
            return dict(self._counts)


@dataclass(frozen=True)
class Allowance:
    """What a WebSocket may send: frames and bytes a second, and frames at once (of bytes those of a second)."""

    frames: float
    at_once: float
    bytes: float


MESSAGES = "messages over the limit"
CONTINUED = 0
"""Kind of a frame that goes on with a message [RFC 6455 §5.2]; a message without one of its frames cannot be told."""


def limited(connection: Any, refusals: Refusals) -> Any:
    """A kind of connection of `websockets` that drops messages over its allowance, and hangs up on a flood.

    Whoever answers its greeting calls `allow`. All frames count, also pings and the pieces of a message, since `websockets`
    bounds neither.

    Parameters
    ----------
    connection : type
        `websockets.sync.server.ServerConnection`.
    refusals : Refusals
        Counts what was dropped.
    """

    class Limited(connection):  # type: ignore[misc]
        frames: Bucket | None = None
        bytes: Bucket | None = None
        cut = False

        def allow(self, allowance: Allowance) -> None:
            self.frames = Bucket(allowance.frames, allowance.at_once)
            self.bytes = Bucket(allowance.bytes, allowance.bytes)

        def process_event(self, event: Any) -> None:
            if self.frames is None or self.bytes is None or self.request is None:
                super().process_event(event)
                return
            if self.cut:  # what it had sent until then
                return
            if self.frames.take() & self.bytes.take(len(event.data)):
                super().process_event(event)
                return
            refusals.add(MESSAGES)
            piece = not event.fin or event.opcode == CONTINUED
            if piece or self.frames.flooded or self.bytes.flooded:
                self.cut = True
                refusals.add("connections that sent too much")
                self.socket.shutdown(socket.SHUT_RDWR)

    return Limited
