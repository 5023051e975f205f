"""RTP and RTCP with other programs: GStreamer's rtpbin, ffmpeg, and Wireshark over all that was sent.

`TCPSBED_INTEROP_SECONDS` sets the length of each session (default 6; 60 for the full check).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("TCPSBED_INTEROP_SECONDS", "6"))
SYSTEM_PYTHON = "/usr/bin/python3"
PERIOD_MS = {"audio": 20, "video": 40}
GST = Path(__file__).with_name("gst_peer.py")
REPORTED_BYTES = 300_000
"""More than ffmpeg receives for one report: 28 B of it are 1/50 of 0.5 % of 280 kB (libavformat/rtpdec.c)."""
Counted = dict[str, float]
T = TypeVar("T")


@cache
def missing(tool: str) -> str | None:
    """Why a tool cannot be used; None if it can."""
    if tool != "gstreamer":
        return None if shutil.which(tool) else f"needs {tool} (Debian package {tool})"
    check = (
        "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None); "
        "assert Gst.ElementFactory.find('rtpbin') and Gst.ElementFactory.find('rtppcmupay')"
    )
    done = subprocess.run([SYSTEM_PYTHON, "-c", check], capture_output=True, check=False)
    packages = "python3-gi gir1.2-gstreamer-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good"
    return None if done.returncode == 0 else f"needs GStreamer (Debian packages {packages})"


def need(*tools: str) -> None:
    """Skips the test where a tool is missing, saying which."""
    reasons = [reason for tool in tools if (reason := missing(tool))]
    if reasons:
        pytest.skip("; ".join(reasons))


@pytest.fixture(scope="session")
def peer() -> Path:
    """Our end of a session."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    build = ["cargo", "build", "-q", "-p", "tcps-run", "--example", "rtp_peer"]
    subprocess.run(build, cwd=ROOT, check=True, timeout=900)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "examples" / "rtp_peer"


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A film of MPEG-4 part 2 pictures, and its elementary stream cut into frames behind their lengths."""
    need("ffmpeg")
    folder = tmp_path_factory.mktemp("clip")
    stream = folder / "clip.m4v"
    picture = f"testsrc2=size=320x240:rate=25:duration={SECONDS + 2}"
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        picture,
        "-c:v",
        "mpeg4",
        "-bf",
        "0",
        "-b:v",
        "1M",
    ]
    subprocess.run([*command, "-f", "m4v", str(stream)], check=True, timeout=60)
    data = stream.read_bytes()
    # A frame ends where the next one's picture or group header begins (ISO/IEC 14496-2: 000001B6, 000001B3, 000001B0).
    starts = [0]
    seen_picture = False
    at = data.find(b"\x00\x00\x01")
    while at >= 0:
        code = data[at + 3]
        if code in (0xB0, 0xB3, 0xB6) and seen_picture:
            starts.append(at)
            seen_picture = False
        seen_picture = seen_picture or code == 0xB6
        at = data.find(b"\x00\x00\x01", at + 3)
    frames = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    cut = folder / "clip.frames"
    cut.write_bytes(b"".join(len(f).to_bytes(4, "big") + f for f in frames))
    container = folder / "clip.mp4"
    wrap = ["ffmpeg", "-v", "error", "-i", str(stream), "-c", "copy", str(container)]
    subprocess.run(wrap, check=True, timeout=60)
    return container, cut


def ports(count: int = 2) -> list[int]:
    """Even ports whose neighbours are free too."""
    found: list[int] = []
    while len(found) < count:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b,
        ):
            a.bind(("127.0.0.1", 0))
            port = int(a.getsockname()[1])
            try:
                b.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            if port % 2 == 0 and all(abs(port - f) > 2 for f in found):
                found.append(port)
    return found


def each(session: Callable[[str, int, int], T]) -> dict[str, T]:
    """A session of every medium, all at the same time, each between two ports of its own: by medium what came of it."""
    free = ports(2 * len(PERIOD_MS))
    with ThreadPoolExecutor(len(PERIOD_MS)) as beside:
        found = beside.map(session, PERIOD_MS, free[::2], free[1::2])
        return dict(zip(PERIOD_MS, found, strict=True))


def start(*command: object) -> subprocess.Popen[str]:
    """A program whose output is kept."""
    words = [str(word) for word in command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ours(process: subprocess.Popen[str]) -> Counted:
    """What our end counted."""
    out, err = process.communicate(timeout=SECONDS + 30)
    assert process.returncode == 0, err
    counted: Counted = json.loads(out)
    assert counted["malformed"] == 0, counted
    return counted


def theirs(process: subprocess.Popen[str]) -> list[Counted]:
    """Sources that GStreamer counted."""
    out, err = process.communicate(timeout=SECONDS + 30)
    told = json.loads(out.splitlines()[-1])
    assert told["problems"] == [], err
    sources: list[Counted] = told["sources"]
    return sources


def listening(process: subprocess.Popen[str]) -> None:
    """Waits until the GStreamer end says that it is ready."""
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)


@pytest.fixture(scope="module")
def to_gstreamer(peer: Path, clip: tuple[Path, Path]) -> dict[str, tuple[Counted, list[Counted]]]:
    """We send, GStreamer receives: what we counted, and the sources that it counted."""
    need("gstreamer")

    def session(media: str, local: int, remote: int) -> tuple[Counted, list[Counted]]:
        gst = start(SYSTEM_PYTHON, GST, media, "receive", remote, local, SECONDS + 2.5)
        listening(gst)
        frames = [clip[1]] if media == "video" else []
        counted = ours(start(peer, media, "send", local, remote, SECONDS, PERIOD_MS[media], *frames))
        return counted, theirs(gst)

    return each(session)


# [RFC 3550 §6.4.1]
@pytest.mark.parametrize("media", PERIOD_MS)
def test_gstreamer_receives_ours_without_loss_and_we_understand_its_reports(
    to_gstreamer: dict[str, tuple[Counted, list[Counted]]], media: str
) -> None:
    counted, sources = to_gstreamer[media]
    received = [s for s in sources if not s["internal"]]
    assert len(received) == 1 and received[0]["packets-lost"] <= 0, received
    assert received[0]["packets-received"] >= counted["sent"] > 20
    # [RFC 3550 §6.4.1] Expected less received: below 0 where more came than the peer expected, which is no loss.
    assert counted["blocks"] >= 1 and counted["lost_at_peer"] <= 0 and counted["reports"] >= 1, counted
    assert counted["rtt_ns"] is not None and counted["rtt_ns"] < 50e6


@pytest.fixture(scope="module")
def from_gstreamer(peer: Path, clip: tuple[Path, Path]) -> dict[str, tuple[Counted, list[Counted]]]:
    """GStreamer sends, we receive: what we counted, and the sources that it counted."""
    need("gstreamer")

    def session(media: str, local: int, remote: int) -> tuple[Counted, list[Counted]]:
        us = start(peer, media, "receive", local, remote, SECONDS + 2, PERIOD_MS[media])
        time.sleep(0.3)
        sources = theirs(start(SYSTEM_PYTHON, GST, media, "send", remote, local, SECONDS, clip[0]))
        return ours(us), sources

    return each(session)


# [RFC 3550 §A.3]
@pytest.mark.parametrize("media", PERIOD_MS)
def test_we_receive_gstreamer_without_loss_and_it_understands_our_reports(
    from_gstreamer: dict[str, tuple[Counted, list[Counted]]], media: str
) -> None:
    counted, sources = from_gstreamer[media]
    told = [s for s in sources if s.get("have-rb")]
    assert told and all(s["rb-packetslost"] == 0 for s in told), sources
    assert counted["lost"] == 0 and counted["incomplete"] == 0, counted
    assert counted["delivered"] >= 0.8 * SECONDS * 1000 / PERIOD_MS[media], counted


def serve(server: socket.socket, sdp: str, local: int, play: Callable[[int], T]) -> T:
    """One RTSP session (RFC 2326), to its end: what `play` made of the client's port when it was asked to."""
    server.settimeout(20)
    connection, _ = server.accept()
    connection.settimeout(SECONDS + 20)
    played: list[T] = []
    remote = 0
    with connection, connection.makefile("rb") as lines:
        while request := lines.readline().decode():
            fields = dict(line.decode().strip().split(": ", 1) for line in iter(lines.readline, b"\r\n"))
            told, body = "", ""
            match request.split()[0]:
                case "DESCRIBE":
                    told, body = f"Content-Type: application/sdp\r\nContent-Length: {len(sdp)}\r\n", sdp
                case "SETUP":
                    remote = int(fields["Transport"].partition("client_port=")[2].partition("-")[0])
                    told = (
                        f"Transport: {fields['Transport']};server_port={local}-{local + 1}\r\nSession: 1\r\n"
                    )
                case "PLAY":
                    played.append(play(remote))
                case "TEARDOWN":
                    break
            connection.sendall(f"RTSP/1.0 200 OK\r\nCSeq: {fields['CSeq']}\r\n{told}\r\n{body}".encode())
    return played[0]


