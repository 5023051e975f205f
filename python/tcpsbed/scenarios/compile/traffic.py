"""Background traffic: which pairs, and what model. [Gokhale 2017 §6]"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tcpsbed.errors import counted
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.code import own
from tcpsbed.scenarios.compile.files import existing, read
from tcpsbed.scenarios.compile.network import Network
from tcpsbed.scenarios.compile.phases import phase_ns
from tcpsbed.scenarios.compile.users import Connected, users
from tcpsbed.scenarios.model.entries import Chosen
from tcpsbed.scenarios.model.traffic import Own, Replay, Traffic, Video
from tcpsbed.scenarios.origin import Key

_Pair = tuple[str, int, int]


_Recording = list[list[int]]
_PERIODIC = ("cbr", "vbr")
"""Sources whose packets come at regular intervals, and whose phase may be drawn."""


def traffic(book: Book, network: Network) -> tuple[list[dict[str, Any]], list[_Recording]]:
    """The entries of background traffic as the plan has them, one for each direction or pair, and what they play.

    A recording is a list of (moment in ns, bytes); entries name theirs by its number, so that all pairs share one.
    """
    plans: list[dict[str, Any]] = []
    recordings: list[_Recording] = []
    for name, entry in book.scenario.traffic.items():
        key: Key = ("traffic", name)
        if not network.links:
            raise book.scenario.error(
                key,
                "found traffic, but there are no links",
                'links, such as [links.l1] from = "a" to = "b", or topology.graph',
            )
        pairs = _pairs(book, network, entry, (*key, "on"))
        if isinstance(entry, Chosen) and entry.plan.get("rate_bps") == 0:
            continue
        if isinstance(entry, Connected):
            plans += users(book, network, name, entry, pairs)
            continue
        models = _models(book, entry, key, recordings)
        base: dict[str, Any] = {"dscp": entry.dscp} | (
            {} if entry.stop_ns is None else {"stop_ns": entry.stop_ns}
        )
        for suffix, a, b in pairs:
            for number, (offset_ns, model) in enumerate(models, 1):
                one = f"{name}.{suffix}" + (f".{number}" if len(models) > 1 else "")
                begin_ns = entry.start_ns + offset_ns
                begin_ns += phase_ns(book.scenario, f"traffic {one}", _period_ns(entry))
                start = {"name": one, "from": a, "to": b, "start_ns": begin_ns}
                plans.append(start | base | {"model": model})
    return plans, recordings


def _period_ns(entry: Chosen | Own | Replay | Video) -> float:
    """Mean time between packets or frames of traffic that is periodic; 0 of all other."""
    if isinstance(entry, Chosen) and entry.plan["kind"] in _PERIODIC:
        return float(8e9 * entry.plan["packet_bytes"] / entry.plan["rate_bps"])
    return 1e9 / entry.frame_rate_hz if isinstance(entry, Video) else 0.0


def _pairs(book: Book, network: Network, entry: Traffic, key: Key) -> list[_Pair]:
    """Where an entry flows: a name for each direction or pair, and its ends."""
    pairs: list[_Pair] = []
    for on in entry.on:
        if on == "all-to-all":
            names = entry.among or network.graph.vertices or book.nodes
            if len(set(names)) < max(len(names), 2):
                raise book.scenario.error(
                    (*key[:-1], "among"),
                    f"found {counted(len(names), 'place')}",
                    'two places or more, each once, such as ["a", "b"]',
                )
            ends = [(name, network.vertex(name, (*key[:-1], "among"))) for name in names]
            pairs += [(f"{a}-{b}", i, j) for (a, i), (b, j) in permutations(ends, 2)]
        elif "->" in on:
            a, b = (place.strip() for place in on.split("->", 1))
            if a == b:
                raise book.scenario.error(key, f'found "{on}"', 'two different places, such as "a->b"')
            pairs.append((f"{a}-{b}", network.vertex(a, key), network.vertex(b, key)))
        else:
            pairs += _of_link(book, network, on, len(entry.on) == 1, key)
    twice = [name for name, _, _ in pairs if sum(name == other for other, _, _ in pairs) > 1]
    if twice:
        raise book.scenario.error(key, f'found "{twice[0]}" twice', "each link or pair once")
    return pairs


def _of_link(book: Book, network: Network, on: str, alone: bool, key: Key) -> list[_Pair]:
    if on not in network.named:
        allowed = f'"a->b", "all-to-all" or a link: {close_match(on, list(network.named))}'
        raise book.scenario.error(key, f'found "{on}"', allowed)
    numbers = network.named[on]
    for number in numbers:
        _check_alone(book, network, number, key)
    pairs = []
    for link in (network.links[number] for number in numbers):
        suffix = link["name"].removeprefix(f"{on}.") if alone and len(numbers) > 1 else link["name"]
        pairs.append((suffix, link["from"], link["to"]))
    return pairs


def _check_alone(book: Book, network: Network, number: int, key: Key) -> None:
    """Refuses a link that the route between its ends may pass by: packets know their ends, not their links."""
    link = network.links[number]
    ends = (link["from"], link["to"])
    beside = [i for i, other in enumerate(network.links) if (other["from"], other["to"]) == ends]
    if beside[0] == number and (len(beside) == 1 or book.scenario.topology.routing == "hops"):
        return
    other = network.links[next(i for i in beside if i != number)]["name"]
    a, b = (network.vertices[end] for end in ends)
    found = f'found "{link["name"]}", and {other} joins the same two'
    raise book.scenario.error(key, found, f'"{a}->{b}", which takes the link that the route takes')


def _models(
    book: Book, entry: Chosen | Own | Replay | Video, key: Key, recordings: list[_Recording]
) -> list[tuple[int, dict[str, Any]]]:
    """What flows between each pair: models, each with the span after the start at which it begins."""
    if isinstance(entry, Replay):
        return _replays(book, entry, key, recordings)
    if isinstance(entry, Video):
        return [(0, _video(book, entry, key, recordings))]
    if isinstance(entry, Own):
        return [(0, own(book, (*key, "kind"), entry.kind, "source", entry.params))]
    return [(0, entry.plan)]


def _replays(
    book: Book, entry: Replay, key: Key, recordings: list[_Recording]
) -> list[tuple[int, dict[str, Any]]]:
    """Captures side by side, each repeated on its own, sped up together so that their mean rates add up."""
    if entry.rate_bps is not None and entry.speed != 1.0:
        raise book.scenario.error((*key, "speed"), "found a speed and a rate", "one of them")
    captures = [_capture(book, (*key, "file"), capture.file) for capture in entry.file]
    speed = entry.speed
    if entry.rate_bps is not None:
        speed = entry.rate_bps / sum(8e9 * sum(sizes) / length_ns for _, sizes, length_ns in captures)
    models = []
    for (times, sizes, length_ns), capture in zip(captures, entry.file, strict=True):
        recordings.append([[round(time / speed), size] for time, size in zip(times, sizes, strict=True)])
        loop = {"loop_ns": max(1, round(length_ns / speed))} if entry.loop else {}
        models.append((capture.offset_ns, {"kind": "replay", "recording": len(recordings) - 1} | loop))
    return models


def _capture(book: Book, key: Key, name: str) -> tuple[list[int], list[int], float]:
    """Times and sizes of a capture's packets, and its length: one mean gap beyond the last, 1 s for a single packet."""
    from tcpsbed.datasets import captures

    path = existing(book.scenario, key, name)
    times, sizes = (array.tolist() for array in read(book.scenario, key, lambda: captures.read(path)))
    length_ns = times[-1] * len(times) / (len(times) - 1) if times[-1] > 0 else 1e9
    return times, sizes, length_ns


