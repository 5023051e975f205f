"""Channels: one for every flow and every pair of nodes on its path, of its own or shared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpsbed import door, keyfile
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile import builtins, files
from tcpsbed.scenarios.compile.book import Book, Way
from tcpsbed.scenarios.compile.code import code
from tcpsbed.scenarios.model.code import Channel, Transport
from tcpsbed.scenarios.model.entries import entries
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key, dotted
from tcpsbed.scenarios.units import parameters, shown

_CONTROLLERS = {"telehaptic": "controller", "rtp": "congestion"}
"""Transports with a rate controller of the user's, and the parameter that names it."""


def _offered(transport: str) -> list[str]:
    """The methods of security that a transport may have; one in Python those of `udp`."""
    known = entries("transport")
    found: list[str] = known.get(transport, known["udp"])["security"]
    return found


class Channels:
    """Collects the channels of a plan. Side a is the one nearer to the operator."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.plan: list[dict[str, Any]] = []
        self._numbers: dict[tuple[int, str, frozenset[int]], int] = {}
        self._groups = self._shared()

    def between(self, way: Way, here: int, there: int) -> int | None:
        """The number of the channel that takes a flow from node `here` to node `there`; `None` on the same node."""
        if here == there:
            return None
        a, b = (here, there) if way.model.direction == "forward" else (there, here)
        name = self._group(way, here, there)
        slot = (way.session, name or f"flows.{way.id}", frozenset((a, b)))
        if slot not in self._numbers:
            self._numbers[slot] = len(self.plan)
            self.plan.append(self._channel(way, name, a, b))
        return self._numbers[slot]

    def _shared(self) -> dict[str, list[tuple[str, frozenset[int] | None]]]:
        """For each flow: the channels that it shares, with the nodes that they join."""
        groups: dict[str, list[tuple[str, frozenset[int] | None]]] = {}
        for name, channel in self.book.scenario.channels.items():
            ends = None
            if channel.between is not None:
                key = ("channels", name, "between")
                ends = frozenset(
                    self.book.find(node, self.book.nodes, key, "a node") for node in channel.between
                )
            for way in self.book.flows(channel.flows, ("channels", name, "flows")):
                entry = (name, ends)
                if entry not in groups.setdefault(way.id, []):
                    groups[way.id].append(entry)
        for flow, found in groups.items():
            self._refuse_overlap(flow, found)
        return groups

    def _refuse_overlap(self, flow: str, entries: list[tuple[str, frozenset[int] | None]]) -> None:
        spans = [ends for _, ends in entries]
        if len(set(spans)) < len(spans) or (None in spans and len(spans) > 1):
            name = entries[-1][0]
            found = f'found the flow "{flow}", which channel {entries[0][0]} has already'
            raise self.book.scenario.error(
                ("channels", name, "flows"),
                found,
                "each flow in one channel, or in channels with different `between`",
            )

    def _group(self, way: Way, here: int, there: int) -> str | None:
        for name, ends in self._groups.get(way.id, []):
            if ends is None or ends == {here, there}:
                return name
        return None

    def _channel(self, way: Way, group: str | None, a: int, b: int) -> dict[str, Any]:
        nodes = self.book.nodes
        name = group or way.id
        session = f"{self.book.sessions[way.session]}/" if len(self.book.sessions) > 1 else ""
        transport, key = self._transport(way, group)
        text = builtins.resolved("transport", transport.kind)
        given = self._led(key, text, transport.parameters())
        kind = self._named(key, text, given)
        if kind == "rtp" and given.get("congestion", "none") != "none":
            self._refuse_unheard(way, group, key, given["congestion"])
        params = parameters(given)
        dscp = self.book.scenario.channels[group].dscp if group else None
        overhead = self._overhead(way, group)
        if overhead is not None:
            params["overhead_bytes"] = overhead
        return {
            "name": f"{session}{name}@{nodes[a]}-{nodes[b]}",
            "session": way.session,
            "a": a,
            "b": b,
            "transport": kind,
            "params": params,
            **({} if dscp is None else {"dscp": dscp}),
            **({} if group is None else self._security(group, kind, params)),
        }

    def _security(self, group: str, transport: str, params: dict[str, Any]) -> dict[str, Any]:
        """What seals the datagrams of a shared channel, with the path of its key file; nothing where nothing does."""
        scenario, security = self.book.scenario, self.book.scenario.channels[group].security
        if security is None:
            return {}
        key = ("channels", group, "security")
        if security.kind not in (offered := _offered(transport)):
            found = f'found "{security.kind}" at the transport {transport}'
            fits = [name for name in entries("transport") if security.kind in _offered(name)]
            others = " or ".join(f'"{name}"' for name in fits[:2])
            such = f"transport = {others}" if len(fits) < 3 else f'a transport such as "{fits[0]}"'
            own = " or ".join(f'"{name}"' for name in offered) or f"no security ({transport} offers none)"
            raise scenario.error(key, found, f"{such}; with {transport}: {own}")
        if "overhead_bytes" in params:
            found = "found security beside `overhead`: a secured packet counts with its true size"
            raise scenario.error(key, found, "no overhead at the transport, or no security")
        given = security.parameters()
        builtins.rehearse(scenario, key, "security", security.kind, given, "")
        if (name := given.get("key_file")) is not None:
            path, _ = files.looked_up(scenario, name)
            if not _is_absent(path):
                _read_key(scenario, key, path)
            given |= {"key_file": str(path)}
        return {"security": {"kind": security.kind} | parameters(given)}

    def _led(self, key: Key, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a transport; a rate controller that is a class of the user's is among them as code."""
        own = _CONTROLLERS.get(kind)
        text = given.get(own or "", "none")
        if own is None or (own == "congestion" and text in ("none", *entries("controller"))):
            return given
        text = builtins.resolved("controller", str(text))
        if own == "congestion" and ":" not in text:
            return given
        allowed = 'a class in Python such as "./mine.py:Mine"'
        if ":" not in text:
            if text in builtins.known().get("transports", ()):
                allowed += f'; a built-in rule is a transport of its own: kind = "{text}"'
            if names := list(door.installed("controller")):
                allowed += f"; or one of an installed package: {close_match(text, names)}"
            raise self.book.scenario.error((*key, own), f"found {shown(given.get(own, 'nothing'))}", allowed)
        params = given.pop("params", {})
        if not isinstance(params, dict):
            raise self.book.scenario.error((*key, "params"), f"found {shown(params)}", "a table")
        found = code(self.book, (*key, own), text, "controller", params)
        if found["kind"] == "library":
            raise self.book.scenario.error((*key, own), f'found "{text}", a library', allowed)
        return given | {own: found}

    def _named(self, key: Key, text: str, given: dict[str, Any]) -> str:
        """A built-in transport, or a class in Python with its module resolved."""
        scenario = self.book.scenario
        if ":" not in text:
            builtins.check(scenario, key, text, "transport", '; or code such as "./mine.py:Mine"')
            if text == "quic" and "crypto" in given:
                allowed = (
                    "no such key"
                    if given["crypto"] == "null"
                    else 'security = "tls" at the channel, in place of it'
                )
                raise scenario.error((*key, "crypto"), f"found {shown(given['crypto'])}", allowed)
            if self.book.rehearsal or not isinstance(given.get(_CONTROLLERS.get(text, "")), dict):
                builtins.rehearse(scenario, key, "transport", text, given, "")
            return text
        found = code(self.book, key, text, "transport", given)
        if found["kind"] == "library":
            raise scenario.error(
                key, f'found "{text}", a library', 'a built-in transport, or code such as "./mine.py:Mine"'
            )
        return f"{found['name']}:{found['symbol']}"

    def _refuse_unheard(self, way: Way, group: str | None, key: Key, rule: Any) -> None:
        """Refuses a rate that is derived for nobody: only pictures that follow the transport ask for it."""
        scenario = self.book.scenario
        ids = [way.id] if group is None else scenario.channels[group].flows
        pictures = [scenario.flows[id].picture for id in ids]
        if not any(picture is not None and picture.follow for picture in pictures):
            name = rule if isinstance(rule, str) else rule["symbol"]
            found = f'found "{name}", but no flow of the channel has pictures that follow the transport'
            allowed = '"none", or follow = true at pictures of the channel'
            raise scenario.error((*key, "congestion"), found, allowed)

    def _transport(self, way: Way, group: str | None) -> tuple[Transport, Key]:
        """The transport of a channel, and the key that sets it."""
        flows = self.book.scenario.flows
        if group is None:
            return way.model.transport or Transport(), (*way.key, "transport")
        channel: Channel = self.book.scenario.channels[group]
        chosen, key = channel.transport, ("channels", group, "transport")
        for id in channel.flows:
            own = flows[id].transport
            if own is not None and chosen is not None and own != chosen:
                found = f"found another transport than {dotted(key)}"
                raise self.book.scenario.error(
                    ("flows", id, "transport"), found, "the same transport for flows of a channel"
                )
            if own is not None and chosen is None:
                chosen, key = own, ("flows", id, "transport")
        return chosen or Transport(), key

    def _overhead(self, way: Way, group: str | None) -> int | None:
        if group is None:
            return way.model.overhead_bytes
        for id in self.book.scenario.channels[group].flows:
            if self.book.scenario.flows[id].overhead_bytes is not None:
                allowed = (
                    f"overhead at the transport: [channels.{group}] transport = {{ kind = …, overhead = … }}"
                )
                raise self.book.scenario.error(
                    ("flows", id, "overhead"), "found an overhead of one flow in a shared channel", allowed
                )
        return None


def absent_keys(scenario: Scenario) -> list[str]:
    """The key files that are not here, as the scenario names them: virtual time needs none."""
    return list(dict.fromkeys(name for _, name, path in _key_files(scenario) if _is_absent(path)))


def require_keys(scenario: Scenario) -> None:
    """Refuses key files that are not here, or hold no key that only their owner can read.

    Raises
    ------
    ConfigError
        With the key, and what is allowed.
    """
    for key, _, path in _key_files(scenario):
        _read_key(scenario, key, path)


def _key_files(scenario: Scenario) -> Iterator[tuple[Key, str, Path]]:
    """The key of each method with a key file, its name, and where it is."""
    for name, channel in scenario.channels.items():
        file = channel.security.parameters().get("key_file") if channel.security is not None else None
        if isinstance(file, str):
            yield ("channels", name, "security"), file, files.looked_up(scenario, file)[0]


def _read_key(scenario: Scenario, key: Key, path: Path) -> None:
    files.read(scenario, (*key, "key_file"), lambda: keyfile.read(path))


def _is_absent(path: Path) -> bool:
    """Whether nothing has this name; what cannot be asked is not absent."""
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pass
    return False
