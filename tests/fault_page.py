"""The page of faults (docs/faults.md): its rows are what tests observe, written with FAULTS=write and compared without."""

from __future__ import annotations

import os
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "faults.md"
WRITE = os.environ.get("FAULTS") == "write"
HEADS = {
    "processes": ("fault", "of", "status", "says", "recorded until then", "left behind"),
    "machine": ("fault", "status", "says", "left behind"),
    "network": ("fault", "world", "counted"),
}
NAMES = {"processes": 2, "machine": 1, "network": 2}
"""The first cells of a row, by which it is found."""

PASSING = re.compile(r"tcpsbed: warning|.* \d+ %  ")
"""Lines that are no part of a row: warnings, and how far a command is."""


def told(errors: str) -> str:
    """The lines of a command on standard error, without what differs from run to run."""
    assert "Traceback" not in errors and "panicked" not in errors, errors
    lines = [line for line in errors.splitlines() if line.strip() and not PASSING.match(line)]
    text = "<br>".join(lines)
    text = re.sub(r"\S*/pytest-of-\S*/disk", "FOLDER", text)
    opened = r"tcpsbed: \S+(?: cannot be written)?: Too many open files"
    text = re.sub(opened, "tcpsbed: FILE: Too many open files", text)  # whichever file was next
    text = re.sub(r"/dev/shm/[^:]*", "/dev/shm/NAME", text)
    text = re.sub(
        r"too little memory( \([^)]*\))?", "too little memory (FOR)", text
    )  # whichever asked for more
    text = re.sub(r"(?<!status -)\b\d+(\.\d+)*", "N", text)
    text = re.sub(r"(\S*/)?(?<!-)\bout\b(\.unfinished-\S+)?(/(?!\w))?", "OUT", text).replace("|", "\\|")
    return "<br>".join(dict.fromkeys(text.split("<br>")))


def names(section: str) -> set[tuple[str, ...]]:
    """The first cells of the rows of a section, by which they are found."""
    return {tuple(line.split(" | ")[: NAMES[section]]) for line in _lines(section)[2]}


def _lines(section: str) -> tuple[str, str, list[str]]:
    """What stands before and after the table of a section, and its rows without the bars at both ends."""
    before, mark, rest = PAGE.read_text().partition(f"<!-- faults:{section} -->\n")
    table, end, after = rest.partition("<!-- /faults -->")
    return (
        before + mark,
        end + after,
        [line.removeprefix("| ").removesuffix(" |") for line in table.splitlines()[2:]],
    )


def row(section: str, *cells: str) -> None:
    """Compares a row of the page with what was observed, or writes it."""
    before, after, lines = _lines(section)
    line = " | ".join(cells)
    if not WRITE:
        assert line in lines, f"docs/faults.md has no such row; FAULTS=write writes it:\n{line}"
        return
    names = list(cells[: NAMES[section]])
    kept = [one for one in lines if one.split(" | ")[: len(names)] != names]
    head = [" | ".join(HEADS[section]), "|".join(["---"] * len(HEADS[section]))]
    table = [f"| {head[0]} |", f"|{head[1]}|", *(f"| {one} |" for one in sorted([*kept, line]))]
    PAGE.write_text(before + "\n".join(table) + "\n" + after)


def left_in(folder: Path, *more: str) -> str:
    """What a run left behind beside its result, and more."""
    return (
        ", ".join([*(re.sub(r"-\S+", "-*", path.name) for path in folder.glob("out.unfinished*")), *more])
        or "nothing"
    )
