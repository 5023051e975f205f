"""Ports that lead back to themselves: a packet would circulate for ever, and each round would look like a new client.

```text
7000=127.0.0.1:7000          itself               7000=localhost:7001  7001=[::1]:7000     two ports
```
Ports of other `tcpsbed proxy` commands of this machine count too, as they say them on their command lines.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from tcpsbed.errors import ConfigError
from tcpsbed.proxy.door import Door, parse

_PROC = Path("/proc")


def refuse(doors: Sequence[Door], others: Sequence[Door] | None = None) -> None:
    """Raises `ConfigError` if a packet that enters a door comes back to it, over doors of others too."""
    known = [*doors, *(elsewhere() if others is None else others)]
    for door in doors:
        seen: list[Door] = []
        reached = _next(door, known)
        while reached:
            if door in reached:
                over = " over another port" if door not in _next(door, known) else ""
                raise ConfigError(
                    f"found {door.listen[1]}={door.target[0]}:{door.target[1]}, which leads back to itself{over}",
                    key="PORT=TARGET",
                    allowed=f"the port of a server, such as {door.listen[1]}={door.target[0]}:{door.target[1] % 65535 + 1}",
                )
            seen += reached
            reached = [far for near in reached for far in _next(near, known) if far not in seen]


def elsewhere() -> list[Door]:
    """Ports of other proxies on this machine, in this network namespace."""
    return [door for words in _commands() for door in _doors(words)]


def _commands() -> Iterator[list[str]]:
    here = _namespace("self")
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _namespace(entry.name) == here:
            try:
                words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if "proxy" in words and any("tcpsbed" in word for word in words[: words.index("proxy")]):
                yield words[words.index("proxy") + 1 :]


def _namespace(process: str) -> str | None:
    try:
        return str((_PROC / process / "ns" / "net").readlink())
    except OSError:
        return None


def _doors(words: Sequence[str]) -> Iterator[Door]:
    for word in words:
        if "=" in word and ":" in word and not word.startswith("-"):
            try:
                yield parse(word)
            except ConfigError:
                continue


def _next(door: Door, known: Sequence[Door]) -> list[Door]:
    """The doors at which a packet arrives that a door hands on."""
    return [far for far in known if far.kind == door.kind and _is_at(door.target, far.listen)]


def _is_at(target: tuple[str, int], listen: tuple[str, int]) -> bool:
    if target[1] != listen[1] or not listen[1]:
        return False
    to, at = _plain(target[0]), _plain(listen[0])
    if to.is_unspecified or at.is_unspecified:
        return to.is_unspecified or _is_local(to)
    return to == at


def _plain(address: str) -> IPv4Address | IPv6Address:
    """An address without its zone, and as IPv4 where it is one written as IPv6."""
    found = ip_address(address.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is one of this machine: whether a socket may have it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((str(address), 0))
        except OSError:
            return False
    return True
