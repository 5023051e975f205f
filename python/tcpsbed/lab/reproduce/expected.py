"""Published values and tolerances: the files `data/expected/WORK.toml` of the package."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import shipped
from tcpsbed.errors import DataError

FOLDER = shipped.DATA / "expected"

KEYS = {
    "item",
    "published",
    "reference",
    "basis",
    "parameter",
    "because",
    "needs",
    "tolerance",
    "spread",
    "interval",
    "share",
    "compare",
    "why",
    "refuted",
    "not_reproduced",
    "ours",
    "set",
    "hardware",
    "quotes",
}
UNIT = re.compile(r"\(([^();]+)[^()]*\)$")
"""The unit of an item, such as `ms` or `% of samples`."""
COMPARISONS = ("near", "above", "below", "at most")
"""What our value must be: within the tolerance of the published value; above it; below it; not above it."""
REFERENCES = ("published", "derived", "theory", "aim", "own reference")
"""Where a reference value comes from: a number of the paper; words or several numbers of the paper, from which we made one
number; arithmetic or a bound; a target of our own work; a simulation of our own."""
BASES = ("outcome", "fitted", "input", "theory", "unknown")
"""How our number comes about: it came out of the testbed, with nothing set to make it so; a parameter was chosen on it; it
is read back from the scenario; it is a calculation in which no testbed runs; the paper does not say enough to tell."""

SOURCES = ("spread", "interval", "share")
"""What a tolerance is: the spread or the last digit that is published; an interval over seeds or phases of our own; a stated
share of the value. `tolerance` is one that does not say, and 0, which needs no source."""


@dataclass(frozen=True)
class Expected:
    """A published value and its tolerance.

    Parameters
    ----------
    item
        What is compared, with its unit.
    published
        The value that ours is compared with; `None` where a paper gives a figure without numbers, or nothing.
    reference
        Where that value comes from: one of `REFERENCES`; empty where there is none.
    basis
        How ours comes about: one of `BASES`.
    parameter
        With `fitted` the key of the scenario that was chosen on it, with `input` the one that is read back; else empty.
    needs
        What a run of it needs beside the package, such as `root`, `mininet`, `ns3`, `engine`, `recordings`, `robot`.
    tolerance
        How far ours may be off, in the unit of the value.
    compare
        One of `COMPARISONS`. `near`: off by no more than the tolerance; with the others there is none.
    why
        Why this tolerance.
    because
        What makes ours what it is: why the basis is this one.
    given
        With `input`, what that key was set to (`set` in the file).
    source
        What the tolerance is: one of `SOURCES`; empty where it does not say, or is 0.
    refuted
        Where ours is not within because what is stated cannot be so, by its own figures, by arithmetic, or by a measurement
        that hangs on no choice of ours: why; else empty.
    not_reproduced
        Where ours is not within because our model, machine or data differ, or the work says too little: why; else empty.
    ours
        With `refuted` or `not_reproduced` the smallest and the largest of our values that the reason explains. A value
        outside of this range is unexplained.
    hardware
        What is needed to try it at all and was never there, such as "a robot arm"; else empty.
    quotes
        The item of the paper that it quotes, where another work quotes the same one under another key: that key; absent:
        its own.
    """

    item: str
    published: float | None
    reference: str
    tolerance: float
    compare: str
    why: str
    basis: str = "unknown"
    parameter: str = ""
    needs: tuple[str, ...] = ()
    because: str = ""
    given: str = ""
    source: str = ""
    refuted: str = ""
    not_reproduced: str = ""
    ours: tuple[float, float] = (-math.inf, math.inf)
    hardware: str = ""
    quotes: str = ""

    def explains(self, ours: float) -> bool:
        """Whether it gives a reason for a missed value."""
        return bool(self.refuted or self.not_reproduced) and self.ours[0] <= ours <= self.ours[1]

    def missed(self, ours: float, told: str) -> str:
        """The reason for a missed value, with the note of the run."""
        reason = self.refuted or self.not_reproduced
        if not reason:
            return "; ".join(filter(None, ("not explained", self.because, told)))
        if not self.explains(ours):
            low, high = self.ours
            reason = f"not explained: ours is not in {low:g} to {high:g}, of which is known: {reason}"
        return f"{reason}; {told}" if told else reason

    @property
    def unit(self) -> str:
        """The unit that the item ends with; empty: none."""
        found = UNIT.search(self.item)
        return found[1].split(",")[-1].strip() if found else ""

    @property
    def fails(self) -> str:
        """The values that would not have been within; empty where nothing is published."""
        if self.published is None:
            return ""
        low, high = (f"{bound:.12g}" for bound in self._bounds(self.published))
        if low == high and self.compare == "near":
            return f"≠ {low}"
        beyond = {"above": f"≤ {low}", "below": f"≥ {high}", "at most": f"> {high}"}
        return beyond.get(self.compare, f"< {low} or > {high}")

    def _bounds(self, published: float) -> tuple[float, float]:
        """The least and the largest value that is near: as they are printed, to twelve digits."""
        low, high = (float(f"{published + sign * self.tolerance:.12g}") for sign in (-1, 1))
        return low, high

    def off(self, ours: float) -> float:
        """How far a result is from the value, towards where it would not be within; 0 where nothing is published."""
        if self.published is None:
            return 0.0
        more = ours - self.published
        return {"above": -more, "below": more, "at most": more}.get(self.compare, abs(more))

    def holds(self, ours: float) -> bool | None:
        """Whether a result is within the tolerance; `None` where nothing is published."""
        if self.published is None:
            return None
        low, high = self._bounds(self.published)
        if self.compare == "above":
            return ours > low
        if self.compare == "below":
            return ours < high
        return ours <= high and (ours >= low or self.compare == "at most")


def load(work: str, folder: Path = FOLDER) -> dict[str, Expected]:
    """The expected values of a work, by key.

    Raises
    ------
    DataError
        If the file is not there or says something that cannot be.
    """
    file = folder / f"{work}.toml"
    if not file.exists():
        raise DataError("is not there", file=file, allowed="an installed tcpsbed, or its source tree")
    with file.open("rb") as opened:
        table: dict[str, dict[str, Any]] = tomllib.load(opened)
    return {key: _read(entry, key, file) for key, entry in table.items()}


def _amiss(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Invalid settings of an entry, each with what is allowed."""
    if unknown := sorted(set(entry) - KEYS):
        yield f"found {', '.join(unknown)}", ", ".join(sorted(KEYS))
    reference, basis = entry.get("reference", "published"), entry.get("basis", "")
    parameter, compare = entry.get("parameter", ""), entry.get("compare", "near")
    for name, value, allowed in (
        ("compare", compare, COMPARISONS),
        ("reference", reference, REFERENCES),
        ("basis", basis, BASES),
    ):
        if value not in allowed:
            yield f'found {name} = "{value}"', ", ".join(allowed)
    if not entry.get("item") or not entry.get("why"):
        yield "found no item or no why", "both, as texts"
    if (basis in ("fitted", "input")) != bool(parameter):
        yield (
            f'found basis = "{basis}" and parameter = "{parameter}"',
            'a parameter with "fitted" and "input", and with nothing else',
        )
    if (basis == "input") != bool(entry.get("set")):
        yield (
            f'found basis = "{basis}" and set = "{entry.get("set", "")}"',
            'with "input" the value that was set, such as set = "8 ms", and with nothing else',
        )
    reasons = [name for name in ("refuted", "not_reproduced") if entry.get(name)]
    if len(reasons) > 1:
        yield "found refuted and not_reproduced", "one of them"
    ours = entry.get("ours", ())
    if bool(reasons) != bool(ours) or (ours and not (len(ours) == 2 and ours[0] <= ours[1])):
        yield (
            f"found ours = {list(ours)} and {reasons[0] if reasons else 'no reason'}",
            "for an entry with refuted or not_reproduced, and no other: the smallest and the largest of our values that "
            "the reason explains, such as ours = [30.9, 40.7]",
        )
    if compare != "near" and _tolerance(entry)[1]:
        yield f'found compare = "{compare}" with a tolerance', "none: the value itself is the bound"


