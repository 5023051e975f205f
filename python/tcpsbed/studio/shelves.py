"""Scenarios to choose from: those that ship, as docs/scenarios.md sorts them, and those in the working folder."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tcpsbed import inputs, shipped
from tcpsbed.errors import TcpsbedError

HEADING = re.compile(r"^## (.+)$")
LINE = re.compile(r"^\| (`[^|]+`) \| (.+) \|$")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)|[*`]")
NEEDED = ("flows", "include", "nodes", "components")
"""Keys by which a scenario is known among files in TOML."""
RUN = "tcpsbed run"


@dataclass(frozen=True)
class Card:
    """A scenario to choose.

    Attributes
    ----------
    name, line, command
        What it is called and shows, and how it is started in a shell.
    file
        Where it is.
    startable
        Whether a page can start it: others need a person, or are an experiment of their own.
    """

    name: str
    line: str
    command: str
    file: Path
    startable: bool

    def told(self) -> dict[str, Any]:
        """For a page: without the file, which only this process opens."""
        return {key: value for key, value in asdict(self).items() if key != "file"}


def shelves() -> dict[str, list[Card]]:
    """Cards of the scenarios that ship, by heading."""
    found: dict[str, list[Card]] = {}
    known = {name: file for name, file in shipped.listed().items() if file.suffix == ".toml"}
    for heading, name, line in _documented():
        if name in known:
            found.setdefault(heading, []).append(_card(name, known.pop(name), line))
    for name, file in known.items():
        heading = "More scenarios" if file.parent == shipped.SCENARIOS else "Code of your own"
        found.setdefault(heading, []).append(_card(name, file, ""))
    return found


def _documented() -> list[tuple[str, str, str]]:
    """Heading, name and line of the scenarios in the tables of docs/scenarios.md; several in a row have no line."""
    heading, found = "", []
    for text in (shipped.DOCS / "scenarios.md").read_text(encoding="utf-8").splitlines():
        if match := HEADING.match(text):
            heading = match[1]
        elif heading and (match := LINE.match(text)):
            names = re.findall(r"`([^`]+)`", match[1])
            line = LINK.sub(r"\1", match[2]) if len(names) == 1 else ""
            found += [(heading, name, line) for name in names]
    return found


def _card(name: str, file: Path, line: str) -> Card:
    starts = shipped.command(file)
    command = f"tcpsbed init --from {name} && {starts} {name}.toml"
    return Card(name, line or shipped.summary(file), command, file, starts == RUN)


def beside() -> list[Card]:
    """Cards of the scenarios in the working folder."""
    files = sorted(file for file in Path().glob("*.toml") if file.is_file() and _is_scenario(file))
    return [Card(file.name, _first_line(file), f"{RUN} {file}", file, True) for file in files]


def _is_scenario(file: Path) -> bool:
    try:
        document = inputs.toml(inputs.text(file, "a scenario"))
    except (TcpsbedError, ValueError, RecursionError):
        return False
    return any(key in document for key in NEEDED)


def _first_line(file: Path) -> str:
    first = file.read_text(encoding="utf-8").split("\n", 1)[0]
    return first.lstrip("# ") if first.startswith("#") else ""
