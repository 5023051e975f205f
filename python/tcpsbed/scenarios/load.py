"""Reads the tables of a scenario: TOML, includes, overrides.

```text
scenario.toml ─┐
include files ─┼─► one tree of tables        (the including file wins, overrides win over all)
--set a.b=c  ──┘
```
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from tcpsbed import inputs, shipped
from tcpsbed.errors import ConfigError, DataError, brief
from tcpsbed.nearest import close_match, meant
from tcpsbed.scenarios.origin import Key, Option, Origin, Place, dotted, keys_of, lines_of, place_of

# Tables that a plain value may stand for, and the key that it then means.
_SHORTHANDS = {"components": "node", "hooks": "run"}
_NESTED = {"robot": "run", "transport": "kind", "queue": "limit", "scheduling": "kind", "vary": "kind"}
# Files of a scenario: thirty that include the next one twice each would be read 2^30 times.
_MOST_FILES = 100
# Sections whose entries must exist before an override can change them.
_NAMED = ("flows", "traffic", "components", "channels")


def tables(path: str | Path, overrides: Sequence[str] = ()) -> Origin:
    """The tables of a file with includes and overrides applied, not yet checked."""
    origin = Origin(inputs.path(path, "file"))
    origin.document = _read(origin.file, origin, ())
    origin.document.pop("include", None)
    override(origin, overrides)
    return origin


def override(origin: Origin, overrides: Sequence[str]) -> None:
    """Puts overrides over the tables of an origin, in order."""
    for text in overrides:
        _override(origin, text)


def check_text(origin: Origin) -> None:
    """Refuses keys and values with control characters, which would come out of reports, names and terminals."""
    inputs.refuse_unseen(origin.file)
    found = inputs.unprintable(origin.document)
    if found is not None:
        key, letter = found
        allowed = 'text that can be seen, such as "edge-1"; delete the character'
        raise origin.error(key, f"found {inputs.unseen(letter)}", allowed)


def _read(file: Path, origin: Origin, chain: tuple[Path, ...]) -> dict[str, Any]:
    """The tables of a file over those that it includes."""
    origin.files += 1
    if origin.files > _MOST_FILES:
        raise ConfigError(
            f"found more than {_MOST_FILES} files that are included",
            file=file,
            key="include",
            allowed="each file once",
        )
    tables, own = _own(file, included=bool(chain))
    merged: dict[str, Any] = {}
    for included in _includes(tables, file, own):
        if included.resolve() in (*chain, file.resolve()):
            place = own.get(("include",), (str(file), None))
            raise ConfigError(
                f'found "{included.name}", which includes this file again',
                file=file,
                line=place[1],
                key="include",
                allowed="files that do not include each other",
            )
        merged = merge(merged, _read(included, origin, (*chain, file.resolve())))
    origin.places.update(own)
    return merge(merged, tables)


def _own(file: Path, *, included: bool) -> tuple[dict[str, Any], dict[Key, Place]]:
    """The tables of a file, TOML or a spreadsheet, and the place of each key."""
    if file.suffix.lower() == ".xlsx":
        from tcpsbed.scenarios import xlsx

        return xlsx.read(file)
    text = _text(file)
    return _parse(text, file, included=included), {
        key: (str(file), line) for key, line in lines_of(text).items()
    }


def _text(file: Path) -> str:
    try:
        return inputs.text(file, "a scenario file in TOML, or a spreadsheet that ends in .xlsx")
    except DataError as error:
        absent = "no such file" in error.found
        near = meant(file.name, _beside(file)) if absent else ""
        remedy = shipped.remedy(file) if absent else ""
        copied = f"{remedy}, which writes a copy of the one that ships; or " if remedy else ""
        raise ConfigError(error.found, file=file, allowed=f"{copied}{error.allowed}{near}") from None


def _beside(file: Path) -> list[str]:
    """The scenario files in the folder of a file that is not there."""
    ends = (".toml", ".xlsx")
    return [one.name for one in file.parent.glob("*") if one.suffix in ends] if file.parent.is_dir() else []


def _parse(text: str, file: Path, *, included: bool) -> dict[str, Any]:
    """The tables of a text. Of a file that is included no text is shown: a stranger's scenario may name any file."""
    try:
        return inputs.toml(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line = int(place[1]) if place else len(text.splitlines())
        message = re.sub(r"\s*\(at .*\)$", "", message)
        key: str | None = None
        if included:
            found, allowed = "found invalid TOML in an included file", "a scenario file in TOML"
        elif message.startswith(("Cannot declare", "Cannot overwrite", "Cannot mutate")):
            key, found, allowed = *_second(text, line), "each table and each key once"
        else:
            found, allowed = (
                f"found invalid TOML ({message}){_shown(text, line, place)}",
                inputs.in_toml(text, error),
            )
        raise ConfigError(found, file=file, line=line, key=key, allowed=allowed) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"found TOML that is too large or too deep ({error})",
            file=file,
            allowed=f"numbers of 64 bits, tables and lists at most {inputs.DEEPEST} deep, such as links.wan.delay",
        ) from None


