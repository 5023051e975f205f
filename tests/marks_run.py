"""A flow over TCP through a queue that marks congestion, for the tests in both worlds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tcpsbed

SCENARIO = """
duration = "4 s"
warmup = "0 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.bulk]
direction = "forward"
rate = "400 Hz"
sample = "1000 B"
[channels.one]
flows = ["bulk"]
dscp = "AF41"
transport = { kind = "tcp", ecn = true, send_buffer = "400 kB", receive_buffer = "400 kB" }
[links.l]
from = "a"
to = "b"
rate = "2 Mbit/s"
delay = "5 ms"
queue = { limit = "200 kB", discipline = "codel", ecn = true }
[measure]
pcapng = "on"
"""


def run(folder: Path, *settings: str, world: str = "virtual") -> Any:
    file = folder / "marks.toml"
    file.write_text(SCENARIO)
    return tcpsbed.run(file, set=list(settings), world=world, out=folder / "out")


def fields(folder: Path) -> Counter[int]:
    """How often each byte with code point and mark stands in the IPv4 headers of a capture with UDP ports of channels."""
    data, at, found = (folder / "out" / "packets.pcapng").read_bytes(), 0, Counter[int]()
    while at < len(data):
        kind, length = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4))
        if kind == 6 and int.from_bytes(data[at + 28 + 34 : at + 28 + 36], "big") == 47_000:
            found[data[at + 28 + 15]] += 1
        at += length
    return found
