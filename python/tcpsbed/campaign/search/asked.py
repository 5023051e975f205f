"""What a search is asked for: factors with their grids, conditions, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tcpsbed.campaign import design, grid
from tcpsbed.campaign.design import Condition, Range
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.views.metric import Metric

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

CELLS = {1: 50, 2: 40}
"""Cells of a range without a step, by the number of factors."""
BETWEEN = "KEY=LOW..HIGH UNIT, such as 'links.l1.delay=0..200 ms' or 'links.l1.rate=1..4 Mbit/s step 0.1'"
ONE_OF = f"{BETWEEN}, or KEY=VALUE,VALUE such as channels.session.transport=udp,dpm"
TAKEN = {"seed": "every point runs under the same seeds", grid.WORLD: "a search is in one world: --world"}


@dataclass(frozen=True)
class Factor:
    """A key of the scenario that a search varies.

    Attributes
    ----------
    key, unit
        The key, and the unit of its numbers.
    values
        Values on the grid as overrides write them; of `optimum` the alternatives, or none for a range without a step.
    numbers
        The values of a range as numbers, in `unit`.
    """

    key: str
    unit: str = ""
    values: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    between: Range | None = None

    @property
    def label(self) -> str:
        """Key and unit, as at an axis."""
        return f"{self.key} ({self.unit})" if self.unit else self.key

    @property
    def figures(self) -> dict[str, Any]:
        """Its part of `search.json`."""
        over = "" if self.between is None else str(self.between).strip('"')
        return {"key": self.key, "unit": self.unit, "over": over, "values": self.values}

    @property
    def cells(self) -> int:
        """Cells of its grid."""
        return len(self.values) - 1

    def number(self, value: str) -> float | None:
        """A value in `unit`; `None` for a name."""
        return float(value.removesuffix(self.unit)) if self.between is not None else None

    def shown(self, number: float) -> str:
        """A number with the unit, to four digits."""
        return f"{number:.4g} {self.unit}".strip()


def gridded(texts: Sequence[str]) -> tuple[Factor, ...]:
    """Factors of a boundary: one or two ranges.

    Raises
    ------
    ConfigError
        If one is no range, or there are others.
    """
    if not 1 <= len(texts) <= 2:
        allowed = f"one or two factors, each {BETWEEN}"
        raise ConfigError(f"found {len(texts)} factors", key="--over", allowed=allowed)
    found = tuple(factor(text) for text in texts)
    for one, text in zip(found, texts, strict=True):
        if one.between is None:
            raise ConfigError(f'found "{text}"', key="--over", allowed=BETWEEN)
    _refuse_twice(found)
    return tuple(one if one.values else _stepped(one, CELLS[len(found)]) for one in found)


def varied(texts: Sequence[str]) -> tuple[Factor, ...]:
    """Factors of an optimum: ranges and alternatives.

    Raises
    ------
    ConfigError
        If one is neither, or there is none.
    """
    if not texts:
        raise ConfigError("is missing", key="--over", allowed=ONE_OF)
    found = tuple(factor(text, ONE_OF) for text in texts)
    _refuse_twice(found)
    return found


def _refuse_twice(factors: Sequence[Factor]) -> None:
    if len({one.key for one in factors}) < len(factors):
        raise ConfigError("found a key twice", key="--over", allowed="each key once")


def factor(text: str, allowed: str = BETWEEN) -> Factor:
    """The factor of `KEY=LOW..HIGH UNIT`, or of `KEY=VALUE,VALUE`."""
    key, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not key or not rest:
        raise ConfigError(f'found "{text}"', key="--over", allowed=allowed)
    if key in TAKEN:
        raise ConfigError(f'found "{text}": {TAKEN[key]}', key="--over", allowed=allowed)
    try:
        between = design.range_of(rest)
        values = () if between is None or between.step is None else tuple(between.values())
    except Refusal as error:
        raise ConfigError(error.context["found"], key="--over", allowed=error.context["allowed"]) from None
    if between is None:
        return Factor(key, values=grid.axis(text).values)
    made = Factor(key, between.unit, values, between=between)
    return Factor(key, between.unit, values, tuple(_numbers(made, values)), between)


def _stepped(one: Factor, cells: int) -> Factor:
    between = one.between
    assert between is not None
    step = (between.most - between.least) / Decimal(cells)
    values = tuple(between.text(between.least + number * step) for number in range(cells + 1))
    if len(set(values)) < len(values):
        amiss = f"found {between}, whose {cells} cells have the same six digits"
        raise ConfigError(amiss, key="--over", allowed="a wider range, or a step")
    return Factor(one.key, one.unit, values, tuple(_numbers(one, values)), between)


def _numbers(one: Factor, values: Sequence[str]) -> list[float]:
    return [number for value in values if (number := one.number(value)) is not None]


def condition(text: str, key: str) -> Condition:
    """The condition of an option.

    Raises
    ------
    ConfigError
        If it is none.
    """
    try:
        return design.condition(text)
    except Refusal as error:
        raise ConfigError(error.context["found"], key=key, allowed=error.context["allowed"]) from None


def refuse_flows(scenario: Scenario, metrics: Iterable[tuple[str, Metric]]) -> None:
    """Raises ConfigError for a metric, with its option, of a flow that the scenario does not have."""
    for key, one in metrics:
        if amiss := design.unknown(scenario, one):
            raise ConfigError(amiss.context["found"], key=key, allowed=amiss.context["allowed"])
