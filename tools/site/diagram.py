"""Flowcharts of Mermaid, arrows between names only, as pictures that need no script."""

from __future__ import annotations

import re
from collections import defaultdict

WIDE, HIGH, GAP_X, GAP_Y = 132, 34, 62, 22


def drawn(block: str) -> str:
    """The chart of a fenced block as SVG: who imports nothing stands left, the others right of all that they import."""
    arrows = re.findall(r"^\s*(\S+) --> (\S+)$", block, re.M)
    columns: dict[int, list[str]] = defaultdict(list)
    names = sorted({name for arrow in arrows for name in arrow})
    below: dict[str, list[str]] = {name: [to for by, to in arrows if by == name] for name in names}
    for name in names:
        columns[_depth(name, below)].append(name)
    tall = max(map(len, columns.values()))
    at = {}
    for depth, column in columns.items():
        for row, name in enumerate(column):
            middle = (row + 0.5 + (tall - len(column)) / 2) * (HIGH + GAP_Y)
            at[name] = (depth * (WIDE + GAP_X) + 4, middle)
    width, height = len(columns) * (WIDE + GAP_X) - GAP_X + 8, tall * (HIGH + GAP_Y)
    told = ", ".join(f"{name} imports {' and '.join(to)}" for name, to in below.items() if to)
    shapes = [_line(at[by], at[to]) for by, to in arrows] + [_box(name, *at[name]) for name in names]
    return (
        f'<svg class="diagram" viewBox="0 0 {width} {height}" role="img" aria-label="{told}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>{"".join(shapes)}</svg>\n'
    )


def _depth(name: str, below: dict[str, list[str]]) -> int:
    return 1 + max((_depth(to, below) for to in below[name]), default=-1)


def _line(by: tuple[float, float], to: tuple[float, float]) -> str:
    (x, y), (left, far) = by, to
    right, bend = left + WIDE, 0.6 * GAP_X
    path = f"M{x} {y:g}C{x - bend:g} {y:g} {right + bend:g} {far:g} {right + 1} {far:g}"
    return f'<path class="arrow" d="{path}" marker-end="url(#tip)"/>'


def _box(name: str, x: float, y: float) -> str:
    box = f'<rect x="{x}" y="{y - HIGH / 2:g}" width="{WIDE}" height="{HIGH}" rx="5"/>'
    return f'{box}<text x="{x + WIDE / 2:g}" y="{y:g}">{name}</text>'
