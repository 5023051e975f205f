"""A run folder for readers: the summary, the series over time and the scenario's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import documents, inputs, results
from tcpsbed.analysis.records import refuse_foreign
from tcpsbed.documents import Each, Maybe
from tcpsbed.errors import DataError, counted
from tcpsbed.views.numbers import finite, seconds

if TYPE_CHECKING:
    from tcpsbed.analysis.metrics import Metric

SUMMARY_VERSION = 1
"""Version of summary.json that this program reads."""
NEEDED = ("name", "world", "seed", "duration_s", "flows")
"""Keys without which there is nothing to tell."""
LISTED = '"tcpsbed runs" lists all runs'
"""Where to find the names of folders."""
PAGES = {
    "run": "report.html",
    "sweep": "sweep.html",
    "search": "search.html",
    "step": "step.html",
    "map": "map.html",
    "reproduction": "index.html",
}
"""The page in a folder, by the kind of its result."""
_SHOW = "tcpsbed show {0} prints it, tcpsbed open {0} opens its page"
_DRAWN = f'{_SHOW}, in Python tcpsbed.load("{{0}}").draw("fig.pdf") draws it'
OTHERS = {
    "sweep": ("a sweep or a campaign", _SHOW),
    "search": ("a search", _SHOW),
    "step": ("a step experiment", _DRAWN),
    "map": ("a stability map", _DRAWN),
    "reproduction": ("a reproduction of a published work", "tcpsbed open {0} opens its page"),
    "rerun": ("an archive that was run again", "its verdicts are in {0}/rerun.json"),
    "study": ("a study", "tcpsbed study FILE --results --out {0} prints its table"),
}
"""Results that are no run, by their kind: what they are, and what shows them."""


@dataclass(frozen=True)
class RunFolder:
    """A finished run on disk, read lazily.

    Parameters
    ----------
    path : Path
        The folder, as `tcpsbed run --out` made it.
    """

    path: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`, checked for its version and the kinds of all values."""
        from tcpsbed.analysis import metrics

        file = self.path / "summary.json"
        summary = documents.read(file)
        found = summary.get("version")
        if found != SUMMARY_VERSION:
            raise DataError(
                f"found {found!r}",
                file=file,
                key="version",
                allowed=f"{SUMMARY_VERSION}; run the scenario again, or read the folder with the tcpsbed that wrote it",
            )
        if missing := [key for key in NEEDED if key not in summary]:
            found = f"found no {', '.join(missing)}"
            raise DataError(found, file=file, allowed=documents.REMEDY)
        return documents.shaped(summary, _shape(metrics.SUMMARY), file)  # type: ignore[no-any-return]

    @cached_property
    def series(self) -> dict[str, Any]:
        """The content of `series.json`; empty where the run left none."""
        file = self.path / "series.json"
        return _curves(documents.read(file), file) if file.exists() else {}

    @cached_property
    def scenario(self) -> str:
        """The scenario as it ran; empty where the run left none."""
        file = self.path / "scenario.toml"
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.summary.get("name", self.path.name))

    @property
    def conditions(self) -> list[str]:
        """World, seed and duration, as every headline has them in this order."""
        summary = self.summary
        warmup = finite(summary.get("warmup_s"))
        lasted = seconds(summary.get("duration_s")) + (f", first {seconds(warmup)} warm-up" if warmup else "")
        return [str(summary.get("world", "")), f"seed {summary.get('seed')}", lasted]


_NUMBERS = [Maybe(float)]
_KINDS: dict[str, Any] = {
    "list[str]": [str],
    "list[int]": [int],
    "list[list[str]]": [[str]],
    "dict[str, str]": Each(Maybe(str)),
    "dict[str, int]": Each(Maybe(float)),
    "dict[str, dict[str, int]]": Each(Each(Maybe(float))),
    "dict[str, Any]": dict,
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
}
"""Shapes of values without a unit, by their types in the table of metrics."""
_CURVES = {
    "t_s": Maybe([float]),
    "bin_s": Maybe(float),
    "flows": Maybe(Each(Each(Maybe(list | float)))),
    "queues": Maybe(Each(Each(Maybe(_NUMBERS)))),
    "events": Maybe([{"t_s": float, "name": str}]),
    "disturbed": Maybe([{"from_s": float, "to_s": float, "why": str}]),
    "cdf": Maybe(Each({"p": [float], "delay_ms": _NUMBERS, "interarrival_ms": Maybe(_NUMBERS)})),
    "echo": Maybe(Each({"p": [float], "round_trip_ms": Each(_NUMBERS)})),
    "services": Maybe(
        {
            "span_s": float,
            "paths": Each(
                {"t_s": [float], "p50_ms": _NUMBERS, "p99_ms": _NUMBERS, "packets": [int], "lost": [int]}
            ),
        }
    ),
}
"""The shape of `series.json`."""


def _shape(parts: Iterable[Metric], needs: Sequence[str] = ()) -> dict[str, Any]:
    """The shape of a table of metrics."""
    return {part.key: _value(part) if part.key in needs else Maybe(_value(part)) for part in parts}


def _value(part: Metric) -> Any:
    """The shape of what a metric gives."""
    from tcpsbed.analysis.metrics import LIST

    if part.parts:
        inner: Any = _shape(part.parts, part.needs)
        if part.listed or part.each == LIST:
            inner = [inner]
        return inner if part.each in ("", LIST) else Each(inner)
    if not part.unit:
        return _KINDS[part.type]
    if part.each or part.shown not in ((), ("",)):
        return Each(Maybe(float))
    return float if part.shown else float | dict


