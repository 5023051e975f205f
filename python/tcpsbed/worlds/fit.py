"""Whether a scenario fits a world: keys that a world cannot honour are refused, with a remedy.

Which network honours which key is said once, in `KEYS`: refusals and the table of docs/scenario.md come from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tcpsbed.errors import WorldError

Plan = Mapping[str, Any]
Found = Iterator[tuple[str, str]]
"""Places in a scenario, and what was found there."""
VIRTUAL, EMULATOR, NS3, MININET = "virtual", "emulator", "ns-3", "Mininet"
BUILT_IN = (VIRTUAL, EMULATOR)
NETWORKS = (*BUILT_IN, NS3, MININET)
"""What may carry packets: the built-in network, in virtual time and on a real clock, ns-3 or Mininet."""


@dataclass(frozen=True)
class Key:
    """A key of a scenario, or some values of it, that not every network honours."""

    key: str
    values: str
    """Which values; empty: any."""
    by: tuple[str, ...]
    """The networks that honour it."""
    find: Callable[[Plan], Found]
    instead: str = ""
    """What may stand there for the others."""
    elsewhere: str = ""
    """The worlds that do, where not every world of a network does."""


def _link(key: str, by: tuple[str, ...] = (*BUILT_IN, MININET), found: str = "", in_plan: str = "") -> Key:
    def find(plan: Plan) -> Found:
        for link in plan["network"]["links"]:
            value = link.get(in_plan or key)
            if value is not None and (value not in ([], 0) or key == "dscp"):
                yield f"links.{link['name']}.{key}", found or key

    return Key(f"links.*.{key}", "", by, find, f"no {key}")


def _radios(*kinds: str) -> Callable[[Plan], Found]:
    def find(plan: Plan) -> Found:
        for link in plan["network"]["links"]:
            if (link.get("radio") or {}).get("kind") in kinds:
                yield f"links.{link['name']}.radio", "a radio link"

    return find


def _losses(plan: Plan) -> Found:
    for link in plan["network"]["links"]:
        kind = (link.get("loss") or {}).get("kind", "random")
        if kind != "random":
            found = "a loss model of your own" if ":" in kind else "loss in bursts"
            yield f"links.{link['name']}.loss", found


def _queues(plan: Plan) -> Found:
    for link in plan["network"]["links"]:
        discipline = link.get("queue", {}).get("discipline", {}).get("kind", "drop-tail")
        if discipline != "drop-tail":
            yield f"links.{link['name']}.queue", f"a {discipline} queue"


def _simplex(plan: Plan) -> Found:
    for link in plan["network"]["links"]:
        if not link["name"].endswith((".forward", ".backward")):
            yield f"links.{link['name']}.duplex", "a link of one direction"


def _sources(found: str, is_one: Callable[[str], bool]) -> Callable[[Plan], Found]:
    def find(plan: Plan) -> Found:
        for entry in plan["network"].get("traffic", []):
            if is_one(entry["model"]["kind"]):
                yield f"traffic.{entry['name']}.kind", found

    return find


def _users(plan: Plan) -> Found:
    for entry in plan["network"].get("traffic", []):
        if entry["model"]["kind"] == "users":
            named = '"web" or "transfers"' if "pages" in entry["model"] else '"bulk"'
            yield f"traffic.{entry['name']}.kind", f"{named} (connections of TCP or QUIC)"


def _events(kind: str, found: str) -> Callable[[Plan], Found]:
    def find(plan: Plan) -> Found:
        for event in plan.get("events", []):
            if event["action"]["kind"] == kind:
                yield f"events ({event['name']})", found

    return find


attacks = _events("attack", "an attack")
"""Places of the attacks in a plan."""


def _blocking(plan: Plan) -> Found:
    for flow in plan["flows"]:
        if flow.get("blocking_send"):
            yield f"flows.{flow['name']}.blocking_send", "true"


_SOURCES = '"cbr", "poisson", "vbr", "replay" or "video"'
KEYS = (
    _link("jitter"),
    _link("duplicate"),
    _link("corrupt"),
    _link("outages"),
    _link("slots"),
    _link("trace", found="a trace", in_plan="opportunities_ns"),
    _link("dscp", BUILT_IN, "a link for one code point"),
    Key("links.*.radio", "nr", (*BUILT_IN, NS3), _radios("nr")),
    Key("links.*.radio", "lte, wifi", (NS3,), _radios("lte", "wifi")),
    Key("links.*.duplex", "simplex", (*BUILT_IN, NS3), _simplex, '"duplex"'),
    Key(
        "links.*.loss",
        "in bursts, or code of your own",
        (*BUILT_IN, MININET),
        _losses,
        'a share, such as "1 %"',
    ),
    Key(
        "links.*.queue.discipline",
        "all but drop-tail",
        (*BUILT_IN, MININET),
        _queues,
        'discipline = "drop-tail"',
    ),
    Key(
        "traffic.*.kind",
        "web, transfers, bulk",
        BUILT_IN,
        _users,
        _SOURCES,
    ),
    Key(
        "traffic.*.kind",
        "code of your own",
        (*BUILT_IN, MININET),
        _sources("a source of your own", lambda kind: ":" in kind),
        _SOURCES,
    ),
    Key(
        "events.*.link",
        "",
        (*BUILT_IN, MININET),
        _events("link", "a change of links"),
        "events of flows, components or nodes",
    ),
    Key(
        "events.*.reroute",
        "",
        BUILT_IN,
        _events("reroute", "another way"),
        "events of flows, components or nodes",
    ),
    Key(
        "events.*.traffic",
        "",
        (*BUILT_IN, NS3),
        _events("traffic", "a change of traffic"),
        "events of flows, components or nodes",
    ),
    Key(
        "events.*.attack",
        "",
        BUILT_IN,
        attacks,
        "events of flows, components or nodes",
        "--world virtual or real",
    ),
    Key("flows.*.blocking_send", "true", (VIRTUAL,), _blocking, "false"),
)
"""The keys that not every network honours."""


def unhonoured(network: str, plan: Plan, elsewhere: str) -> Iterator[tuple[str, str, str]]:
    """Place, what was found there and what is allowed, of every key that a network does not honour.

    Parameters
    ----------
    network
        One of `NETWORKS`.
    plan
        The compiled scenario.
    elsewhere
        The worlds that do, as messages name them.
    """
    for key in KEYS:
        if network not in key.by:
            for place, found in key.find(plan):
                worlds = key.elsewhere or (elsewhere if EMULATOR in key.by else _elsewhere(key))
                yield place, found, f"{key.instead}, or {worlds}" if key.instead else worlds


def _elsewhere(key: Key) -> str:
    return f"--world {VIRTUAL}" if VIRTUAL in key.by else "--world ns3-virtual or ns3"


OF_NETWORK = ("link", "reroute", "traffic")
"""Kinds of events that what lies between the nodes carries out, beside attacks."""
_CLOSING = ("outages", "slots")
"""Keys that close a link."""


def without_network(plan: Plan) -> dict[str, Any]:
    """A plan for a world in which nothing carries out the links: without their events and the times at which they close."""
    network = plan["network"]
    links = [{key: link[key] for key in link if key not in _CLOSING} for link in network["links"]]
    events = [event for event in plan["events"] if event["action"]["kind"] not in OF_NETWORK]
    return {**plan, "network": network | {"links": links}, "events": events}


def refuse_on_clock(plan: Plan) -> None:
    """Refuses what only virtual time honours.

    Raises
    ------
    WorldError
        With place, found and allowed.
    """
    for key in KEYS:
        if VIRTUAL in key.by and EMULATOR not in key.by:
            for place, found in key.find(plan):
                allowed = f"{key.instead}, or {_elsewhere(key)}"
                raise WorldError(
                    f"found {found}, which has no effect on a real clock", key=place, allowed=allowed
                )


def table() -> str:
    """The table of the documentation."""
    rows = [(f"`{key.key}`{f': {key.values}' if key.values else ''}", key.by) for key in KEYS]
    lines = [
        f"| {what} | {' | '.join('' if n in by else 'refused' for n in NETWORKS)} |" for what, by in rows
    ]
    return "\n".join([f"| key | {' | '.join(NETWORKS)} |", "|---" * (1 + len(NETWORKS)) + "|", *lines]) + "\n"


def refuse(name: str, plan: Plan, unfit: Iterable[tuple[str, str, str]]) -> None:
    """Refuses a plan without links, and the first thing that does not fit.

    Parameters
    ----------
    name
        What carries the packets in place of the built-in network.
    plan
        The compiled scenario.
    unfit
        Place in the scenario, what was found there and what is allowed, of everything that does not fit.

    Raises
    ------
    WorldError
        With place, found and allowed.
    """
    if not plan["network"]["links"]:
        raise WorldError(
            f"found no links, so {name} has nothing to carry",
            key="links",
            allowed="one link or more, such as [links.wan], or --world real",
        )
    for place, found, allowed in unfit:
        raise WorldError(f"found {found}, which {name} does not support", key=place, allowed=allowed)
