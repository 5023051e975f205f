"""The design of a campaign: which combinations of values run, how many seeds each, and what is compared.

```text
grid    every value with every other            4..6 Mbit/s step 0.5  ─► 4, 4.5, 5, 5.5, 6 Mbit/s
zipped  first with first, second with second
random  points drawn from ranges and lists
latin   the same, one point in each stratum of each factor (McKay, Beckman and Conover 1979)
```
Combinations of the four are multiplied.
"""

from __future__ import annotations

import itertools
import json
import operator
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign import grid, sequential
from tcpsbed.campaign.grid import Axis
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.dump import value_text
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.origin import OVERRIDE
from tcpsbed.scenarios.units import refuse, shown
from tcpsbed.views.metric import EFFECTS, OWN, Metric, metric

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.scenario import Scenario

MOST_VALUES = 10_000
"""Most values of a factor, and most points."""
LEAST_SEEDS = 4
"""Fewest seeds before an interval may stop a combination: fewer say little about their own spread."""
_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*(.*?)\s*(?:\bstep\s+({_NUMBER}))?\s*")
_UNTIL = re.compile(rf"\s*(\S+)\s+within\s+({_NUMBER})\s*(.*?)\s*(?:\bor\s+({_NUMBER})\s*(.*?)\s*)?")
_CONDITION = re.compile(rf"\s*([^\s<>=]+)\s*(<=|>=|<|>)\s*({_NUMBER})\s*(.*?)\s*")
SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
EXAMPLE = '"4..6 Mbit/s step 0.5"'


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, with their unit."""

    least: Decimal
    most: Decimal
    unit: str
    step: Decimal | None

    def values(self) -> list[str]:
        """All of them, from step to step.

        Raises
        ------
        Refusal
            Without a step, or with one that does not lead from end to end.
        """
        if self.step is None:
            raise refuse(f"found a range without a step, {self}", f"a range with a step, such as {EXAMPLE}")
        count, rest = divmod(self.most - self.least, self.step)
        if rest:
            end = self.text(self.least + count * self.step)
            raise refuse(
                f"found {self}, whose last value is {end}", f"a step that leads to the end, such as {EXAMPLE}"
            )
        return [self.text(self.least + number * self.step) for number in range(int(count) + 1)]

    def at(self, share: float) -> str:
        """The number at a share of the range: one of its steps, or else rounded to six digits."""
        if self.step is not None:
            values = self.values()
            return values[min(int(share * len(values)), len(values) - 1)]
        return self.text(self.least + Decimal(f"{share:.9f}") * (self.most - self.least))

    def text(self, number: Decimal) -> str:
        """A number with the unit."""
        plain = format(Decimal(f"{number:.6g}").normalize(), "f")
        return f"{plain} {self.unit}".strip()

    def __str__(self) -> str:
        step = "" if self.step is None else f" step {self.step}"
        return f'"{self.least}..{self.most} {self.unit}'.strip() + f'{step}"'


def range_of(text: str) -> Range | None:
    """The range that a text is, or `None`.

    Raises
    ------
    Refusal
        If it runs backwards, or has too many values.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    made = Range(Decimal(found[1]), Decimal(found[2]), found[3], Decimal(found[4]) if found[4] else None)
    if made.least >= made.most or (made.step is not None and made.step <= 0):
        raise refuse(f"found {made}", f"the smaller end first and a positive step, such as {EXAMPLE}")
    if made.step is not None and (made.most - made.least) / made.step >= MOST_VALUES:
        raise refuse(f"found {made}, of more than {MOST_VALUES} values", f"a larger step, such as {EXAMPLE}")
    return made