def _curves(content: dict[str, Any], file: Path) -> dict[str, Any]:
    """The content of `series.json`, once curves are as long as their times and no more packets were lost than there were."""
    documents.shaped(content, _CURVES, file)
    times, services = content.get("t_s") or [], (content.get("services") or {}).get("paths", {})
    parts = {name: content.get(name) or {} for name in ("flows", "queues", "cdf")}
    tables = [
        (f"{part}.{name}", of, of.get("p", times)) for part in parts for name, of in parts[part].items()
    ]
    tables += [(f"services.paths.{name}", of, of["t_s"]) for name, of in services.items()]
    echo = content.get("echo") or {}
    tables += [(f"echo.{name}.round_trip_ms", of["round_trip_ms"], of["p"]) for name, of in echo.items()]
    for key, of, at in tables:
        for name, curve in of.items():
            if isinstance(curve, list):
                documents.shaped(curve, _NUMBERS, file, f"{key}.{name}")
                if len(curve) not in (0, len(at)):
                    found = f"found {counted(len(curve), 'value')} at {counted(len(at), 'place')}"
                    raise DataError(found, file=file, key=f"{key}.{name}", allowed=documents.REMEDY)
    for name, of in services.items():
        for number, (came, lost) in enumerate(zip(of["packets"], of["lost"], strict=False)):
            if not 0 <= lost <= came:
                found, key = f"found {lost} of {came} packets", f"services.paths.{name}.lost.{number}"
                raise DataError(found, file=file, key=key, allowed=documents.REMEDY)
    return content


@dataclass(frozen=True)
class Cell:
    """A finished cell of a sweep.

    Attributes
    ----------
    name : str
        Of its file, without its ending.
    settings : tuple of str
        All overrides of the scenario.
    summary : dict
        As in `summary.json`.
    """

    name: str
    settings: tuple[str, ...]
    summary: dict[str, Any]

    def part(self, *keys: str) -> dict[str, Any]:
        """These keys of its summary, which is large where there are thousands of cells."""
        return {key: self.summary[key] for key in keys if key in self.summary}


def cells_in(sweep: Path) -> Iterator[Cell]:
    """The finished cells in the folder of a sweep, in its order; none where there is no sweep."""
    if not (sweep / "sweep.json").is_file():
        return
    keys = documents.read(sweep / "sweep.json", ("cells",))["cells"]
    for key in keys:
        if (file := sweep / "cells" / f"{key}.json").is_file():
            kept = documents.read(file, ("settings", "summary"))
            yield Cell(key, tuple(kept["settings"]), kept["summary"])


def state_of(sweep: Path) -> str:
    """What is missing in the folder of a sweep, as a sentence; empty if it is finished and whole."""
    told = documents.read(sweep / "sweep.json", ("cells",))
    kind, ended = "campaign" if told.get("campaign") else "sweep", told.get("ended")
    files = {file.name for file in (sweep / "cells").glob("*.json")}
    all_, done = len(told["cells"]), sum(f"{key}.json" in files for key in told["cells"])
    if done == all_:
        return ""
    again = "the same command continues"
    if not isinstance(ended, dict):
        return f"UNFINISHED: {done} of {counted(all_, 'cell')} of this {kind} have a result; {again}"
    failed, spared = ended.get("failed", 0), ended.get("spared", 0)
    said = [f"{counted(failed, 'cell')} of {all_} failed (see the folder failed)"] * (failed > 0)
    if (removed := all_ - done - failed - spared) > 0:
        said.append(f"{counted(removed, 'result')} of {all_} removed since it ended")
    return f"INCOMPLETE: {' and '.join(said)}; {again}" if said else ""


def differing(settings: Sequence[Sequence[str]]) -> list[str]:
    """Of each list of overrides those that not all have, as one text; of a single list all."""
    common = set.intersection(*map(set, settings)) if len(settings) > 1 else set()
    return [", ".join(one for one in some if one not in common) for some in settings]


def open_folder(path: Path | str) -> RunFolder:
    """The run in this folder.

    Raises
    ------
    DataError
        If there is no run in it, or one that this version cannot read.
    """
    folder = RunFolder(inputs.path(path, "folder"))
    if folder.path.is_file():
        inside = (folder.path.parent / "summary.json").is_file()
        allowed = (
            f"the folder of the run: {folder.path.parent}"
            if inside
            else "the folder of a run, such as runs/latest"
        )
        raise DataError("is a file", file=folder.path, allowed=allowed)
    if not folder.path.is_dir():
        found = results.interrupted(folder.path)
        if folder.path.name == "latest":
            found += results.interrupted_after(folder.path.resolve())
        remedy = "; ".join(found) or f"the folder of a run, such as runs/latest; {LISTED}"
        raise DataError("no such folder", file=folder.path, allowed=remedy)
    if not (folder.path / "summary.json").is_file():
        if (other := OTHERS.get(results.kind_of(folder.path))) is not None:
            what, remedy = other
            raise DataError(f"holds {what}, not a run", file=folder.path, allowed=remedy.format(folder.path))
        allowed = f"the folder of a finished run, such as runs/latest; {LISTED}"
        if results.is_unfinished(folder.path):
            allowed += f"; to recover an unfinished one: tcpsbed report {folder.path}"
        raise DataError("has no summary.json", file=folder.path, allowed=allowed)
    _ = folder.summary
    if (folder.path / "records.bin").is_file():
        refuse_foreign(folder.path / "records.bin")
    return folder
