"""A run compared with a profile: each limit with the measured number and the remaining margin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import STATISTICS, Metric
from tcpsbed.errors import DataError
from tcpsbed.lab.qos.profile import Profile, Rule
from tcpsbed.nearest import close_match, distance, nearest
from tcpsbed.views.tables import field

DISTRIBUTION = ("n", *STATISTICS, "sd")
"""What a distribution has; an estimate has half widths, too."""


@dataclass(frozen=True)
class Verdict:
    """A limit and what was found.

    Attributes
    ----------
    flow, metric : str
        Which number; for a difference `late - early`.
    found : float
        The number; not a number if the run has none, which fails.
    least, most : float
        Its limits.
    unit : str
        Of all three.
    file, line
        Where the limit is written, if it is.
    """

    flow: str
    metric: str
    found: float
    least: float
    most: float
    unit: str = ""
    file: Path | None = None
    line: int | None = None

    @property
    def margin(self) -> float:
        """Distance to the nearer limit; negative beyond it."""
        return min(self.most - self.found, self.found - self.least)

    @property
    def passed(self) -> bool:
        """Whether the limits are kept."""
        return self.margin >= 0

    @property
    def limits(self) -> str:
        """The limits as a phrase."""
        both = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{words} {value:g}" for words, value in both if math.isfinite(value))

    def __str__(self) -> str:
        return f"{self.flow}: {self.metric} is {self.found:g}, allowed {self.limits}"


# limits as pass or fail [Gokhale 2017] (ITU-R BT.1359; 3GPP TR 22.847)
def check(summary: Mapping[str, Any], profile: Profile) -> list[Verdict]:
    """The verdicts of a profile's rules on a run's summary; a flow that the run lacks is skipped (`left_out`).

    Raises
    ------
    DataError
        If the run has none of the profile's flows, or one that is called nearly so, or flows have no such number.
    """
    if not profile.rules:
        raise DataError(
            "found limits of step responses alone",
            key=f"profile {profile.name}",
            allowed="pytest, which runs its scenario (tcpsbed docs qos)",
        )
    _refuse_mistyped(summary, profile)
    found = [verdict for rule in profile.rules for verdict in _verdicts(summary["flows"], rule)]
    if not found:
        wanted = ", ".join(dict.fromkeys(rule.flow for rule in profile.rules))
        raise DataError(
            f"found the flows {', '.join(summary['flows'])}", key=f"profile {profile.name}", allowed=wanted
        )
    return found


def left_out(summary: Mapping[str, Any], profile: Profile) -> list[str]:
    """Flows of a profile that the run has in no session."""
    there = {*_plain(summary), *summary["flows"]}
    named = dict.fromkeys(name for rule in profile.rules for name in (rule.flow, rule.other) if name)
    return [name for name in named if name not in there]


def _plain(summary: Mapping[str, Any]) -> list[str]:
    """Names of a run's flows without those of sessions."""
    return list(dict.fromkeys(name.rpartition("/")[2] for name in summary["flows"]))


def _refuse_mistyped(summary: Mapping[str, Any], profile: Profile) -> None:
    """Refuses a flow that the run does not have where one that no rule names is called nearly so."""
    named = {name for rule in profile.rules for name in (rule.flow, rule.other)}
    free = [name for name in _plain(summary) if name not in named]
    for name in left_out(summary, profile):
        if (close := nearest(name, free)) and distance(name, close) <= 2:
            rule = next(rule for rule in profile.rules if name in (rule.flow, rule.other))
            allowed = f"{', '.join(_plain(summary))} (did you mean {close}?)"
            raise DataError(
                f'found the flow "{name}"', file=rule.file, line=rule.line, key=rule.key, allowed=allowed
            )


def _verdicts(flows: Mapping[str, Any], rule: Rule) -> Iterator[Verdict]:
    for name, flow in flows.items():
        session, _, plain = name.rpartition("/")
        if rule.flow not in (name, plain):
            continue
        value = _number(flow, rule)
        if rule.other is None:
            yield _judged(name, value, rule)
            continue
        other = rule.other if not session or rule.other in flows else f"{session}/{rule.other}"
        if other in flows:
            early = _number(flows[other], rule)
            yield _judged(f"{name} - {other}", value - early, rule)


def _judged(flow: str, value: float, rule: Rule) -> Verdict:
    return Verdict(flow, rule.metric, value, rule.least, rule.most, _unit(rule), rule.file, rule.line)


def _refuse_misspelt(rule: Rule) -> None:
    """Refuses a number that no flow can have, where the run has nothing beside it to tell."""
    known = list(_names(metrics.section("flows").parts))
    if any(rule.metric == name or (name.endswith(".") and rule.metric.startswith(name)) for name in known):
        return
    beside = [name for name in known if name.startswith(f"{rule.metric.split('.')[0]}.")]
    allowed = close_match(rule.metric, beside)
    raise DataError(f'found "{rule.metric}"', file=rule.file, line=rule.line, key=rule.key, allowed=allowed)


def _names(parts: Sequence[Metric], above: str = "") -> Iterator[str]:
    """The numbers of a flow by their dotted names; one that ends with a dot has any names below it."""
    for metric in parts:
        name = f"{above}{metric.key}"
        if metric.each:
            yield f"{name}."
        elif metric.parts:
            yield from _names(metric.parts, f"{name}.")
        elif any(metric.shown):
            yield from (f"{name}.{statistic}" for statistic in DISTRIBUTION)
        else:
            yield name


def _unit(rule: Rule) -> str:
    return field(metrics.section("flows").parts, rule.metric).metric.unit


def _number(flow: Mapping[str, Any], rule: Rule) -> float:
    value: Any = flow
    for depth, key in enumerate(parts := rule.metric.split(".")):
        if value is None:
            break
        if not isinstance(value, Mapping) or key not in value:
            above = ".".join(parts[:depth])
            known = (
                [f"{above}.{name}" if above else name for name in value]
                if isinstance(value, Mapping)
                else [above]
            )
            raise DataError(
                f'found "{rule.metric}"',
                file=rule.file,
                line=rule.line,
                key=rule.key,
                allowed=close_match(rule.metric, known),
            )
        value = value[key]
    if value is None:  # nothing was measured
        _refuse_misspelt(rule)
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        allowed = "a number of a flow, such as delay_ms.p99 (tcpsbed docs summary)"
        found = f'found "{rule.metric}", which is not a number'
        raise DataError(found, file=rule.file, line=rule.line, key=rule.key, allowed=allowed)
    return float(value)