def _read(entry: dict[str, Any], key: str, file: Path) -> Expected:
    """One entry, refused if it is invalid."""
    for message, allowed in _amiss(entry):
        raise DataError(message, file=file, key=key, allowed=allowed)
    published, ours = entry.get("published"), entry.get("ours", ())
    source, tolerance = _tolerance(entry)
    return Expected(
        item=entry["item"],
        published=None if published is None else float(published),
        reference="" if published is None else entry.get("reference", "published"),
        tolerance=tolerance,
        compare=entry.get("compare", "near"),
        why=entry["why"],
        basis=entry.get("basis", ""),
        parameter=entry.get("parameter", ""),
        needs=tuple(entry.get("needs", ())),
        because=entry.get("because", ""),
        given=entry.get("set", ""),
        source=source,
        refuted=entry.get("refuted", ""),
        not_reproduced=entry.get("not_reproduced", ""),
        ours=(float(ours[0]), float(ours[1])) if ours else (-math.inf, math.inf),
        hardware=entry.get("hardware", ""),
        quotes=entry.get("quotes", key),
    )


def _tolerance(entry: dict[str, Any]) -> tuple[str, float]:
    """What the tolerance is, and its size in the unit of the value; of several kinds their sum."""
    sizes = {name: float(entry[name]) for name in ("tolerance", *SOURCES) if entry.get(name)}
    if "share" in sizes:
        sizes["share"] *= abs(entry.get("published", 0.0))
    return "" if "tolerance" in sizes else " and ".join(sizes), sum(sizes.values())
