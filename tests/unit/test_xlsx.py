"""Scenarios as spreadsheets: there and back again without a loss, and damaged ones refused with the cell."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tcpsbed import scenarios
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.scenarios import xlsx
from tcpsbed.scenarios.dump import dump_document

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
    xlsx.to_xlsx(scenarios.tables(folder / "s.toml").document, folder / "s.xlsx")
    return tomllib.loads(xlsx.from_xlsx(folder / "s.xlsx"))


@pytest.mark.parametrize("file", SHIPPED, ids=[file.stem for file in SHIPPED])
def test_shipped_scenarios_come_back_the_same_in_the_same_order(file, tmp_path):
    xlsx.to_xlsx(scenarios.tables(file).document, tmp_path / "s.xlsx")
    found = tomllib.loads(xlsx.from_xlsx(tmp_path / "s.xlsx"))
    wanted = scenarios.tables(file).document
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
    with pytest.raises(TcpsbedError, match="network: found more than 262144 cells; allowed: at most"):
        xlsx.from_xlsx(tmp_path / "s.xlsx")


def test_a_sheet_that_is_missing_and_a_formula_that_failed_are_refused(tmp_path):
    file, lost = tmp_path / "a.xlsx", tmp_path / "lost.xlsx"
    xlsx.to_xlsx(scenarios.tables(SHIPPED[0]).document, file)
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(lost, "w") as cut:
        for name in whole.namelist():
            if name != "xl/worksheets/sheet1.xml":
                cut.writestr(name, whole.read(name))
    with pytest.raises(TcpsbedError, match="lacks 1 sheet that it names"):
        xlsx.from_xlsx(lost)
    book = openpyxl.load_workbook(file)
    book["scenario"]["B2"] = "#REF!"
    book.save(file)
    with pytest.raises(TcpsbedError, match="found the error #REF! in B2"):
        xlsx.from_xlsx(file)


def test_dates_are_written_as_toml_has_them(tmp_path):
    there_and_back(tmp_path, '[links.l1]\nrate = "1 Mbit/s"\n[measure]\nrecords = "on"\n')
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    book["scenario"].append(["note.when", "toml: [2020-01-02, 10:30:00, 2020-01-02T10:30:00Z]"])
    book.save(tmp_path / "s.xlsx")
    text = xlsx.from_xlsx(tmp_path / "s.xlsx")
    assert "when = [2020-01-02, 10:30:00, 2020-01-02T10:30:00+00:00]" in text
    assert str(tomllib.loads(text)["note"]["when"][0]) == "2020-01-02"


def command(folder, *words):
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, words)


def test_the_command_goes_both_ways(tmp_path):
    (tmp_path / "s.toml").write_text(scenarios.init_template())
    for words in (
        ["to-xlsx", "s.toml"],
        ["from-xlsx", "s.xlsx", "--out", "back.toml"],
        ["from-xlsx", "none.xlsx"],
    ):
        done = command(tmp_path, "config", *words)
        assert done.exit_code == (2 if "none.xlsx" in words else 0), done.stderr
    assert scenarios.tables(tmp_path / "back.toml").document == scenarios.tables(tmp_path / "s.toml").document
    printed = command(tmp_path, "config", "from-xlsx", "s.xlsx", "--out", "-")
    assert printed.stdout == (tmp_path / "back.toml").read_text() and not (tmp_path / "-").exists()


def test_a_spreadsheet_is_checked_and_run_as_it_is(tmp_path):
    (tmp_path / "s.toml").write_text(scenarios.init_template())
    xlsx.to_xlsx(scenarios.tables(tmp_path / "s.toml").document, tmp_path / "s.xlsx")
    checked = command(tmp_path, "check", "s.xlsx")
    assert checked.exit_code == 0 and "s.xlsx: valid." in checked.stdout, checked.stderr
    for name in ("s.toml", "s.xlsx"):
        done = command(tmp_path, "run", name, "--duration", "1500 ms", "--out", name[2:], "-q")
        assert done.exit_code == 0, done.stderr
    one, other = (
        json.loads((tmp_path / name / "summary.json").read_text())["flows"] for name in ("toml", "xlsx")
    )
    assert one == other, "the same run from either file"


def test_a_wrong_value_in_a_spreadsheet_is_named_by_sheet_and_row(tmp_path):
    (tmp_path / "s.toml").write_text(scenarios.init_template())
    xlsx.to_xlsx(scenarios.tables(tmp_path / "s.toml").document, tmp_path / "s.xlsx")
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    column = [cell.value for cell in book["network"][1]].index("delay") + 1
    book["network"].cell(3, column).value = "5 apples"
    book["scenario"]["B2"] = "soon"
    book.save(tmp_path / "wrong.xlsx")
    assert book["scenario"]["A2"].value == "duration"
    with pytest.raises(ConfigError, match=r"wrong\.xlsx, scenario!B2.*duration"):
        scenarios.load(tmp_path / "wrong.xlsx")
    book["scenario"]["B2"] = "10 s"
    book.save(tmp_path / "wrong.xlsx")
    with pytest.raises(ConfigError, match=r"wrong\.xlsx, network!3.*links\.l1\.delay"):
        scenarios.load(tmp_path / "wrong.xlsx")
    with pytest.raises(ConfigError, match=r"--set duration=never"):
        scenarios.load(tmp_path / "s.xlsx", ["duration=never"])


def test_the_blank_template_has_all_sheets_and_fills_into_a_scenario(tmp_path):
    done = command(tmp_path, "init", "--xlsx")
    assert done.exit_code == 0 and "scenario.xlsx" in done.stdout, done.stderr
    book = openpyxl.load_workbook(tmp_path / "scenario.xlsx")
    assert book.sheetnames == [xlsx.REST, *xlsx.SHEETS]
    heads = {sheet.title: [cell.value for cell in sheet[1]] for sheet in book}
    assert {"rate", "sample", "transport", "direction"} <= set(heads["flows"])
    assert {"from", "to", "delay", "queue", "packet", "on"} <= set(heads["network"])
    assert all(sheet.max_row == 1 for sheet in book if sheet.title != xlsx.REST), "blank"
    assert all(cell.comment for cell in book["network"][1][:3])
    empty = command(tmp_path, "check", "scenario.xlsx")
    assert (
        empty.exit_code == 2
        and "scenario.xlsx: sheet interfaces: found no component; allowed: a row" in empty.stderr
    )
    rows = [("interfaces", "components", "tactile-operator", "a"), ("flows", "flows", "kinematic", None)]
    rows += [("interfaces", "components", "tactile-teleoperator", "b")]
    for sheet, section, name, whole in rows:
        book[sheet].append([section, name, whole])
    book.save(tmp_path / "filled.xlsx")
    checked = command(tmp_path, "check", "filled.xlsx")
    assert checked.exit_code == 0 and "2 components, 1 flow" in checked.stdout, checked.stderr


@pytest.mark.slow
def test_no_command_writes_over_a_file(tmp_path):
    (tmp_path / "s.toml").write_text(scenarios.init_template())
    (tmp_path / "s.xlsx").write_text("mine")
    for words in (["config", "to-xlsx", "s.toml"], ["init", "--xlsx", "s.xlsx"]):
        done = command(tmp_path, *words)
        assert done.exit_code == 2 and "exists already" in done.stderr
    assert (tmp_path / "s.xlsx").read_text() == "mine"
    xlsx.to_xlsx(scenarios.tables(tmp_path / "s.toml").document, tmp_path / "t.xlsx")
    done = command(tmp_path, "config", "from-xlsx", "t.xlsx", "--out", "s.toml")
    assert done.exit_code == 2 and "exists already" in done.stderr
    assert (tmp_path / "s.toml").read_text() == scenarios.init_template()
