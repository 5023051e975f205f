"""Background traffic over TCP and QUIC: users, their pages, and the links that they fill."""

from __future__ import annotations

from typing import Any

from tcpsbed import _tcps
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.builtins import accepted
from tcpsbed.scenarios.compile.files import existing, read
from tcpsbed.scenarios.compile.network import Network
from tcpsbed.scenarios.model.traffic import Bulk, Transfers, Web
from tcpsbed.scenarios.origin import Key

Connected = Web | Transfers | Bulk
"""Kinds of traffic over connections."""

_CONGESTION = {
    "tcp": {"cubic": "cubic", "reno": "reno", "none": "none"},
    "quic": {"cubic": "cubic", "newreno": "reno"},
}
"""Congestion controls of each transport, as the plan calls them."""

_Pair = tuple[str, int, int]


def users(
    book: Book, network: Network, name: str, entry: Connected, pairs: list[_Pair]
) -> list[dict[str, Any]]:
    """An entry as the plan has it: users for each direction, who load from its beginning to its end."""
    key: Key = ("traffic", name)
    model = {
        "users": entry.connections if isinstance(entry, Bulk) else entry.users,
        "connection_per_object": isinstance(entry, Web) and entry.connection == "object",
    }
    model |= _connection(book, entry, key) | _pages(book, entry, key)
    stop = {} if entry.stop_ns is None else {"stop_ns": entry.stop_ns}
    return [
        {"name": f"{name}.{suffix}", "from": a, "to": b, "start_ns": entry.start_ns, "dscp": entry.dscp}
        | stop
        | {
            "model": {"kind": "users"}
            | accepted(
                book.scenario, key, _tcps.check_users, model | _drive(book, network, entry, (a, b), key)
            )
        }
        for suffix, a, b in pairs
    ]


def _connection(book: Book, entry: Connected, key: Key) -> dict[str, Any]:
    """What connections are like; what the chosen transport does not have is refused."""
    transport = entry.transport
    if transport == "quic" and "buffer_bytes" in entry.model_fields_set:
        found = 'found with transport = "quic", whose buffers are its own'
        raise book.scenario.error((*key, "buffer"), found, 'no such key, or transport = "tcp"')
    controls = _CONGESTION[transport]
    if entry.congestion not in controls:
        found = f'found "{entry.congestion}", which transport = "{transport}" does not have'
        raise book.scenario.error((*key, "congestion"), found, ", ".join(f'"{name}"' for name in controls))
    return {
        "transport": transport,
        "congestion": controls[entry.congestion],
        "mtu_bytes": entry.mtu_bytes,
        "buffer_bytes": entry.buffer_bytes,
    }


def _pages(book: Book, entry: Connected, key: Key) -> dict[str, Any]:
    """The laws of what is loaded."""
    from tcpsbed.datasets import laws

    if isinstance(entry, Web):
        name = entry.pages
        return {"pages": read(book.scenario, (*key, "pages"), lambda: laws.pages(name, book.scenario.folder))}
    if isinstance(entry, Bulk):
        return {}
    path = existing(book.scenario, (*key, "sizes"), entry.sizes)
    sizes = read(book.scenario, (*key, "sizes"), lambda: laws.empirical(path))
    nothing = {"kind": "constant", "value": 0.0}
    pause = {"kind": "exponential", "mean": entry.pause_ns / 1e9}
    page = {"request": {"kind": "constant", "value": 1.0}, "main": sizes, "embedded": nothing}
    return {"pages": page | {"object": nothing, "parse": nothing, "think": pause}}


def _drive(
    book: Book, network: Network, entry: Connected, ends: tuple[int, int], key: Key
) -> dict[str, dict[str, Any]]:
    """The link between the ends, which users are to fill."""
    if isinstance(entry, Bulk) or entry.utilisation is None:
        return {}
    at = (*key, "utilisation")
    if any("->" in on or on == "all-to-all" for on in entry.on):
        raise book.scenario.error(
            at, f'found on = "{entry.on[0]}"', "a link in `on`, which is the one to be used"
        )
    numbers = {number for on in entry.on for number in network.find(on, (*key, "on"))}
    number = next(n for n in sorted(numbers) if (network.links[n]["from"], network.links[n]["to"]) == ends)
    if network.links[number].get("rate_bps") is None:
        name = network.links[number]["name"]
        raise book.scenario.error(at, f"found {name}, which has no rate", "a link with a rate")
    return {"drive": {"link": number, "utilisation": entry.utilisation}}
