"""Certificates of pages: the user's, checked, or a self-made one that a browser has to accept once."""

from __future__ import annotations

import datetime
import errno
import fcntl
import ipaddress
import os
import shlex
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.media.packages import need

VALID = datetime.timedelta(days=365)
SPARE = datetime.timedelta(days=7)
"""A self-made certificate that ends sooner is made anew."""
EXAMPLE = (
    "--certificate lab1.pem --key lab1.key, both PEM; without them the page makes a certificate of its own"
)


@dataclass(frozen=True)
class Certificate:
    """What a browser is told of a page.

    Attributes
    ----------
    fingerprint
        SHA-256 of the certificate, in pairs of hexadecimal digits.
    names
        Hosts and addresses that it is for.
    """

    fingerprint: str
    names: tuple[str, ...]


def read(file: Path) -> Certificate:
    """The first certificate in a PEM file, which `check` or `self_made` has seen."""
    return _told(_parsed(file.read_bytes()))


def check(certificate: Path, key: Path) -> None:
    """Refuses files that no page can use.

    Raises
    ------
    ConfigError
        A file is missing or unreadable or is no PEM; the key is encrypted, open to every user, or belongs to another
        certificate; the certificate has expired or is not valid yet.
    """
    texts = {}
    for option, file in (("--certificate", certificate), ("--key", key)):
        try:
            texts[option] = inputs.content(file, EXAMPLE, inputs.DOCUMENT_BYTES)
        except DataError as error:
            raise ConfigError(f"found {file}, which {error.found}", key=option, allowed=EXAMPLE) from None
    try:
        made = _parsed(texts["--certificate"])
    except ValueError:
        found = f"found {certificate}, which holds no certificate in PEM"
        raise ConfigError(found, key="--certificate", allowed=EXAMPLE) from None
    _check_key(made, certificate, key, texts["--key"])
    mode = stat.S_IMODE(key.stat().st_mode)
    if mode & 0o007:
        found = f"found {key}, which every user may read (mode {mode:04o})"
        raise ConfigError(found, key="--key", allowed=f"mode 0600: chmod 600 {shlex.quote(key.name)}")
    now = _now()
    if now > made.not_valid_after_utc:
        found = f"found {certificate}, which expired on {made.not_valid_after_utc:%Y-%m-%d}"
        raise ConfigError(
            found, key="--certificate", allowed="a renewed one, or none: the page makes its own"
        )
    if now < made.not_valid_before_utc:
        found = (
            f"found {certificate}, which is not valid before {made.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        )
        raise ConfigError(
            found, key="--certificate", allowed="one that is valid now, and a clock that is right"
        )


def _check_key(made: Any, certificate: Path, key: Path, text: bytes) -> None:
    serialization = _package("hazmat.primitives.serialization")
    try:
        private = serialization.load_pem_private_key(text, None)
    except TypeError:
        remedy = "a key without a passphrase, such as of: openssl pkey -in lab1.key -out plain.key"
        raise ConfigError(f"found {key}, which is encrypted", key="--key", allowed=remedy) from None
    except Exception:  # ValueError, and for what OpenSSL does not know a kind of its own
        found = f"found {key}, which holds no private key in PEM"
        raise ConfigError(found, key="--key", allowed=EXAMPLE) from None
    if private.public_key() != made.public_key():
        raise ConfigError(
            f"found {key}, which is not the key of {certificate}",
            key="--key",
            allowed="the key it was made with",
        )


def self_made(host: str) -> Path:
    """A certificate for the addresses of this machine with its private key, in one file that only its owner reads.

    It stays in the user's state folder, so that a browser that has accepted it does so once; a new one is made where it is
    about to expire, or has not all of the addresses.

    Parameters
    ----------
    host : str
        The address at which a page listens.

    Raises
    ------
    ConfigError
        If it cannot be kept.
    """
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = base / "tcpsbed" / "studio.pem"
    names = _names(host)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        turn = os.open(file.parent, os.O_RDONLY)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if file.exists() and not file.is_file():
                raise OSError(errno.EINVAL, "it is no regular file")
            if not _serves(file, names):
                _keep(file, _made(names))
        finally:
            os.close(turn)
    except OSError as error:
        raise ConfigError(
            f"found no place for a certificate: {file}: {error.strerror}",
            key="--listen",
            allowed="XDG_STATE_HOME, a folder to write in; or --certificate FILE --key FILE",
        ) from None
    return file


def _serves(file: Path, names: Sequence[str]) -> bool:
    """Whether a file of before is still good for these names."""
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno())
            text = opened.read()
        made = _parsed(text)
    except (OSError, ValueError):
        return False
    ours = mode.st_uid == os.geteuid() and not stat.S_IMODE(mode.st_mode) & 0o077
    whole = b"PRIVATE KEY" in text and made.not_valid_before_utc <= _now() <= made.not_valid_after_utc - SPARE
    return ours and whole and set(names) <= set(_told(made).names)


