"""Step responses of a profile's scenario compared with its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tcpsbed import scenarios
from tcpsbed.errors import DataError
from tcpsbed.lab.control import experiment, table
from tcpsbed.lab.control.verdict import Limits
from tcpsbed.lab.qos.check import Verdict
from tcpsbed.lab.qos.profile import Profile, Rule

Figures = dict[str, dict[str, Any]]
"""Statistics of the figures of a loop's responses, as `tcpsbed step --json` has them, by the loop's name."""


# [Polachan 2022]
def figures(profile: Profile) -> Figures:
    """Runs the step experiment of a profile's scenario in virtual time.

    Raises
    ------
    ConfigError
        If the scenario has no step.
    """
    scenario = scenarios.load(profile.scenario or "", profile.overrides)
    found = experiment.run(scenario, runs=profile.runs)
    return {one.loop.name: table.entry("", one, Limits())["figures"] for one in found}


def verdicts(found: Figures, rule: Rule, runs: int) -> list[Verdict]:
    """A limit on every loop; a figure that some run does not have, such as the rise time of one that never rises, fails.

    Raises
    ------
    DataError
        If there is no such number.
    """
    return [
        Verdict(name, rule.metric, _number(loop, rule.metric, runs), rule.least, rule.most)
        for name, loop in found.items()
    ]


def _number(loop: Mapping[str, Any], metric: str, runs: int) -> float:
    figure, _, what = metric.partition(".")
    if figure not in loop or what not in ("mean", "min", "max", "sd"):
        known = f"{', '.join(loop)}, each with mean, min, max or sd"
        raise DataError(f'found "{metric}"', key="step", allowed=known)
    value = loop[figure][what]
    return math.nan if value is None or loop[figure]["n"] < runs else float(value)
