"""Files that a scenario names: found from its folder, read as columns."""

from __future__ import annotations

import csv
from pathlib import Path

from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key


def existing(scenario: Scenario, key: Key, name: str) -> Path:
    """The absolute path of a file named in the scenario, or the error that there is none."""
    path = (scenario.folder / name).resolve()
    if not path.exists():
        raise scenario.error(
            key, f'found "{name}", but there is no such file', f"a file, looked for at {path}"
        )
    return path


def column(scenario: Scenario, key: Key, path: Path, which: str | int) -> tuple[str, list[float]]:
    """A column of numbers of a csv file, with its title ("" if the file has none)."""
    rows = _rows(scenario, key, path)
    title = [] if _is_number(rows[0][0]) else [cell.strip() for cell in rows[0]]
    if isinstance(which, str) and which not in title:
        raise scenario.error(
            (*key, "column"), f'found "{which}"', f"a column of {path.name}: {close_match(which, title)}"
        )
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
    return (title[index] if title else ""), values


def _rows(scenario: Scenario, key: Key, path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise scenario.error(key, f"found {path.name}, which is no text", "a csv file of numbers") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = "\t" if lines and "\t" in lines[0] else ("," if lines and "," in lines[0] else " ")
    rows = [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    if not rows:
        raise scenario.error(key, f"found no rows in {path.name}", "a csv file of numbers")
    return rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
