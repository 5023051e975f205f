"""ns-3 between the nodes: in its own virtual time, or on the machine's clock in place of the emulator's network.

```
 virtual driver ──┐                        ┌─ LTE, 5G, Wi-Fi, CSMA, point-to-point
                  ├─ pipe, lines of JSON ──┤
 emulator ────────┘   (packets as numbers) └─ background traffic inside ns-3
```
Nodes, transports, hooks and records are those of every other world; only what lies between the nodes is ns-3's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from tcpsbed.errors import WorldError
from tcpsbed.worlds import background, fit, ns3_program
from tcpsbed.worlds.contract import Network
from tcpsbed.worlds.process import Talk

NAME = "ns-3"
MOST_LAG_NS = 100_000_000
"""How late ns-3 may be on the machine's clock before the run ends."""
LEAST_BYTES = 2 + 20 + 8 + 4
"""What a packet takes in ns-3 at least: point-to-point link, IPv4, UDP, and the number by which it is known."""


class Ns3(Network):
    """The links of the scenario in ns-3, attached through the emulator's gates or the devices of namespaces."""

    name: ClassVar[str] = "ns3"
    what: ClassVar[str] = "the links of the scenario in ns-3, on the machine's clock"

    @classmethod
    def missing(cls) -> str | None:
        """ns-3 and a compiler."""
        return ns3_program.missing()

    @classmethod
    def unfit(cls, hosting: str) -> str | None:
        """Mininet's hosts are joined by its own switches."""
        return (
            "Mininet hosts have switches between them; take mininet, or ns3" if hosting == "mininet" else None
        )

    def refuse(self) -> None:
        """What ns-3 is not told to do, and what the one of this computer, if it is that one, does not have."""
        refuse(self.job.plan)
        if self.hosting.here:
            require(self.job.plan)

    def impair(self) -> Talk | None:
        """Starts the emulator's process with ns-3 behind it, where the hosting has room for it."""
        plan = self.job.plan
        foreign = foreign_of(plan, background.of_the_network(plan), self.hosting.simulator())
        self.process = self.hosting.beside("emulator")
        self.process.also["foreign"] = foreign
        return self.process

    def teardown(self) -> None:
        """Ends the process, and ns-3 with it."""
        if hasattr(self, "process"):
            self.process.end()


def foreign_of(
    plan: Mapping[str, Any], traffic: Iterable[Mapping[str, Any]], program: str | None = None
) -> dict[str, Any]:
    """What the native module wants to know of the program, with the network as ns-3 is given it.

    Parameters
    ----------
    plan
        The compiled scenario.
    traffic
        The entries of background traffic that ns-3 has to make.
    program
        The program's file; absent: that of this computer, compiled if it is not there.

    Raises
    ------
    WorldError
        If ns-3 is not there, or the scenario asks for what it is not told to do.
    """
    refuse(plan)
    if program is None:
        require(plan)
    network = {
        "links": [_link(link) for link in plan["network"]["links"]],
        "traffic": [_traffic(plan, entry) for entry in traffic],
    }
    return {
        "program": program or str(ns3_program.built()),
        "name": NAME,
        "network": network,
        "most_lag_ns": MOST_LAG_NS,
    }


