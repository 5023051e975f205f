"""`archive.json`: what an archive says of itself, and the places of its members.

```text
archive.json              runs, versions, machines, command, size and SHA-256 of every other member
ro-crate-metadata.json    the same for search engines and repositories (RO-Crate 1.1)
README.md                 what a reader does with it
scenario/...              scenario and the files that it names, in their layout
results/...               summaries
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError

FORMAT, VERSION = "tcpsbed-archive", 1
ABOUT, CRATE, README = "archive.json", "ro-crate-metadata.json", "README.md"
SCENARIO, RESULTS = "scenario", "results"
REMEDY = "a file as tcpsbed archive wrote it"


@dataclass(frozen=True)
class Cell:
    """A run in an archive.

    Attributes
    ----------
    results : str
        The member with its summary.
    settings : tuple of str
        Overrides of the scenario, the seed last.
    seed : int
        Its seed.
    world : str
        Where it ran.
    records_sha256 : str
        Hash of its records; empty if it kept none.
    promise : str
        Its reproducibility, as `promise` in `summary.json`.
    """

    results: str
    settings: tuple[str, ...]
    seed: int
    world: str
    records_sha256: str
    promise: str

    @property
    def combination(self) -> tuple[str, ...]:
        """World and overrides without the seed."""
        return (self.world, *(one for one in self.settings if not one.startswith("seed=")))


@dataclass(frozen=True)
class Content:
    """What `archive.json` says.

    Attributes
    ----------
    kind, title, command : str
        `run`, `sweep` or `campaign`; the name of the scenario; the command that made the results.
    scenario : str
        The member that is the scenario's file.
    cells : tuple of Cell
        The runs.
    files : dict
        Size in bytes and SHA-256 of each other member, by name.
    versions, machines : list of dict
        The different versions and machines of the runs.
    packages : dict
        Versions of the installed packages on which results may depend, by name.
    """

    kind: str
    title: str
    command: str
    scenario: str
    cells: tuple[Cell, ...]
    files: Mapping[str, tuple[int, str]]
    versions: list[dict[str, Any]]
    machines: list[dict[str, Any]]
    packages: Mapping[str, str]

    def text(self) -> str:
        """The content of `archive.json`."""
        return as_text(self._document())

    def _document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            **vars(self),
            "cells": [vars(cell) for cell in self.cells],
            "files": {name: {"bytes": size, "sha256": sha256} for name, (size, sha256) in self.files.items()},
        }


def as_text(document: Any) -> str:
    """JSON with sorted keys, in lines."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(found: Any, place: str) -> Content:
    """The content of an archive from its JSON; `place` is what messages name.

    Raises
    ------
    DataError
        If it is not what tcpsbed writes.
    """
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError("is not an archive of tcpsbed", file=place, allowed=REMEDY)
    if found.get("version") != VERSION:
        allowed = f"{VERSION}; or the tcpsbed that wrote it"
        raise DataError(f"found {found.get('version')!r}", file=place, key="version", allowed=allowed)
    if hidden := inputs.unprintable(found):
        raise DataError(f"found {inputs.unseen(hidden[1])}", file=place, allowed=REMEDY)
    try:
        content = _content(found)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"has a damaged {ABOUT} (detail: {error!r})", file=place, allowed=REMEDY) from None
    for name in (content.scenario, *(cell.results for cell in content.cells)):
        if name not in content.files:
            found_ = f'names "{name}", which it does not hold'
            raise DataError(found_, file=place, key=ABOUT, allowed=REMEDY)
    return content


def _content(found: Mapping[str, Any]) -> Content:
    cells = tuple(
        Cell(
            _text(one["results"]),
            tuple(map(_text, one["settings"])),
            _whole(one["seed"]),
            _text(one["world"]),
            _text(one["records_sha256"]),
            _text(one["promise"]),
        )
        for one in found["cells"]
    )
    files = {
        _text(name): (_whole(one["bytes"]), _text(one["sha256"])) for name, one in found["files"].items()
    }
    scenario = _text(found["scenario"])
    if PurePosixPath(scenario).parts[0] != SCENARIO or not cells:
        raise ValueError("no scenario, or no run")
    return Content(
        _text(found["kind"]),
        _text(found["title"]),
        _text(found["command"]),
        scenario,
        cells,
        files,
        [dict(one) for one in found["versions"]],
        [dict(one) for one in found["machines"]],
        {_text(name): _text(version) for name, version in found["packages"].items()},
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r:.40} is no whole number")
    return value