@pytest.fixture(scope="module")
def to_ffmpeg(
    peer: Path, clip: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Counted, str, int]]:
    """We send, ffmpeg receives: what we counted, what it told, and the bytes that it wrote.

    It asks for the session by RTSP: from a description in a file it only listens, and sends no reports.
    """
    folder = tmp_path_factory.mktemp("ffmpeg")

    def session(media: str, local: int, _: int) -> tuple[Counted, str, int]:
        form = {"audio": ("audio", 0, "PCMU/8000"), "video": ("video", 96, "MP4V-ES/90000")}[media]
        head = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=tcpsbed\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
        own = f"m={form[0]} 0 RTP/AVP {form[1]}\r\na=rtpmap:{form[1]} {form[2]}\r\na=control:{media}\r\n"
        frames = [clip[1]] if media == "video" else []

        def play(remote: int) -> subprocess.Popen[str]:
            return start(peer, media, "send", local, remote, SECONDS + 1, PERIOD_MS[media], *frames)

        out = folder / ("got.raw" if media == "audio" else "got.m4v")
        coder = ["-c", "copy", "-f", "mulaw" if media == "audio" else "m4v"]
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"rtsp://127.0.0.1:{server.getsockname()[1]}/"
            read = ["-v", "info", "-rtsp_transport", "udp", "-i", url, "-t", SECONDS - 2]
            ffmpeg = start("ffmpeg", *read, *coder, out)
            try:
                us = serve(server, head + own, local, play)
                told = ffmpeg.communicate(timeout=SECONDS + 20)[1]
            finally:
                ffmpeg.kill()
        return ours(us), told, out.stat().st_size

    return each(session)


