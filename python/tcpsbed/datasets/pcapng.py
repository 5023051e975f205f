"""Time and length of each packet in a pcapng file (draft-ietf-opsawg-pcapng).

```text
block      type 4, length 4, body, length again 4                        lengths are multiples of 4
section    0x0A0D0D0A   byte order 0x1A2B3C4D, version, section length   numbers of interfaces begin again
interface  1            link type 2, reserved 2, snaplen 4, options      if_tsresol 9, if_tsoffset 14
enhanced   6            interface 4, time high 4, low 4, captured 4, original 4, data
simple     3            original 4, data                                 has no time: left out
packet     2            interface 2, drops 2, time high 4, low 4, captured 4, original 4 (obsolete)
```
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tcpsbed.datasets.packets import Bad, Packet

MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION, INTERFACE, PACKET, ENHANCED = 0x0A0D0D0A, 1, 2, 6
ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
TSRESOL, TSOFFSET = 9, 14


@dataclass
class Interface:
    """An interface: link type, units of its time stamps in a second, what is added to them in s."""

    link: int
    units: int = 10**6
    offset_s: int = 0

    def time_ns(self, stamp: int) -> int:
        """Return a time stamp in ns."""
        return stamp * 10**9 // self.units + self.offset_s * 10**9


def read(content: bytes) -> list[Packet]:
    """Return all packets with a time; an incomplete last block is skipped.

    Raises
    ------
    Bad
        With the offset of a block that cannot be one.
    """
    packets: list[Packet] = []
    interfaces: list[Interface] = []
    for at, order, kind, body in _blocks(content):
        if kind == SECTION:
            interfaces = []
        elif kind == INTERFACE:
            interfaces.append(_interface(at, order, body))
        elif kind in (ENHANCED, PACKET):
            packets.append(_packet(at, order, kind, body, interfaces))
    return packets


def frames(content: bytes) -> Iterator[bytes]:
    """Yield what was captured of each packet.

    Raises
    ------
    Bad
        With the offset of a block that cannot be one.
    """
    for at, order, kind, body in _blocks(content):
        if kind in (ENHANCED, PACKET):
            if len(body) < 20:
                raise Bad(at, "a packet block of less than 32 bytes")
            yield body[20 : 20 + struct.unpack_from(order + "I", body, 12)[0]]


def _blocks(content: bytes) -> Iterator[tuple[int, str, int, bytes]]:
    """Yield offset, byte order, type and body of each whole block."""
    at, order = 0, "<"
    while at + 12 <= len(content):
        if content[at : at + 4] == MAGIC:
            found = ORDERS.get(content[at + 8 : at + 12])
            if found is None:
                raise Bad(at + 8, "a section without a byte order")
            order = found
        kind, length = struct.unpack_from(order + "II", content, at)
        if length < 12 or length % 4:
            raise Bad(at + 4, f"a block of {length} bytes")
        if at + length > len(content):
            return
        if struct.unpack_from(order + "I", content, at + length - 4)[0] != length:
            raise Bad(at + length - 4, "a block that ends with another length than it began with")
        yield at, order, kind, content[at + 8 : at + length - 4]
        at += length


def _interface(at: int, order: str, body: bytes) -> Interface:
    if len(body) < 8:
        raise Bad(at, "an interface of less than 8 bytes")
    interface = Interface(link=struct.unpack_from(order + "H", body)[0])
    for code, value in _options(order, body[8:]):
        if code == TSRESOL and len(value) == 1:
            base, exponent = (2, value[0] & 0x7F) if value[0] & 0x80 else (10, value[0])
            interface.units = base**exponent
        elif code == TSOFFSET and len(value) == 8:
            interface.offset_s = struct.unpack(order + "q", value)[0]
    return interface


def _options(order: str, area: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(area):
        code, length = struct.unpack_from(order + "HH", area, at)
        if code == 0:
            return
        yield code, area[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def _packet(at: int, order: str, kind: int, body: bytes, interfaces: list[Interface]) -> Packet:
    if len(body) < 20:
        raise Bad(at, "a packet block of less than 32 bytes")
    number, high, low, _, original = struct.unpack_from(order + "IIIII", body)
    if kind == PACKET:
        number = struct.unpack_from(order + "H", body)[0]
    if number >= len(interfaces):
        raise Bad(at + 8, f"a packet of interface {number}; the section has {len(interfaces)}")
    interface = interfaces[number]
    return Packet(interface.time_ns(high << 32 | low), original, interface.link)
