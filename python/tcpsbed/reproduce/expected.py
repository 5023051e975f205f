"""What papers say, and how near a result must come: the content of `tests/paper/expected.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed.errors import DataError

TREE = Path(__file__).resolve().parents[3]
"""The source tree: expected values and scenarios are part of it, not of the installed package."""
FILE = TREE / "tests" / "paper" / "expected.toml"

KEYS = {"item", "published", "basis", "tolerance", "share", "compare", "why"}
COMPARISONS = ("near", "above", "below")
"""Ours within the tolerance of the published value; above it; below it."""
BASES = ("published", "theory", "aim", "own reference")
"""Where a value comes from: the work itself; arithmetic or a bound; what we ask of our own work; a simulation of our own."""


@dataclass(frozen=True)
class Expected:
    """A published value and its tolerance.

    Parameters
    ----------
    item
        What is compared, with its unit.
    published
        The value that ours is compared with; `None` where a paper gives a figure without numbers, or nothing.
    basis
        Where that value comes from: one of `BASES`; empty where there is none.
    tolerance
        How far ours may be off, in the unit of the value.
    compare
        `near`: off by no more than the tolerance. `above`, `below`: beyond the value, by the tolerance less at worst.
    why
        Why this tolerance.
    """

    item: str
    published: float | None
    basis: str
    tolerance: float
    compare: str
    why: str

    def holds(self, ours: float) -> bool | None:
        """Whether a result is within the tolerance; `None` where nothing is published."""
        if self.published is None:
            return None
        if self.compare == "above":
            return ours > self.published - self.tolerance
        if self.compare == "below":
            return ours < self.published + self.tolerance
        return abs(ours - self.published) <= self.tolerance


def load(work: str, file: Path = FILE) -> dict[str, Expected]:
    """The expected values of a work, by key.

    Raises
    ------
    DataError
        If the file is not there or says something that cannot be.
    """
    if not file.exists():
        raise DataError("is not there", file=file, allowed="the source tree of tcpsbed")
    with file.open("rb") as opened:
        table: dict[str, dict[str, Any]] = tomllib.load(opened).get(work, {})
    return {key: _read(entry, f"{work}.{key}", file) for key, entry in table.items()}


def _read(entry: dict[str, Any], key: str, file: Path) -> Expected:
    unknown = sorted(set(entry) - KEYS)
    compare, basis = entry.get("compare", "near"), entry.get("basis", "published")
    known = compare in COMPARISONS and basis in BASES
    if unknown or not known or not entry.get("item") or not entry.get("why"):
        found = f"found {', '.join(unknown) or ('no item or no why' if known else f'{compare}, {basis}')}"
        allowed = f"item, why, and {', '.join(sorted(KEYS))}; compare is one of {', '.join(COMPARISONS)}, "
        allowed += f"basis one of {', '.join(BASES)}"
        raise DataError(found, file=file, key=key, allowed=allowed)
    published = entry.get("published")
    tolerance = float(entry.get("tolerance", 0.0)) + float(entry.get("share", 0.0)) * abs(published or 0.0)
    return Expected(
        item=entry["item"],
        published=None if published is None else float(published),
        basis="" if published is None else basis,
        tolerance=tolerance,
        compare=compare,
        why=entry["why"],
    )
