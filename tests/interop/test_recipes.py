"""The recipes of docs/proxy.md, each run with programs that follow it: DDS and WebRTC behind an emulated network."""

from __future__ import annotations

import json
import re
import shlex
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tcpsbed.proxy import Proxy, load
from tcpsbed.proxy.door import parse
from tcpsbed.proxy.profile import settings_of

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "tcpsbed"]


@pytest.mark.slow
@pytest.mark.needs("root", "tun")
def test_dds_programs_find_each_other_by_multicast_over_several_ports():
    pytest.importorskip("cyclonedds", reason="needs Cyclone DDS: pip install cyclonedds")
    count, peer = 200, [sys.executable, str(HERE / "dds_peer.py")]
    far = shlex.join([*peer, "answers"])
    command = [
        *COMMAND,
        "netns",
        "--delay",
        "10 ms",
        "--loss",
        "2 %",
        "--far",
        far,
        "--",
        *peer,
        "commands",
        str(count),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.strip().splitlines()[-1])
    # 7400 and 7401 are everybody's; those of a participant are of its own choice.
    assert {7400, 7401} < set(told["ports"]) and len(told["ports"]) > 3
    assert 20 <= statistics.median(told["trips_ms"]) < 40
    # A reader is best effort unless it asks for more: 4 % do not come back.
    assert 0.85 * count < len(told["trips_ms"]) < count


class Peer:
    """A WebRTC peer, and what it says."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, str(HERE / "webrtc_peer.py"), *words]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def hear(self) -> dict:
        line = self.child.stdout.readline()
        assert line, self.child.stderr.read()
        return json.loads(line)

    def tell(self, sdp: str) -> None:
        self.child.stdin.write(json.dumps({"sdp": sdp}) + "\n")
        self.child.stdin.flush()

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


def only_candidate(sdp: str, address: str, port: int) -> str:
    """A description whose only candidate of ICE is this address and port."""
    first = next(line for line in sdp.splitlines() if line.startswith("a=candidate"))
    words = first.split()
    words[4:6] = [address, str(port)]
    kept = [line for line in sdp.splitlines() if not line.startswith("a=candidate")]
    at = next(i for i, line in enumerate(kept) if line.startswith("a=end-of-candidates"))
    return "\r\n".join([*kept[:at], " ".join(words), *kept[at:], ""])


def candidate(sdp: str) -> tuple[str, int]:
    """Address and port of the first candidate that is an IPv4 address."""
    found = re.search(r"^a=candidate:\S+ \d+ udp \d+ (\d+\.\d+\.\d+\.\d+) (\d+)", sdp, re.M | re.I)
    if found is None:
        pytest.skip("needs a network interface with an IPv4 address besides loopback, which ICE leaves out")
    return found[1], int(found[2])


@pytest.mark.slow
def test_webrtc_goes_through_the_proxy_if_it_is_the_only_candidate():
    pytest.importorskip("aiortc", reason="needs WebRTC: pip install aiortc")
    count = 200
    with ExitStack() as stack:
        near, far = Peer("offer", str(count)), Peer("answer")
        stack.callback(near.end)
        stack.callback(far.end)
        # Of the near side the far one learns an address that nobody has, so that it finds no way around the proxy.
        far.tell(only_candidate(near.hear()["sdp"], "192.0.2.1", 9))
        described = far.hear()["sdp"]
        address, port = candidate(described)
        profile = load("direct", settings_of({"delay": "20 ms", "loss": "1 %"}))
        proxy = stack.enter_context(Proxy(profile, [parse(f"{address}:0={address}:{port}/udp")]))
        near.tell(only_candidate(described, address, proxy.ports[0]))
        trips = near.hear()["trips_ms"]
        there, back = proxy.close()["doors"]
    assert 40 <= statistics.median(trips) < 80
    assert 0.9 * count < len(trips) <= count
    assert min(there["packets"], back["packets"]) > count, "all goes through the proxy, both ways"
