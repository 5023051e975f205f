"""What a scenario may hold at most: rows and packets number things with 16 bits."""

from __future__ import annotations

from tcpsbed.config.compile.book import Book
from tcpsbed.config.origin import Key

_MOST: dict[str, tuple[int, str]] = {
    "components": (16_384, "points end at 16,384 components"),
    "flows": (32_767, "rows number flows with 15 bits"),
    "nodes": (32_767, "packets number nodes with 15 bits"),
}
"""The most of each sort, and why."""
_REMEDY = "do this as shards: several scenarios with a part of the operators each"


def check(book: Book) -> None:
    """Raises the error of more components, flows or nodes in all sessions than there are numbers."""
    counts = {"components": len(book.instances), "flows": len(book.ways), "nodes": len(book.nodes)}
    for name, count in counts.items():
        most, why = _MOST[name]
        if count > most:
            key: Key = (name,)
            raise book.scenario.error(
                key,
                f"found {count:,}, with those of all sessions",
                f"at most {most:,}: {why}; {_REMEDY}",
            )