def values_of(found: Any, *, repeats: bool = False) -> list[str]:
    """The values of a factor as overrides write them: of a list, or of a range with a step.

    Parameters
    ----------
    found
        As a file has them.
    repeats
        Whether a value may stand there more than once.

    Raises
    ------
    Refusal
        If it is neither, or holds a value twice without leave.
    """
    if isinstance(found, str):
        between = range_of(found)
        if between is None:
            raise refuse(
                f"found {shown(found)}",
                f'a list of values, such as ["udp", "tcp"], or a range, such as {EXAMPLE}',
            )
        return between.values()
    if not isinstance(found, list) or not found:
        raise refuse(
            f"found {shown(found)}",
            f'a list of values, such as ["udp", "tcp"], or a range, such as {EXAMPLE}',
        )
    texts: list[str] = []
    for item in found:
        between = range_of(item) if isinstance(item, str) else None
        texts += [text_of(item)] if between is None else between.values()
    if not repeats and len(set(texts)) < len(texts):
        raise refuse(f"found a value twice in {shown(found)}", "each value once")
    return texts


def text_of(value: Any) -> str:
    """A value as an override writes it, without quotes where a text needs none."""
    if not isinstance(value, str):
        return value_text(value)
    try:
        read = tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return value
    return value if isinstance(read, str) else json.dumps(value)


def axis(text: str) -> Axis:
    """The axis of `KEY=VALUE,VALUE`, in which a range such as `1..2 Mbit/s step 0.5` stands for its values.

    Raises
    ------
    ConfigError
        As `grid.axis`, or if a range has no step or does not end with it.
    """
    plain = grid.axis(text)
    values: list[str] = []
    for value in plain.values:
        try:
            between = range_of(value.strip("\"'"))
            values += [value] if between is None else between.values()
        except Refusal as error:
            raise ConfigError(
                f"{plain.key}: {error.context['found']}", key="--over", allowed=error.context["allowed"]
            ) from None
    if len(set(values)) < len(values):
        raise ConfigError(f'found a value twice in "{text}"', key="--over", allowed="each value once")
    return Axis(plain.key, tuple(values))


class Written(NamedTuple):
    """Where a value was written: file and line, or neither for an option; and its key."""

    file: str | None
    line: int | None
    key: str


def placed(error: TcpsbedError, places: Mapping[str, Written]) -> TcpsbedError:
    """An error of an override as one of the place where its value was written."""
    file = error.file or ""
    place = places.get(file.removeprefix(OVERRIDE).partition("=")[0].strip())
    if not file.startswith(OVERRIDE) or place is None:
        return error
    return type(error)(error.found, file=place.file, line=place.line, key=place.key, allowed=error.allowed)


@dataclass(frozen=True)
class Group:
    """Factors whose values belong together: a line of values for each point."""

    keys: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]


def each(factors: Mapping[str, Any], refused: Callable[[str, Refusal], None]) -> list[Group]:
    """Grid: every factor is a group of its own. `refused` hears of the keys that are wrong."""
    return [Group((key,), tuple((v,) for v in found)) for key, found in _read(factors, refused).items()]


def zipped(factors: Mapping[str, Any], refused: Callable[[str, Refusal], None]) -> list[Group]:
    """One group, first with first; all lists of the same length. A value may stand more than once, a combination may not."""
    found = _read(factors, refused, repeats=True)
    lengths = {key: len(values) for key, values in found.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} of {key}" for key, length in lengths.items())
        refused(
            max(lengths, key=lambda key: lengths[key]), refuse(f"found {told}", "as many values of each key")
        )
        return []
    points = list(zip(*found.values(), strict=True))
    if again := next((point for number, point in enumerate(points) if point in points[:number]), None):
        told = ", ".join(f"{key} = {value}" for key, value in zip(found, again, strict=True))
        refused(next(iter(found)), refuse(f"found the combination {told} twice", "each combination once"))
        return []
    return [Group(tuple(found), tuple(points))] if found else []


