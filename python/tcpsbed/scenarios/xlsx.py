"""A scenario as a spreadsheet and back: sheets for hosts, interfaces, flows, devices and network, a row per entry.

```text
 flows      | section | name      | rate  | sample | transport               |
            | flows   | kinematic | 1 kHz | 24 B   | toml: { kind = "parity" } |
```
A cell holds text, a whole number or a truth value as it is; everything else is TOML behind `toml: `. What is neither an
entry with a name nor a key of one is in the sheet `scenario`, a row a key. Rows keep the order of the file, for it is that
of nodes and flows in a run.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import inputs, results
from tcpsbed.errors import ConfigError, DataError, TcpsbedError, counted
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.dump import dump_document, value_text
from tcpsbed.scenarios.origin import Key, Place

if TYPE_CHECKING:
    from openpyxl.workbook.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

SHEETS: dict[str, tuple[str, ...]] = {
    "hosts": ("hosts", "nodes"),
    "interfaces": ("components", "channels"),
    "flows": ("flows",),
    "devices": ("hooks",),
    "network": ("links", "traffic"),
}
"""The sections of a scenario whose entries are rows, by sheet."""
REST = "scenario"
"""The sheet of everything else."""
_TITLES = (REST, *SHEETS)
Rows = list[tuple[Any, ...]]
"""Cells of a sheet, row by row."""
HEAD = ("section", "name")
REST_HEAD = ("key", "value")
WHOLE = "(value)"
"""The column of entries that are a plain value, such as `ms-com = "left"`."""
_TOML = "toml: "
_MOST_EXACT = 2**53
_MOST_BYTES = 16 << 20
"""Most that a spreadsheet is, packed and unpacked: a scenario takes some 50 kB, and each byte of XML some 20 in memory."""
_MOST_CELLS = 1 << 18
"""More in a sheet, empty ones between used ones with them, are refused: one cell far away makes them billions."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")


def to_xlsx(document: dict[str, Any], target: Path) -> None:
    """Writes the tables of a scenario as a spreadsheet.

    Raises
    ------
    DataError
        If there is no openpyxl.
    """
    book = openpyxl_module().Workbook()
    book.remove(book.active)
    entries = {name for sections in SHEETS.values() for name in sections}
    for name, sections in SHEETS.items():
        found = {
            section: document[section] for section in sections if isinstance(document.get(section), dict)
        }
        _write_entries(book.create_sheet(name), found)
    rest = {
        key: value for key, value in document.items() if key not in entries or not isinstance(value, dict)
    }
    sheet = book.create_sheet(REST, 0)
    sheet.append(REST_HEAD)
    for key, value in _keys(rest):
        sheet.append([key, _cell(value)])
    save(book, target)


def save(book: Workbook, target: Path) -> None:
    """Writes a workbook, whole or not at all."""
    whole = io.BytesIO()  # on a full disk a file of zip would fail again whenever it is let go
    book.save(whole)
    with results.whole(target) as part:
        part.write_bytes(whole.getvalue())


def from_xlsx(file: Path) -> str:
    """The TOML text of a scenario in a spreadsheet; raises as `read` does."""
    return dump_document(read(file)[0])