def _shown(text: str, line: int, place: re.Match[str] | None) -> str:
    """The column of a mistake, and its line."""
    lines = text.splitlines()
    written = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    column = f" at column {place[2]}" if place else " at the end"
    return f"{column} of: {shorten(written, 80)}" if written else column


def _second(text: str, line: int) -> tuple[str | None, str]:
    """The key that is written on a line, and where it was written before."""
    known = [key for number, key in keys_of(text) if number <= line][-1:]
    first = lines_of(text).get(known[0], line) if known else line
    return dotted(known[0]) if known else None, "found a second time" + (
        f" (first on line {first})" if first < line else ""
    )


def _includes(tables: dict[str, Any], file: Path, places: dict[Key, Place]) -> list[Path]:
    found = tables.get("include", [])
    names = [found] if isinstance(found, str) else found
    line = places.get(("include",), (str(file), None))[1]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            "found no list of files",
            file=file,
            line=line,
            key="include",
            allowed='a list such as ["base.toml"]',
        )
    files = [file.parent / name for name in names]
    for name, included in zip(names, files, strict=True):
        if not included.is_file():
            raise ConfigError(
                f'found "{name}", which is not a file',
                file=file,
                line=line,
                key="include",
                allowed=f"a file, looked for at {included}",
            )
    return files


def merge(under: dict[str, Any], over: dict[str, Any], key: Key = ()) -> dict[str, Any]:
    """Both trees in one; where both have a value, that of `over` counts."""
    out = dict(under)
    for name, value in over.items():
        below = out.get(name)
        main = _shorthand((*key, name))
        if isinstance(value, dict) and isinstance(below, str) and main:
            below = {main: below}
        if isinstance(value, str) and isinstance(below, dict) and main:
            value = {main: value}
        out[name] = (
            merge(below, value, (*key, name))
            if isinstance(value, dict) and isinstance(below, dict)
            else value
        )
    return out


def _without(tree: Any, key: Key) -> Any:
    """A tree of tables without what is under this key."""
    name = key[0]
    if not isinstance(tree, dict) or name not in tree:
        return tree
    if len(key) == 1:
        return {one: value for one, value in tree.items() if one != name}
    return tree | {name: _without(tree[name], key[1:])}


def _shorthand(key: Key) -> str | None:
    if len(key) == 2 and key[0] in _SHORTHANDS:
        return _SHORTHANDS[str(key[0])]
    if key[:1] == ("measure",) and len(key) == 2:
        return {"sync": "period", "echo": "points"}.get(str(key[1]))
    return _NESTED.get(str(key[-1])) if len(key) > 1 else None


def _override(origin: Origin, text: str) -> None:
    """Puts `a.b=value` over the tree; the value is TOML, or text that needs no quotes."""
    tables = assigned(text)
    key = _path(tables)
    section = origin.document.get(str(key[0]))
    topology = origin.document.get("topology", {})
    edges = not isinstance(topology, dict) or "graph" in topology  # which have names without an entry
    new_link = len(key) > 2 and key[0] == "links" and section and not edges
    named = key[0] in _NAMED or (new_link and key[2] not in ("from", "to"))
    if len(key) > 1 and named and isinstance(section, dict) and key[1] not in section:
        allowed = close_match(str(key[1]), list(section))
        if key[0] == "components" and len(key) == 2:
            allowed += f'; a new one in the file: {key[1]} = {{ kind = "tactile-operator", node = "edge" }}'
        raise ConfigError(f'found "{key[1]}"', file=place_of(text), key=dotted(key), allowed=allowed)
    under = _without(origin.document, key) if isinstance(text, Option) else origin.document
    origin.document = merge(under, tables)
    origin.places = {k: v for k, v in origin.places.items() if k[: len(key)] != key}
    origin.places[key] = (place_of(text), None)


def assigned(text: str) -> dict[str, Any]:
    """The tables of an override `KEY=VALUE`: the value is TOML, or text that needs no quotes."""
    key, equals, value = text.partition("=")
    allowed = "KEY=VALUE on one line, such as --set 'duration=\"5 s\"'"
    found = 'no "=" after a key' if not equals or not key.strip() else ""
    found = "a line break" if "\n" in text else found
    found = found if _encodable(text) else "bytes that are not UTF-8"
    if found:
        raise ConfigError(f"found {found}", file=place_of(text), allowed=allowed)
    for candidate in (value, json.dumps(value.strip())):
        try:
            return inputs.toml(f"{key}={candidate}")
        except (ValueError, RecursionError):
            continue
    raise ConfigError(f'found "{brief(key)}", which is not a key', file=place_of(text), allowed=allowed)


def _encodable(text: str) -> bool:
    """Whether a text from the command line is text: other bytes come as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(tables: dict[str, Any]) -> Key:
    path: list[str] = []
    here: Any = tables
    while isinstance(here, dict) and len(here) == 1:
        name = next(iter(here))
        path.append(name)
        here = here[name]
    return tuple(path)