def drawn(
    factors: Mapping[str, Any], points: int, seed: int, latin: bool, refused: Callable[[str, Refusal], None]
) -> list[Group]:
    """One group of points: each factor has a random stream of its own, by its name."""
    columns: dict[str, list[str]] = {}
    for key, given in factors.items():
        stream = random.Random(f"{seed} {key}")
        strata = list(range(points))
        stream.shuffle(strata)
        shares = [(strata[n] + stream.random()) / points if latin else stream.random() for n in range(points)]
        try:
            between = range_of(given) if isinstance(given, str) else None
            if between is not None:
                columns[key] = [between.at(share) for share in shares]
            else:
                listed = values_of(given)
                columns[key] = [listed[int(share * len(listed))] for share in shares]
        except Refusal as error:
            refused(key, error)
    lines = dict.fromkeys(zip(*columns.values(), strict=True))
    return [Group(tuple(columns), tuple(lines))] if columns else []


def _read(
    factors: Mapping[str, Any], refused: Callable[[str, Refusal], None], *, repeats: bool = False
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, given in factors.items():
        try:
            found[key] = values_of(given, repeats=repeats)
        except Refusal as error:
            refused(key, error)
    return found


def multiplied(groups: Sequence[Group]) -> tuple[tuple[Axis, ...], tuple[tuple[str, ...], ...]]:
    """Axes with their values in the order of their first use, and all combinations."""
    keys = [key for group in groups for key in group.keys]
    points = tuple(tuple(itertools.chain(*parts)) for parts in itertools.product(*(g.points for g in groups)))
    columns = list(zip(*points, strict=True)) if keys else []
    return tuple(Axis(k, tuple(dict.fromkeys(c))) for k, c in zip(keys, columns, strict=True)), points


def unknown(scenario: Scenario, one: Metric) -> Refusal | None:
    """What is wrong with a metric that a scenario does not have, or of a flow or link that it does not have."""
    if one.listed == OWN:
        from tcpsbed.scenarios.compile.metrics import metrics

        names = [name for name, _ in metrics(scenario)]
        if (name := one.column.metric.key) in names:
            return None
        allowed = (
            close_match(name, names) if names else f'[measure] metrics = "./mine.py:{name}" in the scenario'
        )
        return refuse(f'found "{name}", which is not a metric of the scenario', allowed)
    known, what = list(scenario.flows), "flow"
    name = one.flow.rpartition("/")[2]
    if one.listed == EFFECTS:
        events = [f"{EFFECTS}.{event.name}" for event in scenario.events if event.name]
        if one.flow in events:
            return None
        return refuse(f'found "{one.flow}", which is not an event with a name', close_match(one.flow, events))
    if one.listed:
        ways = ("forward", "backward")
        known = [f"{one.listed}.{link}.{way}" for link in scenario.links for way in ways]
        known = [] if scenario.topology.graph else known
        name, what = one.flow, "link with a direction"
    if not known or name in known:
        return None
    return refuse(f'found "{one.flow}", which is not a {what}', close_match(one.flow, known))


@dataclass(frozen=True)
class Until:
    """When a combination has seeds enough: the half width of a metric's 95 % interval.

    Attributes
    ----------
    metric
        Of what.
    share, width
        Of the mean, and in the unit of the metric; either is enough. An interval of width 0 is always narrow enough:
        all seeds have the same value, such as no loss.
    text
        As it was written.
    """

    metric: Metric
    share: float
    width: float
    text: str

    def reached(self, found: Interval | None) -> bool:
        """Whether an interval is as narrow as that."""
        if found is None or found.half is None or found.n < LEAST_SEEDS:
            return False
        return found.half <= max(self.share * abs(found.mean), self.width)

    def enough(self, values: Sequence[float]) -> bool:
        """Whether these values, one of each seed, have such an interval."""
        return self.reached(self.metric.interval(values))

    def more(self, seeds: int) -> int:
        """How many seeds a combination has at the next look."""
        return seeds + max(2, seeds // 2)


def until(text: str) -> Until:
    """The rule of `METRIC within 5 %`, `METRIC within 0.5 ms`, or `METRIC within 5 % or 0.5 ms`.

    Raises
    ------
    Refusal
        If it is none.
    """
    found = _UNTIL.fullmatch(text)
    example = '"haptic.delay_ms.p99 within 5 %"'
    if found is None or float(found[2]) <= 0:
        raise refuse(f"found {shown(text)}", example)
    of = metric(found[1])
    unit = of.column.metric.unit
    widths = {found[3]: float(found[2])} | ({} if found[4] is None else {found[5]: float(found[4])})
    if (
        not widths.keys() <= {"%", unit}
        or min(widths.values()) <= 0
        or len(widths) < 1 + (found[4] is not None)
    ):
        told = (
            f'"{found[1]} within 5 %"',
            f'"{found[1]} within 0.1 {unit}"',
            f'"{found[1]} within 5 % or 0.1 {unit}"',
        )
        raise refuse(f"found {shown(text)}", ", ".join(told[: 3 if unit else 1]))
    return Until(of, widths.get("%", 0.0) / 100, widths.get(unit, 0.0), text)


@dataclass(frozen=True)
class Condition:
    """A limit that a metric is above or below, such as `haptic.delay_ms.p99 > 30`."""

    metric: Metric
    sign: str
    limit: float
    text: str

    def holds(self, value: float) -> bool:
        """Whether it holds for a value of the metric."""
        return SIGNS[self.sign](value, self.limit)

    def enough(self, values: Sequence[float]) -> bool:
        """Whether these values, one of each seed, say whether it holds in more than half of all seeds."""
        return sequential.decided(len(values), sum(map(self.holds, values))) is not None

    def more(self, seeds: int) -> int:
        """How many seeds a combination has at the next look."""
        return max(sequential.FEWEST, seeds + seeds // 2)


def condition(text: str) -> Condition:
    """The condition of `METRIC > NUMBER`, with the unit of the metric or without.

    Raises
    ------
    Refusal
        If it is none.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise refuse(f"found {shown(text)}", '"haptic.delay_ms.p99 > 30" or "haptic.loss > 1 %"')
    of = metric(found[1])
    unit = of.column.metric.unit
    percent = unit == "share" and found[4] == "%"
    if found[4] and found[4] != unit and not percent:
        example = f"{found[1]} {found[2]} {found[3]} {'%' if unit == 'share' else unit}".strip()
        raise refuse(f"found {shown(text)}", f'"{example}"')
    return Condition(of, found[2], float(found[3]) / (100 if percent else 1), text.strip())


@dataclass(frozen=True)
class Design:
    """What a campaign has beside axes and seeds.

    Attributes
    ----------
    points
        Combinations of values; empty: all of the grid.
    until
        When a combination has seeds enough.
    metrics
        What tables and figures show; empty: mean and p99 of the delay, and the loss, of every flow.
    baseline
        Values that every combination is compared with, by key; empty: the first combination.
    labels
        What values and keys are called in tables and figures.
    order
        Seed of the order in which cells run.
    warmup
        Runs before the first cell on the machine's clock, whose results are discarded.
    named
        Whether it came from the file of a campaign.
    places
        Where factors and overrides are written, by key.
    file, document
        The file of a campaign, or what it would hold where the campaign was made in Python.
    """

    points: tuple[tuple[str, ...], ...] = ()
    until: Until | Condition | None = None
    metrics: tuple[Metric, ...] = ()
    baseline: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    order: int = 1
    warmup: int = 0
    named: bool = False
    places: Mapping[str, Written] = field(default_factory=dict)
    file: Path | None = None
    document: Mapping[str, Any] = field(default_factory=dict)


def designed(told: Mapping[str, Any]) -> Design:
    """The design that the file of a campaign's folder tells; that of a sweep where it tells none."""
    return Design(
        tuple(map(tuple, told.get("points", ()))),
        _rule(told["until"]) if told.get("until") else None,
        tuple(map(metric, told.get("metrics", ()))),
        told.get("baseline", {}),
        told.get("labels", {}),
        told.get("order", 1),
        told.get("warmup", 0),
        bool(told.get("campaign", False)),
        file=Path(told["file"]) if told.get("file") else None,
        document=told.get("document", {}),
    )


def _rule(text: str) -> Until | Condition:
    return condition(text) if _CONDITION.fullmatch(text) else until(text)
