"""Runs side by side: every metric of a flow in each run, with difference and ratio to the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.errors import DataError
from tcpsbed.views import charts, tables, text
from tcpsbed.views.charts import Chart
from tcpsbed.views.folder import RunFolder, open_folder
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE, finite, nothing
from tcpsbed.views.sentence import Said
from tcpsbed.views.tables import Table


@dataclass(frozen=True)
class Compared:
    """Runs side by side.

    Attributes
    ----------
    folders, runs
        The runs, and a line for each with its letter.
    flows
        A table for each flow that all of them have.
    left_out
        Sentences about the other flows.
    """

    folders: tuple[RunFolder, ...]
    runs: Table
    flows: tuple[Table, ...]
    left_out: tuple[str, ...]


def compare(folders: Sequence[Path | str]) -> str:
    """Tables of the flows that all of these runs have, for the terminal; see `compared`."""
    found = compared(folders)
    shown = (text.table(one.columns, one.rows) for one in (found.runs, *found.flows))
    return "\n".join([*shown, *(f"{line}\n" for line in found.left_out)])


def compared(folders: Sequence[Path | str]) -> Compared:
    """Tables of the flows that all of these runs have.

    Parameters
    ----------
    folders : sequence of Path or str
        Two run folders or more; differences are to the first.

    Raises
    ------
    DataError
        If there are fewer than two, if versions of tcpsbed differ, or if no flow is in all runs.
    """
    if len(folders) < 2:
        raise DataError(
            f"found {len(folders)} folder",
            key="compare",
            allowed="two run folders or more, such as runs/a runs/b",
        )
    runs = [open_folder(folder) for folder in folders]
    _check_versions(runs)
    names = [name for name in runs[0].summary["flows"] if all(name in run.summary["flows"] for run in runs)]
    if not names:
        known = "; ".join(f"{run.path}: {', '.join(run.summary['flows']) or 'none'}" for run in runs)
        raise DataError(
            f"no flow is in all runs ({known})", key="compare", allowed="runs with a flow of the same name"
        )
    flows = tuple(_flow(name, runs) for name in names)
    return Compared(tuple(runs), _legend(runs), flows, tuple(_left_out(runs, names)))


def sentence(found: Compared) -> Said:
    """The flow whose 99th percentile of the delay differs most, as a ratio, from that of the first run.

    A delay may be 0, or less than 0 by clocks that disagree: it has no ratio, and nothing is said of it.
    """
    late = tables.field(metrics.section("flows").parts, "delay_ms.p99")
    first, *others = found.folders
    changes = [
        (abs(math.log(value / before)), flow.title, before, value, letter)
        for flow in found.flows
        if (before := late.number(first.summary["flows"][flow.title]) or 0.0) > 0
        for run, letter in zip(others, letters(found.folders)[1:], strict=True)
        if (value := late.number(run.summary["flows"][flow.title]) or 0.0) > 0
    ]
    if not changes:
        return [("", "No flow has a delay above 0 in two of these runs.")]
    _, flow, before, value, letter = max(changes)
    if value == before:
        return [("", f"The {late.title} of every flow is the same in all runs.")]
    change = f"from {late.shown(before)} to {late.shown(value)} {late.unit}"
    return [("much", f"The {late.title} of {flow} goes {change}"), ("", f", from A to {letter}.")]


def delays(found: Compared) -> Iterator[Chart]:
    """The distribution of the delay of each flow in every run."""
    for flow in found.flows:
        cdf = {
            letter: (curve["delay_ms"], curve["p"])
            for letter, run in zip(letters(found.folders), found.folders, strict=True)
            if (curve := run.series.get("cdf", {}).get(flow.title))
        }
        yield from charts.distribution(f"Delay of {flow.title}", "delay (ms)", cdf)[:1]


def _check_versions(runs: Sequence[RunFolder]) -> None:
    versions = [(run.summary.get("versions") or {}).get("tcpsbed", "unknown") for run in runs]
    if len(set(versions)) > 1:
        listed = ", ".join(f"{run.path}: {version}" for run, version in zip(runs, versions, strict=True))
        raise DataError(
            f"found different versions of tcpsbed ({listed})",
            key="compare",
            allowed="runs of one version; run the older scenario.toml again with this one",
        )


def letters(runs: Sequence[RunFolder]) -> list[str]:
    """Names of runs in the tables."""
    return [chr(ord("A") + i) if i < 26 else f"R{i + 1}" for i in range(len(runs))]


def _legend(runs: Sequence[RunFolder]) -> Table:
    rows = []
    for letter, run in zip(letters(runs), runs, strict=True):
        summary = run.summary
        amiss = [
            word for word, key in (("errors", "errors"), ("disturbed", "disturbances")) if summary.get(key)
        ]
        rows.append(
            (
                letter,
                str(run.path),
                run.name,
                summary.get("world"),
                summary.get("seed"),
                summary.get("duration_s"),
                ", ".join(amiss),
            )
        )
    columns = (
        words("run"),
        words("folder"),
        words("scenario"),
        words("world"),
        Column("seed"),
        Column("duration", "s"),
        words(""),
    )
    return Table("Runs", columns, tuple(rows))


def _flow(name: str, runs: Sequence[RunFolder]) -> Table:
    named = letters(runs)
    columns = [words(name)] + [Column(letter) for letter in named]
    columns += [Column(f"{letter} − A") for letter in named[1:]] + [
        Column(f"{letter} / A") for letter in named[1:]
    ]
    columns.append(words(""))
    rows = []
    for metric in tables.fields(metrics.section("flows").parts):
        values = [metric.number(run.summary["flows"][name]) for run in runs]
        if not any(values if metric.metric.rare else (value is not None for value in values)):
            continue
        first, others = values[0], values[1:]
        rows.append(
            [
                f"{metric.title} ({metric.unit})" if metric.unit else metric.title,
                *map(metric.shown, values),
                *(_difference(first, v, metric.shown) for v in others),
                *(_ratio(first, v) for v in others),
                _doubt(name, metric.name, runs),
            ]
        )
    return Table(name, tuple(columns), tuple(map(tuple, rows)))


def _doubt(flow: str, metric: str, runs: Sequence[RunFolder]) -> str:
    """The runs whose difference from the first is within their intervals across seeds; empty without intervals."""
    spread = [
        ((run.summary.get("across_seeds") or {}).get("flows") or {}).get(flow, {}).get(metric) or {}
        for run in runs
    ]
    means, halves = ([finite(one.get(key)) for one in spread] for key in ("mean", "ci95"))
    within = [
        letter
        for letter, mean, half in zip(letters(runs)[1:], means[1:], halves[1:], strict=True)
        if None not in (mean, means[0], half, halves[0])
        and nothing(mean - means[0], math.hypot(half, halves[0]))  # type: ignore[operator,arg-type]
    ]
    return f"{', '.join(within)}: not different from 0" if within else ""


def _difference(first: float | None, value: float | None, shown: Callable[[Any], str]) -> str:
    if first is None or value is None:
        return NONE
    return ("+" if value > first else "") + shown(value - first)


def _ratio(first: float | None, value: float | None) -> str:
    return NONE if not first or value is None else f"{value / first:.3f}"


def _left_out(runs: Sequence[RunFolder], names: Sequence[str]) -> Iterator[str]:
    for letter, run in zip(letters(runs), runs, strict=True):
        if extra := [name for name in run.summary["flows"] if name not in names]:
            yield f"only in some runs, left out: {letter}: {', '.join(extra)}"
