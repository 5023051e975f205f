"""When links are closed by their own settings: `outages`, and the slots of a long cycle, as in a handover.

These are no events of a scenario and leave no rows: their moments follow from the plan.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

Link = Mapping[str, Any]
SHORTEST_NS = 10**9
"""The shortest cycle of slots whose closing is told: others are the access to a medium."""
MOST = 10_000
"""Moments, and times in which links were down, that are told at most, of the first."""
KEYS = ("outages", "slots")
"""Keys of a link that close it."""


def moments(links: Iterable[Link], from_ns: int = 0) -> Iterator[tuple[int, str]]:
    """Each moment (ns) at which a link closes or opens and what it does, in order; with slots there is no last one.

    Parameters
    ----------
    links
        Of a plan's network. Both directions of a link that close together are told as one.
    from_ns
        Earlier ones are left out.
    """
    every = heapq.merge(*_each(links, from_ns), key=lambda moment: moment[0])
    return islice((moment for moment in every if moment[0] >= from_ns), MOST)


def until(links: Iterable[Link], end_ns: int) -> Iterator[dict[str, Any]]:
    """Those before an end as events of a summary: `t_s` and `name`."""
    for at_ns, name in moments(links):
        if at_ns >= end_ns:
            return
        yield {"t_s": at_ns / 1e9, "name": name}


def spans(plan: Mapping[str, Any], end_ns: int) -> list[dict[str, Any]]:
    """The times in which links are down by the plan, in order: by `outages`, or from an event that takes a link down to the
    one that brings it up, as one where these overlap; `link`, `from_s` and `length_s` (s) until the end of the run at most.
    Both directions of a link that are down together are told as one; of a plan as a run leaves it, with the events that were
    asked for.
    """
    links = (plan.get("network") or {}).get("links") or ()
    down: list[list[tuple[int, int]]] = [
        [(begin, end) for begin, end in link.get("outages") or ()] for link in links
    ]
    since: dict[int, int] = {}
    for event in sorted(plan.get("events") or (), key=lambda event: event["at_ns"]):
        action = event["action"]
        for number in action.get("links", ()) if action["kind"] == "link" and "up" in action else ():
            if not action["up"]:
                since.setdefault(number, event["at_ns"])
            elif number in since:
                down[number].append((since.pop(number), event["at_ns"]))
    for number, begin in since.items():
        down[number].append((begin, end_ns))
    by_span: dict[tuple[int, int], list[str]] = {}
    for link, found in zip(links, down, strict=True):
        for begin, end in _joined(found):
            if begin < end_ns:
                by_span.setdefault((begin, min(end, end_ns)), []).append(link["name"])
    every = (
        {"link": name, "from_s": begin / 1e9, "length_s": (end - begin) / 1e9}
        for (begin, end), closed in sorted(by_span.items())
        for name in names(closed)
    )
    return list(islice(every, MOST))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that overlap or touch as one, without empty ones."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif begin < end:
            found.append((begin, end))
    return found


class Passing:
    """The moments of a run that goes on, handed over as its time passes.

    Parameters
    ----------
    links
        Of its network.
    from_ns
        Earlier ones are left out.
    """

    def __init__(self, links: Iterable[Link], from_ns: int = 0) -> None:
        self._left = moments(links, from_ns)
        self._next = next(self._left, None)

    def due(self, now_s: float) -> Iterator[dict[str, Any]]:
        """Those until now, as events of a summary."""
        while self._next is not None and self._next[0] <= now_s * 1e9:
            yield {"t_s": self._next[0] / 1e9, "name": self._next[1]}
            self._next = next(self._left, None)


def changed(before: Sequence[Link], after: Sequence[Link], at_ns: int) -> Iterator[dict[str, Any]]:
    """What closes each link where another network took the place of the present one, a moment long: `outages` up to it from
    the one, then from the other. Slots that differ are told of neither.
    """
    for old, new in zip(before, after, strict=True):
        spans = [[begin, min(end, at_ns)] for begin, end in sorted(old.get("outages", ())) if begin < at_ns]
        for begin, end in sorted(new.get("outages", ())):
            if spans and spans[-1][1] == at_ns >= begin and end > at_ns:
                spans[-1][1] = end  # it goes on
            elif end > at_ns:
                spans.append([max(begin, at_ns), end])
        same = old.get("slots") if old.get("slots") == new.get("slots") else None
        yield {"outages": spans} | ({"slots": same} if same else {})


def names(links: Sequence[str]) -> Iterator[str]:
    """Links by name; both directions of one as that link."""
    known = set(links)
    for name in links:
        base, _, way = name.rpartition(".")
        if way == "forward" and f"{base}.backward" in known:
            yield base
        elif not (way == "backward" and f"{base}.forward" in known):
            yield name


def _each(links: Iterable[Link], from_ns: int) -> Iterator[Iterator[tuple[int, str]]]:
    """The moments of each link that closes, by kind."""
    by_spans: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        for key in KEYS:
            if found := link.get(key):
                by_spans.setdefault((key, str(found)), []).append(link)
    for (key, _), closing in by_spans.items():
        for name in names([str(link["name"]) for link in closing]):
            yield (
                _outages(name, closing[0][key])
                if key == "outages"
                else _slots(name, closing[0][key], from_ns)
            )


def _outages(name: str, spans: Iterable[Sequence[int]]) -> Iterator[tuple[int, str]]:
    for begin, end in sorted(map(tuple, spans)):
        yield begin, f"outage of {name} begins"
        yield end, f"outage of {name} ends"


def _slots(name: str, slots: Mapping[str, Any], from_ns: int) -> Iterator[tuple[int, str]]:
    cycle, opened = slots["cycle_ns"], slots["open"]
    if cycle < SHORTEST_NS or not opened:
        return
    ends = [opened[-1][1] - cycle, *(end for _, end in opened)]  # that of the cycle before comes first
    gaps = [(end, begin) for end, (begin, _) in zip(ends, opened, strict=False) if begin > end]
    if not gaps:
        return
    for begun in count(max(from_ns // cycle - 1, 0) * cycle, cycle):
        for end, begin in gaps:
            if begun + end >= 0:
                yield begun + end, f"slots of {name} close"
            if begun + begin > 0:
                yield begun + begin, f"slots of {name} open"
