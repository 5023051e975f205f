"""Events by time: each changes one kind of thing."""

from __future__ import annotations

import json
import re
from typing import Any

from tcpsbed.errors import TcpsbedError
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.network import Network
from tcpsbed.scenarios.model.attack import Attack, ClockLie, Flood, Forge, ReplayAttack, Reset
from tcpsbed.scenarios.model.entries import OwnCode
from tcpsbed.scenarios.model.measure import Event
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import SHORTEST_NS

MOST_DATAGRAM_BYTES = 65_507
"""What a datagram of UDP holds."""
MOST_VALUE = 3.4028234663852886e38
"""What a value of a sample holds (float32)."""
_PLACE = re.compile(r"events\.(\d+): attack\.(\w+): ")
"""How a message about an attack begins: the number of its event, and the key."""
_TARGETS = {
    "link": ("rate_bps", "delay_ns", "loss", "jitter", "duplicate", "queue", "up"),
    "reroute": (),
    "flow": ("running",),
    "traffic": ("running",),
    "component": ("alive",),
    "node": ("step_ns",),
    "attack": (),
}
_EXAMPLES = {"link": 'delay = "20 ms"', "flow": "running = false", "traffic": "running = false"}
_EXAMPLES |= {"component": "alive = false", "node": 'step = "1 ms"'}
_NAMES = {"rate_bps": "rate", "delay_ns": "delay", "step_ns": "step"}


