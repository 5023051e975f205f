"""Size limits of a scenario: rows and packets number things with 16 bits."""

from __future__ import annotations

from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.origin import Key

MOST: dict[str, tuple[int, str]] = {
    "components": (16_384, "points end at 16,384 components"),
    "flows": (32_767, "rows number flows with 15 bits"),
    "nodes": (32_767, "packets number nodes with 15 bits"),
    "channels": (16_384, "each has a UDP port of its own in captures"),
}
"""The most of each sort, and why; the engine refuses the same."""
_REMEDY = "do this as shards: several scenarios with a part of the operators each"
_SHARED = 'or let flows share one, such as [channels.both] flows = ["kinematic", "haptic"]'


def check(book: Book) -> None:
    """Raises the error of more components, flows or nodes in all sessions than there are numbers."""
    counts = {"components": len(book.instances), "flows": len(book.ways), "nodes": len(book.nodes)}
    for name, count in counts.items():
        _refuse_more(book, name, count, _REMEDY)


def check_channels(book: Book, count: int) -> None:
    """Raises the error of more channels in all sessions than there are numbers."""
    _refuse_more(book, "channels", count, f"{_REMEDY}; {_SHARED}")


def _refuse_more(book: Book, name: str, count: int, remedy: str) -> None:
    most, why = MOST[name]
    if count > most:
        key: Key = (name,)
        found = f"found {count:,}, with those of all sessions"
        raise book.scenario.error(key, found, f"at most {most:,}: {why}; {remedy}")
