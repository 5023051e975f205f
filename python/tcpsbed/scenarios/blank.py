"""The blank spreadsheet of `tcpsbed init --xlsx`: all sheets, a column per key, its meaning as a note."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import xlsx
from tcpsbed.scenarios.schema import schema

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

STARTS = {"duration": "10 s", "warmup": "1 s", "seed": 1}
"""What the sheet of everything else begins with."""


def write(target: Path) -> None:
    """Writes the spreadsheet into a file that was not there.

    Raises
    ------
    ConfigError, DataError
        If it is there, cannot be written, or there is no openpyxl.
    """
    if target.exists():
        raise ConfigError("exists already", file=target, allowed="another name; nothing was overwritten")
    book = xlsx.openpyxl_module().Workbook()
    book.remove(book.active)
    tables = schema()
    _rest(book.create_sheet(xlsx.REST), tables["properties"])
    for name, sections in xlsx.SHEETS.items():
        _entries(book.create_sheet(name), sections, tables)
    xlsx.save(book, target)


def _rest(sheet: Worksheet, keys: dict[str, Any]) -> None:
    sheet.append(xlsx.REST_HEAD)
    for row, (key, value) in enumerate(STARTS.items(), 2):
        sheet.append([key, value])
        _note(sheet, row, 1, keys[key].get("description", ""))


def _entries(sheet: Worksheet, sections: tuple[str, ...], tables: dict[str, Any]) -> None:
    """Headings of every key that an entry of these sections may have."""
    columns: dict[str, str] = {}
    for section in sections:
        for key, says in _keys(
            tables["properties"][section]["additionalProperties"], tables["$defs"]
        ).items():
            columns.setdefault(key, says)
    whole = {xlsx.WHOLE: "The whole entry as a plain value, such as the node of a component."}
    heads = {"section": " or ".join(sections), "name": "The name of the entry."} | whole | columns
    sheet.append(list(heads))
    for column, text in enumerate(heads.values(), 1):
        _note(sheet, 1, column, text)
    sheet.freeze_panes = "C2"


def _keys(entry: dict[str, Any], definitions: dict[str, Any]) -> dict[str, str]:
    """The keys of an entry with what they mean, those of every kind of it."""
    if "$ref" in entry:
        entry = definitions[entry["$ref"].rpartition("/")[2]]
    found: dict[str, str] = {}
    for kind in entry.get("anyOf", ()):
        found = _keys(kind, definitions) | found
    return found | {key: value.get("description", "") for key, value in entry.get("properties", {}).items()}


def _note(sheet: Worksheet, row: int, column: int, text: str) -> None:
    from openpyxl.comments import Comment

    if text:
        sheet.cell(row, column).comment = Comment(text, "tcpsbed")
