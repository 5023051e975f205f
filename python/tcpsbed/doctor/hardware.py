"""Hardware and simulators that tcpsbed was never tried with: the substitute in tests, and what this machine has."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from tcpsbed.doctor.finding import Finding

UNTRIED = "not tried with hardware"
PORT_COPPELIASIM = 23000
"""Where its ZeroMQ remote API listens unless it is told otherwise."""
ANSWER_S = 0.2


def examine() -> Iterator[Finding]:
    """Each kind: whether something of it is found on this machine, and that nobody has tried it."""
    for name, (found, instead, page) in KINDS.items():
        here = found()
        where = f"found {here}" if here else "none here"
        remedy = f"connect one, and compare with `tcpsbed docs {page}`"
        yield Finding(name, bool(here), f"{where}; {UNTRIED}: {instead}", remedy)


def _devices(*patterns: str) -> Callable[[], str]:
    """The first device file of a kind; empty if there is none."""
    return lambda: next(
        (str(path) for pattern in patterns for path in sorted(Path("/dev").glob(pattern))), ""
    )


def _coppeliasim() -> str:
    """Whether something listens where CoppeliaSim does; it is asked nothing."""
    try:
        with socket.create_connection(("127.0.0.1", PORT_COPPELIASIM), ANSWER_S):
            return f"a server on port {PORT_COPPELIASIM}"
    except OSError:
        return ""


KINDS: dict[str, tuple[Callable[[], str], str, str]] = {
    "CoppeliaSim": (_coppeliasim, "a stand-in of its protocol", "coppeliasim"),
    "boards on a UART": (
        _devices("ttyACM*", "ttyUSB*"),
        "the firmware compiled for this machine, and in QEMU",
        "boards",
    ),
    "input devices (evdev)": (_devices("input/event*"), "recordings of pointers and wheels", "devices"),
    "camera": (_devices("video*"), "files, and the cameras of simulated robots", "media"),
    "glove": (lambda: "", "sensor readings that are computed", "pick-and-place"),
}
"""Name: what looks for it, what it was tried with instead, and the page about it."""
