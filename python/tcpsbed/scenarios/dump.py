"""Writes the tables of a scenario as TOML, with includes and overrides applied."""

from __future__ import annotations

import json
import re
from datetime import date, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.scenario import Scenario

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dump(scenario: Scenario, *, based: bool = True) -> str:
    """The scenario as one TOML text that reads back as the same scenario from any folder; not `based`: from its own."""
    document = {"name": scenario.name, "base": ""} | scenario.document | {"base": str(scenario.folder)}
    if not based:
        del document["base"]
    if scenario.shortened and "events" in document:
        kept = zip(document["events"], scenario.events, strict=True)
        document["events"] = [written for written, event in kept if event.at_ns < scenario.duration_ns]
    return dump_document(document)


def dump_document(document: dict[str, Any]) -> str:
    """Tables as TOML text that reads back as the same tables."""
    return "\n".join(_tables(document, ())).lstrip("\n") + "\n"


def _tables(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """The lines of a table: its own values first, then its tables. Those below the second level stand in braces, and so
    do those of a section that has values behind them: order is that of nodes and components in a run.
    """
    braced = len(path) > 1 or (bool(path) and _has_value_behind_table(table))
    values = {key: value for key, value in table.items() if braced or not isinstance(value, dict)}
    lines = [f"{_key(key)} = {value_text(value)}" for key, value in values.items()]
    if path and (lines or not table):
        lines = ["", f"[{'.'.join(_key(part) for part in path)}]", *lines]
    for key, value in table.items():
        if key not in values:
            lines += _tables(value, (*path, key))
    return lines


def _has_value_behind_table(table: dict[str, Any]) -> bool:
    kinds = [isinstance(value, dict) for value in table.values()]
    return True in kinds and False in kinds[kinds.index(True) :]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def value_text(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(value_text(item) for item in value)}]"
    if isinstance(value, dict):
        return (
            f"{{ {', '.join(f'{_key(k)} = {value_text(v)}' for k, v in value.items())} }}" if value else "{}"
        )
    if isinstance(value, date | time):
        return value.isoformat()
    return repr(value)


def _text(text: str) -> str:
    """A basic string; TOML's escapes are those of JSON, and DEL needs one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
