"""Points at which the values of samples are recorded."""

from __future__ import annotations

from tcpsbed._tcps import HELD
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.sources import codec
from tcpsbed.scenarios.origin import Key


def signals(book: Book) -> list[int]:
    """The numbers of the points that `measure.signals` names, in every session, and those that `snr` needs."""
    key: Key = ("measure", "signals")
    known = points(book)
    found: list[int] = []
    for name in book.scenario.measure.signals:
        if name not in known:
            raise book.scenario.error(key, f'found "{name}"', f"a point: {close_match(name, list(known))}")
        found += known[name]
    if book.scenario.measure.snr:
        found += _ends(book)
    return list(dict.fromkeys(found))


def _ends(book: Book) -> list[int]:
    """Where samples with values are made, and where they have been displayed."""
    ways = [way.path for way in book.ways if codec(way.model) != "raw"]
    return [point for path in ways for point in (2 * path[0].number, 2 * path[-1].number + 1)]


def points(book: Book) -> dict[str, list[int]]:
    """Entry and exit points of all components and the senses of robots, by name without the session."""
    known: dict[str, list[int]] = {}
    for instance in book.instances:
        numbers = {"entry": 2 * instance.number, "exit": 2 * instance.number + 1}
        if instance.model.robot is not None:
            numbers["sense"] = HELD | instance.number
        for suffix, number in numbers.items():
            known.setdefault(f"{instance.id}.{suffix}", []).append(number)
    return known
