"""SRTP and SRTCP beside libsrtp: what one seals the other opens, over lost, late, repeated and forged packets."""

from __future__ import annotations

import importlib
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROFILES = {
    "aes-128-gcm": ("SRTP_PROFILE_AEAD_AES_128_GCM", 28),
    "aes-256-gcm": ("SRTP_PROFILE_AEAD_AES_256_GCM", 44),
    "aes-128-cm-hmac-sha1-80": ("SRTP_PROFILE_AES128_CM_SHA1_80", 30),
}
"""Of each cipher of ours: libsrtp's name, and the bytes of a master key with its salt."""
SSRC = 0x12345678
FIRST = 65_400
"""The first SEQ, which soon wraps."""


@pytest.fixture(scope="module")
def ours() -> Path:
    """Our SRTP as a program."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    build = ["cargo", "build", "-q", "-p", "tcps-transport", "--example", "srtp"]
    subprocess.run(build, cwd=ROOT, check=True, timeout=900)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "examples" / "srtp"


def libsrtp(profile: str, master: bytes, inbound: bool) -> Any:
    """A session of libsrtp for one direction."""
    module = importlib.import_module("pylibsrtp")
    kind = module.Policy.SSRC_ANY_INBOUND if inbound else module.Policy.SSRC_ANY_OUTBOUND
    name = PROFILES[profile][0]
    policy = module.Policy(key=master, ssrc_type=kind, srtp_profile=getattr(module.Policy, name))
    policy.window_size = 1024
    return module.Session(policy=policy)


def packets() -> list[bytes]:
    """RTP with and without extension and contributing sources, and a report after each seven of them."""
    chance = random.Random(1)
    made = []
    for n in range(400):
        payload = chance.randbytes(chance.randrange(1, 300))
        sources = n % 3
        first = 0x80 | (0x10 if n % 2 else 0) | sources
        header = struct.pack("!BBHII", first, 96, (FIRST + n) % 65_536, n * 8, SSRC)
        extension = struct.pack("!HH", 0xBEDE, 2) + chance.randbytes(8) if n % 2 else b""
        made.append(header + chance.randbytes(4 * sources) + extension + payload)
        if n % 7 == 6:
            # A sender report of no blocks.
            made.append(struct.pack("!BBHI", 0x80, 200, 6, SSRC) + chance.randbytes(20))
    return made


def is_report(packet: bytes) -> bool:
    """Whether it is RTCP."""
    return 192 <= packet[1] <= 223


def on_the_way(sealed: Sequence[bytes]) -> list[bytes | None]:
    """Some of them in another order, and some twice; `None` stands for a forged one that follows."""
    chance = random.Random(2)
    order = sorted(range(len(sealed)), key=lambda n: n + chance.random() * 20)
    found: list[bytes | None] = []
    for n in order:
        if chance.random() < 0.1:
            continue
        found += [sealed[n], None] + [sealed[n]] * (chance.random() < 0.1)
    return found


def forged(sealed: bytes, chance: random.Random) -> bytes:
    """With another bit somewhere behind the first two bytes, which tell RTP from RTCP."""
    bit = chance.randrange(16, 8 * len(sealed))
    changed = bytearray(sealed)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def run(program: Path, profile: str, master: bytes, lines: Sequence[tuple[str, bytes]]) -> list[bytes | None]:
    """The answers of our program to `seal` and `open`; `None`: refused."""
    text = "".join(f"{what} {packet.hex()}\n" for what, packet in lines)
    command = [str(program), profile, master.hex()]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60)
    return [None if line == "refused" else bytes.fromhex(line) for line in done.stdout.split()]


def brought(sealed: Sequence[bytes]) -> list[tuple[bytes, bytes | None]]:
    """What arrives, each with the sealed packet that it is, the first time; `None`: it is to be refused."""
    chance, had, last = random.Random(3), set[bytes](), b""
    found: list[tuple[bytes, bytes | None]] = []
    for packet in on_the_way(sealed):
        if packet is None:
            found.append((forged(last, chance), None))
        else:
            found.append((packet, None if packet in had else packet))
            had.add(packet)
            last = packet
    return found


@pytest.mark.needs("python:pylibsrtp")
@pytest.mark.parametrize("profile", PROFILES)
def test_libsrtp_opens_what_we_seal(ours: Path, profile: str) -> None:
    master = random.Random(profile).randbytes(PROFILES[profile][1])
    plain = packets()
    sealed = [found for found in run(ours, profile, master, [("seal", p) for p in plain]) if found]
    assert len(sealed) == len(plain)
    of = dict(zip(sealed, plain, strict=True))
    theirs = libsrtp(profile, master, inbound=True)
    error = importlib.import_module("pylibsrtp").Error
    for packet, genuine in brought(sealed):
        open_ = theirs.unprotect_rtcp if is_report(packet) else theirs.unprotect
        if genuine is None:
            with pytest.raises(error):
                open_(packet)
        else:
            assert open_(packet) == of[genuine]


@pytest.mark.needs("python:pylibsrtp")
@pytest.mark.parametrize("profile", PROFILES)
def test_we_open_what_libsrtp_seals(ours: Path, profile: str) -> None:
    master = random.Random(profile).randbytes(PROFILES[profile][1])
    theirs = libsrtp(profile, master, inbound=False)
    of = {(theirs.protect_rtcp if is_report(p) else theirs.protect)(p): p for p in packets()}
    arrived = brought(list(of))
    answers = run(ours, profile, master, [("open", packet) for packet, _ in arrived])
    assert answers == [None if genuine is None else of[genuine] for _, genuine in arrived]
    assert sum(answer is not None for answer in answers) > 300


def test_both_of_our_ends_agree_where_nothing_else_is_installed(ours: Path) -> None:
    master = bytes(range(28))
    plain = packets()
    sealed = run(ours, "aes-128-gcm", master, [("seal", packet) for packet in plain])
    assert run(ours, "aes-128-gcm", master, [("open", packet or b"") for packet in sealed]) == plain
    other = run(ours, "aes-128-gcm", master[::-1], [("open", packet or b"") for packet in sealed])
    assert other == [None] * len(plain)
