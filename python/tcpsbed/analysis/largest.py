"""The largest single part of each flow's delay: its cause, its place, and the key of the scenario that changes it.

```text
queueing, serialisation, …     times the share of each link of the flow's way  ─┐
waiting, working               times the share of each component                ├─► the largest
merging, playout, …            of the flow's channel, or of the flow           ─┘
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpsbed.analysis.ways import changes
from tcpsbed.clocks import SIMULATED
from tcpsbed.scenarios.origin import dotted

Found = Mapping[str, Any]
OF_NETWORK = ("queueing", "serialisation", "propagation", "radio")
"""Causes that have a link."""
OF_COMPONENTS = ("waiting", "working")
"""Causes that have a component."""
OF_CHANNELS = ("merging", "retransmission", "held")
"""Causes that have a channel."""
NEARLY = 0.75
"""Share of the largest part from which on the second largest is told, too."""


def largest(source: Found, split: Found) -> dict[str, dict[str, Any]]:
    """By flow whose delay is known: `cause`, `place`, `mean_ns` of `total_ns`, `key`, `value`; empty texts if unknown;
    `next` has the second largest part in the same way, if it is nearly as large.

    None of a flow whose delay is not above 0, or whose largest part may be clock error by half.

    Parameters
    ----------
    source
        What a summary is made from: `rows`, and where they are known `plan`, `scenario` and `ways`.
    split
        By flow: `total_ns`, `parts_ns`, `components` and `hops`, in nanoseconds.
    """
    found: dict[str, dict[str, Any]] = {}
    source = {**source, **_indexed(source, split)}
    for flow in source["rows"]["flows"]:
        name, way = flow["name"], flow.get("path") or {}
        segments = {one["name"]: one["mean_ns"] or 0.0 for one in way.get("segments") or ()}
        of = split.get(name)
        if of is not None:
            every, total_ns = list(_candidates(of, _links(name, split, source))), of["total_ns"]
        else:
            every, total_ns = (
                [(mean, "", place) for place, mean in segments.items()],
                way.get("delay_mean_ns"),
            )
        if every and total_ns and total_ns > 0:
            (mean_ns, cause, place), *others = sorted(every, key=lambda one: one[0], reverse=True)
            by_clocks = of is None or "clock_error_ns" not in of
            if by_clocks and 2 * _clock_error_ns(name, source) > mean_ns:
                continue
            place, key, value = _key(cause, place, mean_ns, name, source)
            told = {"cause": cause, "place": place, "mean_ns": mean_ns, "total_ns": total_ns}
            found[name] = told | {"key": key, "value": value, "next": []}
            if others and others[0][0] > NEARLY * mean_ns:
                mean_ns, cause, place = others[0]
                place, key, value = _key(cause, place, mean_ns, name, source)
                one = {"cause": cause, "place": place, "mean_ns": mean_ns, "total_ns": total_ns}
                found[name]["next"] = [one | {"key": key, "value": value}]
    return found


def _indexed(source: Found, split: Found) -> dict[str, Any]:
    """What is looked up for each flow, once: paths by flow, numbered links by name, what events change, hops by link."""
    plan = source.get("plan") or {}
    links = (plan.get("network") or {}).get("links") or ()
    hops = sorted((hop for of in split.values() for hop in of["hops"]), key=lambda hop: hop["packets"] or 0)
    return {
        "path_of": {one["name"]: one["path"] for one in plan.get("flows", ())},
        "link_of": {link["name"]: (number, link) for number, link in enumerate(links)},
        "changed": changes(plan),
        "hop_of": {hop["link"]: hop for hop in hops},
    }


def _clock_error_ns(flow: str, source: Found) -> float:
    """By how much the clocks that a plan gives the ends of a flow differ at most."""
    plan, path = source.get("plan"), source["path_of"].get(flow)
    if plan is None or not path:
        return 0.0
    first, last = (plan["nodes"][plan["components"][path[end]["component"]]["node"]] for end in (0, -1))
    offset, drift = (first["clock"][key] - last["clock"][key] for key in ("offset_ns", "drift_ppb"))
    return float(abs(offset) + abs(drift) * plan["duration_ns"] / 1e9)


def _links(flow: str, split: Found, source: Found) -> list[tuple[Found, float]]:
    """What packets spend at each link, and how often a sample passes it.

    Links of the flow's ways: by its own packets, or where it shares packets, by those of the flow that lists them. Without
    ways all links of its packets, as often as packets pass them: some lie in parallel.
    """
    ways = (source.get("ways") or {}).get(flow)
    if not ways:
        return [(hop, hop["packets"] or 0.0) for hop in split[flow]["hops"]]
    own = {hop["link"]: hop for hop in split[flow]["hops"]}
    hops = (own.get(link["name"], source["hop_of"].get(link["name"])) for way in ways for link in way)
    return [(hop, 1.0) for hop in hops if hop is not None]


def _candidates(of: Found, links: list[tuple[Found, float]]) -> Iterator[tuple[float, str, str]]:
    """Mean time, cause and place of every part that can be told apart."""
    for part, span in of["parts_ns"].items():
        mean, weights = span["mean"], dict[str, float]()
        if part in OF_NETWORK:
            for hop, times in links:
                weights[hop["link"]] = weights.get(hop["link"], 0.0) + hop[f"{part}_ns"] * times
        elif part in OF_COMPONENTS:
            weights = {one["component"]: one[f"{part}_ns"] for one in of["components"]}
        total = sum(weights.values())
        if total > 0:
            yield from ((mean * weight / total, part, place) for place, weight in weights.items())
        else:
            yield mean, part, ""


def _key(cause: str, place: str, mean_ns: float, flow: str, source: Found) -> tuple[str, str, str]:
    """The place, the key that changes what is spent there, and its value; empty where there is none."""
    plan, scenario = source.get("plan"), source.get("scenario")
    if plan is None or scenario is None:
        return place, "", ""
    mine = flow.rpartition("/")[2]
    if cause in OF_NETWORK and place:
        key, value = _of_link(cause, place, mean_ns, source)
        if cause == "queueing" and key.endswith(".rate") and _is_unserved(place, flow, source):
            value += f"{'; ' * bool(value)}{key.removesuffix('rate')}queue ignores DSCP"
        return place, key, value
    if cause in OF_COMPONENTS and place:
        return place, *_of_component(cause, place, flow, source)
    if cause == "playout":
        return mine, dotted(("flows", mine, "playout")), ""
    if cause in OF_CHANNELS:
        return _of_channel(flow, source)
    return place, "", ""


def _of_link(cause: str, place: str, mean_ns: float, source: Found) -> tuple[str, str]:
    """The key of a link, with its value where that is a number."""
    links = source["link_of"]
    (number, link), (base, _, way) = links[place], place.rpartition(".")
    base = base if way in ("forward", "backward") else place
    key, value = "rate", _rate(link.get("rate_bps"))
    if "radio" in link:
        key, value = "radio", ""
    elif cause == "propagation":
        delay_ns = link.get("delay_ns", 0)
        jitters = link.get("jitter") is not None and mean_ns > 2 * delay_ns
        more = "" if link.get("jitter") is None else "; jitter adds to it"
        key, value = ("jitter", "") if jitters else ("delay", f"{delay_ns / 1e6:g} ms{more}")
    elif link.get("slots") or link.get("opportunities_ns"):
        key, value = "slots" if link.get("slots") else "trace", ""
    elif link.get("rate_bps") is None:
        key, value = "queue", ""
    one_way = [side for side in ("forward", "backward") if f"{base}.{side}" in links]
    both = [links[f"{base}.{side}"][1] for side in one_way]
    plain = {"rate": "rate_bps", "delay": "delay_ns", "trace": "opportunities_ns"}.get(key, key)
    alike = len({str(side.get(plain)) for side in both}) < 2
    if value and plain in source["changed"].get(number, ()):
        value += ", changed in the run"
    return dotted(
        (*_table_of(base, link, source["plan"], source["scenario"]), *(() if alike else (way,)), key)
    ), value


def _is_unserved(place: str, flow: str, source: Found) -> bool:
    """Whether a flow with the highest code point waits behind packets with lower ones: the queue does not look at them."""
    plan, (_, link) = source["plan"], source["link_of"][place]
    marks = [one.get("dscp") or 0 for one in (*plan["flows"], *plan["network"].get("traffic", ()))]
    mine = next((one.get("dscp") or 0 for one in plan["flows"] if one["name"] == flow), 0)
    kind = ((link.get("queue") or {}).get("discipline") or {}).get("kind")
    return kind == "drop-tail" and min(marks, default=0) < mine == max(marks, default=0)


def _table_of(base: str, link: Found, plan: Found, scenario: Any) -> tuple[str, ...]:
    """The table of the scenario with the settings of a link: its own, or that of the node that it joins to a router."""
    if base not in scenario.links:
        names = plan["network"]["vertices"]
        for end in (link["from"], link["to"]):
            node = scenario.nodes.get(names[end])
            if node is not None and node.at is not None and base == f"{names[end]}-{node.at}":
                return "nodes", names[end], "link"
    return "links", base


def _of_component(cause: str, place: str, flow: str, source: Found) -> tuple[str, str]:
    """Of work the cost of the component or of a hook there, of waiting the period of a hook, or the cores of the node."""
    plan, scenario = source["plan"], source["scenario"]
    mine = place.rpartition("/")[2]
    model = scenario.components.get(mine)
    visits = source["path_of"].get(flow, ())
    steps = [v["steps"] for v in visits if plan["components"][v["component"]]["name"] == place]
    kinds = {step["kind"] for of in steps for step in of}
    here = [
        (name, hook)
        for name, hook in scenario.hooks.items()
        if model is not None
        and (hook.kind in kinds if hook.at is None else not {mine, model.kind}.isdisjoint(hook.at))
    ]
    if cause == "working":
        if model is not None and model.cost is not None:
            return dotted(("components", mine, "cost")), ""
        costly = [name for name, hook in here if hook.cost is not None]
        return (dotted(("hooks", costly[0], "cost")), "") if len(costly) == 1 else ("", "")
    periodic = [name for name, hook in here if hook.at is not None and hook.period_ns is not None]
    if periodic:
        return dotted(("hooks", periodic[0], "period")), f"{scenario.hooks[periodic[0]].period_ns / 1e6:g} ms"
    number = next((c["node"] for c in plan["components"] if c["name"] == place), None)
    if number is None or source.get("world") not in SIMULATED:
        return "", ""
    node = plan["nodes"][number]
    return dotted(("nodes", node["name"], "cores")), str(node.get("cores", 1))


def _of_channel(flow: str, source: Found) -> tuple[str, str, str]:
    """The channel of a flow, its transport and which that is; of several the first that is not UDP."""
    plan, visits = source["plan"], source["path_of"].get(flow, ())
    every = [plan["channels"][visit["channel"]] for visit in visits if visit.get("channel") is not None]
    if not every:
        return "", "", ""
    one = next((channel for channel in every if channel["transport"] != "udp"), every[0])
    mine = one["name"].partition("@")[0].rpartition("/")[2]
    key = dotted(("channels", mine, "transport")) if mine in source["scenario"].channels else ""
    return one["name"], key, one["transport"]


def _rate(rate_bps: float | None) -> str:
    if rate_bps is None:
        return ""
    factor, prefix = next(
        (one for one in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if rate_bps >= one[0]), (1.0, "")
    )
    return f"{rate_bps / factor:g} {prefix}bit/s"