def _keep(file: Path, text: bytes) -> None:
    """Whole or not at all, and never readable by others."""
    part = file.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(text)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _made(names: Sequence[str]) -> bytes:
    """A key and its certificate, PEM."""
    x509, serialization = _package("x509"), _package("hazmat.primitives.serialization")
    ec, hashes = _package("hazmat.primitives.asymmetric.ec"), _package("hazmat.primitives.hashes")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tcpsbed studio")])
    begun = _now() - datetime.timedelta(hours=1)  # for browsers whose clock is behind
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begun)
        .not_valid_after(begun + VALID)
        .add_extension(x509.SubjectAlternativeName([_general(x509, one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown: bytes = made.public_bytes(serialization.Encoding.PEM)
    return secret + shown


def _names(host: str) -> list[str]:
    """What a page of this machine may be called."""
    called = socket.gethostname().lower()
    named = [called] if called.isascii() and len(called) <= 63 and called.replace("-", "a").isalnum() else []
    mine = [] if ipaddress.ip_address(host).is_unspecified else [host]
    return list(dict.fromkeys([*mine, *own_addresses(), *named, "localhost", "127.0.0.1", "::1"]))


def own_addresses() -> list[str]:
    """Addresses at which others may reach this machine, the one of the default route first."""
    found = [
        *_outward(socket.AF_INET, "192.0.2.1"),
        *_of_interfaces(),
        *_outward(socket.AF_INET6, "2001:db8::1"),
    ]
    ours = (ipaddress.ip_address(one) for one in dict.fromkeys(found))
    return [str(one) for one in ours if not (one.is_loopback or one.is_link_local or one.is_unspecified)]


def _outward(family: socket.AddressFamily, far: str) -> list[str]:
    """The own address on the way to an address of documentation; nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        try:
            line.connect((far, 9))
        except OSError:  # no such route
            return []
        return [str(line.getsockname()[0])]


def _of_interfaces() -> list[str]:
    """The first IPv4 address of each interface; of use in a network without a default route."""
    get_address = 0x8915  # SIOCGIFADDR of Linux
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        for _, name in socket.if_nameindex():
            try:
                told = fcntl.ioctl(line, get_address, name.encode()[:15].ljust(40, b"\0"))
            except OSError:  # it has none
                continue
            found.append(socket.inet_ntoa(told[20:24]))
    return found


def _general(x509: Any, name: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _told(made: Any) -> Certificate:
    x509, hashes = _package("x509"), _package("hazmat.primitives.hashes")
    try:
        named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = tuple(str(one.value) for one in named if isinstance(one, (x509.DNSName, x509.IPAddress)))
    except (x509.ExtensionNotFound, ValueError):
        names = ()
    return Certificate(made.fingerprint(hashes.SHA256()).hex(":").upper(), names)


def _parsed(text: bytes) -> Any:
    return _package("x509").load_pem_x509_certificate(text)


def _package(part: str) -> Any:
    """A part of the package `cryptography`."""
    return need(f"cryptography.{part}", "a page on another address than loopback", "studio")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
