"""Background traffic: which pairs, and what model. [PROTOCOLS 2.10]"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tcpsbed.config.compile.book import Book
from tcpsbed.config.compile.files import existing
from tcpsbed.config.compile.network import Network
from tcpsbed.config.model.table import close_match
from tcpsbed.config.model.traffic import Cbr, Poisson, Replay, Traffic, Vary, Vbr
from tcpsbed.config.origin import Key
from tcpsbed.errors import DataError

_Pair = tuple[str, int, int]


def traffic(book: Book, network: Network) -> list[dict[str, Any]]:
    """The entries of background traffic as the plan has them, one for each direction or pair."""
    plans: list[dict[str, Any]] = []
    for name, entry in book.scenario.traffic.items():
        key: Key = ("traffic", name)
        if not network.links:
            raise book.scenario.error(
                key, "found traffic, but there are no links", "a scenario with links or a graph"
            )
        pairs = _pairs(book, network, entry, (*key, "on"))
        if isinstance(entry, Cbr | Poisson | Vbr) and entry.rate_bps == 0:
            continue
        base = {"start_ns": entry.start_ns, "dscp": entry.dscp, "model": _model(book, entry, key)}
        if entry.stop_ns is not None:
            base["stop_ns"] = entry.stop_ns
        for suffix, a, b in pairs:
            plans.append({"name": f"{name}.{suffix}", "from": a, "to": b} | base)
    return plans


def _pairs(book: Book, network: Network, entry: Traffic, key: Key) -> list[_Pair]:
    """Where an entry flows: a name for each direction or pair, and its ends."""
    pairs: list[_Pair] = []
    for on in entry.on:
        if on == "all-to-all":
            names = entry.among or network.graph.vertices or book.nodes
            ends = [(name, network.vertex(name, (*key[:-1], "among"))) for name in names]
            pairs += [(f"{a}-{b}", i, j) for (a, i), (b, j) in permutations(ends, 2)]
        elif "->" in on:
            a, b = (place.strip() for place in on.split("->", 1))
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
    pairs = []
    for link in (network.links[number] for number in numbers):
        suffix = link["name"].removeprefix(f"{on}.") if alone and len(numbers) > 1 else link["name"]
        pairs.append((suffix, link["from"], link["to"]))
    return pairs


def _model(book: Book, entry: Traffic, key: Key) -> dict[str, Any]:
    if isinstance(entry, Replay):
        return _replay(book, entry, key)
    if isinstance(entry, Cbr):
        return {"kind": "cbr", "rate_bps": entry.rate_bps, "packet_bytes": entry.packet_bytes}
    if isinstance(entry, Poisson):
        exponential = entry.size == "exponential"
        plan = {"kind": "poisson", "rate_bps": entry.rate_bps, "packet_bytes": entry.packet_bytes}
        return plan | {"exponential_size": exponential}
    low, high = entry.rate_bps * (1 - entry.spread), entry.rate_bps * (1 + entry.spread)
    return {
        "kind": "vbr",
        "low_bps": low,
        "high_bps": high,
        "packet_bytes": entry.packet_bytes,
        "vary": _vary(entry.vary),
    }


def _vary(vary: Vary) -> dict[str, Any]:
    plan: dict[str, Any] = {"kind": vary.kind.replace("-", "_")}
    return plan | ({"period_ns": vary.piecewise_ns} if vary.kind == "piecewise" else {})


def _replay(book: Book, entry: Replay, key: Key) -> dict[str, Any]:
    """Captures merged in order of time, then played faster or scaled to a mean rate."""
    if entry.rate_bps is not None and entry.speed != 1.0:
        raise book.scenario.error((*key, "speed"), "found a speed and a rate", "one of them")
    packets = sorted(
        packet for number in range(len(entry.file)) for packet in _capture(book, entry, number, key)
    )
    if not packets:
        raise book.scenario.error((*key, "file"), "found no packets", "captures with packets")
    # A round ends a mean spacing after its last packet, so that the repetition has no packets at one moment.
    length = max(1, packets[-1][0] + packets[-1][0] // max(1, len(packets) - 1))
    speed = entry.speed
    if entry.rate_bps is not None:
        speed = entry.rate_bps * length / (sum(size for _, size in packets) * 8e9)
    plan: dict[str, Any] = {
        "kind": "replay",
        "packets": [[round(time / speed), size] for time, size in packets],
    }
    return plan | ({"loop_ns": max(1, round(length / speed))} if entry.loop else {})


def _capture(book: Book, entry: Replay, number: int, key: Key) -> list[tuple[int, int]]:
    """The packets of a capture as (moment from its first packet plus its offset, bytes on the wire)."""
    capture = entry.file[number]
    path = existing(book.scenario, (*key, "file"), capture.file)
    from tcpsbed.datasets import captures

    try:
        times, sizes = captures.read(path)
    except DataError as error:
        raise book.scenario.error(
            (*key, "file"), error.found, error.allowed or "a pcap, pcapng or csv file"
        ) from None
    first = int(times.min()) if len(times) else 0
    return [(int(t) - first + capture.offset_ns, int(s)) for t, s in zip(times, sizes, strict=True) if s > 0]
