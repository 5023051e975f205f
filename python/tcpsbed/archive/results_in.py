"""The runs in a folder of results: their scenario, overrides, summaries."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from tcpsbed import documents, scenarios
from tcpsbed.archive.content import RESULTS, SCENARIO, Cell
from tcpsbed.errors import DataError
from tcpsbed.results import lock, marker
from tcpsbed.results.folder import lock_of
from tcpsbed.scenarios.dump import dump_document
from tcpsbed.views.folder import cells_in, open_folder

SEEDS = "seeds"
KEPT = ("versions", "machine")
"""What is kept of a summary."""
ALLOWED = "the folder of a run or a sweep, such as runs/latest"
Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """Results that are to be archived.

    Attributes
    ----------
    kind : str
        `run`, `sweep` or `campaign`.
    file : Path
        The scenario.
    text : str, optional
        Its text, where that is another than in the file: the scenario of a run with its overrides.
    cells : dict of Cell to dict
        The runs with versions and machine.
    words : list of str
        The command of the results, without the scenario's file.
    members : dict of str to Path
        Files of the results by their names in the archive.
    date : str
        Day of the newest of these files, UTC.
    plan : Path, optional
        The file of a campaign.
    document : dict
        What such a file would hold, of a campaign that was made in Python.
    """

    kind: str
    file: Path
    text: str | None
    cells: Mapping[Cell, Summary]
    words: list[str]
    members: Mapping[str, Path]
    date: str
    plan: Path | None = None
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def combinations(self) -> list[tuple[str, ...]]:
        """Overrides of each combination of values, without seeds."""
        return list(dict.fromkeys(cell.combination[1:] for cell in self.cells))

    def command(self, file: str) -> str:
        """The command that makes such results of the file of a scenario, or of a campaign."""
        return shlex.join(["tcpsbed", self.words[0], file, *self.words[1:]])


def found_in(folder: Path) -> Found:
    """The results in a folder.

    Raises
    ------
    DataError
        If there are none, or something was changed since they were written, or is being written.
    """
    if (folder / "sweep.json").is_file():
        found = _sweep(folder)
    else:
        open_folder(folder)
        found = _run(folder)
    newest = _refuse_changed(folder, [file.relative_to(folder).as_posix() for file in found.members.values()])
    return replace(found, date=datetime.fromtimestamp(newest / 1e9, UTC).date().isoformat())


def _refuse_changed(folder: Path, names: Sequence[str]) -> int:
    """Raises `DataError` for files that tcpsbed did not write; when the newest was written, in ns."""
    made = marker.read(folder)
    if made is None:
        raise DataError("is not a result of tcpsbed", file=folder, allowed=ALLOWED)
    if lock.is_held(lock_of(folder.resolve())):
        raise DataError("is being written", file=folder, allowed="a command that has ended")
    for name in names:
        if not made.owns(folder, name):
            found = f"holds {name}, {made.accused(folder, name)}"
            raise DataError(found, file=folder, allowed="the files as tcpsbed wrote them: run it again")
    known = [made.files[name][1] for name in names if name in made.files]
    return max(known or [(folder / name).stat().st_mtime_ns for name in names])


def _run(folder: Path) -> Found:
    """A run, with its further seeds."""
    summary = documents.read(folder / "summary.json")
    with documents.trusted(folder):
        cells: dict[Cell, Summary] = {_cell("summary.json", (f"seed={summary['seed']}",), summary): summary}
        members = {f"{RESULTS}/summary.json": folder / "summary.json"}
        for one in cells_in(folder / SEEDS):
            name = f"{SEEDS}/cells/{one.name}.json"
            cells[_cell(name, (f"seed={one.summary['seed']}",), one.summary)] = one.part(*KEPT)
            members[f"{RESULTS}/{name}"] = folder / name
        if (folder / "doctor.json").is_file():
            members[f"{RESULTS}/doctor.json"] = folder / "doctor.json"
        loaded = scenarios.load(folder / "scenario.toml")
        text = dump_document({key: value for key, value in loaded.document.items() if key != "base"})
        words = [
            "run",
            "--world",
            summary["world"],
            *(["--seeds", str(len(cells))] if len(cells) > 1 else []),
        ]
        return Found("run", folder / "scenario.toml", text, cells, words, members, "")


def _sweep(folder: Path) -> Found:
    told = documents.read(folder / "sweep.json", ("scenario", "axes", "seeds", "settings", "world"))
    if marker.kind_of(folder) == "search" and "ended" not in told:
        allowed = "the same command continues it; then archive its folder"
        raise DataError("holds a search that has not ended", file=folder, allowed=allowed)
    with documents.trusted(folder):
        file = Path(told["scenario"])
        if not file.is_file():
            allowed = (
                "the scenario where it was; for a relative path, the folder in which the sweep was started"
            )
            raise DataError(
                f"found {file}, which is not there",
                file=folder / "sweep.json",
                key="scenario",
                allowed=allowed,
            )
        cells = {
            _cell(f"cells/{one.name}.json", one.settings, one.summary): one.part(*KEPT)
            for one in cells_in(folder)
        }
        if not cells:
            allowed = "a sweep with results; start it again"
            raise DataError("has no finished cell", file=folder, allowed=allowed)
        members = {cell.results: folder / cell.results.removeprefix(f"{RESULTS}/") for cell in cells}
        if (folder / "sweep.parquet").is_file():
            members[f"{RESULTS}/sweep.parquet"] = folder / "sweep.parquet"
        if told.get("campaign"):
            plan = Path(told["file"]) if told.get("file") else None
            if plan is not None and not plan.is_file():
                raise DataError(
                    f"found {plan}, which is not there",
                    file=folder / "sweep.json",
                    key="file",
                    allowed="the file of the campaign where it was, and the folder in which it was started",
                )
            document = told.get("document") or {}
            resolved = None if plan is None else plan.resolve()
            return Found(
                "campaign",
                file.resolve(),
                None,
                cells,
                ["campaign"],
                members,
                "",
                resolved,
                document,
            )
        over = [f"{axis['key']}={','.join(axis['values'])}" for axis in told["axes"]]
        words = [
            "sweep",
            *(word for one in over for word in ("--over", one)),
            "--seeds",
            str(len(told["seeds"])),
        ]
        words += [word for one in told["settings"] for word in ("--set", one)]
        words += ["--world", told["world"]]
        if (searched := folder / "search.json").is_file():
            members[f"{RESULTS}/search.json"] = searched
            words = documents.read(searched, ("words",))["words"]
        return Found("sweep", file.resolve(), None, cells, words, members, "")


def _cell(name: str, settings: tuple[str, ...], summary: Summary) -> Cell:
    sha256, promise = str(summary.get("records_sha256") or ""), str(summary.get("promise") or "")
    return Cell(f"{RESULTS}/{name}", settings, summary["seed"], summary["world"], sha256, promise)


PLAN = "campaign.toml"
"""What the file of a campaign is called that was made in Python."""


def plan_text(found: Found, scenario: str) -> str:
    """The file of a campaign that was made in Python, for a scenario beside it; empty for others."""
    if not found.document:
        return ""
    return dump_document({**found.document, "scenario": PurePosixPath(scenario).name})


def scenario_member(found: Found, folder: Path, members: Mapping[str, Path]) -> str:
    """The name of the scenario in the archive: that of its file, or in the folder of its inputs one that is free."""
    known = {file: name for name, file in members.items()}
    if found.text is None:
        return f"{SCENARIO}/{known[found.file]}"
    top = Path(os.path.commonpath([folder, *(file.parent for file in members.values())]))
    home = folder.relative_to(top)
    names = ("scenario.toml", *(f"scenario-{number}.toml" for number in range(1, len(members) + 2)))
    return next(
        f"{SCENARIO}/{(home / name).as_posix()}" for name in names if (home / name).as_posix() not in members
    )