# [RFC 3550 §6.4.2]
@pytest.mark.parametrize("media", PERIOD_MS)
def test_ffmpeg_receives_ours(to_ffmpeg: dict[str, tuple[Counted, str, int]], media: str) -> None:
    counted, told, bytes_got = to_ffmpeg[media]
    assert "missed" not in told and bytes_got > 8000, told[-800:]
    # None of sound is due before 38 s.
    due = max(bytes_got // REPORTED_BYTES, int(media == "audio" and SECONDS >= 45))
    assert due >= 1 or media == "audio", bytes_got
    assert counted["blocks"] >= due and counted["reports"] >= due, (due, counted)
    assert counted["lost_at_peer"] == 0, counted


@pytest.fixture(scope="module")
def from_ffmpeg(peer: Path, clip: tuple[Path, Path]) -> dict[str, Counted]:
    """From ffmpeg to us: what we counted."""

    def session(media: str, local: int, remote: int) -> Counted:
        us = start(peer, media, "receive", local, remote, SECONDS + 2, PERIOD_MS[media])
        time.sleep(0.3)
        tone = f"sine=frequency=440:sample_rate=8000:duration={SECONDS}"
        source = {
            "audio": ["-f", "lavfi", "-i", tone, "-c:a", "pcm_mulaw", "-packetsize", "172"],
            "video": ["-t", str(SECONDS), "-i", str(clip[0]), "-c:v", "copy"],
        }[media]
        url = f"rtp://127.0.0.1:{local}?localport={remote}&pkt_size={172 if media == 'audio' else 1200}"
        ffmpeg = start("ffmpeg", "-v", "error", "-re", *source, "-f", "rtp", url)
        _, told = ffmpeg.communicate(timeout=SECONDS + 20)
        assert ffmpeg.returncode == 0, told
        return ours(us)

    return each(session)


# [RFC 3550 §A.1] [RFC 3550 §6.4.1]
@pytest.mark.parametrize("media", PERIOD_MS)
def test_we_receive_ffmpeg(from_ffmpeg: dict[str, Counted], media: str) -> None:
    counted = from_ffmpeg[media]
    assert counted["answered"] >= 1, "a report of ours says when ffmpeg's sender report left"
    assert counted["lost"] == 0 and counted["incomplete"] == 0, counted
    assert counted["delivered"] >= 0.9 * SECONDS * 1000 / PERIOD_MS[media], counted


# [RFC 3611 §4.4] [RFC 3550 §6.6] [RFC 8888 §3.1] [RFC 4585 §6.2.1]
def test_wireshark_decodes_every_rtcp_packet(peer: Path, tmp_path: Path) -> None:
    need("tshark")
    if os.geteuid() != 0:
        pytest.skip("needs root to capture")
    local, remote = ports()
    file = tmp_path / "session.pcapng"
    ports_of = f"udp portrange {min(local, remote)}-{max(local, remote) + 1}"
    tshark = start(
        "tshark", "-q", "-i", "lo", "-f", ports_of, "-w", file, "-a", f"duration:{SECONDS + 3:.0f}"
    )
    time.sleep(1.5)
    # What is lost is asked for, and each packet is told of.
    lossy = ["-", json.dumps({"nack": 2, "feedback_ns": 100_000_000}), 20]
    receiver = start(peer, "audio", "receive", remote, local, SECONDS, 20, *lossy)
    sender = start(peer, "audio", "send", local, remote, SECONDS, 20, *lossy)
    counted = ours(sender)
    ours(receiver)
    tshark.wait(timeout=SECONDS + 20)
    assert counted["blocks"] >= 1 and counted["lost_at_peer"] >= 1, counted
    rtcp = local + 1, remote + 1
    read = ["tshark", "-r", str(file), *(word for port in rtcp for word in ("-d", f"udp.port=={port},rtcp"))]

    def rows(*words: str) -> list[str]:
        done = subprocess.run([*read, *words], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    def values(field: str) -> set[int]:
        """What a field is in all packets together."""
        told = rows("-Y", field, "-T", "fields", "-e", field)
        return {int(value) for row in told for value in row.split(",")}

    assert len(rows("-Y", "rtcp")) >= 5
    assert values("rtcp.pt") >= {200, 201, 202, 203, 205, 207}
    assert values("rtcp.rtpfb.fmt") == {1, 11}, "a generic NACK, and feedback for congestion control"
    assert values("rtcp.rtpfb.nack_pid"), "numbers that are asked for"
    assert rows("-Y", " or ".join(f"udp.dstport == {port} and not rtcp and not icmp" for port in rtcp)) == []
    assert rows("-Y", "_ws.malformed or _ws.expert.severity >= 0x600000") == []
    assert rows("-Y", "rtcp.length_check == 0") == []
