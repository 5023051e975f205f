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
from tcpsbed.worlds.process import ControlChannel

NAME = fit.NS3
_BUILT_IN = "--world virtual or real"
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
            "hosts of Mininet have switches between them; allowed: mininet, or ns3"
            if hosting == "mininet"
            else None
        )

    def refuse(self) -> None:
        """Keys that ns-3 cannot honour, and features that this computer's ns-3 lacks."""
        refuse(self.job.plan)
        self.hosting.refuse_between()
        if self.hosting.here:
            require(self.job.plan)

    def impair(self) -> ControlChannel | None:
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
    """A link of kind nr in the form for 5G-LENA."""
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
            f'found a radio of kind "nr", which over ns-3 needs {lack}',
            key=f"links.{links[0]}.radio",
            allowed=f'kind = "lte", kind = "wifi", or {_BUILT_IN}',
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
    yield from fit.unhonoured(NAME, plan, _BUILT_IN)
    for link in plan["network"]["links"]:
        if (link.get("radio") or {}).get("kind") == "nr":
            for key, found, allowed in _unfit_nr(link):
                yield f"links.{link['name']}.{key}", found, f"{allowed}, or {_BUILT_IN}"
    yield from _unfit_media(plan["network"]["links"])
    yield from _unfit_radio(plan["network"]["links"])
    yield from background.too_short(plan, LEAST_BYTES, "a packet needs in ns-3", _BUILT_IN)


def _unfit_nr(link: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What 5G-LENA computes itself, or does not support: key of the link, what was found there and what is allowed."""
    radio = link["radio"]
    for key, said in (("rate_bps", "rate"), ("delay_ns", "delay"), ("queue", "queue"), ("loss", "loss")):
        if link.get(key):
            found = f"{said} beside a radio of kind nr"
            yield said, found, f"no `{said}` (5G-LENA computes it from radio.lena)"
    for key in radio["given"]:
        if key not in _FOLLOWED:
            yield f"radio.{key}", key, f"no `{key}` (5G-LENA computes it)"
    if radio["access"]["kind"] != "request":
        yield "radio.access", '"configured"', '"request"'
    if radio["slot_ns"] not in _NUMEROLOGIES:
        slots = ", ".join(f'"{slot_ns / 1e6:g} ms"' for slot_ns in _NUMEROLOGIES)
        yield "radio.slot", f'"{radio["slot_ns"] / 1e6:g} ms"', slots
    if not set("DF") & set(radio["pattern"]) or not set("UF") & set(radio["pattern"]):
        yield "radio.pattern", f'"{radio["pattern"]}"', 'slots for both directions, such as "DDSU"'
    if radio["retransmissions"] not in (0, 3):
        yield "radio.retransmissions", f"{radio['retransmissions']}", "3, 0"


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
                f"links.{members[0]['name']}.medium",
                f'"{name}", whose links differ or have no rate',
                "the same rate and delay for all links of the medium",
            )
        if any(member.get("loss") for member in members):
            lossy = next(member["name"] for member in members if member.get("loss"))
            yield (
                f"links.{lossy}.loss",
                f'loss on the medium "{name}"',
                f"no `loss` on a medium, or {_BUILT_IN}",
            )


def _unfit_radio(links: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    up = [link for link in links if link.get("radio") and link["radio"]["up"]]
    kinds = sorted({link["radio"]["kind"] for link in up})
    if len(kinds) > 1:
        yield (
            "links",
            "radio links of " + " and ".join(_CALLED[kind] for kind in kinds),
            f"radio links of one kind, or {_BUILT_IN}",
        )
    if not kinds or kinds == ["wifi"]:
        return
    called = _CALLED[kinds[0]]
    if len(stations := {link["to"] for link in up}) > 1:
        allowed = f"the same `to`, the base station's, for all {called} links"
        yield "links", f"{called} links to {len(stations)} base stations", allowed
    for link in up[1:]:
        if _cell(link["radio"]) != _cell(up[0]["radio"]):
            found = f"settings of the base station other than those of links.{up[0]['name'].split('.')[0]}"
            yield (
                f"links.{link['name']}.radio",
                found,
                "the same settings for all of its links, except distance_m",
            )


def _cell(radio: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the base station for a link."""
    told: dict[str, Any] = _RADIOS[radio["kind"]](radio)
    return {key: value for key, value in told.items() if key not in ("distance_m", "other", "up")}
