"""Telehaptic sessions over TCP and QUIC on sockets, through the emulator, and the same in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from again import in_time
from real_run import summary, whole

import tcpsbed

SECONDS = int(os.environ.get("STREAMS_SECONDS", "3"))
"""Length of a session in real time; 60 for a long look."""
LINE = """
name = "line"
duration = "{seconds} s"
warmup = "0.5 s"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
[flows.haptic]
[channels.both]
flows = ["kinematic", "haptic"]
transport = {transport}
[links.l1]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "60 kB"
"""
TRANSPORTS = [
    '{ kind = "tcp" }',
    '{ kind = "quic" }',
    '{ kind = "quic", mode = "stream-per-sample" }',
    '{ kind = "quic", mode = "datagram" }',
    '{ kind = "tcp" }\nsecurity = "tls"',
    '{ kind = "quic" }\nsecurity = "tls"',
]


@pytest.mark.beside
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_session_of_a_minute_in_virtual_time(tmp_path: Path, transport: str) -> None:
    (tmp_path / "scenario.toml").write_text(LINE.format(seconds=60, transport=transport))
    run = tcpsbed.run(tmp_path / "scenario.toml", out=tmp_path / "out")
    for flow in ("kinematic", "haptic"):
        counted = run.summary["flows"][flow]
        assert counted["lost"] == 0 and counted["sent"] > 59_000
        assert 5.0 < counted["delay_ms"]["p50"] < 5.5
    assert not any(end["malformed"] or end["refused"] for end in run.summary["endpoints"])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_session_in_real_time_through_the_emulator(tmp_path: Path, transport: str) -> None:
    found, _ = whole(tmp_path, LINE.format(seconds=SECONDS, transport=transport))
    for flow in ("kinematic", "haptic"):
        counted = found["flows"][flow]
        # A socket of a loop that stalls overflows; streams send again, datagrams do not.
        with in_time(found["disturbances"]):
            assert counted["delivered"] > 0.98 * counted["sent"] > 980 * (SECONDS - 1)
        assert 5.0 < counted["delay_ms"]["p50"] < 7.0
    assert not any(end["malformed"] for end in found["endpoints"])
    assert summary(tmp_path / "out")["emulator"]


BUSY = """
[traffic.web]
on = "l1.backward"
utilisation = "60 %"
congestion = "reno"
[traffic.bulk]
on = "l1.forward"
"""
BUSY_QUIC = """
[traffic.web]
transport = "quic"
on = "l1.backward"
utilisation = "60 %"
congestion = "newreno"
[traffic.bulk]
transport = "quic"
on = "l1.forward"
"""


@pytest.mark.needs("cores:2")
@pytest.mark.parametrize("traffic", [BUSY, BUSY_QUIC], ids=["tcp", "quic"])
def test_users_of_the_background_live_in_the_emulator(tmp_path: Path, traffic: str) -> None:
    """The same crowd in both worlds: both fill the line, and the session feels it."""
    text = LINE.format(seconds=max(SECONDS, 6), transport='"udp"') + traffic
    real, _ = whole(tmp_path, text)
    run = tcpsbed.run(tmp_path / "scenario.toml", out=tmp_path / "virtual")
    for found in (real, run.summary):
        lines = {line["name"]: line for line in found["network"]}
        assert lines["l1.forward"]["utilisation"] > 0.6, "a transfer without end"
        assert lines["l1.backward"]["utilisation"] > 0.2, "users who load pages"
        assert all(entry["delivered_packets"] > 200 for entry in found["traffic"])
        assert found["flows"]["kinematic"]["delay_ms"]["p95"] > 10.0