def read(file: Path) -> tuple[dict[str, Any], dict[Key, Place]]:
    """The tables of a scenario in a spreadsheet, and the sheet and row of each key.

    Raises
    ------
    ConfigError, DataError
        If it is none: with sheet and cell.
    """
    openpyxl = openpyxl_module()
    try:
        _check_sizes(file)
        book = openpyxl.load_workbook(file, data_only=True, read_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()
        sheets = {sheet.title: _rows(file, sheet) for sheet in book.worksheets if sheet.title in _TITLES}
        if lost := _named_sheets(file) - len(book.sheetnames):
            raise DataError(
                f"lacks {counted(lost, 'sheet')} that it names", file=file, allowed="a whole spreadsheet"
            )
        strange = [sheet.title for sheet in book.worksheets if sheet.title not in _TITLES]
        book.close()
    except TcpsbedError:
        raise
    except Exception as error:  # what openpyxl raises depends on where a file is damaged
        raise DataError(
            f"cannot be read ({error})", file=file, allowed="a spreadsheet from to-xlsx"
        ) from None
    if strange:
        raise DataError(
            f'found the sheet "{strange[0]}"', file=file, allowed=close_match(strange[0], _TITLES)
        )
    document: dict[str, Any] = {}
    places: dict[Key, str] = {}
    for title, rows in sheets.items():
        (_read_rest if title == REST else _read_entries)(file, title, rows, document, places)
    return document, {key: (f"{file}, {place}", None) for key, place in places.items()}


def _check_sizes(file: Path) -> None:
    """Refuses an archive that unpacks to more than `_MOST_BYTES`; a part is never read beyond the size it declares."""
    inputs.regular(file, "a spreadsheet from to-xlsx", _MOST_BYTES)
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > _MOST_BYTES:
        found = f"cannot be read (it unpacks to {unpacked >> 20} MiB)"
        allowed = f"a spreadsheet of at most {_MOST_BYTES >> 20} MiB of text, without pictures and empty rows"
        raise DataError(found, file=file, allowed=allowed)


def _named_sheets(file: Path) -> int:
    """Number of sheets according to a spreadsheet: openpyxl omits those whose part is missing."""
    with zipfile.ZipFile(file) as archive:
        return len(re.findall(rb"<(?:\w+:)?sheet\s", archive.read("xl/workbook.xml")))


def _rows(file: Path, sheet: Any) -> Rows:
    """The rows of a sheet as long as its cells, with the empty ones between them, are not too many."""
    rows: Rows = []
    cells = 0
    for row_of_cells in sheet.iter_rows():
        cells += max(1, len(row_of_cells))
        if cells > _MOST_CELLS:
            allowed = f"at most {_MOST_CELLS} cells: delete rows and columns that are empty"
            raise DataError(
                f"found more than {_MOST_CELLS} cells", file=file, key=sheet.title, allowed=allowed
            )
        broken = next((cell for cell in row_of_cells if getattr(cell, "data_type", "") == "e"), None)
        if broken is not None:
            found = f"found the error {broken.value} in {broken.coordinate}"
            raise DataError(found, file=file, key=sheet.title, allowed="a value, or an empty cell")
        rows.append(tuple(cell.value for cell in row_of_cells))
    return rows


def openpyxl_module() -> Any:
    """The package that reads and writes spreadsheets."""
    try:
        import openpyxl
    except ImportError:
        raise DataError("needs openpyxl", allowed="pip install 'tcpsbed[xlsx]'") from None
    return openpyxl


def _write_entries(sheet: Worksheet, sections: dict[str, dict[str, Any]]) -> None:
    every = [entry for entries in sections.values() for entry in entries.values()]
    columns = list(dict.fromkeys(key for entry in every if isinstance(entry, dict) for key in entry))
    plain = [WHOLE] if any(not isinstance(entry, dict) for entry in every) else []
    sheet.append([*HEAD, *plain, *(_head(key) for key in columns)])
    for section, entries in sections.items():
        if not entries:
            sheet.append([section])
        for name, entry in entries.items():
            values = entry if isinstance(entry, dict) else {WHOLE: entry}
            cells = [_cell(values[key]) if key in values else None for key in [*plain, *columns]]
            sheet.append([section, _cell(name), *cells])


def _keys(table: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """Keys and values; tables below the second level are values."""
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        here = (*path, key)
        if isinstance(value, dict) and value and len(here) < 2:
            found += _keys(value, here)
        else:
            parts = (part if _BARE.fullmatch(part) else _escaped(value_text(part)) for part in here)
            found.append((".".join(parts), value))
    return found


def _head(key: str) -> str:
    """The heading of a column."""
    return key if _is_plain(key) and key != WHOLE else _TOML + _escaped(value_text(key))


def _cell(value: Any) -> str | int | bool:
    """What a cell holds: plain where it reads back the same, else TOML."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _MOST_EXACT):
        return value
    if isinstance(value, str) and _is_plain(value):
        return value
    return _TOML + _escaped(value_text(value))


def _is_plain(text: str) -> bool:
    """Whether a spreadsheet gives a text back as it is: no formula, no error value, no letters that it changes."""
    edges = text.strip() != text or text == "" or text.startswith((_TOML, "="))
    return not (edges or _UNSAFE.search(text) or re.fullmatch(r"#[A-Z0-9/!?]+", text))


def _escaped(text: str) -> str:
    """TOML without letters that a spreadsheet would change."""
    text = re.sub(r"_x(?=[0-9A-Fa-f]{4}_)", r"_\\u0078", text)
    return re.sub(r"[\x7f-\x9f\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _value(file: Path, place: str, cell: Any) -> Any:
    if isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float):
        return cell
    if isinstance(cell, str) and cell.startswith(_TOML):
        try:
            return inputs.toml(f"x = {cell.removeprefix(_TOML)}")["x"]
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f'found "{cell[:80]}" ({error})',
                file=file,
                key=place,
                allowed="TOML after toml:, such as toml:[1, 2]",
            ) from None
    if isinstance(cell, str):
        return cell
    raise ConfigError(
        f"found {cell!r}",
        file=file,
        key=place,
        allowed="text, a number, true or false; any other value as TOML, such as toml:[1, 2]",
    )


def _read_rest(file: Path, title: str, rows: Rows, document: dict[str, Any], places: dict[Key, str]) -> None:
    for number, row in enumerate(rows[1:], 2):
        if not row or row[0] is None:
            continue
        place = f"{title}!B{number}"
        parts = _parts(file, place, str(row[0]))
        here = document
        for part in parts[:-1]:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise _twice(file, place, f"{row[0]}, and {part} is a value already")
        if parts[-1] in here:
            raise _twice(file, place, f"{row[0]}, which exists already")
        here[parts[-1]] = _value(file, place, row[1] if len(row) > 1 else None)
        places[tuple(parts)] = place


def _twice(file: Path, place: str, found: str) -> ConfigError:
    return ConfigError(f"found {found}", file=file, key=place, allowed="each key and each entry once")


def _parts(file: Path, place: str, key: str) -> list[str]:
    """The parts of a key: quoted where they hold a point."""
    parts: list[str] = []
    for quoted, bare in re.findall(r'("(?:[^"\\]|\\.)*")(?:\.|$)|([^."]+)(?:\.|$)', key):
        try:
            parts.append(inputs.toml(f"x = {quoted}")["x"] if quoted else bare)
        except ValueError:
            parts.clear()
            break
    if not parts:
        raise ConfigError(
            f'found the key "{key}"', file=file, key=place, allowed="a key such as measure.records"
        )
    return parts


def _read_entries(
    file: Path, title: str, rows: Rows, document: dict[str, Any], places: dict[Key, str]
) -> None:
    first = enumerate(rows[0] if rows else HEAD)
    head = [str(_value(file, f"{title}!1 ({n + 1})", cell if cell is not None else "")) for n, cell in first]
    if tuple(head[:2]) != HEAD:
        raise ConfigError(f"found {head[:2]}", file=file, key=f"{title}!A1", allowed=", ".join(HEAD))
    for number, row in enumerate(rows[1:], 2):
        if not row or row[0] is None:
            continue
        section = str(row[0])
        if section not in SHEETS[title]:
            allowed = close_match(section, SHEETS[title])
            raise ConfigError(f'found "{section}"', file=file, key=f"{title}!A{number}", allowed=allowed)
        entries = document.setdefault(section, {})
        if not isinstance(entries, dict):
            raise _twice(file, f"{title}!A{number}", f"{section}, which is a value already")
        if len(row) < 2 or row[1] is None:
            continue
        found = {
            key: _value(file, f"{title}!{number} ({key})", cell)
            for key, cell in zip(head[2:], row[2:], strict=False)
            if cell is not None
        }
        whole = found.pop(WHOLE, None) if rows[0][2:3] == (WHOLE,) else None
        name = str(_value(file, f"{title}!B{number}", row[1]))
        if name in entries:
            raise _twice(file, f"{title}!B{number}", f"{section}.{name}, which exists already")
        entries[name] = found if whole is None else whole
        places[section, name] = f"{title}!{number}"
