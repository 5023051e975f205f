"""Profiles: limits of a flow's metrics, as data.

```toml
name = "mine"
source = "where the limits come from"

[flows.haptic]                            # a flow's name, in any session
"delay_ms.p99" = { most = 30 }            # a number of the flow in summary.json; most, least or both
"loss" = { most = 0.01 }

[[between]]                               # how much later one flow is than another
early = "audio"
late = "video"
metric = "delay_ms.mean"
least = -125
most = 45

[step]                                    # in a test of its own scenario: every loop's step response
runs = 20
"overshoot.mean" = { most = 20 }
```
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match, meant
from tcpsbed.scenarios import origin

_KEYS = ("name", "source", "flows", "between", "step", "scenario", "set")
CHOICE = "a profile of yours, such as mine.toml, or one of these:"
RUNS = 20
"""Runs of a step experiment that says no number."""


@dataclass(frozen=True)
class Rule:
    """Limits of a number: of a flow, or of the difference to another flow's; and where they are written."""

    flow: str
    metric: str
    least: float
    most: float
    other: str | None = None
    file: Path | None = None
    key: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Profile:
    """A named set of rules; `scenario` and `set` make it a test of its own, in which there may be step responses.

    Attributes
    ----------
    name, source : str
        What it is called, and where its limits come from.
    rules : tuple of Rule
        Its limits.
    scenario : Path, optional
        The scenario that a test runs.
    overrides : tuple of str
        Overrides of that scenario.
    step : tuple of Rule
        Limits of the step responses of that scenario.
    runs : int
        Runs of that experiment.
    """

    name: str
    source: str
    rules: tuple[Rule, ...]
    scenario: Path | None = None
    overrides: tuple[str, ...] = ()
    step: tuple[Rule, ...] = ()
    runs: int = RUNS


