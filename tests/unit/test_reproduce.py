"""`tcpsbed reproduce`: the table of expected values, and how the command tells what it knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.reproduce import expected, page, works
from tcpsbed.reproduce.study import Study

runner = CliRunner()


def test_every_work_has_expected_values_and_every_value_a_reason() -> None:
    for work in works.WORKS:
        entries = expected.load(work.name)
        assert entries and all(len(entry.why) > 10 for entry in entries.values())


@pytest.mark.parametrize(
    ("compare", "ours", "holds"),
    [("near", 30.3, True), ("near", 30.4, False), ("above", 29.8, True), ("below", 30.4, False)],
)
def test_a_tolerance_is_judged_as_it_says(compare: str, ours: float, holds: bool) -> None:
    entry = expected.Expected("delay (ms)", 30.0, "published", 0.35, compare, "a reason")
    assert entry.holds(ours) is holds


def test_entries_that_make_no_sense_are_refused_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    for text in (
        'item = "x"\nwhy = "y"\ntolerence = 3',
        'item = "x"',
        'item = "x"\nwhy = "y"\ncompare = "like"',
        'item = "x"\nwhy = "y"\npublished = 1\nbasis = "hearsay"',
    ):
        file.write_text(f"[a.b]\n{text}\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"a\.b"):
            expected.load("a", file)
    with pytest.raises(DataError, match="source tree"):
        expected.load("a", tmp_path / "none.toml")


def test_a_value_says_where_it_comes_from() -> None:
    gokhale = expected.load("gokhale2017")
    keys = ("peak-haptic", "bound-460", "phase-2-260")
    assert [gokhale[key].basis for key in keys] == ["published", "theory", "own reference"]
    assert {entry.basis for entry in expected.load("dpm-q").values()} == {"aim"}
    row = Study("abdullah2023", None).compare("stream-mean", 15.0)
    assert (row.basis, row.verdict, row.to_json()["within"]) == ("", "nothing published", "nothing published")


def test_an_order_without_values_is_no_value_in_the_table() -> None:
    """Polachan 2022 sets srv above the others in figure 8, and gives no number that ours could be near."""
    row = Study("polachan2022", None).compare("figure8-srv", 12.0)
    assert (row.published, row.compare, page.published(row), row.within) == (0.0, "above", "> 0", True)
    assert "its bar is the tallest" in row.reason
    lower = Study("polachan2022", None).compare("figure18", -3.0)
    near = Study("polachan2022", None).compare("figure8-actuation", 112.0)
    assert (page.published(lower), page.published(near)) == ("< 0", "110")


def test_a_value_that_is_no_number_is_not_reproducible_with_the_reason() -> None:
    study = Study("polachan2022", None)
    row = study.compare("figure8-actuation", float("nan"))
    assert (row.ours, row.within, row.verdict) == (None, None, "not reproducible")
    assert "measured nothing" in row.reason and study.rows == [row]


def test_an_item_without_an_entry_cannot_be_compared() -> None:
    with pytest.raises(DataError, match=r"gokhale2017\.nothing"):
        Study("gokhale2017", None).compare("nothing", 1.0)


def test_the_list_names_the_works_and_unknown_ones_are_refused() -> None:
    told = json.loads(runner.invoke(app, ["reproduce", "--list", "--json"]).stdout)
    assert [work["name"] for work in told] == [work.name for work in works.WORKS]
    shown = runner.invoke(app, ["reproduce", "--list"]).stdout.splitlines()
    assert any(line.startswith("gokhale2017 ") and line.endswith("2017") for line in shown)
    for name, said in (("polachan2022-mininet", "not part of all"), ("polachan2022-edge", "in all without")):
        assert any(line.startswith(f"{name} ") and said in line for line in shown), shown
    with pytest.raises(ConfigError, match="gokhale2017"):
        works.find("gokhale2018")
    for arguments in (["reproduce"], ["reproduce", "gokhale2018"]):
        assert runner.invoke(app, arguments).exit_code == 2


def test_all_leaves_out_what_takes_minutes_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, bool] = {}

    def reproduce(work: works.Work, *_: object, clock: bool, **__: object) -> Study:
        asked[work.name] = clock
        return Study(work.name, None)

    monkeypatch.setattr(works.Work, "reproduce", reproduce)
    for name in ("all", "polachan2022-mininet"):
        done = runner.invoke(app, ["reproduce", name, "--json", "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
    assert asked.pop("polachan2022-mininet") is True
    assert asked == dict.fromkeys([work.name for work in works.IN_ALL], False) and len(asked) > 5