_VIDEO_HEADERS_BYTES = 78
"""Header of the plain `udp` transport, UDP, IPv4 and Ethernet."""


def _video(book: Book, entry: Video, key: Key, recordings: list[_Recording]) -> dict[str, Any]:
    """Frames at their times, no more of them than the run needs."""
    from tcpsbed.datasets import traces

    if entry.packet_bytes <= _VIDEO_HEADERS_BYTES:
        found = f"found {entry.packet_bytes} B"
        raise book.scenario.error(
            (*key, "packet"), found, f"more than the {_VIDEO_HEADERS_BYTES} B of headers"
        )
    path = existing(book.scenario, (*key, "file"), entry.file)
    sizes = read(book.scenario, (*key, "file"), lambda: traces.frame_sizes(path)).tolist()
    period_ns = 1e9 / entry.frame_rate_hz
    if entry.rate_bps is not None:
        content = entry.packet_bytes - _VIDEO_HEADERS_BYTES
        wire_bps = 8e9 * sum(sizes) * entry.packet_bytes / content / (len(sizes) * period_ns)
        sizes = [max(1, round(size * entry.rate_bps / wire_bps)) for size in sizes]
    needed = int(book.scenario.duration_ns / period_ns) + 2
    recordings.append([[round(i * period_ns), size] for i, size in enumerate(sizes[:needed])])
    loop = {"loop_ns": round(len(sizes) * period_ns)} if entry.loop else {}
    size = {"packet_bytes": entry.packet_bytes, "overhead_bytes": _VIDEO_HEADERS_BYTES}
    return {"kind": "frames", "recording": len(recordings) - 1} | loop | size
