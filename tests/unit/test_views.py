"""What is said of a run and of the folder of a sweep, case by case."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_run

from tcpsbed.analysis.metrics.metric import LIST, Metric
from tcpsbed.cli import colour, runs
from tcpsbed.views import compare, echoes, paths, programs, sections, spread, tables, text
from tcpsbed.views.folder import RunFolder, open_folder, state_of
from tcpsbed.views.markup import Column, words
from tcpsbed.views.sentence import sentence

BY_LINKS = "13 packets by links l2, l1 and 1 other, as set (full queue)"


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ({"a": 0.0, "b": 0.0004}, "less than 0.05 % of b is lost"),
        ({"a": 0.0}, "nothing is lost"),
        (dict.fromkeys("abcde", 0.0001), "less than 0.05 % of each of 5 flows is lost"),
        ({"a": None}, "nothing is lost"),
        ({"a": 0.25}, f"25.0 % of a is lost: {BY_LINKS}"),
        ({"a": 0.0005, "b": 0.25}, f"0.05 % of a and 25.0 % of b are lost: of b {BY_LINKS}"),
        (
            {"a": 0.03, "b": 0.02, "c": 0.01},
            f"3.0 % of a, 2.0 % of b and 1.0 % of c are lost: of a {BY_LINKS}",
        ),
        (
            {"a": 0.01, "b": 0.05, "c": 0.02, "d": 0.03, "e": 0.04},
            f"5.0 % of b and less of 4 other flows are lost: of b {BY_LINKS}",
        ),
    ],
)
def test_losses_are_told_by_flow_and_by_place(losses: dict[str, float | None], said: str) -> None:
    drops = {"l1.forward full": 3, "l2.backward full": 9, "l3.forward full": 1}
    flows = {name: {"delay_ms": {"mean": 2.0}, "loss": loss, "drops": drops} for name, loss in losses.items()}
    assert "".join(words for _, words in sentence({"flows": flows})) == f"a takes 2.000 ms; {said}."


def test_the_flow_with_the_longest_delays_is_told() -> None:
    delays: dict[str, Any] = {"a": {"mean": 5.0, "p99": 6.0}, "b": {"mean": 1.0, "p99": 9.0}, "c": None}
    flows = {name: {"delay_ms": delay} for name, delay in delays.items()}
    assert "".join(words for _, words in sentence({"flows": flows})) == "b takes 1.000 ms; nothing is lost."
    assert "".join(words for _, words in sentence({"flows": {"c": {}}})) == "Nothing arrived in this run."


@pytest.mark.parametrize(
    ("across", "shown"),
    [
        ({"seeds": [1]}, False),
        ({"seeds": [1, 2], "unchanged": True}, False),
        ({"seeds": [1, 2], "unchanged": False}, True),
    ],
)
def test_means_over_seeds_are_shown_where_seeds_change_something(across: dict[str, Any], shown: bool) -> None:
    flows = {"haptic": {"delay_ms": {"mean": {"n": 2, "mean": 3.0, "ci95": 0.5}}}}
    summary = {"world": "virtual", "across_seeds": across | {"flows": flows}}
    assert (spread.table(summary) is not None) == shown
    run = RunFolder(Path())
    vars(run)["summary"] = summary
    facts = html.unescape(sections.conditions(run))
    assert (spread.sentence(summary) in facts) != shown, "the facts have the sentence where no table does"


@pytest.mark.parametrize(
    ("done", "more", "said"),
    [
        ("abc", {}, ""),
        ("a", {}, "UNFINISHED: 1 of 3 cells of this sweep have a result; "),
        ("ab", {"campaign": "c"}, "UNFINISHED: 2 of 3 cells of this campaign have a result; "),
        ("a", {"ended": {"failed": 2}}, "INCOMPLETE: 2 cells of 3 failed (see the folder failed); "),
        ("a", {"ended": {"spared": 2}}, ""),
        (
            "a",
            {"ended": {"failed": 1, "spared": 0}},
            "INCOMPLETE: 1 cell of 3 failed (see the folder failed) and 1 result of 3 removed since it ended; ",
        ),
    ],
)
def test_the_state_of_a_sweep_is_a_sentence(
    tmp_path: Path, done: str, more: dict[str, Any], said: str
) -> None:
    (tmp_path / "cells").mkdir()
    for key in done:
        (tmp_path / "cells" / f"{key}.json").write_text("{}")
    (tmp_path / "sweep.json").write_text(json.dumps({"cells": ["a", "b", "c"]} | more))
    assert state_of(tmp_path) == said + "the same command continues" * bool(said)


def test_a_column_names_the_unit_in_which_its_numbers_are_shown() -> None:
    for unit, (_, named) in tables.SHOWN.items():
        assert named in ("", "µs" if unit == "ns" else unit)


def test_every_table_of_a_list_begins_with_what_identifies_its_rows() -> None:
    parts = (
        Metric("name", "its name"),
        Metric("a", "first", "ms"),
        Metric("b", "second", "ms", table="More"),
    )
    own, more = tables.tables(
        Metric("places", "places", each=LIST, parts=parts), [{"name": "x", "a": 1.0, "b": 2.0}]
    )
    assert [table.rows for table in (own, more)] == [(("x", "1.000"),), (("x", "2.000"),)]


def test_only_a_brief_table_leaves_columns_out() -> None:
    parts = (Metric("name", "its name"), Metric("rare", "told on the page", "ms", brief=()))
    assert [one.path for one in tables.fields(parts)] == [("name",), ("rare",)]
    assert [one.path for one in tables.fields(parts, brief=True)] == [("name",)]


def test_whether_a_difference_may_be_0_stands_behind_it() -> None:
    found = next(iter(sample_run.echo_summary().values()))
    found["components"][0]["ci95"] = 1.0  # more than the latency itself
    laid = echoes.differences(found, brief=True)
    assert laid and [column.title for column in laid.columns[:2]] == ["what", "place"]
    doubts = {row[1]: row[-1] for row in laid.rows}
    assert doubts["ms-com"] == "may be 0" and doubts["srv"] == ""


def test_all_tables_of_a_run_follow_its_headline(tmp_path: Path) -> None:
    run = open_folder(sample_run.write(tmp_path / "run"))
    shown = text.everything(run)
    assert shown.startswith(text.headline(run)) and "kinematic" in shown and "\n\n\n" not in shown
    assert shown.count("where the time went") == sum(map(bool, run.summary["path"].values())) > 0


STALLS = {"n": 12, "longest_ms": 34.0, "flows": {"kinematic": {"samples": 4, "share": 0.004}}}


def test_stalls_between_own_programs_are_told_with_what_they_touched_and_no_alarm() -> None:
    said = "12 stalls of at most 34.0 ms touched 0.4 % of the samples of kinematic (of those that arrived): that is part"
    said += " of the emulation error"
    summary = {"disturbances": [], "errors": [], "world": "netns", "programs": {"verdict": "good"}}
    assert (True, f"{said}.") in list(sections.health(summary | {"stalls": STALLS}))
    assert not any("stall" in line for _, line in sections.health(summary))
    assert programs.measured(summary["programs"], STALLS) == [said]


def test_reproducibility_is_told_once(tmp_path: Path) -> None:
    run = open_folder(sample_run.write(tmp_path / "run"))
    assert sections.conditions(run).count(run.summary["promise"]) == 1


def test_what_sockets_cannot_separate_stands_beside_the_largest_part() -> None:
    part = {
        "cause": "queueing",
        "place": "l1",
        "mean_ms": 7.0,
        "total_ms": 20.0,
        "share": 0.35,
        "key": "",
        "value": "",
    }
    for rest_ms, said in (
        (4.0, "; 4.000 ms are not split."),
        (0.5, "the queue of link l1."),
    ):
        summary = {
            "flows": {"video": {"delivered": 9, "delay_ms": {"p50": 20.0}}},
            "largest": {"video": part},
            "split": {"video": {"parts": [{"part": "unsplit", "mean_ms": rest_ms}]}},
        }
        assert paths.largest(summary)["video"].endswith(said)


class Read(tuple[Any, ...]):
    """How often it was read from its first entry."""

    times = 0

    def __iter__(self) -> Iterator[Any]:
        self.times += 1
        return super().__iter__()


def test_tables_of_runs_side_by_side_read_their_rows_once_whatever_the_flows(tmp_path: Path) -> None:
    found = compare.compare(*(sample_run.write(tmp_path / name) for name in "ab"))
    rows = Read(found.rows)
    assert len(dataclasses.replace(found, rows=rows).flows) == 4 and rows.times == 1


def test_what_a_file_holds_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sample_run.write(tmp_path / "run")
    made = json.loads((folder / "summary.json").read_text())
    said = {"what": "delay", "verdict": "good", "said": "3 ms\x1b[2J"}
    made |= {"programs": {"verdict": "good", "settings": [said]}, "duration_s": 1234.0}
    (folder / "summary.json").write_text(json.dumps(made))
    runs.show(folder)
    shown = capsys.readouterr().out
    assert "delay good: 3 ms\\x1b[2J\n" in shown and "\x1b" not in shown and "1\u202f234 s" in shown


@pytest.mark.parametrize(
    "lawful",
    [
        "a\u00a0b",
        "a\u3000b",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f469\u200d\U0001f467",
        "1\u202f234",
    ],
)
def test_letters_of_every_script_reach_the_terminal(lawful: str) -> None:
    assert colour.tables(f"{lawful}\n") == f"{lawful}\n"


@pytest.mark.parametrize(
    "hidden", ["\x1b", "\t", "\r", "\x85", "\x9b", "\x7f", "\ud800", "\u202e", "\u2069", "\u200f", "\u061c"]
)
def test_letters_that_move_or_turn_are_escaped_before_columns_are_aligned(hidden: str) -> None:
    columns, cells = [words("name"), Column("n")], [f"a{hidden}b", "plain", "two\nlines"]
    shown = text.table(columns, [(cell, 1) for cell in cells])
    assert hidden not in shown and colour.tables(shown) == shown
    assert len({len(line) for line in shown.splitlines()}) == 1, shown


def test_lengths_of_runs_side_by_side_are_rounded(tmp_path: Path) -> None:
    found = compare.compare(*(sample_run.write(tmp_path / name, seconds=9.99999999) for name in "ab"))
    assert [row[5] for row in found.runs.rows] == ["10 s", "10 s"]
