"""The grid: axes of overrides times seeds, and the identity of a cell in later calls."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcpsbed.errors import ConfigError

WORLD = "world"
"""The axis of worlds, which is no key of a scenario."""
_NUMBER = re.compile(r"([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*(.*)")
_OPENING = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True)
class Axis:
    """A key of the scenario and the values that it takes."""

    key: str
    values: tuple[str, ...]

    def numbers(self) -> tuple[list[float], str] | None:
        """The values as numbers with their common unit; None if they are no numbers or have several units."""
        found = [_NUMBER.fullmatch(value.strip().strip('"')) for value in self.values]
        units = {match[2] for match in found if match}
        if None in found or len(units) != 1:
            return None
        return [float(match[1]) for match in found if match], units.pop()


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: values on the axes and a seed."""

    values: tuple[str, ...]
    seed: int


def axis(text: str) -> Axis:
    """The axis of `KEY=VALUE,VALUE`; commas inside quotes and brackets part nothing.

    Raises
    ------
    ConfigError
        If there is no key or no value, a value twice, or if it is that of the seeds.
    """
    key, equals, rest = text.partition("=")
    values = [value.strip() for value in _split(rest)]
    allowed = "KEY=VALUE,VALUE such as 'links.l1.rate=1 Mbit/s,1.5 Mbit/s'"
    if not equals or not key.strip() or not all(values):
        raise ConfigError(f'found "{text}"', key="--over", allowed=allowed)
    if key.strip() == "seed":
        found = f'found "{text}": every combination runs with the same seeds'
        raise ConfigError(
            found, key="--over", allowed="--seeds 10, counted from the scenario's: --set seed=5"
        )
    if len(set(values)) < len(values):
        raise ConfigError(f'found a value twice in "{text}"', key="--over", allowed="each value once")
    return Axis(key.strip(), tuple(values))


def _split(text: str) -> Iterator[str]:
    """The parts between commas outside quotes and brackets."""
    start, closing, quote = 0, [], ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENING:
            closing.append(_OPENING[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def cells(axes: Sequence[Axis], seeds: Sequence[int], points: Sequence[tuple[str, ...]] = ()) -> list[Cell]:
    """Every combination of values, or these points, with every seed: the same seeds everywhere, so that differences
    between combinations share their random numbers.
    """
    combinations = points or itertools.product(*(a.values for a in axes))
    return [Cell(values, seed) for values in combinations for seed in seeds]


def overrides(axes: Sequence[Axis], cell: Cell) -> list[str]:
    """The cell's overrides, seed last."""
    pairs = [f"{a.key}={value}" for a, value in zip(axes, cell.values, strict=True) if a.key != WORLD]
    return [*pairs, f"seed={cell.seed}"]


def key(content: str, settings: Sequence[str], world: str, build: str) -> str:
    """Names a cell by all that its result depends on: scenario text, overrides, world, build of tcpsbed."""
    described = json.dumps([content, list(settings), world, build])
    return hashlib.sha256(described.encode()).hexdigest()[:20]