def events(book: Book, network: Network, traffic: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events as the plan has them, in order of time."""
    plans: list[dict[str, Any]] = []
    for number, event in enumerate(book.scenario.events):
        key: Key = ("events", number)
        target = _target(book, event, key)
        if event.at_ns >= book.scenario.duration_ns:
            continue
        for action in _actions(book, network, traffic, event, target, key):
            plans.append({"at_ns": event.at_ns, "name": _name(event, target), "action": action})
    return sorted(plans, key=lambda plan: plan["at_ns"])


def asked_by(scenario: Scenario) -> dict[str, str]:
    """Who asked for events while an earlier run went on, by their names in the plan."""
    found = {}
    for event in scenario.events:
        if event.by and (targets := _targets(event)):
            found[_name(event, targets[0])] = event.by
    return found


def named(scenario: Scenario) -> dict[str, tuple[int, str]]:
    """By its name in the plan, the number of each event in the scenario and what it concerns; the first of each name."""
    found: dict[str, tuple[int, str]] = {}
    for number, event in enumerate(scenario.events):
        if targets := _targets(event):
            found.setdefault(_name(event, targets[0]), (number, targets[0]))
    return found


def _targets(event: Event) -> list[str]:
    return [name for name in _TARGETS if getattr(event, name) is not None]


def _target(book: Book, event: Event, key: Key) -> str:
    """The target of an event, checked for required and unknown keys."""
    targets = _targets(event)
    if len(targets) != 1:
        raise book.scenario.error(
            key,
            f"found {' and '.join(targets) or 'no target'}",
            f'one of {", ".join(_TARGETS)}, such as link = "l1"',
        )
    target = targets[0]
    given = {name for names in _TARGETS.values() for name in names if getattr(event, name) is not None}
    names = ", ".join(_NAMES.get(name, name) for name in _TARGETS[target])
    for extra in sorted(given - set(_TARGETS[target])):
        raise book.scenario.error(
            (*key, _NAMES.get(extra, extra)),
            f"found beside {target}, which it does not change",
            names or "no other key",
        )
    if _TARGETS[target] and not given:
        raise book.scenario.error(
            key, f"found {target} without a change", f"{names}, such as {_EXAMPLES[target]}"
        )
    return target


def _actions(
    book: Book, network: Network, traffic: list[dict[str, Any]], event: Event, target: str, key: Key
) -> list[dict[str, Any]]:
    if target == "link":
        links = [number for name in event.link or [] for number in network.find(name, (*key, "link"))]
        if event.rate_bps is not None and any(
            "opportunities_ns" in network.links[number] for number in links
        ):
            found = "found a new rate of a link that follows a trace"
            raise book.scenario.error((*key, "rate"), found, "delay, loss, jitter, duplicate, queue, up")
        changes = {
            name: getattr(event, name) for name in _TARGETS["link"] if getattr(event, name) is not None
        }
        if event.jitter is not None:
            if isinstance(
                own := event.jitter.delay, OwnCode
            ):  # before any of it is loaded: a page may ask for events
                allowed = "a built-in delay model: code is loaded before a run begins"
                raise book.scenario.error((*key, "jitter", "kind"), f'found "{own.kind}"', allowed)
            changes["jitter"] = network.jitter(event.jitter, (*key, "jitter"))
        if event.queue is not None:
            unit, limit = changes.pop("queue")
            changes[unit] = limit
        return [{"kind": "link", "links": links} | changes]
    if target == "flow":
        ways = book.flows(event.flow or [], (*key, "flow"))
        return [{"kind": "flow", "flow": way.number, "running": event.running} for way in ways]
    if target == "traffic":
        for name in event.traffic or []:
            book.find(name, list(book.scenario.traffic), (*key, "traffic"), "traffic")
        numbers = [i for i, plan in enumerate(traffic) if plan["name"].split(".")[0] in (event.traffic or [])]
        return [{"kind": "traffic", "traffic": numbers, "running": event.running}]
    if target == "component":
        for name in event.component or []:
            book.find(name, list(book.scenario.components), (*key, "component"), "a component")
        chosen = [c for c in book.instances if c.id in (event.component or [])]
        return [{"kind": "component", "component": c.number, "alive": event.alive} for c in chosen]
    if target == "node":
        numbers = [book.find(name, book.nodes, (*key, "node"), "a node") for name in event.node or []]
        return [{"kind": "clock", "node": number, "step_ns": event.step_ns} for number in numbers]
    if event.attack is not None:
        return _attack(book, network, event.attack, (*key, "attack"))
    return [{"kind": "reroute"}]


def _attack(book: Book, network: Network, attack: Attack, key: Key) -> list[dict[str, Any]]:
    """An attack on a flow of every session, or on clocks."""
    links = network.find(attack.link, (*key, "link"))
    if len(links) != 1:
        names = [str(network.links[number]["name"]) for number in links]
        raise book.scenario.error(
            (*key, "link"), f'found "{attack.link}", which is {len(links)} directions', " or ".join(names)
        )
    head = {"kind": "attack", "link": links[0], "duration_ns": attack.duration_ns}
    if isinstance(attack, ClockLie):
        if attack.offset_ns == 0:
            raise book.scenario.error((*key, "offset"), "found 0", 'a time that is not 0, such as "10 ms"')
        return [head | {"what": {"kind": "clock_lie", "offset_ns": attack.offset_ns}}]
    what: dict[str, Any]
    if isinstance(attack, Forge):
        wide = all(way.model.codec == "f64" for way in book.flows([attack.flow], (*key, "flow")))
        if far := [value for value in attack.values if abs(value) > MOST_VALUE and not wide]:
            allowed = f'at most {MOST_VALUE:.7g}, or a flow with codec = "f64"'
            raise book.scenario.error((*key, "values"), f"found {far[0]:g}", allowed)
        what = {"period_ns": round(1e9 / attack.rate_hz), "values": attack.values}
    elif isinstance(attack, ReplayAttack):
        what = {"after_ns": attack.after_ns, "share": attack.share}
    elif isinstance(attack, Flood):
        _check_flood(book, attack, key)
        what = {"rate_bps": attack.rate_bps, "bytes": attack.size_bytes}
    elif isinstance(attack, Reset):
        what = {"period_ns": round(1e9 / attack.rate_hz), "fin": attack.segment == "fin"}
    else:
        what = {"share": attack.share}
    ways = book.flows([attack.flow], (*key, "flow"))
    return [head | {"what": {"kind": attack.kind, "flow": way.number} | what} for way in ways]


def check_attacks(book: Book, network: Network, plan: dict[str, Any]) -> None:
    """Refuses attacks that a run would refuse: on links that a flow does not pass, and what a transport cannot have."""
    attacks = [
        {"at_ns": 0, "name": str(number), "action": action}
        for number, event in enumerate(book.scenario.events)
        if event.attack is not None
        for action in _attack(book, network, event.attack, ("events", number, "attack"))
    ]
    try:
        from tcpsbed import _tcps
    except ImportError:
        return
    if not attacks:
        return
    try:
        _tcps.check_attacks(json.dumps(plan | {"events": attacks}))
    except TcpsbedError as error:
        said, _, allowed = str(error).partition("; allowed: ")
        place = _PLACE.match(said)
        if place is None:
            raise
        key = ("events", int(place[1]), "attack", place[2])
        raise book.scenario.error(key, said[place.end() :], allowed) from None


def _check_flood(book: Book, flood: Flood, key: Key) -> None:
    if flood.size_bytes > MOST_DATAGRAM_BYTES:
        allowed = f"at most {MOST_DATAGRAM_BYTES} B, what a datagram of UDP holds"
        raise book.scenario.error((*key, "size"), f"found {flood.size_bytes} B", allowed)
    if flood.size_bytes * 8e9 / flood.rate_bps < SHORTEST_NS:
        least = f"{flood.size_bytes * 8 / SHORTEST_NS:g} Gbit/s"
        raise book.scenario.error(
            (*key, "rate"),
            f"found more than one datagram of {flood.size_bytes} B in a microsecond",
            f"at most {least} with this size, or larger datagrams",
        )


def _name(event: Event, target: str) -> str:
    name, by = event.name or _title(event, target), event.by
    return name if by is None or name.endswith(f"({by})") else f"{name} ({by})"


def _title(event: Event, target: str) -> str:
    if event.attack is not None:
        return f"attack: {event.attack.kind} {getattr(event.attack, 'flow', event.attack.link)}"
    names = getattr(event, target)
    what = "" if target == "reroute" else f" {', '.join(names)}"
    words = {
        "running": {True: "starts", False: "stops"},
        "alive": {True: "restarts", False: "dies"},
        "up": {True: "up", False: "down"},
    }
    changes = [words[k][getattr(event, k)] for k in words if getattr(event, k) is not None]
    if event.rate_bps is not None:
        changes.append(f"rate {event.rate_bps / 1e3:g} kbit/s")
    if event.delay_ns is not None:
        changes.append(f"delay {event.delay_ns / 1e6:g} ms")
    if event.loss is not None:
        changes.append(f"loss {event.loss * 100:g} %")
    if event.jitter is not None:
        changes.append(f"jitter {getattr(event.jitter.delay, 'kind', 'from a file')}")
    if event.duplicate is not None:
        changes.append(f"duplicate {event.duplicate * 100:g} %")
    if event.queue is not None:
        unit, limit = event.queue
        changes.append(f"queue {limit} {'B' if unit == 'limit_bytes' else 'packets'}")
    if event.step_ns is not None:
        changes.append(f"clock {event.step_ns / 1e9:+g} s")
    return " ".join([f"{target}{what}", *changes])
