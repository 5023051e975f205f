"""A campaign carried out: checked whole, run, and its table and page written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.campaign import grid, page
from tcpsbed.campaign.file import joined
from tcpsbed.campaign.results import remarks
from tcpsbed.campaign.survey import Survey, Told, write_parquet
from tcpsbed.campaign.warm import Warm
from tcpsbed.campaign.worker import LINES_KEPT, Job, Place
from tcpsbed.errors import ConfigError, TcpsbedError, counted
from tcpsbed.processes import cores
from tcpsbed.results import growing
from tcpsbed.runs import forecast


@dataclass(frozen=True)
class Outcome:
    """What a campaign left.

    Attributes
    ----------
    survey
        What it was.
    rows
        A row for every cell and flow: values of the factors, `seed`, `flow`, metrics with their units in the name.
    failures
        Messages of the cells that failed, by the names of their files.
    """

    survey: Survey
    rows: list[dict[str, Any]]
    failures: dict[str, str]

    @property
    def folder(self) -> Path:
        """Where its results are: `sweep.parquet`, `sweep.html`, and a file for each cell."""
        return self.survey.out

    @property
    def remarks(self) -> list[str]:
        """What a reader of the table has to know: seeds that change nothing, intervals that are narrow or stayed wide."""
        return [*remarks(self.rows, self.survey.shown), *_wide(self.survey, self.rows)]

    def __str__(self) -> str:
        return "\n".join([self.survey.shown.tables(self.rows), *self.remarks])


def carried_out(
    survey: Survey,
    told: Told,
    width: int | None = None,
    cluster: Callable[[Sequence[Job]], Place] | None = None,
    inputs: Sequence[Path] = (),
) -> Outcome:
    """Runs what is missing of a campaign, and writes its table and page; parameters as of `Survey.run`.

    Raises
    ------
    KeyboardInterrupt
        If it was stopped: says how to go on.
    """
    with growing(survey.out, "sweep", inputs=inputs):
        try:
            failures = survey.run(width, told, cluster=cluster)
        except KeyboardInterrupt:
            kept = len(list((survey.out / "cells").glob("[!.]*.json")))
            raise KeyboardInterrupt(
                f"stopped; {kept} finished cells are in {survey.out}; the same command continues from there"
            ) from None
        if rows := survey.rows():
            write_parquet(rows, survey.out / "sweep.parquet")
            page.write(survey, rows, len(failures))
    return Outcome(survey, rows, failures)


def check(survey: Survey) -> None:
    """Checks the scenario of every combination before any runs; what names code of a user's in a process of its own.

    Raises
    ------
    ConfigError
        With the messages of all that cannot run, each once, with the values that it is about.
    """
    warm, combinations = Warm(), survey.cells(survey.seeds[:1])
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder, ThreadPoolExecutor(cores()) as pool:
        try:
            said = list(pool.map(lambda one: _checked(warm, survey, one, Path(folder)), combinations))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            warm.close()
    wrong: dict[str, list[str]] = {}
    for cell, message in zip(combinations, said, strict=True):
        if message:
            pairs = [f"{a.key}={v}" for a, v in zip(survey.axes, cell.values, strict=True)]
            wrong.setdefault(message, []).append(", ".join(pairs))
    if wrong:
        errors: list[TcpsbedError] = [
            ConfigError(
                message + (f" (and {counted(len(where) - 1, 'other combination')})" if where[1:] else ""),
                key=where[0],
            )
            for message, where in wrong.items()
        ]
        raise joined(errors)


def _checked(warm: Warm, survey: Survey, cell: grid.Cell, folder: Path) -> str:
    """What is wrong with a combination; empty: nothing."""
    settings = [*survey.settings, *grid.overrides(survey.axes, cell)]
    try:
        scenario = scenarios.load(survey.file, settings)
        if not forecast.touches(scenario.document):
            scenarios.check(scenario)
            return ""
    except TcpsbedError as error:
        return str(error)
    words = ["check", str(survey.file), *(word for setting in settings for word in ("--set", setting))]
    out, err = (folder / f"{os.urandom(8).hex()}.{ending}" for ending in ("out", "err"))
    status = warm.run(words, out, err)
    if status == 0:
        return ""
    lines = err.read_text(encoding="utf-8", errors="replace").strip().splitlines() if err.is_file() else []
    told = "\n".join(lines[-LINES_KEPT:]).removeprefix("tcpsbed: ")
    return told or f"tcpsbed check ended with exit status {status}"


def _wide(survey: Survey, rows: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence about combinations whose interval stayed wider than was asked for."""
    rule = survey.design.until
    if rule is None:
        return []
    groups = survey.shown.groups(rows) or {}
    found = groups.get(rule.metric.flow, [])
    wide = [
        group for group in found if not group.unchanged and not rule.reached(group.mean(rule.metric.column))
    ]
    if not wide:
        return []
    place = f"{counted(len(wide), 'combination')} of {len(found)}"
    metric, _, width = rule.text.partition(" within ")
    return [f"{place}: {metric} is not known within {width} after {len(survey.seeds)} seeds."]
