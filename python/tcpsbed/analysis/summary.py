"""`summary.json` and `series.json`: the results of a run (docs/summary.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents, results
from tcpsbed.analysis import facts, media, metrics, series, stalls, ways
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

Found = Mapping[str, Any]
MOST_IN_LINES = 100
"""Flows of a summary that is written in lines: of more, one is half as large and read by programs."""


def summarise(folder: Path, scenario: Scenario | None = None) -> dict[str, Any]:
    """Analyses the records of a run folder and writes `summary.json` and `series.json` there.

    Parameters
    ----------
    folder
        With `plan.json`, `result.json`, `records.bin` and `scenario.toml`, as a world leaves it.
    scenario
        What ran, if it is known; absent: what `scenario.toml` says.

    Raises
    ------
    DataError
        If one of them is absent or not what it should be.
    """
    from tcpsbed import _tcps, scenarios

    plan = documents.read(folder / "plan.json")
    result = documents.read(folder / "result.json")
    scenario = scenario or scenarios.load(folder / "scenario.toml")
    records = folder / "records.bin"
    if not records.is_file():
        raise DataError("found no such file", file=records, allowed="a run whose records were kept")
    found = json.loads(
        _tcps.analyse(str(records), json.dumps(plan), scenario.warmup_ns, scenario.measure.grace_ns)
    )
    world = result.get("world", "virtual")
    info = facts.scenario_info(
        plan,
        world=world,
        warmup_ns=scenario.warmup_ns,
        phases=scenario.phases,
        events={name: kind for name, (_, kind) in scenarios.named_events(scenario).items()},
    )
    info["asked_by"] = scenarios.asked_by(scenario) | (result.get("asked_by") or {})
    info["media"] = media.media(folder, plan, scenario.warmup_ns)
    info["stalls"] = stalls.stalls(folder, plan, scenario.warmup_ns, found)
    info |= {"plan": plan, "scenario": scenario, "ways": ways.ways(plan)}
    return build(folder, info, result, found)


def build(folder: Path, scenario_info: Found, result: Found, analysis: Found) -> dict[str, Any]:
    """Writes `summary.json` and `series.json` into a run folder.

    Parameters
    ----------
    folder
        The run folder.
    scenario_info
        From `facts.scenario_info`, with `media` and `stalls`; for the largest parts of delays also `plan`, `scenario`
        and `ways`.
    result
        What the run told about itself (`result.json`).
    analysis
        What the rows say (`_tcps.analyse`).

    Returns
    -------
    dict
        The content of `summary.json`.
    """
    summary = metrics.summary(scenario_info, result, analysis)
    _write(folder / "summary.json", summary)
    curves = series.series(analysis)
    if services := result.get("services"):
        curves["services"] = services
    results.write_whole(folder / "series.json", json.dumps(curves, allow_nan=False) + "\n")
    return summary


def add_own(folder: Path, rows: list[dict[str, Any]], errors: list[str]) -> None:
    """Puts the values of the user's metrics, and what failed of them, into `summary.json` of a run folder."""
    file = folder / "summary.json"
    summary = documents.read(file)
    _write(file, summary | {"metrics": rows, "errors": [*summary["errors"], *errors]})


def add_across_seeds(folder: Path, across: Found) -> dict[str, Any]:
    """Puts what further seeds gave into `summary.json` of a run folder, and returns its content."""
    file = folder / "summary.json"
    summary = documents.read(file) | {"across_seeds": across}
    _write(file, summary)
    return summary


def replace_echo(folder: Path, echo: Found) -> None:
    """Puts the echoes of several rounds in place of those of the last into `summary.json` of its folder."""
    file = folder / "summary.json"
    _write(file, documents.read(file) | {"echo": echo})


def _write(path: Path, content: Found) -> None:
    """Writes JSON in one step, so that a reader never sees half a file; in lines as long as a person may read them."""
    indent = 1 if len(content["flows"]) <= MOST_IN_LINES else None
    results.write_whole(path, json.dumps(content, indent=indent, allow_nan=False) + "\n")
