"""Pages on other addresses than loopback: their certificates, their addresses, and what refuses them."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("websockets", reason="needs the extra studio")
pytest.importorskip("cryptography", reason="needs the extra studio")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import InvalidStatus
from websockets.sync import client

from tcpsbed.errors import ConfigError, WorldError
from tcpsbed.studio import certificate as certificates
from tcpsbed.studio.certificate import own_addresses
from tcpsbed.studio.listening import Listening, listening
from tcpsbed.studio.server import Studio
from tcpsbed.studio.tls import Sealed

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DAY = datetime.timedelta(days=1)
elsewhere = pytest.mark.skipif(not own_addresses(), reason="needs an address other than loopback")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tcpsbed"


def written(
    folder: Path, name: str, from_days: float = -1, to_days: float = 1, *sans: str
) -> tuple[Path, Path]:
    """A certificate and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now + from_days * DAY)
        .not_valid_after(now + to_days * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in sans or (name,)]), False)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    files[1].chmod(0o600)
    return files


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Files of all kinds."""
    found = {}
    for name, *days in (("good",), ("other",), ("old", -3, -2), ("young", 2, 3)):
        found[name], found[f"{name}-key"] = written(tmp_path, name, *days)
    found["gone"], found["folder"], found["text"] = tmp_path / "gone.pem", tmp_path, tmp_path / "text.pem"
    found["text"].write_text("no PEM")
    os.mkfifo(pipe := tmp_path / "pipe")
    found["pipe"] = pipe
    secret = serialization.load_pem_private_key(found["good-key"].read_bytes(), None)
    found["open-key"] = tmp_path / "open.key"
    found["open-key"].write_bytes(found["good-key"].read_bytes())
    found["open-key"].chmod(0o644)
    found["locked-key"] = tmp_path / "locked.key"
    found["locked-key"].write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    return found


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("gone", "good-key", "--certificate: found {gone}, which cannot be read (no such file)"),
        ("folder", "good-key", "--certificate: found {folder}, which cannot be read (it is a folder)"),
        (
            "pipe",
            "good-key",
            "--certificate: found {pipe}, which cannot be read (it is a device, a FIFO or a socket)",
        ),
        ("good", "pipe", "--key: found {pipe}, which cannot be read (it is a device, a FIFO or a socket)"),
        ("text", "good-key", "--certificate: found {text}, which holds no certificate in PEM"),
        ("good-key", "good-key", "--certificate: found {good-key}, which holds no certificate"),
        ("good", "gone", "--key: found {gone}, which cannot be read (no such file)"),
        ("good", "text", "--key: found {text}, which holds no private key in PEM"),
        ("good", "open-key", "--key: found {open-key}, which every user may read (mode 0644)"),
        ("good", "locked-key", "--key: found {locked-key}, which is encrypted"),
        ("good", "other-key", "--key: found {other-key}, which is not the key of {good}"),
        ("old", "old-key", "--certificate: found {old}, which expired on 20"),
        ("young", "young-key", "--certificate: found {young}, which is not valid before 20"),
        ("good", None, "--key is missing"),
        (None, "good-key", "--certificate is missing"),
    ],
)
def test_a_certificate_that_no_page_can_use_is_refused_by_name(
    files: dict[str, Path], certificate: str | None, key: str | None, said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        listening("0.0.0.0", 0, certificate and files[certificate], key and files[key])
    for name, file in files.items():
        said = said.replace(f"{{{name}}}", str(file))
    assert str(refused.value).startswith(said), str(refused.value)
    assert "\n" not in str(refused.value) and "allowed: " in str(refused.value)


@pytest.mark.parametrize("host", ["", "lab1", "192.168.1", "224.0.0.1", "fe80::1%eth0", "[::]", "0.0.0.0:80"])
def test_what_is_no_address_is_refused(host: str) -> None:
    if not host:
        assert listening(host, 0, None, None).local
        return
    with pytest.raises(ConfigError, match=r"--listen: found .*allowed: an IP address of this machine"):
        listening(host, 0, None, None)


def test_an_address_of_another_machine_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r"studio: 192.0.2.199 port 0: Cannot assign"):
        Studio(listening("192.0.2.199", 0, None, None), tmp_path)


def test_only_loopback_goes_without_tls(files: dict[str, Path]) -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1", None):
        assert listening(host, 0, None, None) == Listening(host or "127.0.0.1")
    for host in ("0.0.0.0", "::", "192.0.2.199", "::ffff:127.0.0.1"):
        if host[0] in "0:" and not own_addresses():
            continue
        assert listening(host, 0, None, None).context() is not None
    assert listening(None, 0, files["good"], files["good-key"]).context() is not None


def test_a_self_made_certificate_is_kept_and_nobody_else_reads_its_key(state: Path) -> None:
    file = certificates.self_made("192.0.2.7")
    assert file == state / "studio.pem" and [one.name for one in state.iterdir()] == ["studio.pem"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(state.stat().st_mode) == 0o700
    names = certificates.read(file).names
    assert {"192.0.2.7", "127.0.0.1", "::1", "localhost", *own_addresses()} <= set(names)
    before = file.read_bytes()
    assert certificates.self_made("192.0.2.7").read_bytes() == before, "a headset accepts it once"
    assert certificates.self_made("127.0.0.1").read_bytes() == before
    certificates.self_made("192.0.2.8")
    assert file.read_bytes() != before and "192.0.2.8" in certificates.read(file).names


@pytest.mark.parametrize("harm", ["open", "cut", "empty", "soon"])
def test_a_kept_certificate_that_is_no_good_is_made_anew(
    state: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificates.self_made("0.0.0.0")
    before = file.read_bytes()
    if harm == "open":
        file.chmod(0o644)
    elif harm == "soon":
        later = datetime.datetime.now(datetime.UTC) + certificates.VALID - 6 * DAY
        monkeypatch.setattr(certificates, "_now", lambda: later)
    else:
        file.write_bytes(before[:-200] if harm == "cut" else b"")
    certificates.self_made("0.0.0.0")
    assert file.read_bytes() != before and stat.S_IMODE(file.stat().st_mode) == 0o600
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


def test_a_state_folder_that_takes_nothing_is_named(state: Path) -> None:
    state.parent.parent.joinpath("state").write_text("a file")
    with pytest.raises(ConfigError, match=r"--listen: found no place .*studio\.pem.*allowed: XDG_STATE_HOME"):
        listening("192.0.2.199", 0, None, None)


def test_a_pipe_in_place_of_a_kept_certificate_is_named_and_stays(state: Path) -> None:
    state.mkdir(parents=True)
    os.mkfifo(state / "studio.pem")
    with pytest.raises(ConfigError, match=r"--listen: .*studio\.pem: it is no regular file"):
        certificates.self_made("0.0.0.0")
    assert (state / "studio.pem").is_fifo()


@pytest.fixture(params=["0.0.0.0", "::", "one"])
def studio(request: Any, tmp_path: Path) -> Iterator[Studio]:
    """A page that other machines can open."""
    if not own_addresses():
        pytest.skip("needs an address other than loopback")
    if request.param == "::" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("needs IPv6")
    host = own_addresses()[0] if request.param == "one" else request.param
    made = Studio(listening(host, 0, None, None), tmp_path / "run")
    made.start()
    yield made
    made.stop()


def test_the_printed_address_is_open_to_other_machines_and_its_fingerprint_is_that_of_the_certificate(
    studio: Studio,
) -> None:
    host = studio.listening.shown
    assert studio.address.startswith(f"https://{host}:") and host.strip("[]") in own_addresses()
    trusting = ssl.create_default_context(cafile=str(studio.listening.certificate))
    for address in (studio.address, studio.watch):
        with urllib.request.urlopen(address, timeout=10, context=trusting) as got:
            assert b"tcpsbed studio" in got.read()
    if studio.listening.host == "::":
        four = next((one for one in own_addresses() if "." in one), None)
        if four is not None:
            other = studio.address.replace(host, four)
            with urllib.request.urlopen(other, timeout=10, context=trusting) as got:
                assert got.status == 200, "IPv4, too"
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(studio.address, timeout=10)
    with socket.create_connection((host.strip("[]"), studio.port), timeout=10) as raw:
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
        with blind.wrap_socket(raw) as line:
            shown = hashlib.sha256(line.getpeercert(binary_form=True) or b"").digest()
            assert line.version() in ("TLSv1.2", "TLSv1.3")
    assert studio.fingerprint == shown.hex(":").upper()
    live = studio.address.replace("https", "wss").replace("/?", "/live?")
    with client.connect(live, ssl=trusting, origin=studio.listening.base) as line:  # type: ignore[arg-type]
        assert json.loads(line.recv(timeout=10))["k"] == "viewers"
    for origin in (studio.listening.base.replace("https", "http"), "https://evil.example"):
        with pytest.raises(InvalidStatus, match="403"):
            client.connect(live, ssl=trusting, origin=origin)  # type: ignore[arg-type]


def test_without_tls_nobody_gets_more_than_a_line_that_says_so(studio: Studio) -> None:
    place = (studio.listening.shown.strip("[]"), studio.port)
    with socket.create_connection(place, timeout=10) as line:
        line.sendall(f"GET /?token={studio.token} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        found = line.recv(4096)
    head, _, said = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and f"Content-Length: {len(said)}".encode() in head
    assert said.startswith(b"This port speaks https") and b"token" not in found
    with socket.create_connection(place, timeout=10) as line:
        line.sendall(b"\x00" * 64)
        try:
            found = line.recv(4096)
        except ConnectionError:
            found = b""
    assert b"HTTP" not in found, "what is no HTTP gets no answer in HTTP"


def test_tls_before_1_2_is_refused(studio: Studio) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection((studio.listening.shown.strip("[]"), studio.port), timeout=10) as raw,
        pytest.raises(OSError, match=r"(?i)version|alert|eof|reset|unsupported"),
    ):
        old.wrap_socket(raw).close()


def test_a_certificate_of_the_user_gives_the_page_its_name(tmp_path: Path) -> None:
    file, key = written(tmp_path, "lab1", -1, 1, "*.lab.example", "lab1.example")
    where = listening("192.0.2.199", 8700, file, key)
    assert where.base == "https://lab1.example:8700"
    ours = ("https://lab1.example:8700", "https://a.lab.example:8700", "https://192.0.2.199:8700")
    others = (
        "https://lab.example:8700",
        "https://a.b.lab.example:8700",
        "https://lab1.example",
        "https://*:8700",
    )
    assert all(map(where.ours, ours)) and not any(map(where.ours, others))
    assert listening("192.0.2.199", 443, file, key).ours("https://lab1.example")


def test_where_a_page_listens_reaches_its_process_and_pages_that_it_starts(tmp_path: Path) -> None:
    file, key = written(tmp_path, "lab1")
    where = listening("192.0.2.199", 8700, file, key)
    assert Listening.loaded(where.dumped()) == where
    assert where.options == ["--listen", "192.0.2.199", "--certificate", str(file), "--key", str(key)]
    assert listening("192.0.2.199", 1, None, None).options == ["--listen", "192.0.2.199"]
    assert listening(None, 8700, None, None).options == []


def test_many_write_while_one_reads_and_nothing_is_lost() -> None:
    """Records of several threads in both directions, in the order in which each thread sent them."""
    where = listening(None, 0, *(2 * [certificates.self_made("127.0.0.1")]))
    context, (near, far) = where.context(), socket.socketpair()
    assert context is not None and where.certificate is not None
    sealed = Sealed(near, context)
    trusting = ssl.create_default_context(cafile=str(where.certificate))
    got: list[bytes] = []

    def answer() -> None:
        while text := sealed.recv(1 << 16):
            got.append(text)

    reader = threading.Thread(target=answer)
    reader.start()
    line = trusting.wrap_socket(far, server_hostname="127.0.0.1")
    line.sendall(b"begin")
    end = time.monotonic() + 10
    while not got and time.monotonic() < end:
        time.sleep(0.001)

    def write(name: int) -> None:
        for number in range(200):
            sealed.sendall(f"{name} {number}\n".encode() + b"x" * 2000 + b"\n")

    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for writer in writers:
        writer.start()
    came = bytearray()
    while came.count(b"\n") < 4 * 200 * 2:
        came += line.recv(1 << 16)
        line.sendall(b"y")
    for writer in writers:
        writer.join()
    for name in range(4):
        own = [one.split()[1] for one in came.split(b"\n") if one.startswith(b"%d " % name)]
        assert own == [b"%d" % number for number in range(200)]
    before = sum(map(len, got))
    line.sendall(b"z" * 60_000)  # several records, which come at once
    end = time.monotonic() + 10
    while sum(map(len, got)) < before + 60_000:
        assert time.monotonic() < end, "a record waits for the next one"
        time.sleep(0.001)
    line.close()
    reader.join(10)
    sealed.close()
    assert not reader.is_alive() and set(b"".join(got)) == set(b"beginyz")


def test_all_records_that_came_together_are_read_together() -> None:
    """Whoever waits for the socket to have something would otherwise wait for what is there already."""
    where = listening(None, 0, *(2 * [certificates.self_made("127.0.0.1")]))
    context, (near, far) = where.context(), socket.socketpair()
    assert context is not None and where.certificate is not None
    sealed, incoming, outgoing = Sealed(near, context), ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cafile=str(where.certificate))
    tls = trusting.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(sealed.recv(1 << 16)))
    reader.start()
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            far.sendall(outgoing.read())
            incoming.write(far.recv(1 << 16))
    for _ in range(3):
        tls.write(b"x" * 1000)
    far.sendall(outgoing.read())
    reader.join(10)
    sealed.close()
    assert found == [b"x" * 3000]


@elsewhere
def test_the_command_prints_both_addresses_and_the_fingerprint_and_refuses_in_one_line(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    command = [sys.executable, "-m", "tcpsbed", "studio", "--no-browser", "--listen", "0.0.0.0"]
    bad = [*command, "--certificate", str(files["old"]), "--key", str(files["old-key"])]
    done = subprocess.run(bad, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "which expired on" in done.stderr and "Traceback" not in done.stderr
    scenario = tmp_path / "one.toml"
    scenario.write_text('include = "quickstart.toml"\n')
    run = [*command[:4], "quickstart.toml", *command[4:], "--duration", "3 s", "--world", "virtual"]
    subprocess.run([*command[:3], "init", "--from", "quickstart"], cwd=tmp_path, check=True, timeout=60)
    process = subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().split(": ", 1) for _ in range(3)]
    finally:
        process.kill()
        process.communicate()
    assert [name for name, _ in lines] == ["studio", "watch", "certificate"]
    assert lines[0][1].split("?")[0] == lines[1][1].split("?")[0] and lines[0] != lines[1]
    assert len(lines[2][1].split()[1].split(":")) == 32 and lines[2][1].startswith("SHA-256 ")