def _traffic(plan: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what it plays: recordings are not shared in ns-3."""
    model = entry["model"]
    if "recording" not in model:
        return {**entry, "model": _source(model)}
    played = plan["network"]["recordings"][model["recording"]]
    return {**entry, "model": model | {"frames" if model["kind"] == "frames" else "packets": played}}


def _source(model: Mapping[str, Any]) -> dict[str, Any]:
    """A source as the program takes it: rates in place of a spread, names in place of choices."""
    plan = dict(model)
    if plan["kind"] == "poisson":
        plan["exponential_size"] = plan["size"] == "exponential"
    if plan["kind"] == "vbr":
        plan["low_bps"], plan["high_bps"] = (
            plan["rate_bps"] * (1 + sign * plan["spread"]) for sign in (-1, 1)
        )
        plan["vary"] = {"kind": plan["vary"].replace("-", "_"), "period_ns": plan["piecewise_ns"]}
    return plan


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    names = ("from", "to", "rate_bps", "delay_ns", "medium", "radio")
    plan = {name: link[name] for name in names if link.get(name) is not None}
    plan["queue"] = {key: link["queue"][key] for key in _limits(link)}
    if link.get("loss") is not None:
        plan["loss"] = link["loss"]["p"]
    if "radio" in plan:
        plan["radio"] = _RADIOS[plan["radio"]["kind"]](plan["radio"])
    return plan


def _limits(link: Mapping[str, Any]) -> list[str]:
    return [key for key in ("limit_bytes", "limit_packets") if link.get("queue", {}).get(key) is not None]


_SCHEDULERS = {
    "pf": "Pf", "rr": "Rr", "fdmt": "FdMt", "tdmt": "TdMt", "tta": "Tta", "fdbet": "FdBet", "tdbet": "TdBet",
    "cqa": "Cqa", "pss": "Pss",
}  # fmt: skip
"""Names of LTE schedulers in ns-3, without what they have in common."""


def _lte(radio: Mapping[str, Any]) -> dict[str, Any]:
    return {**radio, "scheduler": _SCHEDULERS[radio["scheduler"]]}


def _lena(radio: Mapping[str, Any]) -> dict[str, Any]:
    """A link of kind nr as 5G-LENA is told of it."""
    cell = radio["lena"]
    access, order = cell["scheduler"].split("-")
    return {
        **{key: radio[key] for key in ("kind", "up", "other", "pattern")},
        **{key: cell[key] for key in ("bandwidth_mhz", "carrier_ghz", "distance_m")},
        "scheduler": access.title() + order.upper(),
        "numerology": _NUMEROLOGIES[radio["slot_ns"]],
        "harq": radio["retransmissions"] > 0,
    }


_RADIOS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"lte": _lte, "nr": _lena, "wifi": dict}
"""What ns-3 is told of a radio link, by its kind."""
_NUMEROLOGIES = {1_000_000 >> mu: mu for mu in range(5)}
"""Subcarrier spacings of 15 kHz · 2^µ by the length of their slots in ns. [TS 38.211 §4.3.2]"""
_FOLLOWED = ("kind", "slot", "pattern", "access", "retransmissions", "lena")
"""Keys of a radio of kind nr that 5G-LENA follows; the others it decides itself."""
_CALLED = {"lte": "LTE", "nr": "5G", "wifi": "Wi-Fi"}
"""Kinds of radio in messages."""


def require(plan: Mapping[str, Any]) -> None:
    """Refuses a scenario over 5G-LENA where the ns-3 of this computer does not have it.

    Raises
    ------
    WorldError
        With what to install.
    """
    links = [
        link["name"] for link in plan["network"]["links"] if (link.get("radio") or {}).get("kind") == "nr"
    ]
    lack = ns3_program.lena() if links else None
    if lack is not None:
        raise WorldError(
            f'links.{links[0]}: found a radio of kind "nr", which over ns-3 needs {lack}; '
            'or "lte", "wifi", or the built-in network (--world virtual, real)'
        )


def refuse(plan: Mapping[str, Any]) -> None:
    """Refuses a scenario that ns-3 would run otherwise than asked for, with the remedy.

    Raises
    ------
    WorldError
        With the first such thing.
    """
    fit.refuse(NAME, plan, _unfit(plan))


def _unfit(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Place, what was found there and what is allowed, of everything that does not fit."""
    for link in plan["network"]["links"]:
        for found, allowed in _unfit_link(link):
            yield f"links.{link['name']}", found, allowed
    yield from _unfit_media(plan["network"]["links"])
    yield from _unfit_radio(plan["network"]["links"])
    for traffic in plan["network"].get("traffic", []):
        if traffic["model"]["kind"] == "users":
            yield (
                f"traffic.{traffic['name']}",
                "users of TCP or QUIC",
                "cbr, poisson, vbr, replay or video; or the built-in network",
            )
        if ":" in traffic["model"]["kind"]:
            allowed = "cbr, poisson, vbr, replay or video; or the built-in network"
            yield f"traffic.{traffic['name']}", "a source of your own", allowed
    yield from background.too_short(plan, LEAST_BYTES, "packets take in ns-3; or the built-in network")
    for event in plan.get("events", []):
        if event["action"]["kind"] in ("link", "reroute"):
            allowed = "events of flows, traffic and components; or the built-in network"
            yield f"events ({event['name']})", "a change of links", allowed
    for flow in plan["flows"]:
        if flow.get("blocking_send"):
            yield f"flows.{flow['name']}.blocking_send", "true", "false, or the built-in network"


def _unfit_link(link: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    built_in = "the built-in network (--world virtual, real)"
    for key in ("jitter", "duplicate", "corrupt", "outages", "slots"):
        if link.get(key):
            yield key, built_in
    if link.get("opportunities_ns") is not None:
        yield "a trace", built_in
    if link.get("dscp") is not None:
        yield "a link for one code point", built_in
    if (link.get("loss") or {}).get("kind", "random") != "random":
        yield "loss in bursts", f"loss as a share, or {built_in}"
    discipline = link.get("queue", {}).get("discipline", {}).get("kind", "drop-tail")
    if discipline != "drop-tail":
        yield f"a {discipline} queue", f"drop-tail, or {built_in}"
    if (link.get("radio") or {}).get("kind") == "nr":
        for found, allowed in _unfit_nr(link):
            yield found, f"{allowed}, or {built_in}"


def _unfit_nr(link: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What 5G-LENA has its own numbers for, or does not do."""
    radio = link["radio"]
    for key, said in (("rate_bps", "rate"), ("delay_ns", "delay"), ("queue", "queue"), ("loss", "loss")):
        if link.get(key):
            yield f"{said} beside a radio of kind nr", "none: over 5G-LENA it follows from radio.lena"
    for key in radio["given"]:
        if key not in _FOLLOWED:
            yield f"radio.{key}", f"no {key}: 5G-LENA decides that itself"
    if radio["access"]["kind"] != "request":
        yield 'radio.access = "configured"', '"request": 5G-LENA has no configured grants'
    if radio["slot_ns"] not in _NUMEROLOGIES:
        yield f"radio.slot of {radio['slot_ns'] / 1e6:g} ms", "1, 0.5, 0.25, 0.125 or 0.0625 ms"
    if not set("DF") & set(radio["pattern"]) or not set("UF") & set(radio["pattern"]):
        yield f'radio.pattern = "{radio["pattern"]}"', "slots of both directions"
    if radio["retransmissions"] not in (0, 3):
        yield f"radio.retransmissions = {radio['retransmissions']}", "3, or 0"


def _unfit_media(links: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """A CSMA bus is one thing: its links are alike, and have a rate."""
    media: dict[str, list[dict[str, Any]]] = {}
    for link in links:
        if link.get("medium"):
            media.setdefault(link["medium"], []).append(link)
    for name, members in media.items():
        kinds = {(m.get("rate_bps"), m.get("delay_ns", 0)) for m in members}
        if len(kinds) > 1 or members[0].get("rate_bps") is None:
            yield (
                f"medium {name}",
                "links that differ, or that have no rate",
                "the same rate and delay for all of its links",
            )
        if any(member.get("loss") for member in members):
            yield f"medium {name}", "loss", "no loss on a shared medium, or the built-in network"


def _unfit_radio(links: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    up = [link for link in links if link.get("radio") and link["radio"]["up"]]
    kinds = sorted({link["radio"]["kind"] for link in up})
    if len(kinds) > 1:
        yield "links", " and ".join(_CALLED[kind] for kind in kinds), "one of them in a scenario"
    if not kinds or kinds == ["wifi"]:
        return
    called = _CALLED[kinds[0]]
    if len(stations := {link["to"] for link in up}) > 1:
        allowed = f"one place behind the base station, to which all {called} links lead"
        yield "links", f"{called} to {len(stations)} places", allowed
    for link in up[1:]:
        if _cell(link["radio"]) != _cell(up[0]["radio"]):
            found = f"other settings of the base station than links.{up[0]['name']}"
            yield f"links.{link['name']}.radio", found, "the same for all of its links, but the distance"


def _cell(radio: Mapping[str, Any]) -> dict[str, Any]:
    """What the base station is told of a link."""
    told: dict[str, Any] = _RADIOS[radio["kind"]](radio)
    return {key: value for key, value in told.items() if key not in ("distance_m", "other", "up")}
