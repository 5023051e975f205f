"""Where each key of a scenario was written: file and line, through includes and overrides."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpsbed.errors import ConfigError, brief

Key = tuple[str | int, ...]
Place = tuple[str, int | None]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_PATH = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"^\s*(\[\[?)\s*({_PATH})\s*\]\]?\s*(?:#.*)?$")
_ASSIGN = re.compile(rf"^\s*({_PATH})\s*=")

OVERRIDE = "--set "
"""Front of the place of an override."""


class Option(str):
    """The override by an option of its own, whose name is its place."""

    typed = ""
    """The option, such as `--delay`."""
    given = ""
    """Its value, as it was written."""


def option(name: str, key: str, value: object, table: Mapping[str, object] | None = None) -> Option:
    """The override of `--NAME VALUE`; with a `table`, that takes the place of what is under the key."""
    if table is None:
        found = Option(f"{key}={json.dumps(value)}")
    else:
        inside = ", ".join(f"{name} = {json.dumps(one)}" for name, one in table.items())
        found = Option(f"{key}={{ {inside} }}")
    found.typed, found.given = f"--{name}", str(value)
    return found


def place_of(override: str) -> str:
    """Where an override was written."""
    return override.typed if isinstance(override, Option) else f"{OVERRIDE}{brief(override)}"


def dotted(key: Key) -> str:
    """A key as text: parts joined by points, quoted where TOML asks for it, as of a point or a space."""
    return ".".join(str(part) if _BARE.fullmatch(str(part)) else f'"{part}"' for part in key)


def _parts(text: str) -> list[str]:
    return [_unquoted(part) for part in re.findall(_PART, text)]


def _unquoted(part: str) -> str:
    """A part of a key without its quotes and escapes."""
    if part.startswith('"') and "\\" in part:
        try:
            return str(tomllib.loads(f"x = {part}")["x"])
        except ValueError:
            pass
    return part.strip("\"'")


def keys_of(text: str) -> Iterator[tuple[int, Key]]:
    """Each key of a TOML text with its line, found line by line."""
    counts: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = tuple(_parts(header[2]))
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield number, table
        elif assign := _ASSIGN.match(line):
            yield number, (*table, *_parts(assign[1]))


def lines_of(text: str) -> dict[Key, int]:
    """The line on which each key of a TOML text is first written."""
    lines: dict[Key, int] = {}
    for number, key in keys_of(text):
        lines.setdefault(key, number)
    return lines


@dataclass
class Origin:
    """The file of a scenario, its tables as TOML has them, and the places of its keys."""

    file: Path = Path("scenario")
    document: dict[str, Any] = field(default_factory=dict)
    places: dict[Key, Place] = field(default_factory=dict)
    files: int = 0
    """How many files were read for it."""

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.file.resolve().parent

    def place(self, key: Key) -> Place:
        """File and line of the key, of the first one in it, or of the nearest table around it."""
        inside = [place for known, place in self.places.items() if known[: len(key)] == key]
        if key and key not in self.places and inside:
            return inside[0]
        for length in range(len(key), 0, -1):
            if key[:length] in self.places:
                return self.places[key[:length]]
        return str(self.file), None

    def overridden(self, key: Key) -> bool:
        """Whether the value of a key was given by an override, not by a file."""
        return self.place(key)[0].startswith("--")

    def error(self, key: Key, found: str, allowed: str) -> ConfigError:
        """The error of a key, as far as the file spells it out."""
        key = self._written(key)
        file, line = self.place(key)
        if file.startswith("--") and not file.startswith(
            OVERRIDE
        ):  # the option names the key, as far as it goes
            key = key[max((len(known) for known in self.places if key[: len(known)] == known), default=0) :]
        return ConfigError(found, file=file, line=line, key=dotted(key) or None, allowed=allowed)

    def _written(self, key: Key) -> Key:
        """The key as written, without keys that a shorthand implies and numbers of lists of one."""
        written: list[str | int] = []
        here: Any = self.document
        for part in key:
            if isinstance(here, dict) and isinstance(part, int):
                continue
            if written and here is not None and not isinstance(here, dict | list):
                break
            written.append(part)
            if isinstance(here, dict):
                here = here.get(part)
            else:
                here = here[part] if isinstance(here, list) and isinstance(part, int) else None
        return tuple(written)
