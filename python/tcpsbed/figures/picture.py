"""A figure before it is drawn: its numbers, its labels, and the same numbers as a table in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis.stats import Interval
from tcpsbed.drawing import Origin, Style

Cell = str | Interval | None
ABSENT = "--"
ROUNDING = 1e-9
"""An interval below this share of its mean comes from the arithmetic."""


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    Attributes
    ----------
    title
        What it shows, for the metadata.
    x, y
        Labels of the axes.
    draw
        Draws it into axes, in a style.
    head, rows
        The table of what is drawn; none for curves with too many points for a table.
    legend
        What the lines differ in.
    first
        Whether only the first seed of each run is drawn: others keep no curves.
    notes
        What is amiss with the numbers.
    """

    title: str
    x: str
    y: str
    draw: Callable[[Any, Style], None]
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    legend: str = ""
    notes: tuple[str, ...] = ()
    first: bool = False


def latex(picture: Picture, origin: Origin) -> str:
    """The numbers as a table for the package booktabs; intervals are 95 % confidence intervals of means."""
    columns = list(zip(*picture.rows, strict=True))
    shown = [[_cell(cell) for cell in column] for column in columns]
    kinds = "".join("l" if all(isinstance(c, str) for c in column) else "r" for column in columns)
    lines = [f"% {line}" for line in (picture.title, *origin.lines)]
    lines += [rf"\begin{{tabular}}{{{kinds}}}", r"  \toprule"]
    lines += [_line(map(escaped, picture.head)), r"  \midrule"]
    lines += [_line(row) for row in zip(*shown, strict=True)]
    return "\n".join([*lines, r"  \bottomrule", r"\end{tabular}", ""])


def _line(cells: Any) -> str:
    return f"  {' & '.join(cells)} \\\\"


def _cell(cell: Cell) -> str:
    """A number with two digits of its interval, or with four digits."""
    if isinstance(cell, str):
        return escaped(cell)
    if cell is None or not math.isfinite(cell.mean):
        return ABSENT
    width = cell.half or 0.0
    size, digits = (width, 2) if width > ROUNDING * abs(cell.mean) else (abs(cell.mean), 4)
    decimals = min(6, max(0, digits - 1 - math.floor(math.log10(size)))) if size else 0
    half = "" if cell.half is None else rf" \pm {cell.half:.{decimals}f}"
    return f"${cell.mean:.{decimals}f}{half}$"


_SPECIAL = str.maketrans(
    {one: f"\\{one}" for one in "_&#%${}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "→": r"$\rightarrow$",
    }
    | {"µ": r"\textmu{}"}
)


def escaped(text: str) -> str:
    """A text for LaTeX."""
    return text.translate(_SPECIAL)
