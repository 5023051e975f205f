"""Checks that every channel and every pair of background traffic has a route."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from tcpsbed.config.compile.network import Network
from tcpsbed.config.origin import Key

Need = tuple[int, int, Key]
"""A vertex that must reach another, and the key that says so."""


def check(network: Network, needs: Iterable[Need]) -> None:
    """Raises the error of the first route that does not exist; without links there are none to check."""
    if not network.links:
        return
    reached: dict[int, set[int]] = {}
    for start, end, key in needs:
        if start not in reached:
            reached[start] = _reach(network.links, start)
        if end not in reached[start]:
            a, b = network.vertices[start], network.vertices[end]
            ends = ", ".join(sorted(network.vertices[v] for v in reached[start] - {start})) or "nothing"
            raise network.book.scenario.error(
                key, f'found no route from "{a}" to "{b}"', f"links that join them ({a} reaches {ends})"
            )


def _reach(links: list[dict[str, Any]], start: int) -> set[int]:
    reached, waiting = {start}, deque([start])
    while waiting:
        here = waiting.popleft()
        for link in links:
            if link["from"] == here and link["to"] not in reached:
                reached.add(link["to"])
                waiting.append(link["to"])
    return reached
