"""Settings of network interfaces that cost latency, with the command that changes each."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from tcpsbed.doctor.finding import Finding

_SIOCETHTOOL = 0x8946
_GCOALESCE, _GGRO = 0x0E, 0x2B
_COALESCE_WORDS = 23
_RX_USECS, _RX_FRAMES, _TX_USECS, _ADAPTIVE_RX = 1, 2, 5, 10


def examine() -> Iterator[Finding]:
    """Interrupt coalescing and GRO of each interface, then busy polling: 0 or off is best for latency, busy polling for
    dedicated cores (the kernel's Documentation/networking/napi.rst; Red Hat's low latency guide).
    """
    for name in names():
        yield _coalescing(name)
        yield _gro(name)
    yield _sysctl("busy_poll")
    yield _sysctl("busy_read")


def names() -> list[str]:
    """Interfaces but for loopback."""
    return sorted(place.name for place in Path("/sys/class/net").glob("*") if place.name != "lo")


def _asked(name: str, words: int, command: int) -> list[int]:
    """The answer of an ethtool request."""
    values = array.array("I", [command] + [0] * (words - 1))
    request = struct.pack("16sP16x", name.encode()[:15], values.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)
    return values.tolist()


def _coalescing(name: str) -> Finding:
    what = f"{name}: interrupt coalescing"
    try:
        found = _asked(name, _COALESCE_WORDS, _GCOALESCE)
    except OSError:
        return Finding(what, True, "none that can be set")
    said = f"rx {found[_RX_USECS]} us or {found[_RX_FRAMES]} frames, tx {found[_TX_USECS]} us"
    said += ", adaptive" if found[_ADAPTIVE_RX] else ""
    low = found[_RX_USECS] <= 1 and not found[_ADAPTIVE_RX]
    return Finding(what, low, said, f"ethtool -C {name} adaptive-rx off rx-usecs 0 rx-frames 1")


def _gro(name: str) -> Finding:
    what = f"{name}: GRO"
    try:
        on = _asked(name, 2, _GGRO)[1]
    except OSError:
        return Finding(what, True, "none that can be set")
    return Finding(what, not on, "on" if on else "off", f"ethtool -K {name} gro off")


def _sysctl(name: str) -> Finding:
    place = Path("/proc/sys/net/core") / name
    what = f"busy polling ({name})"
    try:
        value = int(place.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Finding(what, False, "not in this kernel")
    remedy = f"sysctl -w net.core.{name}=50 (costs a core while it polls)"
    return Finding(what, value > 0, f"{value} us" if value else "off", remedy)
