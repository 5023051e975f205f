"""Secured channels on sockets: with the right key everything arrives, with another one nothing, and both sides say so."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_run import chain

import tcpsbed
from tcpsbed import keyfile
from tcpsbed.worlds import secrets

CHANNELS = """
[channels.session]
flows = ["kinematic", "haptic"]
security = "aead"
[measure]
sync = "200 ms"
echo = { points = "all", period = "20 ms" }
pcapng = true
"""


def ran(folder: Path, text: str) -> Any:
    """A run on sockets."""
    file = folder / "chain.toml"
    file.write_text(text)
    return tcpsbed.run(file, out=folder / "run", world="real")


@pytest.mark.beside
def test_samples_answers_and_clocks_come_through_sealed(tmp_path: Path) -> None:
    keyfile.make(tmp_path / "lab.key")
    method = 'security = { kind = "aead", key_file = "lab.key", rekey_after = "200 packets" }'
    run = ran(tmp_path, chain("2 s", more=CHANNELS.replace('security = "aead"', method)))
    found = run.summary
    for flow in found["flows"].values():
        assert flow["lost"] == 0 and flow["delivered"] == flow["sent"] > 0
    for end in found["endpoints"]:
        assert (end["secure_sessions"], end["unverified"], end["replayed"]) == (1, 0, 0)
        assert end["key_changes"] >= 10
    assert all(point["n"] > 0 for echo in found["echo"].values() for point in echo["points"])
    assert len(found["clocks"]) == 2
    assert all(node["asides_refused"] == 0 for node in found["nodes"])
    capture = b"".join(file.read_bytes() for file in run.folder.rglob("*.pcapng"))
    assert capture and not any(start in capture for start in (b"\xecTCE\x01", b"\xccTCC\x01"))
    key = keyfile.read(tmp_path / "lab.key")
    kept = [file for file in run.folder.rglob("*") if file.is_file()]
    assert not any(key.encode() in file.read_bytes() for file in kept), "no result holds the key"


@pytest.mark.beside
def test_rtp_comes_through_as_srtp(tmp_path: Path) -> None:
    keyfile.make(tmp_path / "lab.key")
    method = 'transport = "rtp"\nsecurity = { kind = "srtp", key_file = "lab.key" }'
    run = ran(tmp_path, chain("2 s", more=CHANNELS.replace('security = "aead"', method)))
    found = run.summary
    for flow in found["flows"].values():
        assert flow["lost"] == 0 and flow["delivered"] == flow["sent"] > 0
    for end in found["endpoints"]:
        assert (end["secure_sessions"], end["unverified"], end["replayed"], end["malformed"]) == (1, 0, 0, 0)
        assert end["reports"] > 0
    assert all(point["n"] > 0 for echo in found["echo"].values() for point in echo["points"])


@pytest.mark.beside
@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_streams_come_through_with_tls(tmp_path: Path, transport: str) -> None:
    keyfile.make(tmp_path / "lab.key")
    method = f'transport = "{transport}"\nsecurity = {{ kind = "tls", key_file = "lab.key" }}'
    run = ran(tmp_path, chain("2 s", more=CHANNELS.replace('security = "aead"', method)))
    found = run.summary
    for flow in found["flows"].values():
        assert flow["lost"] == 0 and flow["delivered"] == flow["sent"] > 0
    trouble = ("unverified", "refused_connections", "alerts", "unproven_alerts", "replayed", "malformed")
    for end in found["endpoints"]:
        assert (end["secure_sessions"], end["connections"]) == (1, 1)
        assert {key: end[key] for key in trouble} == dict.fromkeys(trouble, 0)
        assert 0 < end["handshake_ns"] < 1e9
    assert all(point["n"] > 0 for echo in found["echo"].values() for point in echo["points"])
    assert all(node["asides_refused"] == 0 for node in found["nodes"])


@pytest.mark.beside
@pytest.mark.parametrize(
    "security",
    [
        'security = "aead"',
        'transport = "tcp"\nsecurity = "tls"',
        'transport = "quic"\nsecurity = "tls"',
    ],
)
def test_a_peer_with_another_key_moves_nothing_and_both_sides_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    given = secrets.of_node

    def another(plan: Any, keys: Any, node: int) -> dict[str, str]:
        own = given(plan, keys, node)
        return {whose: keyfile.fresh() for whose in own} if node == 1 else own

    monkeypatch.setattr(secrets, "of_node", another)
    run = ran(tmp_path, chain("2 s", more=CHANNELS.replace('security = "aead"', security)))
    assert all(flow["delivered"] == 0 for flow in run.summary["flows"].values())
    assert all(end["secure_sessions"] == 0 for end in run.summary["endpoints"])
    disturbances = run.summary["disturbances"]
    said = [text for text in disturbances if "agreed on no keys" in text]
    assert not any("never had a connection" in text for text in disturbances)
    assert sorted(f"{end['channel']} at {end['side']}" for end in run.summary["endpoints"]) == sorted(
        text.removeprefix("channel ").partition(" agreed")[0] for text in said
    ), "once at each side"
    assert any("handshake messages that did not verify" in text for text in said)


class Stranger:
    """Somebody who hears sealed datagrams, and sends them from the same address: as they are, or as newer ones.

    It begins once both sides have keys, and may be used with `with`.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.sent: Counter[str] = Counter()
        self._end, self._draws = threading.Event(), random.Random(1)
        self._ear = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        self._ear.settimeout(0.05)
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._ear.close()

    def _newer(self, payload: bytes) -> bytes | None:
        """A sealed sample with a number still to come; `None` where the payload is none."""
        if self.method == "srtp":
            if len(payload) < 12 or payload[0] >> 6 != 2 or 192 <= payload[1] <= 223:
                return None
            number = int.from_bytes(payload[2:4], "big") + 5_000 + self._draws.getrandbits(10)
            return payload[:2] + struct.pack("!H", number % 65_536) + payload[4:]
        if payload[:1] != b"\xd1" or len(payload) <= 32:
            return None
        return payload[:4] + struct.pack("!I", 1 << 24 | self._draws.getrandbits(16)) + payload[8:]

    def _work(self) -> None:
        own: set[bytes] = set()
        while not self._end.is_set():
            try:
                packet, (address, _) = self._ear.recvfrom(65536)
            except TimeoutError:
                continue
            head = 4 * (packet[0] & 0xF)
            ports, payload = packet[head : head + 4], packet[head + 8 :]
            if payload in own or self._draws.random() > 0.2 or (newer := self._newer(payload)) is None:
                continue
            for what, forged in (("replayed", payload), ("changed", newer)):
                own.add(forged)
                udp = ports + struct.pack("!HH", 8 + len(forged), 0) + forged
                self._ear.sendto(udp, (address, 0))
                self.sent[what] += 1


@pytest.mark.needs("root")
@pytest.mark.parametrize("method", ["aead", "srtp"])
def test_a_stranger_who_sniffs_spoofs_and_replays_moves_nothing(tmp_path: Path, method: str) -> None:
    transport = 'transport = "rtp"\n' if method == "srtp" else ""
    channels = CHANNELS.replace('security = "aead"', f'{transport}security = "{method}"')
    with Stranger(method) as stranger:
        run = ran(tmp_path, chain("2 s", more=channels))
    found = run.summary
    for flow in found["flows"].values():
        assert (flow["delivered"], flow["lost"]) == (flow["sent"], 0), "each sample once"
    ends = found["endpoints"]
    replayed, unverified = (sum(end[key] for end in ends) for key in ("replayed", "unverified"))
    assert min(stranger.sent.values()) > 500
    # The last ones may come after the end.
    assert replayed + unverified >= 0.9 * sum(stranger.sent.values())
    assert min(replayed, unverified) > 0.4 * (replayed + unverified)
    assert sum(end["malformed"] + end["duplicates"] for end in ends) == 0, "the transport saw none of it"
    assert any("did not verify" in text for text in found["disturbances"])
