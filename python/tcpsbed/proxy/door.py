"""Ports of a proxy, as written on the command line: `7000=127.0.0.1:7100/udp`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios.units import shown

ALLOWED = "[ADDRESS:]PORT=HOST:PORT[/udp|/tcp], such as 7000=127.0.0.1:7100/udp or 0.0.0.0:7000=robot:7100"
_PART = r"(?:\[(?P<{0}v6>[0-9A-Fa-f:.]+)\]|(?P<{0}host>[^\[\]:=/]+))"
_DOOR = re.compile(
    rf"(?:{_PART.format('near')}:)?(?P<nearport>[0-9]{{1,9}})={_PART.format('far')}:(?P<farport>[0-9]{{1,9}})(?:/(?P<kind>udp|tcp))?"
)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Door:
    """A port that hands on to a target.

    Attributes
    ----------
    kind : str
        `udp` or `tcp`.
    listen, target : (str, int)
        IP address and port where clients come, and of the server.
    """

    kind: str
    listen: tuple[str, int]
    target: tuple[str, int]

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.listen[1]}/{self.kind}"

    def settings(self) -> dict[str, Any]:
        """As the native module takes it."""
        listen, target = _joined(*self.listen), _joined(*self.target)
        return {"name": self.name, "kind": self.kind, "listen": listen, "target": target}


def parse(text: str, *, listen: str = LOOPBACK, key: str = "PORT=TARGET") -> Door:
    """A port as written on the command line; host names are resolved once.

    Parameters
    ----------
    text : str
        `[ADDRESS:]PORT=HOST:PORT[/udp|/tcp]`; without `/tcp` it is UDP.
    listen : str
        Where clients come if no address is given.
    key : str
        The option or argument that errors name.

    Raises
    ------
    ConfigError
        If it is something else, or a host has no address.
    """
    found = _DOOR.fullmatch(text)
    if found is None:
        raise ConfigError(f"found {shown(text)}, {_fault(text)}", key=key, allowed=ALLOWED)
    ports = [int(found["nearport"]), int(found["farport"])]
    for port, which, least in ((ports[0], "port to listen on", 0), (ports[1], "target port", 1)):
        if not least <= port <= 65535:
            free = "" if least else " (0 takes a free one)"
            allowed = f"a {which} from {least} to 65535{free}, such as 7000=127.0.0.1:7100"
            raise ConfigError(f'found "{text}", with the {which} {port}', key=key, allowed=allowed)
    kind = found["kind"] or "udp"
    near = _address(found["nearv6"] or found["nearhost"] or listen, kind, key)
    far = _address(found["farv6"] or found["farhost"], kind, key)
    return Door(kind, (near, ports[0]), (far, ports[1]))


def once(doors: Iterable[Door], key: str) -> None:
    """Raises `ConfigError` if two of them listen at the same port."""
    listening = [(door.kind, door.listen) for door in doors if door.listen[1]]
    if len(set(listening)) < len(listening):
        raise ConfigError("found a port twice", key=key, allowed="each port once")


def flows(doors: Sequence[str]) -> list[str]:
    """Names of the two flows of each door, by the side that they lead to; doors of one name are numbered."""
    numbered = [
        f"{name} ({doors[:at].count(name) + 1})" if doors.count(name) > 1 else name
        for at, name in enumerate(doors)
    ]
    return [f"{name} to {there}" for name in numbered for there in ("far", "near")]


def _fault(text: str) -> str:
    """The part that is not of the form."""
    near, equals, far = text.partition("=")
    target, slash, kind = far.partition("/")
    if not equals:
        return "without a target (=HOST:PORT)"
    if slash and kind not in ("udp", "tcp"):
        return f"with the unknown protocol {shown(kind)}"
    if not re.fullmatch(r"[0-9]{1,9}", near.rpartition(":")[2]):
        return f"whose port to listen on is {shown(near.rpartition(':')[2])}"
    return f"with the target {shown(target)}, which is not HOST:PORT"


def _address(host: str, kind: str, key: str) -> str:
    wanted = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    try:
        found = socket.getaddrinfo(host, None, type=wanted)
    except (OSError, UnicodeError) as error:  # a name may be one that no name can be
        why = getattr(error, "strerror", None) or "no valid host name"
        allowed = "an IP address, or a host name that this computer can resolve, such as localhost"
        raise ConfigError(f"found the host {shown(host)} ({why})", key=key, allowed=allowed) from None
    # IPv4 first: servers on "localhost" mostly listen there only.
    return str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
