"""Shared parts of the readers of captures."""

from typing import NamedTuple

#: Link type of Ethernet (LINKTYPE_ETHERNET).
ETHERNET = 1
#: Preamble 8, frame check sequence 4 and inter-frame gap 12: what a frame takes on an Ethernet beside its
#: bytes in a capture (IEEE 802.3 clauses 3 and 4.4.2).
ETHERNET_EXTRA = 24
#: No capture has records longer than this; a length above it is damage.
MOST_CAPTURED = 16 * 1024 * 1024


class Packet(NamedTuple):
    """A packet: time in ns, original length on the wire, link type."""

    time_ns: int
    original: int
    link: int


class Bad(Exception):
    """Damage at a byte offset."""

    def __init__(self, offset: int, found: str) -> None:
        super().__init__(offset, found)
        self.offset = offset
        self.found = found
