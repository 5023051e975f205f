"""The user's files, read within limits: regular files, of limited size, in TOML of limited depth.

A device, a FIFO or a terminal never ends, and a small text can nest deeper than what reads it: all of it is refused
before anything is built from it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tcpsbed.errors import UNSEEN, ConfigError, DataError, brief

DOCUMENT_BYTES = 4 << 20
"""Largest text that people write: a scenario, a profile, a study."""
DATA_BYTES = 1 << 30
"""Largest recording, capture or model, also after it is unpacked."""
LIBRARY = re.compile(r".*\.(so(\.\d+)*|dylib|dll)")
"""The name of a shared library."""
DEEPEST = 32
"""Most tables and lists in each other, and most parts of a key."""

Key = tuple[str | int, ...]

_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f{UNSEEN}]")
_HIDDEN_IN_NAMES = re.compile(rf"[\x00-\x1f{UNSEEN}]")
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A key of too many parts, or else a text, a comment, a word that is passed over: keys within them are none. A text that is
# not closed goes on to the end, so that nothing is looked at twice.
_DEEP_KEY = re.compile(
    rf"({_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST},}}+)"
    r'|"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\\?\Z)|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\'|\Z)'
    r'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[A-Za-z0-9_-]++',
    re.DOTALL,
)


def regular(file: Path, allowed: str, most_bytes: int = DATA_BYTES) -> Path:
    """The file, if it is a regular one of at most so many bytes.

    Raises
    ------
    DataError
        It is absent, a folder, a device, a FIFO, a circle of links, or too large.
    """
    try:
        found = file.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        reason = "no such file" if isinstance(error, FileNotFoundError) else reason
        raise DataError(f"cannot be read ({reason})", file=file, allowed=allowed) from None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, a FIFO or a socket"
        raise DataError(f"cannot be read (it is {what})", file=file, allowed=allowed)
    if found.st_size > most_bytes:
        raise DataError(
            f"cannot be read ({_size(found.st_size)})",
            file=file,
            allowed=f"{allowed}, at most {_size(most_bytes)}",
        )
    return file


def content(file: Path, allowed: str, most_bytes: int = DATA_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises
    ------
    DataError
        As `regular`, or it cannot be opened.
    """
    try:
        with regular(file, allowed, most_bytes).open("rb") as opened:
            return opened.read(min(most_bytes, os.fstat(opened.fileno()).st_size + 1))
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=file, allowed=allowed) from None


def text(file: Path, allowed: str, most_bytes: int = DOCUMENT_BYTES) -> str:
    """The text of a regular file.

    Raises
    ------
    DataError
        As `content`, or it is not UTF-8.
    """
    try:
        return content(file, allowed, most_bytes).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise DataError(
            "cannot be read as text (not UTF-8)", file=file, allowed=f"{allowed}; save a text as UTF-8"
        ) from None


def from_json(file: Path, allowed: str, most_bytes: int = DATA_BYTES) -> Any:
    """What a regular file of JSON holds.

    Raises
    ------
    DataError
        As `text`, or it is no JSON.
    """
    try:
        return json.loads(text(file, allowed, most_bytes))
    except (ValueError, RecursionError) as error:
        raise DataError(f"found broken JSON ({error})", file=file, allowed=allowed) from None


def toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text of bounded depth.

    Raises
    ------
    ValueError
        It is no TOML (`tomllib.TOMLDecodeError` with its line), or deeper than `DEEPEST`.
    """
    for found in _DEEP_KEY.finditer(text):
        if found[1]:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key of more than {DEEPEST} parts on line {line}")
    tables = tomllib.loads(text)
    _shallow(tables)
    return tables


def tables(text: str, file: Path) -> dict[str, Any]:
    """The tables of a file in TOML, from its text.

    Raises
    ------
    DataError
        It is no TOML, or too deep.
    """
    try:
        return toml(text)
    except (ValueError, RecursionError) as error:
        found = f"found invalid TOML ({error})"
        raise DataError(found, file=file, allowed=in_toml(text, error)) from None


def in_toml(text: str, error: Exception) -> str:
    """What was probably meant by a text that is no TOML."""
    place, lines = re.search(r"at line (\d+)", str(error)), text.splitlines()
    line = lines[min(int(place[1]), len(lines)) - 1].strip() if place and lines else ""
    if text.lstrip().startswith("{"):
        return 'TOML in place of JSON: duration = "10 s"'
    if re.fullmatch(r"\[+[^\]=]+", line):
        return f"TOML, with the bracket closed: {line}" + "]" * (len(line) - len(line.lstrip("[")))
    if pair := re.match(r"([\w.-]+)\s*(==|:)\s*(.*)", line):
        value = pair[3].strip("\"'") or "10 ms"
        return f'TOML, with = in place of {pair[2]} in {pair[1]} = "{brief(value)}"'
    return 'TOML, with text in quotes: key = "15 ms"'


def _shallow(tables: dict[str, Any]) -> None:
    level: list[Any] = [tables]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"tables and lists more than {DEEPEST} deep")


def texts(given: object, key: str, example: str) -> list[str]:
    """One text, or several, as Python gives them.

    Raises
    ------
    ConfigError
        If something else is among them.
    """
    several: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for one in several:
        if not isinstance(one, str):
            raise ConfigError(f"found {type(one).__name__}", key=key, allowed=f"a text, such as {example}")
    return several


def path(given: object, key: str) -> Path:
    """A path as Python gives it; `~` in front is the home folder.

    Raises
    ------
    ConfigError
        If it is neither a text nor a path, or holds what no name can have.
    """
    allowed = 'a text or a Path, such as "runs/a"'
    if not isinstance(given, str | Path):
        raise ConfigError(f"found {type(given).__name__}", key=key, allowed=allowed)
    if not str(given) or "\0" in str(given):
        raise ConfigError(
            "found no name" if not str(given) else "found a zero byte", key=key, allowed=allowed
        )
    return Path(at_home(str(given)))


def at_home(name: str) -> str:
    """A name with its `~` in front expanded, as a shell does where it stands without quotes; else as it is."""
    return os.path.expanduser(name) if name.startswith("~") else name  # noqa: PTH111 (of texts)


def out_of(out: object) -> Path | None:
    """The folder that `out=` names; `None` if none is named. Errors: as of `path`."""
    return None if out is None else path(out, "out")


def unprintable(tables: Any) -> tuple[Key, str] | None:
    """The first key or value that holds letters no terminal, table or page may be given, and the letter.

    Line breaks and tabs are allowed in values.
    """
    level: list[tuple[Key, Any]] = [((), tables)]
    while level:
        here, value = level.pop()
        if isinstance(value, str) and (found := _HIDDEN.search(value)):
            return here, found[0]
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, one in inner:
            if isinstance(key, str) and (found := _HIDDEN_IN_NAMES.search(key)):
                return (*here, key), found[0]
            level.append(((*here, key), one))
    return None


def unseen(letter: str) -> str:
    """What a letter that no terminal may be given is called in a message."""
    if "\udc80" <= letter <= "\udcff":  # PEP 383: a byte of a name that is not UTF-8
        return f"the byte 0x{ord(letter) - 0xDC00:02X}, which is not UTF-8,"
    return f"the invisible character U+{ord(letter):04X}"


def refuse_unseen(place: Path, key: str | None = None) -> None:
    """Raises `ConfigError` for a path that holds such letters: what is written there names the path."""
    if found := _HIDDEN.search(str(place.resolve())):
        raise ConfigError(
            f"found {unseen(found[0])} in the path",
            file=place,
            key=key,
            allowed="a file and folders whose names can be seen, such as in /tmp/mine",
        )


def _size(count: int) -> str:
    return f"{count / (1 << 20):.4g} MiB"
