"""Where a page listens: on loopback as it is, on any other address over TLS."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed.errors import ConfigError
from tcpsbed.studio import certificate as certificates
from tcpsbed.studio.certificate import Certificate

if TYPE_CHECKING:
    import ssl

LOOPBACK = "127.0.0.1"
PORTS = {"http": 80, "https": 443}
"""Ports that an origin leaves out."""


@dataclass(frozen=True)
class Listening:
    """An address of this machine, and what encrypts its connections.

    Attributes
    ----------
    host
        An IP address; `0.0.0.0` or `::`: all of them.
    port
        0 takes a free one.
    certificate, key
        Files in PEM; absent: no TLS.
    """

    host: str = LOOPBACK
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None

    def dumped(self) -> str:
        """As text, for another process."""
        return json.dumps(asdict(self), default=str)

    @staticmethod
    def loaded(text: str) -> Listening:
        """What `dumped` wrote."""
        told = json.loads(text)
        files = {name: told[name] and Path(told[name]) for name in ("certificate", "key")}
        return Listening(told["host"], told["port"], files["certificate"], files["key"])

    @property
    def options(self) -> list[str]:
        """Those of a command whose page listens there, too, on a free port."""
        if self == Listening(port=self.port):
            return []
        made = [] if self.certificate is None or self.certificate == self.key else ["certificate", "key"]
        return [
            "--listen",
            self.host,
            *(word for one in made for word in (f"--{one}", str(getattr(self, one)))),
        ]

    @property
    def scheme(self) -> str:
        """Of the page's address."""
        return "https" if self.certificate else "http"

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @cached_property
    def told(self) -> Certificate | None:
        """What browsers are told of its certificate."""
        return certificates.read(self.certificate) if self.certificate else None

    def context(self) -> ssl.SSLContext | None:
        """TLS of a server, 1.2 or newer; `None`: it has none.

        Raises
        ------
        ssl.SSLError
            If OpenSSL refuses the files.
        """
        if self.certificate is None:
            return None
        import ssl

        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.num_tickets = (
            0  # a client of Python reads them in one thread while another writes, and may lose what it wrote
        )
        made.load_cert_chain(self.certificate, self.key)
        return made

    def at(self, port: int) -> Listening:
        """The same with the port that it got."""
        return replace(self, port=port)

    @property
    def shown(self) -> str:
        """Host of the address that a browser opens, on another machine too unless `local`."""
        if not ipaddress.ip_address(self.host).is_unspecified:
            reached = self.host
        else:
            ours = certificates.own_addresses()
            six = [one for one in ours if ":" in one and ":" in self.host]
            reached = next(iter([*six, *ours]), LOOPBACK)
        names = self.told.names if self.told else ()
        if self.told and reached not in names:  # a certificate of the user names its host
            reached = next(
                (one for one in names if not one.startswith("*") and not _is_address(one)), reached
            )
        return f"[{reached}]" if ":" in reached else reached

    @property
    def base(self) -> str:
        """The page's address without path and token."""
        return f"{self.scheme}://{self.shown}:{self.port}"

    @cached_property
    def origins(self) -> frozenset[str]:
        """What a browser says that one of our pages came from."""
        names = {self.shown, self.host, *(self.told.names if self.told else ())}
        if self.local:
            names |= {LOOPBACK, "localhost"}
        hosts = {f"[{one}]" if ":" in one and one[0] != "[" else one for one in names}
        port = "" if PORTS[self.scheme] == self.port else f":{self.port}"
        return frozenset(f"{self.scheme}://{host}{port}" for host in hosts)

    def ours(self, origin: str) -> bool:
        """Whether a browser's origin is one of our pages; a star in a certificate stands for one label."""
        if origin in self.origins:
            return True
        scheme, _, host = origin.partition("://")
        _, dot, rest = host.partition(".")
        return bool(dot) and f"{scheme}://*.{rest}" in self.origins


def listening(host: str | None, port: int, certificate: Path | None, key: Path | None) -> Listening:
    """Where a page listens, checked; on another address than loopback with a certificate, self-made without one.

    Parameters
    ----------
    host : str, optional
        An IP address of this machine; absent: 127.0.0.1.
    port : int
        0 takes a free one.
    certificate, key : Path, optional
        The user's, in PEM: both or none.

    Raises
    ------
    ConfigError
        If they cannot be used.
    """
    _check_host(host or LOOPBACK)
    if (certificate is None) != (key is None):
        lacks = "--key" if key is None else "--certificate"
        raise ConfigError("is missing", key=lacks, allowed=certificates.EXAMPLE)
    found = Listening(host or LOOPBACK, port, certificate, key)
    if certificate is not None and key is not None:
        certificates.check(certificate, key)
    elif not found.local:
        if ipaddress.ip_address(found.host).is_unspecified and not certificates.own_addresses():
            raise ConfigError(
                f"found {host}, and no address but loopback",
                key="--listen",
                allowed="a machine with a network",
            )
        made = certificates.self_made(found.host)
        found = replace(found, certificate=made, key=made)
    try:
        found.context()
    except OSError as error:  # `ssl.SSLError` is one
        refused = f"found {found.certificate}, which OpenSSL refuses ({error.strerror})"
        raise ConfigError(refused, key="--certificate", allowed=certificates.EXAMPLE) from None
    return found


def _check_host(host: str) -> None:
    allowed = (
        "an IP address of this machine such as 192.168.1.20, 0.0.0.0 or :: for all, 127.0.0.1 for itself"
    )
    if not _is_address(host) or "%" in host:
        raise ConfigError(f'found "{host}"', key="--listen", allowed=allowed)
    if ipaddress.ip_address(host).is_multicast:
        raise ConfigError(f"found {host}, a multicast address", key="--listen", allowed=allowed)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
