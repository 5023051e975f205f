"""Time and length of each packet in a pcap file (draft-ietf-opsawg-pcap).

```text
file    magic 4, version 2 + 2, 8 reserved, snaplen 4, link type 4                         24 bytes
record  seconds 4, fraction 4 (us or ns by the magic), captured 4, original 4, data        16 bytes + captured
```
Only lengths are needed, so any link type is read. Both byte orders and both resolutions are known by the
magic.
"""

import struct

from tcpsbed.datasets.packets import MOST_CAPTURED, Bad, Packet

#: The first four bytes -> byte order and nanoseconds in a unit of the fraction.
MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}


def read(content: bytes) -> list[Packet]:
    """Return all packets; an incomplete last record, as after a stopped capture, is skipped.

    Raises
    ------
    Bad
        With the offset of a header that cannot be one.
    """
    order, unit_ns = MAGIC[content[:4]]
    if len(content) < 24:
        raise Bad(len(content), "the file ends within its header")
    # Some writers put the length of a frame check sequence into the upper bits of the link type.
    link = struct.unpack_from(order + "I", content, 20)[0] & 0xFFFF
    record = struct.Struct(order + "IIII")
    packets: list[Packet] = []
    at = 24
    while at + record.size <= len(content):
        seconds, fraction, captured, original = record.unpack_from(content, at)
        if captured > MOST_CAPTURED or fraction * unit_ns >= 10**9:
            raise Bad(at, f"a record of {captured} bytes at {seconds} s + {fraction}")
        if at + record.size + captured > len(content):
            break
        packets.append(Packet(seconds * 10**9 + fraction * unit_ns, original, link))
        at += record.size + captured
    return packets