def shipped() -> list[str]:
    """Names of the profiles that come with tcpsbed."""
    folder = files("tcpsbed") / "data" / "profiles"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def load(name: str) -> Profile:
    """A profile by its name, or from a file.

    Raises
    ------
    DataError
        If there is none, or if it is not what it should be.
    """
    if name in shipped():
        text = (files("tcpsbed") / "data" / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
        return read(text, Path(f"{name}.toml"))
    file = Path(name)
    if not file.exists():
        raise DataError(
            f'found "{name}"{meant(name, shipped())}', key="--profile", allowed=CHOICE + listing()
        )
    return read(inputs.text(file, "a profile in TOML"), file)


def listing() -> str:
    """The profiles that come with tcpsbed with their limits, a line each."""
    return "".join(f"\n  {name:18s} {_limits(load(name))}" for name in shipped())


def _limits(profile: Profile) -> str:
    """The limits of a profile in one line, flow by flow; flows with the same limits together."""
    of: dict[str, list[str]] = {}
    for rule in profile.rules:
        who = f"{rule.flow} minus {rule.other}" if rule.other else rule.flow
        of.setdefault(who, []).append(f"{rule.metric} {_bounds(rule)}")
    same: dict[str, list[str]] = {}
    for flow, texts in of.items():
        same.setdefault(", ".join(texts), []).append(flow)
    return "; ".join(f"{', '.join(names)}: {texts}" for texts, names in same.items())


def _bounds(rule: Rule) -> str:
    if math.isinf(rule.least):
        return f"≤ {rule.most:g}"
    return f"≥ {rule.least:g}" if math.isinf(rule.most) else f"{rule.least:g} to {rule.most:g}"


def read(text: str, file: Path) -> Profile:
    """A profile from its text; `file` is what messages name and where its paths start."""
    tables = inputs.tables(text, file)
    if hidden := inputs.unprintable(tables):
        key = ".".join(map(str, hidden[0]))
        found = f"found {inputs.unseen(hidden[1])}"
        raise DataError(found, file=file, key=key, allowed='text that can be seen, such as "delay_ms.p99"')
    for key in tables:
        if key not in _KEYS:
            raise DataError("found an unknown key", file=file, key=key, allowed=close_match(key, _KEYS))
    rules = [
        _rule(limits, file, ("flows", flow, metric), flow=flow, metric=metric)
        for flow, metrics in _table(tables.get("flows", {}), file, ("flows",)).items()
        for metric, limits in _table(metrics, file, ("flows", flow)).items()
    ]
    rules += [_between(entry, file, number) for number, entry in enumerate(_list(tables, "between", file))]
    lines: dict[str, int] = {origin.dotted(key): line for key, line in origin.lines_of(text).items()}
    rules = [replace(rule, line=lines.get(rule.key or "")) for rule in rules]
    step, runs = _step(tables, file)
    if not rules and not step:
        allowed = '[flows.haptic] with "delay_ms.max" = { most = 30 }'
        raise DataError("found no limit", file=file, key="flows", allowed=allowed)
    scenario = tables.get("scenario")
    for text in _list(tables, "set", file):
        if not isinstance(text, str):
            raise DataError(
                f"found {text!r}", file=file, key="set", allowed='texts such as "links.l1.rate=1 Mbit/s"'
            )
    return Profile(
        str(tables.get("name", file.stem)),
        str(tables.get("source", "")),
        tuple(rules),
        None if scenario is None else file.parent / str(scenario),
        tuple(_list(tables, "set", file)),
        step,
        runs,
    )


def _step(tables: Mapping[str, Any], file: Path) -> tuple[tuple[Rule, ...], int]:
    """Limits of step responses, and how many runs there are."""
    table = dict(_table(tables.get("step", {}), file, ("step",)))
    runs = table.pop("runs", RUNS)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise DataError(f"found {runs!r}", file=file, key="step.runs", allowed="a whole number, 1 or more")
    if "step" in tables and not table:
        raise DataError("found no limit", file=file, key="step", allowed='"overshoot.mean" = { most = 20 }')
    if table and "scenario" not in tables:
        allowed = 'scenario = "FILE", which is run for them'
        raise DataError("found limits of step responses alone", file=file, key="step", allowed=allowed)
    return tuple(
        _rule(limits, file, ("step", metric), flow="step", metric=metric) for metric, limits in table.items()
    ), runs


def _list(tables: Mapping[str, Any], key: str, file: Path) -> list[Any]:
    found = tables.get(key, [])
    if not isinstance(found, list):
        raise DataError(f"found {found!r}", file=file, key=key, allowed="a list")
    return found


def _between(entry: Any, file: Path, number: int) -> Rule:
    key = ("between", str(number))
    table = dict(_table(entry, file, key))
    words = {name: table.pop(name, None) for name in ("early", "late", "metric")}
    for name, word in words.items():
        if not isinstance(word, str):
            raise DataError(f"found {word!r}", file=file, key=".".join((*key, name)), allowed="a name")
    early, late, metric = (str(words[name]) for name in ("early", "late", "metric"))
    if early == late:
        found = f'found early and late = "{early}": a flow is never later than itself'
        raise DataError(found, file=file, key=".".join(key), allowed='two flows, such as "audio" and "video"')
    return _rule(table, file, key, flow=late, metric=metric, other=early)


def _rule(
    limits: Any, file: Path, key: tuple[str, ...], *, flow: str, metric: str, other: str | None = None
) -> Rule:
    table = _table(limits, file, key)
    for name, value in table.items():
        if name not in ("least", "most") or not _is_number(value):
            raise DataError(
                f"found {name} = {value!r}",
                file=file,
                key=".".join(key),
                allowed="least or most with a number, such as most = 50",
            )
    if not table:
        raise DataError("found no limit", file=file, key=".".join(key), allowed="least, most or both")
    least, most = float(table.get("least", -math.inf)), float(table.get("most", math.inf))
    if most < least:
        found = f"found least = {least:g} above most = {most:g}, which nothing can keep"
        raise DataError(found, file=file, key=".".join(key), allowed="least, at most as large as most")
    return Rule(flow, metric, least, most, other, file, origin.dotted(key))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _table(value: Any, file: Path, key: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"found {value!r}", file=file, key=".".join(key), allowed="a table")
    return value
