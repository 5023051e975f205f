"""Files that a scenario names: found from its folder, read as columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key

_T = TypeVar("_T")


def existing(scenario: Scenario, key: Key, name: str) -> Path:
    """The absolute path of a file named in the scenario, or an error if it does not exist."""
    path, is_file = looked_up(scenario, name)
    if not is_file and not os.path.lexists(path):
        raise scenario.error(
            key, f'found "{name}", but there is no such file', f"a file, looked for at {path}"
        )
    return read(scenario, key, lambda: inputs.regular(path, "a file with data"))


def looked_up(scenario: Scenario, name: str) -> tuple[Path, bool]:
    """The absolute path of a name in the scenario, and whether a file exists."""
    path = scenario.folder / name
    try:
        path = path.resolve()
        return path, path.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a zero in it, links in a circle
        return path, False


def read(scenario: Scenario, key: Key, reader: Callable[[], _T]) -> _T:
    """What a reader of data files gives; what it refuses is an error of the key that names the file."""
    try:
        return reader()
    except DataError as error:
        at = (*key, *map(_written, (error.key or "").split(", "))) if error.key else key
        allowed = _written(error.allowed or "a file that can be read")
        raise scenario.error(at, _placed(error), allowed) from None


def _placed(error: DataError) -> str:
    """What was found, with the file and its line."""
    found, file = _written(error.found), Path(error.file).name if error.file else ""
    line = f", line {error.line}" if error.line is not None else ""
    if not found.startswith("found "):
        return f"found {file}{line}, which {found}" if file else found
    return found + (f" in {file}{line}" if file else line)


def _written(text: str) -> str:
    """A text of the readers with keys as in the scenario, where units are in values, not in keys."""
    return (
        text.replace("rate_hz", "rate")
        .replace("frame_bytes = N", 'frame = "1400 B"')
        .replace("frame_bytes", "frame")
    )


def column(scenario: Scenario, key: Key, path: Path, which: str | int) -> tuple[str, list[float]]:
    """A column of numbers of a csv file, with its title ("" if the file has none)."""
    rows = _rows(scenario, key, path)
    title = [] if _is_number(rows[0][0]) else [cell.strip() for cell in rows[0]]
    if isinstance(which, str) and which not in title:
        raise scenario.error(
            (*key, "column"), f'found "{which}"', f"a column of {path.name}: {close_match(which, title)}"
        )
    if len(found := [number for number, name in enumerate(title) if name == which]) > 1:
        allowed = f"one of them by its number: {', '.join(map(str, found))}"
        raise scenario.error((*key, "column"), f'found {len(found)} columns "{which}"', allowed)
    index = title.index(which) if isinstance(which, str) else which
    body = rows[1:] if title else rows
    try:
        values = [float(row[index]) for row in body]
    except (ValueError, IndexError):
        raise scenario.error(
            key, f"found no number in column {which} of {path.name}", "a csv file of numbers"
        ) from None
    if not values:
        raise scenario.error(key, f"found no rows in {path.name}", "a csv file of numbers")
    return (title[index] if index < len(title) else ""), values


def _rows(scenario: Scenario, key: Key, path: Path) -> list[list[str]]:
    try:
        text = inputs.text(path, "a csv file of numbers", inputs.DATA_BYTES).removeprefix("\ufeff")
    except DataError as error:
        raise scenario.error(
            key, f"found {path.name}, which {error.found}", "a csv file of numbers"
        ) from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = "\t" if lines and "\t" in lines[0] else ("," if lines and "," in lines[0] else " ")
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:
        rows = []
    if not rows:
        raise scenario.error(key, f"found no rows in {path.name}", "a csv file of numbers")
    return rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
