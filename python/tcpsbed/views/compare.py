"""Runs side by side: every metric of a flow in each run, with difference and ratio to the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.errors import DataError
from tcpsbed.views import tables, text
from tcpsbed.views.folder import RunFolder, open_folder
from tcpsbed.views.markup import Column, words
from tcpsbed.views.numbers import NONE


def compare(folders: Sequence[Path | str]) -> str:
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
    return "\n".join([_legend(runs), *(_flow(name, runs) for name in names), *_left_out(runs, names)])


def _check_versions(runs: Sequence[RunFolder]) -> None:
    versions = [(run.summary.get("versions") or {}).get("tcpsbed", "unknown") for run in runs]
    if len(set(versions)) > 1:
        listed = ", ".join(f"{run.path}: {version}" for run, version in zip(runs, versions, strict=True))
        raise DataError(
            f"found different versions of tcpsbed ({listed})",
            key="compare",
            allowed="runs of one version; run the older scenario.toml again with this one",
        )


def _letters(runs: Sequence[RunFolder]) -> list[str]:
    return [chr(ord("A") + i) if i < 26 else f"R{i + 1}" for i in range(len(runs))]


def _legend(runs: Sequence[RunFolder]) -> str:
    rows = []
    for letter, run in zip(_letters(runs), runs, strict=True):
        summary = run.summary
        amiss = [
            word for word, key in (("errors", "errors"), ("disturbed", "disturbances")) if summary.get(key)
        ]
        rows.append(
            [
                letter,
                str(run.path),
                run.name,
                summary.get("world"),
                summary.get("seed"),
                summary.get("duration_s"),
                ", ".join(amiss),
            ]
        )
    columns = [
        words("run"),
        words("folder"),
        words("scenario"),
        words("world"),
        Column("seed"),
        Column("duration", "s"),
        words(""),
    ]
    return text.table(columns, rows)


def _flow(name: str, runs: Sequence[RunFolder]) -> str:
    letters = _letters(runs)
    columns = [words(name)] + [Column(letter) for letter in letters]
    columns += [Column(f"{letter} − A") for letter in letters[1:]] + [
        Column(f"{letter} / A") for letter in letters[1:]
    ]
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
            ]
        )
    return text.table(columns, rows)


def _difference(first: float | None, value: float | None, shown: Callable[[Any], str]) -> str:
    if first is None or value is None:
        return NONE
    return ("+" if value > first else "") + shown(value - first)


def _ratio(first: float | None, value: float | None) -> str:
    return NONE if not first or value is None else f"{value / first:.3f}"


def _left_out(runs: Sequence[RunFolder], names: Sequence[str]) -> Iterator[str]:
    for letter, run in zip(_letters(runs), runs, strict=True):
        if extra := [name for name in run.summary["flows"] if name not in names]:
            yield f"only in some runs, left out: {letter}: {', '.join(extra)}\n"
