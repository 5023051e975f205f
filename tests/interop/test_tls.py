"""TLS over TCP beside GnuTLS: both sides of our channel, with raw public keys that follow from what both sides share."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECRET, OTHER = bytes([7] * 32), bytes([8] * 32)
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
"""What stands before the 32 bytes of an Ed25519 key (RFC 8410)."""
PRIORITY = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+CTYPE-CLI-RAWPK:+CTYPE-SRV-RAWPK"
SAMPLES = [f"sample {n} {10 + 100 * n} true" for n in range(10)]
BYTES = sum(24 + 10 + 100 * n for n in range(10))
"""Of our ten samples with their headers."""
RECORD = 1024
"""Most bytes that our side takes in a record; GnuTLS makes one of what it reads at once."""

pytestmark = [pytest.mark.beside, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def ours() -> Path:
    """Our side as a program."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    build = ["cargo", "build", "-q", "-p", "tcps-run", "--example", "tls_peer"]
    subprocess.run(build, cwd=ROOT, check=True, timeout=900)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "examples" / "tls_peer"


def keys(folder: Path, side: str, secret: bytes) -> list[str]:
    """Options for GnuTLS: the key of a side, private and public, and what to negotiate."""
    private, public = folder / f"{side}.pem", folder / f"{side}.pub"
    own = hmac.new(secret, f"tcpsbed tcp {side}".encode(), hashlib.sha256).digest()
    text = base64.b64encode(PKCS8 + own).decode()
    private.write_text(f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    asked = ["certtool", "--load-privkey", str(private), "--pubkey-info"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
    public.write_text(found[found.index("-----BEGIN") :])
    return ["--rawpkkeyfile", str(private), "--rawpkfile", str(public), "--priority", PRIORITY]


def as_client(ours: Path, folder: Path, secret: bytes, sent: bytes) -> tuple[list[str], bytes]:
    """GnuTLS as side a sends bytes to our side b: what that says, and what GnuTLS gets."""
    end = subprocess.Popen([ours, "b", SECRET.hex(), "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    assert end.stdout is not None
    port = end.stdout.readline().rpartition(":")[2].strip()
    client = subprocess.Popen(
        ["gnutls-cli", "127.0.0.1", "-p", port, "--insecure", *keys(folder, "a", secret)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert client.stdin is not None
    for begin in range(0, len(sent), RECORD):
        client.stdin.write(sent[begin : begin + RECORD])
        client.stdin.flush()
        time.sleep(0.1)
    time.sleep(2)
    got, _ = client.communicate(timeout=60)
    said, _ = end.communicate(timeout=60)
    _, _, opened = got.partition(b"- Simple Client Mode:\n\n")
    return said.splitlines(), opened


@pytest.mark.needs("gnutls-cli", "certtool")
def test_gnutls_opens_what_our_side_b_seals_and_seals_what_it_opens(ours: Path, tmp_path: Path) -> None:
    said, opened = as_client(ours, tmp_path, SECRET, b"")
    assert said == ["sessions 1 refused 0 alerts 0"]
    assert len(opened) == BYTES and bytes([9] * 910) in opened
    said, _ = as_client(ours, tmp_path, SECRET, opened)
    assert said == [*SAMPLES, "sessions 1 refused 0 alerts 0"]


@pytest.mark.needs("gnutls-cli", "certtool")
def test_gnutls_with_another_key_is_refused(ours: Path, tmp_path: Path) -> None:
    said, opened = as_client(ours, tmp_path, OTHER, b"")
    assert said == ["sessions 0 refused 1 alerts 0"]
    assert opened.startswith(b"*** Received alert [48]"), "and is told so, in a way that it understands"


@pytest.mark.needs("gnutls-serv", "certtool")
def test_gnutls_takes_our_side_a_which_takes_its_key_alone(ours: Path, tmp_path: Path) -> None:
    for secret, sessions in ((SECRET, 1), (OTHER, 0)):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [
            "gnutls-serv",
            "--echo",
            "--require-client-cert",
            "-p",
            str(port),
            *keys(tmp_path, "b", secret),
        ]
        log = tmp_path / f"server-{sessions}.log"
        with log.open("w") as file:
            server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            try:
                time.sleep(1)
                end = [ours, "a", SECRET.hex(), f"127.0.0.1:{port}"]
                said = subprocess.run(end, capture_output=True, text=True, check=True, timeout=60).stdout
            finally:
                server.terminate()
                server.wait(10)
        assert said == f"sessions {sessions} refused {1 - sessions} alerts 0\n"
        proven = "Client Signature: EdDSA-Ed25519" in log.read_text()
        assert proven == bool(sessions), "our side proves its key only to one that has proved its own"
