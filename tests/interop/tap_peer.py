"""Two TAP devices handed to tcpsbed-ns3, and packets that nobody can have: for a network namespace of its own.

    tap_peer.py PROGRAM FOLDER silent     somebody asks to hand a device over and says nothing
    tap_peer.py PROGRAM FOLDER packets    one packet for no node, and one for a node whose device is down
    tap_peer.py PROGRAM FOLDER strangers  the same, with strangers before the devices, which come when the start is told

Prints what the program said last.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

TUNSETIFF, SIOCSIFFLAGS, SIOCGIFFLAGS = 0x400454CA, 0x8914, 0x8913
TAP_NO_PI, UP = 0x1002, 0x1
GATEWAY = "02:00:00:00:00:ff"
NODES = [{"address": f"10.77.0.{n}", "mac": f"02:00:00:00:00:0{n}"} for n in (1, 2)]


def specification(place: Path) -> dict:
    """Two vertices with a link each way, and the socket where their nodes' devices are taken."""
    links = [
        {"from": 0, "to": 1, "delay_ns": 0, "queue": {}},
        {"from": 1, "to": 0, "delay_ns": 0, "queue": {}},
    ]
    attach = {"how": "descriptor", "taps": str(place), "nodes": NODES, "gateway": GATEWAY, "link_bytes": 26}
    return {
        "vertices": 2, "links": links, "routes": [[None, 0], [1, None]], "traffic": [], "seed": 1,
        "end_ns": 5_000_000_000, "by_clock": True, "most_lag_ns": 5_000_000_000, "attach": attach,
    }  # fmt: skip


def device(name: str) -> int:
    """A TAP device that is there as long as its descriptor is open."""
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_NO_PI))
    return tap


def bring_up(name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        fcntl.ioctl(asks, SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), UP))


def hand_over(place: Path, number: int, tap: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.connect(str(place))
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [tap]))
        talk.sendmsg([struct.pack("H", number)], [rights])


def call(place: Path, words: bytes = b"") -> socket.socket:
    """Somebody who connects, and may say something."""
    talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    talk.connect(str(place))
    talk.sendall(words)
    return talk


def frame(to: str) -> bytes:
    """A UDP packet of the first node, as its kernel gives it to the device."""

    def mac(text: str) -> bytes:
        return bytes.fromhex(text.replace(":", ""))

    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        36,
        1,
        0,
        64,
        17,
        0,
        socket.inet_aton(NODES[0]["address"]),
        socket.inet_aton(to),
    )
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    return (
        mac(GATEWAY)
        + mac(NODES[0]["mac"])
        + b"\x08\x00"
        + head
        + struct.pack("!HHHH", 9, 9, 16, 0)
        + bytes(8)
    )


def main() -> None:
    program, place, what = sys.argv[1], Path(sys.argv[2]) / "taps", sys.argv[3]
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin and child.stdout

    def tell(**line: object) -> None:
        child.stdin.write(json.dumps(line) + "\n")
        child.stdin.flush()

    tell(network=specification(place))
    assert "ready" in json.loads(child.stdout.readline())
    callers = []
    if what == "silent":
        callers.append(call(place))
        tell(start_ns=time.monotonic_ns())
    else:
        taps = [device(name) for name in ("near", "far")]
        bring_up("near")
        start_ns = time.monotonic_ns()
        if what == "strangers":
            start_ns += 5_000_000_000
            callers = [call(place), call(place, b"a stranger")]
            hand_over(place, 0, os.open("/dev/null", os.O_RDWR))
            tell(start_ns=start_ns)
            time.sleep(0.3)
        for number, tap in [(0, taps[0])] * (1 + len(callers) // 2) + [(1, taps[1])]:
            hand_over(place, number, tap)
        if what == "packets":
            tell(start_ns=start_ns)
        time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as kernel:
            kernel.bind(("near", 0))
            time.sleep(0.5)
            for address in ("10.99.0.9", NODES[1]["address"]):
                kernel.send(frame(address))
            time.sleep(0.5)
        tell(end=1)
    said = child.communicate(timeout=60)[0].splitlines()
    print(json.dumps({"said": json.loads(said[-1]), "listens": place.exists()}))


if __name__ == "__main__":
    main()
