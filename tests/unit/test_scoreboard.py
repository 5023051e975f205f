"""The scoreboard of published works: what it keeps of runs, and how it judges that."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tcpsbed.lab.reproduce import expected, works
from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study


@pytest.mark.parametrize("work", [work.name for work in works.WORKS])
def test_results_that_are_kept_say_what_they_were_measured_with(work: str, root: Path) -> None:
    for run in json.loads((root / "docs" / "results" / f"{work}.json").read_text(encoding="utf-8")):
        assert re.fullmatch("[0-9a-f]{40}", run["commit"]), "a commit, and no tree that was changed"
        assert len(run["expected_sha256"]) == 64 and run["machine"] and run["date"]
        assert all(row["ours"] is not None or row["reason"] for row in run["rows"])


def test_the_scoreboard_is_that_of_the_expected_values(root: Path) -> None:
    done = subprocess.run([sys.executable, "tools/scoreboard.py"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def kept_scoreboard(scoreboard: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`tools/scoreboard.py` with the results that are kept."""
    monkeypatch.setattr(scoreboard, "RESULTS", root / "docs" / "results")
    return scoreboard


@pytest.fixture
def scoreboard(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with results of its own."""
    spec = importlib.util.spec_from_file_location("scoreboard", root / "tools" / "scoreboard.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    return module


def test_the_scoreboard_keeps_what_came_out_and_judges_it_anew(
    scoreboard: ModuleType, tmp_path: Path
) -> None:
    study = Study("hudson2001", None)
    study.compare("web-loss-98", 3.6, "five seeds")
    for name, full in (("hudson2001", True), ("dpm-q", False)):
        (tmp_path / name).mkdir()
        told = study.to_json() | {"full": full}
        (tmp_path / name / "rows.json").write_text(json.dumps(told), encoding="utf-8")
    scoreboard.take(tmp_path)
    assert [file.name for file in (tmp_path / "results").iterdir()] == ["hudson2001.json"], (
        "a short run is not kept"
    )
    kept = scoreboard.runs(tmp_path / "results" / "hudson2001.json")[0]["rows"][0]
    assert set(kept) == {"key", "ours", "fails", "note"}, "of what was said only what was measured"
    row = scoreboard.judged("web-loss-98", study.expected["web-loss-98"], {"web-loss-98": kept})
    assert (row.verdict, row.reason) == ("not reproduced", study.rows[0].reason)
    read_back = dataclasses.replace(study.expected["web-loss-98"], published=3.6, because="")
    row = scoreboard.judged("web-loss-98", read_back, {"web-loss-98": kept | {"equals": "links.l.loss"}})
    assert row.verdict == "no evidence (input)"


def test_a_run_that_is_kept_is_not_edited_and_what_a_newer_one_left_out_stays(
    scoreboard: ModuleType, tmp_path: Path
) -> None:
    """Each with its own commit and note; the page says where the bounds of today are not those of the run."""
    work = works.find("polachan2022")
    (tmp_path / work.name).mkdir()
    for note, clock in (("beside others", True), ("", False)):
        study = Study(work.name, None, note=note)
        study.compare("figure20-small", 0.6 if clock else 0.7)
        if clock:
            study.compare("figure8-srv", 12.0)
        else:
            study.leave_out(["figure8-srv"])
        told: dict[str, Any] = study.to_json() | {"commit": note or "newer"}
        if clock:
            told["rows"][1]["fails"] = "≤ 3"
        (tmp_path / work.name / "rows.json").write_text(json.dumps(told), encoding="utf-8")
        scoreboard.take(tmp_path)
    newer, older = scoreboard.runs(tmp_path / "results" / "polachan2022.json")
    assert (newer["commit"], older["commit"], older["note"]) == ("newer", "beside others", "beside others")
    assert [row["key"] for row in older["rows"]] == ["figure8-srv"]
    rows, text = scoreboard.section(work)
    assert {row.key: row.ours for row in rows if row.ours} == {"figure20-small": 0.7, "figure8-srv": 12.0}
    other = next(line for line in text.splitlines() if line.startswith("Judged by other tolerances"))
    assert study.expected["figure8-srv"].item in other and "figure 20" not in other
    assert "1 rows; tcpsbed" in text and "judged by today's" not in text
    (tmp_path / "results" / "polachan2022.json").write_text(
        json.dumps([newer | {"expected_sha256": "0" * 64}]), encoding="utf-8"
    )
    assert "judged by today's expected values" in scoreboard.section(work)[1]


def test_a_row_that_is_worked_out_of_others_is_worked_out_of_what_is_kept(scoreboard: ModuleType) -> None:
    cells = {f"table2-{ms}-0": {"key": f"table2-{ms}-0", "ours": ms * 1.01} for ms in (1, 5)}
    cells["table2-3-500"] = {"key": "table2-3-500", "ours": 2.94}
    row = scoreboard.derived("polachan2022-mininet", "table2-error", cells)
    assert row["ours"] == pytest.approx(2.0) and len(row["beside"]) == 3
    measured = cells | {"table2-error": {"key": "table2-error", "ours": 1.5}}
    assert scoreboard.derived("polachan2022-mininet", "table2-error", measured) is None


def test_how_sharply_rows_were_judged_is_told_by_their_tolerances(scoreboard: ModuleType) -> None:
    entry = expected.Expected("x", 10.0, "published", 0.0, "near", "a reason", "outcome")
    tolerances = (0.4, 1.0, 2.5, 4.0, 5.0)
    entries = [dataclasses.replace(entry, tolerance=tolerance) for tolerance in tolerances]
    entries += [dataclasses.replace(entry, compare="above"), dataclasses.replace(entry, published=0.0)]
    rows = [Row("x", entry, 10.0) for entry in entries]
    assert scoreboard.sharpness(rows) == (
        "a sign or a bound: 1; a published 0: 1; ± 10 % or less: 2; ± 10 to 25 %: 1; "
        "± 25 to 50 %: 1; ± 50 % or more: 1"
    )


SAME = {
    (
        "phase-1-quiet",
        "phase-5-after",
    ): "the same quiet network, whose rate is arithmetic, before and after the congestion",
    ("peak-haptic-profile", "peak-haptic-fluid"): "one run beside two references",
    ("gap-qm150", "gap-qm3600"): "nothing is dropped in either, as the rows of drops say",
    ("latency-qm150", "latency-qm3600"): "nothing is dropped in either, as the rows of drops say",
    ("ns3-trip-max", "ns3-trip-turn"): "16 ms less 1 ns: whole subframes of the LTE of ns-3",
    ("table1-free-min", "table1-free-mean"): "alone on the line every message takes the same time",
    ("table1-free-mean", "table1-free-max"): "alone on the line every message takes the same time",
    ("table1-free-max", "table1-10-1x-min"): "alone on the line every message takes the same time",
    ("table1-100-1x-min", "table1-100-5x-min"): "the least latency is that of a free line",
    ("lost-without", "lost-behind"): "behind the last mile there is nothing left to hold",
    ("tcp-cubic-no-merge", "tcp-cubic-udp"): "the full queue of one bottleneck",
}
"""Rows of one work that came out the same to all digits, and why they are two."""


def test_rows_of_the_same_value_to_all_digits_are_known_with_their_reason(
    kept_scoreboard: ModuleType,
) -> None:
    found = set()
    for work in works.WORKS:
        last: dict[float, str] = {}
        for row in kept_scoreboard.section(work)[0]:
            if (
                row.ours is None
                or row.verdict == "no evidence (input)"
                or (row.ours == round(row.ours) and abs(row.ours) < 100)
            ):
                continue
            if row.ours in last:
                found.add((last[row.ours], row.key))
            last[row.ours] = row.key
    assert found <= set(SAME), found - set(SAME)


def test_what_counts_as_reproduced_and_is_0_beside_0_could_have_failed(kept_scoreboard: ModuleType) -> None:
    """The LTE of ns-3 is no arithmetic of ours: there a run could lose."""
    rows = [(work.name, row) for work in works.WORKS for row in kept_scoreboard.section(work)[0]]
    exact = {(name, row.key) for name, row in rows if row.verdict == "reproduced" and row.ours == 0}
    assert exact == {("abdullah2023", "ns3-loss")}
