"""Scenarios as spreadsheets: there and back again without a loss, and damaged ones refused with the cell."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed import config
from tcpsbed.config import xlsx
from tcpsbed.config.dump import dump_document
from tcpsbed.errors import ConfigError, TcpsbedError

openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'tcpsbed[xlsx]'")
SHIPPED = sorted((Path(__file__).resolve().parents[2] / "scenarios").glob("*.toml"))
PLAIN = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES = st.recursive(
    PLAIN | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN.filter(bool), inner, max_size=3),
    max_leaves=4,
)
NAMES = st.text("abcdefgh-_09.", min_size=1, max_size=6)
ENTRIES = st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3) | PLAIN, max_size=3)


def there_and_back(folder: Path, text: str) -> dict:
    (folder / "s.toml").write_text(text)
    xlsx.to_xlsx(folder / "s.toml", folder / "s.xlsx")
    return tomllib.loads(xlsx.from_xlsx(folder / "s.xlsx"))


@pytest.mark.parametrize("file", SHIPPED, ids=[file.stem for file in SHIPPED])
def test_shipped_scenarios_come_back_the_same_in_the_same_order(file, tmp_path):
    xlsx.to_xlsx(file, tmp_path / "s.xlsx")
    found = tomllib.loads(xlsx.from_xlsx(tmp_path / "s.xlsx"))
    wanted = config.tables(file).document
    assert found == wanted
    for section in {name for sections in xlsx.SHEETS.values() for name in sections} & wanted.keys():
        assert list(found[section]) == list(wanted[section]), "rows keep the order of the file"


@given(
    st.fixed_dictionaries(
        {},
        optional={"flows": ENTRIES, "links": ENTRIES, "hosts": ENTRIES, "components": ENTRIES, "x": VALUES},
    )
)
def test_any_tables_come_back_the_same(tmp_path_factory, document):
    folder = tmp_path_factory.mktemp("x")
    assert there_and_back(folder, dump_document(document)) == document


def test_sheets_are_those_of_a_testbed(tmp_path):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    assert book.sheetnames == ["scenario", "hosts", "interfaces", "flows", "devices", "network"]
    rows = list(book["network"].iter_rows(values_only=True))
    assert rows == [("section", "name", "rate"), ("links", "l1", "1 Mbit/s")]


def test_a_cell_that_was_changed_changes_the_scenario(tmp_path):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    book["network"]["C2"] = "2 Mbit/s"
    book.save(tmp_path / "s.xlsx")
    assert tomllib.loads(xlsx.from_xlsx(tmp_path / "s.xlsx")) == {"links": {"l1": {"rate": "2 Mbit/s"}}}


@pytest.mark.parametrize(
    ("sheet", "cell", "content", "words"),
    [
        ("network", "C2", "toml: [1,", "network!2"),
        ("network", "A2", "flows", "links, traffic"),
        ("network", "A1", "what", "section, name"),
        ("network", "C2", 3.5, None),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, sheet, cell, content, words):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    book[sheet][cell] = content
    book.save(tmp_path / "s.xlsx")
    if words is None:
        assert tomllib.loads(xlsx.from_xlsx(tmp_path / "s.xlsx"))["links"]["l1"]["rate"] == content
        return
    with pytest.raises(TcpsbedError, match=words):
        xlsx.from_xlsx(tmp_path / "s.xlsx")


@pytest.mark.parametrize(
    ("sheet", "row", "words"),
    [
        ("scenario", ["measure", 1], r"scenario!B3.*measure"),
        ("scenario", ["measure.records.x", 1], r"scenario!B3.*records is a value"),
        ("scenario", ["measure.records", "toml: {}"], r"scenario!B3.*already"),
        ("scenario", ['"a\\q".b', 1], r"scenario!B3.*a key such as"),
        ("scenario", ["links", 1], r"network!A2.*links, which is a value"),
        ("network", ["links", "l1", "3 Mbit/s"], r"network!B3.*links\.l1"),
    ],
)
def test_what_is_there_twice_is_refused(tmp_path, sheet, row, words):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n[measure]\nrecords = "on"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    book[sheet].append(row)
    book.save(tmp_path / "s.xlsx")
    with pytest.raises(ConfigError) as refused:
        xlsx.from_xlsx(tmp_path / "s.xlsx")
    assert re.search(words, str(refused.value))


def test_what_is_no_spreadsheet_is_refused(tmp_path):
    (tmp_path / "s.xlsx").write_bytes(b"no zip")
    with pytest.raises(TcpsbedError, match=r"s\.xlsx"):
        xlsx.from_xlsx(tmp_path / "s.xlsx")
    book = openpyxl.Workbook()
    book.save(tmp_path / "s.xlsx")
    with pytest.raises(TcpsbedError, match='sheet "Sheet"'):
        xlsx.from_xlsx(tmp_path / "s.xlsx")
    book.active.title = "network"
    book.active["XFD1048576"] = "far away"
    book.save(tmp_path / "s.xlsx")
    with pytest.raises(TcpsbedError, match="network: found 1048576 rows of 16384 columns; allowed: at most"):
        xlsx.from_xlsx(tmp_path / "s.xlsx")


def test_dates_are_written_as_toml_has_them(tmp_path):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n[measure]\nrecords = "on"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    book["scenario"].append(["note.when", "toml: [2020-01-02, 10:30:00, 2020-01-02T10:30:00Z]"])
    book.save(tmp_path / "s.xlsx")
    text = xlsx.from_xlsx(tmp_path / "s.xlsx")
    assert "when = [2020-01-02, 10:30:00, 2020-01-02T10:30:00+00:00]" in text
    assert str(tomllib.loads(text)["note"]["when"][0]) == "2020-01-02"


def test_the_command_goes_both_ways(tmp_path):
    (tmp_path / "s.toml").write_text(config.init_template())
    command = [sys.executable, "-m", "tcpsbed", "config"]
    for words in (
        ["to-xlsx", "s.toml"],
        ["from-xlsx", "s.xlsx", "--out", "back.toml"],
        ["from-xlsx", "none.xlsx"],
    ):
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == (2 if "none.xlsx" in words else 0), done.stderr
        assert "Traceback" not in done.stderr
    assert config.tables(tmp_path / "back.toml").document == config.tables(tmp_path / "s.toml").document
