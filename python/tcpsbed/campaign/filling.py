"""A sweep's folder for a page, also while it fills: which cells are done, and their numbers as in the sweep's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.campaign import results
from tcpsbed.campaign.design import designed
from tcpsbed.campaign.grid import Axis, Cell
from tcpsbed.campaign.results import Group, Shown
from tcpsbed.campaign.survey import Survey, summary_in
from tcpsbed.errors import DataError, counted
from tcpsbed.results.folder import lock_of
from tcpsbed.results.lock import is_held

DESCRIPTION = "sweep.json"
SHAPE = {
    **dict.fromkeys(("scenario", "world", "until", "file"), str),
    **dict.fromkeys(("order", "warmup"), int),
    **dict.fromkeys(("baseline", "labels", "document"), dict),
    **{key: [str] for key in ("settings", "metrics", "cells")},
    "axes": [{"key": str, "values": [str]}],
    "points": [[str]],
    "seeds": [int],
    "campaign": bool,
    "ended": {"failed": int, "spared": int},
    "inputs": {"build": str, "processor": str, "scenario": dict, "files": dict},
}
"""The content of `sweep.json`; folders of before may lack what came later."""
MOST_FAILURES = 20
"""Messages of failed cells that are shown."""


@dataclass
class Filling:
    """A sweep on disk. Each look reads the cells that are new.

    Parameters
    ----------
    survey : Survey
        What it is.
    keys : dict
        Its cells by the names of their files, in the order of the grid.
    """

    survey: Survey
    keys: Mapping[str, Cell]
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def read(self) -> list[dict[str, Any]]:
        """The rows of the cells that have a result, in the order of the grid; reads those that are new."""
        done = _stems(self.survey.out / "cells", ".json")
        for key, cell in self.keys.items():
            if key in done and key not in self.rows:
                summary = summary_in(self.survey.out / "cells" / f"{key}.json")
                if summary is not None:
                    self.rows[key] = self.survey.rows_of(cell, summary)
        return [row for key in self.keys for row in self.rows.get(key, ())]

    def look(self) -> dict[str, Any]:
        """What is there now.

        Returns
        -------
        dict
            `axes`, `seeds`; runs that are `done`, `failed`, `running`, of `all`; `combinations` with the same counts; by
            flow `lines` and `means`; `failures`; whether the sweep's process is `alive`, and whether it left a `page`.
        """
        out, shown = self.survey.out, self.survey.shown
        rows = self.read()
        states = {
            "done": self.rows.keys(),
            "failed": _stems(out / "failed", ".txt") & self.keys.keys() - self.rows.keys(),
            "running": {name.partition("-")[0] for name in _names(out / "work")} & self.keys.keys(),
        }
        return {
            "scenario": str(self.survey.file),
            "world": self.survey.world,
            "settings": self.survey.settings,
            "axes": [{"key": axis.key, "values": axis.values} for axis in self.survey.axes],
            "seeds": len(self.survey.seeds),
            "all": len(self.keys),
            **{name: len(keys) for name, keys in states.items()},
            "combinations": [
                {"values": values} | {name: len(keys & mine) for name, keys in states.items()}
                for values, mine in self._combinations().items()
            ],
            "metrics": [{"title": shown.title(one), "unit": one.unit} for one in shown.columns],
            "head": [{"title": one.title, "unit": one.unit} for one in shown.headings()],
            "flows": {
                flow: _table(found, shown)
                for flow, found in shown.groups(rows).items()
                if shown.of(flow) is shown  # of attacks the finished sweep tells
            },
            "remark": " ".join(results.remarks(rows, shown)),
            "failures": [_message(out / "failed" / f"{key}.txt") for key in sorted(states["failed"])][
                :MOST_FAILURES
            ],
            "alive": is_held(lock_of(out.resolve())),
            "page": (out / "sweep.html").is_file(),
        }

    def _combinations(self) -> dict[tuple[str, ...], set[str]]:
        found: dict[tuple[str, ...], set[str]] = {}
        for key, cell in self.keys.items():
            found.setdefault(cell.values, set()).add(key)
        return found


def filling(folder: Path) -> Filling:
    """The sweep in a folder.

    Raises
    ------
    DataError
        If what it says of itself is not what a sweep writes.
    """
    file = folder / DESCRIPTION
    told = documents.read(file, ("scenario", "axes", "seeds", "settings", "world"))
    if "cells" not in told:
        found = "found a sweep of an earlier version, which does not name its cells"
        raise DataError(
            found, file=file, allowed="run the same tcpsbed sweep again; it keeps the finished cells"
        )
    documents.shaped(told, {key: shape for key, shape in SHAPE.items() if key in told}, file)
    with documents.trusted(file):
        axes = tuple(Axis(axis["key"], tuple(axis["values"])) for axis in told["axes"])
        if (
            odd := next((one for one in told.get("points") or () if len(one) != len(axes)), None)
        ) is not None:
            raise ValueError(f"a point has {len(odd)} values for {counted(len(axes), 'factor')}")
        seeds = tuple(told["seeds"])
        survey = Survey(
            Path(told["scenario"]),
            axes,
            seeds,
            tuple(told["settings"]),
            told["world"],
            folder,
            designed(told),
        )
        return Filling(survey, dict(zip(told["cells"], survey.cells(), strict=True)))


def _table(found: Sequence[Group], shown: Shown) -> dict[str, Any]:
    """Lines as in the sweep's table, without the values; and the means as numbers, for colours."""
    means = [[group.mean(column) for column in shown.columns] for group in found]
    return {
        "values": [group.values for group in found],
        "lines": shown.lines(found),
        "means": [[None if mean is None else mean.mean for mean in line] for line in means],
    }


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return [file.name for file in folder.iterdir()]
    return []


def _stems(folder: Path, ending: str) -> set[str]:
    return {name.removesuffix(ending) for name in _names(folder) if name.endswith(ending)}


def _message(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return ""
