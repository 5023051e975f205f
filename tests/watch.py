"""What tests see of this machine from outside a run: whether something came about, devices, namespaces, captures."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits until something holds; it must come to that within a time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def devices() -> list[str]:
    """Names of the network devices and of the named namespaces that can be seen from here."""
    rows = Path("/proc/net/dev").read_text().splitlines()[2:]
    named = [place.name for place in Path("/run/netns").glob("*")]
    return sorted([row.split(":")[0].strip() for row in rows] + named)


def home(process: int | str) -> str:
    """The network namespace of a process."""
    return str(Path(f"/proc/{process}/ns/net").readlink())


def blocks(capture: Path) -> Iterator[tuple[int, bytes]]:
    """Type and body of each block of a pcapng file, which must be whole."""
    data, at = capture.read_bytes(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        yield kind, data[at + 8 : at + length - 4]
        at += length
