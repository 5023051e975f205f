"""`tcpsbed reproduce`: the table of expected values, and how the command tells what it knows."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from tcpsbed import Run, worlds
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.lab.reproduce import expected, page, works
from tcpsbed.lab.reproduce.rows import NOTHING
from tcpsbed.lab.reproduce.study import Study

runner = CliRunner()


def test_every_work_has_expected_values_and_every_value_a_reason() -> None:
    for work in works.WORKS:
        entries = expected.load(work.name)
        assert entries and all(len(entry.why) > 10 for entry in entries.values())


@pytest.mark.parametrize(
    ("compare", "ours", "holds"),
    [
        *(("near", 30.35, True), ("near", 30.36, False), ("above", 30.0, False), ("above", 30.001, True)),
        *(
            ("below", 30.0, False),
            ("below", 29.999, True),
            ("at most", 30.0, True),
            ("at most", 30.001, False),
        ),
    ],
)
def test_a_tolerance_is_judged_as_it_says(compare: str, ours: float, holds: bool) -> None:
    tolerance = 0.35 if compare == "near" else 0.0
    entry = expected.Expected("delay (ms)", 30.0, "published", tolerance, compare, "a reason")
    assert entry.holds(ours) is holds


FAILING: dict[str, Callable[[float, float], bool]] = {
    "≠": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "≤": operator.le,
    "≥": operator.ge,
}


@pytest.mark.parametrize("work", [work.name for work in works.WORKS])
def test_a_row_fails_exactly_where_it_says_so_and_keeps_the_bound_that_it_prints(work: str) -> None:
    study = Study(work, None)
    for key, entry in study.expected.items():
        if entry.published is None:
            continue
        says = [part.split() for part in entry.fails.split(" or ")]
        edges = [entry.published, *(float(edge) for _, edge in says)]
        for edge in edges:
            for ours in (edge, *(math.nextafter(edge, away) for away in (-math.inf, math.inf))):
                failed = any(FAILING[sign](ours, float(bound)) for sign, bound in says)
                assert entry.holds(ours) is not failed, (key, ours)
        sign, _, bound = page.published(study.compare(key, entry.published)).rpartition(" ")
        if sign:
            opposite = {">": "≤", "<": "≥", "≤": ">"}[sign]
            assert [opposite, float(bound)] == [says[0][0], float(says[0][1])], key


def test_entries_that_make_no_sense_are_refused_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    known = 'item = "x"\nwhy = "y"\nbasis = "outcome"'
    file.write_text(f"[b]\n{known}\n", encoding="utf-8")
    assert expected.load("a", tmp_path)["b"].basis == "outcome"
    for text in (
        f"{known}\ntolerence = 3",
        'item = "x"\nbasis = "outcome"',
        f'{known}\ncompare = "like"',
        f'{known}\npublished = 3\ninterval = 0.001\ncompare = "below"',
        f'{known}\npublished = 1\nreference = "hearsay"',
        'item = "x"\nwhy = "y"\nbasis = "hearsay"',
        'item = "x"\nwhy = "y"',
        'item = "x"\nwhy = "y"\nbasis = "fitted"',
        f'{known}\nparameter = "links.l1.delay"',
        f'{known}\nset = "8 ms"',
        'item = "x"\nwhy = "y"\nbasis = "input"\nparameter = "links.l1.delay"',
        f'{known}\nrefuted = "it cannot be"\nnot_reproduced = "ours is another"\nours = [1, 2]',
        f'{known}\nnot_reproduced = "ours is another"',
        f'{known}\nnot_reproduced = "ours is another"\nours = [2, 1]',
        f"{known}\nours = [1, 2]",
    ):
        file.write_text(f"[b]\n{text}\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"a\.toml.*\bb\b"):
            expected.load("a", tmp_path)
    with pytest.raises(DataError, match="source tree"):
        expected.load("none", tmp_path)


@pytest.mark.parametrize(
    ("compare", "fails"),
    [("near", "< 29.65 or > 30.35"), ("above", "≤ 30"), ("below", "≥ 30"), ("at most", "> 30")],
)
def test_a_row_says_what_would_have_failed(compare: str, fails: str) -> None:
    tolerance = 0.35 if compare == "near" else 0.0
    entry = expected.Expected("delay (ms)", 30.0, "published", tolerance, compare, "a reason")
    assert entry.fails == fails


@pytest.mark.parametrize(
    ("changes", "ours", "verdict"),
    [
        ({}, 30.1, "reproduced"),
        ({}, 31.0, "missed, unexplained"),
        ({"refuted": "it is not so"}, 31.0, "refuted"),
        ({"refuted": "it was not so"}, 30.1, "reproduced"),
        ({"not_reproduced": "our model is another"}, 31.0, "not reproduced"),
        ({"not_reproduced": "out of reach", "reference": "aim"}, 31.0, "disagrees"),
        ({"reference": "theory"}, 30.1, "agrees"),
        ({"basis": "fitted", "parameter": "links.l1.rate"}, 30.1, "no evidence (fitted)"),
        ({"basis": "input", "parameter": "links.l1.rate"}, 30.1, "no evidence (input)"),
        ({"basis": "theory"}, 30.1, "no evidence (theory)"),
        ({"basis": "unknown", "because": "who knows"}, 30.1, "no evidence (unknown)"),
        ({"published": None}, 30.1, "nothing published"),
        ({"hardware": "a robot arm"}, None, "not tried with hardware"),
        ({}, None, "not reproducible here"),
    ],
)
def test_only_an_outcome_beside_a_published_value_counts_as_reproduced(
    changes: dict[str, Any], ours: float | None, verdict: str
) -> None:
    entry = expected.Expected("delay (ms)", 30.0, "published", 0.35, "near", "a reason", "outcome")
    study = Study("gokhale2017", None)
    study.expected = {"delay": dataclasses.replace(entry, **changes)}
    row = study.cannot("delay", "no time") if ours is None else study.compare("delay", ours)
    assert row.verdict == verdict
    assert page.counted([row.verdict]).startswith(f"{int(verdict == 'reproduced')} reproduced")
    assert f"1 {verdict}" in " ".join(page.text(study).split())


@pytest.mark.parametrize(
    ("compare", "worst", "nearest"), [("near", "b", "a"), ("above", "c", "b"), ("below", "b", "c")]
)
def test_one_claim_at_several_settings_is_one_row(compare: str, worst: str, nearest: str) -> None:
    entry = expected.Expected("delay (ms)", 30.0, "published", 0.35, compare, "a reason", "outcome")
    study, ours = Study("gokhale2017", None), {"a": 30.1, "b": 34.0, "c": 29.0}
    study.expected = {"delay": entry}
    rows = (study.worst("delay", ours), study.nearest("delay", ours, "by readings"))
    assert [row.ours for row in rows] == [ours[worst], ours[nearest]]
    told = "a: 30.1, b: 34, c: 29"
    assert [row.reason for row in rows] == [
        f"not explained; {worst} (of all: {told})",
        f"{nearest} (of all: {told}); by readings",
    ]
    assert study.worst("delay", ours | {"d": float("nan")}).reason == NOTHING


EXPLAINED = [
    (work.name, key)
    for work in works.WORKS
    for key, entry in expected.load(work.name).items()
    if math.isfinite(entry.ours[0])
]


@pytest.mark.parametrize("far", [-1e9, 1e9])
def test_a_reason_explains_only_the_values_that_it_was_given_for(far: float) -> None:
    """A value far off is unexplained, whatever has been said of others; every reason names its values."""
    assert len(EXPLAINED) > 80
    for work, key in EXPLAINED:
        row = Study(work, None).compare(key, far)
        if row.within is False:
            assert (row.verdict, row.reason.split(":")[0]) == ("missed, unexplained", "not explained"), key
    entry = expected.load("hudson2001")["web-loss-98"]
    assert entry.explains(4.08) and not entry.explains(0.5)


def test_a_row_that_is_refuted_keeps_what_was_measured() -> None:
    entry = expected.Expected("delay (ms)", 30.0, "published", 0.35, "near", "a reason", "outcome")
    study = Study("gokhale2017", None)
    study.expected = {"delay": dataclasses.replace(entry, refuted="it is not so")}
    assert study.compare("delay", 31.0, "31 ± 0.1 ms").reason == "it is not so; 31 ± 0.1 ms"


@pytest.mark.parametrize(
    ("because", "ours", "verdict"),
    [("", 5.0, "no evidence (input)"), ("it was measured", 5.0, "reproduced"), ("", 5.1, "reproduced")],
)
def test_an_outcome_that_is_a_value_of_the_scenario_is_an_input(
    because: str, ours: float, verdict: str
) -> None:
    """Unless its entry says what made it so."""
    study = Study("gokhale2017", None)
    entry = expected.Expected(
        "delay (ms)", 5.0, "published", 0.2, "near", "a reason", "outcome", because=because
    )
    study.expected = {"delay": entry}
    study.run("dumbbell-dpm", ['duration="1 s"'], lambda run: None)
    row = study.compare("delay", ours)
    assert row.verdict == verdict
    assert bool(re.fullmatch(r"links\.\w+\.delay", row.equals)) == (ours == 5.0)
    assert page.basis(row) == (
        f"input: {row.equals} = 5 ms" if verdict == "no evidence (input)" else "outcome"
    )


@pytest.mark.parametrize(
    ("item", "published", "tolerance", "source", "shown"),
    [
        ("delay (ms)", 30.0, 1.5, "share", "± 5 % of the value"),
        ("delay (ms; 30 ms is late)", 30.0, 0.3, "interval", "± 0.3 ms (interval)"),
        ("loss (% of samples)", 1.8, 0.2, "spread", "± 0.2 percentage points of samples (spread)"),
        ("late (largest share, %)", 1.8, 0.2, "spread", "± 0.2 percentage points (spread)"),
        ("packets lost", 0.0, 0.0, "", ""),
    ],
)
def test_a_tolerance_is_told_as_a_percentage_or_with_its_unit(
    item: str, published: float, tolerance: float, source: str, shown: str
) -> None:
    study = Study("gokhale2017", None)
    entry = expected.Expected(item, published, "published", tolerance, "near", "a reason", source=source)
    study.expected = {"a": entry}
    row = study.compare("a", published)
    assert page.tolerance(row) == shown
    assert (entry.fails == "≠ 0") == (tolerance == 0.0)


def test_the_table_fits_100_columns_and_begins_with_the_verdict() -> None:
    study = Study("gokhale2017", None)
    for entry in study.expected:
        study.compare(entry, 400.0 if entry == "threshold-dpm" else 1e5)
    lines = page.text(study).splitlines()
    assert max(map(len, lines)) <= page.WIDTH
    assert lines[0].split()[:3] == ["verdict", "expected", "ours"]
    row = next(line for line in lines if line.startswith("not reproduced"))
    assert "± 0.49 % of the value, fails if < 404.0106 or > 407.9894" in " ".join(
        " ".join(lines[lines.index(row) :]).split()
    )


def test_an_input_is_told_with_what_was_set() -> None:
    row = Study("hudson2001", None).compare("jitter-udp", 8.0)
    assert row.verdict == "not reproduced"
    assert page.basis(row) == "input: links.shared.jitter = exponential, mean 8 ms"


@pytest.mark.parametrize("full", [True, False])
def test_a_short_run_says_so_and_how_to_run_it_whole(full: bool) -> None:
    shown = page.text(Study("gokhale2017", None, full=full))
    assert ("SHORT RUN" in shown, "Whole: tcpsbed reproduce gokhale2017" in shown) == (not full, not full)


def test_what_no_hardware_was_there_for_is_a_row() -> None:
    study = Study("gokhale2017", None)
    entry = study.expected["peak-haptic"]
    study.expected = {"arm": dataclasses.replace(entry, hardware="a robot arm")}
    study.add_what_needs_hardware()
    assert [(row.key, row.verdict, row.reason) for row in study.rows] == [
        ("arm", "not tried with hardware", "needs a robot arm")
    ]


@pytest.mark.parametrize("work", [work.name for work in works.WORKS])
def test_every_basis_and_every_tolerance_says_what_it_is(work: str) -> None:
    for key, entry in expected.load(work).items():
        if entry.published is None:
            continue
        assert entry.basis != "unknown" or len(entry.because) > 10, f"{work}.{key}: unknown, and not said why"
        assert entry.tolerance == 0 or entry.source, f"{work}.{key}: a tolerance of no kind"


@pytest.mark.parametrize("work", [work.name for work in works.WORKS])
def test_an_order_in_words_is_no_published_value(work: str) -> None:
    """No work prints the 0 or the 1 that a difference or a ratio must exceed: it is derived, and does not count."""
    for key, entry in expected.load(work).items():
        if entry.compare != "near" and entry.published in (0.0, 1.0):
            assert entry.reference != "published", f"{work}.{key}"


SAME_PAPER = [(a.name, b.name) for a in works.WORKS for b in works.WORKS if b.name.startswith(f"{a.name}-")]
"""Works of one paper: one in virtual time, and one in Mininet or of other figures."""


@pytest.mark.parametrize(("one", "other"), SAME_PAPER)
def test_works_that_quote_the_same_item_of_a_paper_quote_it_alike(one: str, other: str) -> None:
    """The same value; where basis, tolerance or what is measured differ, `because` says why. No number has a second name."""
    first = {entry.quotes: entry for entry in expected.load(one).values()}
    numbers = {
        e.published: key for key, e in first.items() if (e.reference, e.compare) == ("published", "near")
    }
    for key, entry in expected.load(other).items():
        if entry.quotes not in first:
            found = numbers.get(entry.published) if entry.reference == "published" else None
            assert not (entry.published and found), f'{other}.{key}: a number of {one}, quotes = "{found}"?'
            continue
        there = first[entry.quotes]
        assert entry.published == there.published and entry.compare == there.compare, key
        assert entry.reference == there.reference, key
        said = re.sub("^Mininet[,:] ", "", entry.item)
        if (said, entry.basis, entry.tolerance) != (there.item, there.basis, there.tolerance):
            assert entry.because, f"{other}.{key} differs from {one}.{entry.quotes}, and not said why"


def test_a_value_says_where_it_comes_from() -> None:
    gokhale = expected.load("gokhale2017")
    keys = ("peak-haptic", "bound", "phase-2-260")
    assert [gokhale[key].reference for key in keys] == ["published", "theory", "own reference"]
    assert {entry.reference for entry in expected.load("dpm-q").values()} == {"aim"}
    row = Study("abdullah2023", None).compare("stream-mean", 15.0)
    assert (row.expected.reference, row.verdict, row.to_json()["within"]) == ("", "nothing published", None)


def test_an_order_without_values_is_no_value_in_the_table() -> None:
    """Polachan 2022 sets srv above the others in figure 8, and gives no number that ours could be near."""
    row = Study("polachan2022", None).compare("figure8-srv", 12.0)
    assert (row.expected.published, page.published(row), row.within) == (0.0, "> 0", True)
    assert "its bar is the tallest" in row.reason
    lower = Study("polachan2022", None).compare("figure18", -3.0)
    near = Study("polachan2022", None).compare("figure8-actuation", 112.0)
    assert (page.published(lower), page.published(near)) == ("< 0", "110")


def test_a_value_that_is_no_number_is_a_broken_measurement() -> None:
    """Also where nothing is published; only what a work says that it cannot measure has no verdict."""
    study = Study("polachan2022", None)
    row = study.compare("figure8-actuation", float("nan"), "a note")
    assert (row.ours, row.within, row.verdict) == (None, False, "missed, unexplained")
    assert (row.reason, row.to_json()["within"], page.cells(row)[3]) == (NOTHING, False, "–")
    none = study.cannot("figure8-srv", "no echo came back")
    assert (none.ours, none.within, none.verdict) == (None, None, "not reproducible here")
    assert study.rows == [row, none]
    assert NOTHING in " ".join(page.text(study).split())
    alone = Study("abdullah2023", None).compare("stream-mean", float("nan"))
    assert (alone.expected.published, alone.within) == (None, False)


def explained() -> tuple[str, float]:
    """A row of gokhale2017 that is known to be off, with a value in the range of its reason."""
    entries = expected.load("gokhale2017").items()
    key, entry = next((key, e) for key, e in entries if e.not_reproduced and e.basis == "outcome")
    value = next(value for value in entry.ours if not entry.holds(value))
    return key, value


@pytest.mark.parametrize(
    ("row", "status"),
    [(None, 0), (("peak-haptic", math.nan), 1), (explained(), 0), ((explained()[0], 1e9), 1)],
    ids=["none came out, known", "broken", "off, explained", "off, beyond what is explained"],
)
def test_only_a_row_that_is_off_without_a_reason_ends_with_status_1(
    row: tuple[str, float] | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reproduce(work: works.Work, *_: object, **__: object) -> Study:
        study = Study(work.name, None)
        if row is None:
            study.cannot("peak-haptic", "no echo came back")
        else:
            study.compare(*row)
        return study

    monkeypatch.setattr(works.Work, "reproduce", reproduce)
    done = runner.invoke(app, ["reproduce", "gokhale2017", "--json", "--out", str(tmp_path)])
    assert done.exit_code == status, done.output


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


def test_what_is_done_is_told_line_by_line_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpsbed.lab.reproduce import dpm_q

    monkeypatch.setattr(dpm_q, "reproduce", lambda study: study.each(["one", "two"], str) and None)
    told = runner.invoke(app, ["reproduce", "dpm-q", "--out", str(tmp_path)]).stderr.splitlines()
    assert [line.split(" took ")[0] for line in told] == ["dpm-q: one", "dpm-q: two"], told
    quiet = runner.invoke(app, ["reproduce", "dpm-q", "--quiet", "--out", str(tmp_path)])
    assert (quiet.exit_code, quiet.stderr) == (0, "")


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpsbed.runs import progress

    monkeypatch.setattr(progress, "Beat", lambda _: None)  # which looks at the clock, too
    seconds = iter(float(second) for second in range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with progress.Progress("sweep") as bar:
        for share in range(1, 26):
            bar(share / 25)
    assert capsys.readouterr().err == "sweep 40 %  15 s left\nsweep 80 %  5 s left\n"


def test_the_time_that_is_left_counts_from_the_beginning_of_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes take seconds to start: of 100 s of work never more than 100 s are left."""
    from tcpsbed.runs import progress

    monkeypatch.setattr(progress, "Beat", lambda _: None)
    clock = Mock(return_value=0.0)
    monkeypatch.setattr(progress.time, "monotonic", clock)
    with progress.Progress("demo") as bar:
        for now_s in (2.0, 4.0, 6.0, 12.0, 26.0):
            clock.return_value = now_s
            bar(max(now_s - 6.0, 0.0) / 100)
    assert capsys.readouterr().err == "demo 6 %  94 s left\ndemo 20 %  80 s left\n"


def test_a_note_of_the_run_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpsbed.lab.reproduce import dpm_q

    monkeypatch.setattr(dpm_q, "reproduce", lambda _: None)
    arguments = ["reproduce", "dpm-q", "--note", "beside a build", "--out", str(tmp_path)]
    assert runner.invoke(app, [*arguments, "--json"]).exit_code == 0
    assert json.loads((tmp_path / "dpm-q/rows.json").read_text())["note"] == "beside a build"


def test_a_run_that_was_asked_to_end_ends_the_work() -> None:
    """Its first Ctrl-C ends the run in good order; the work does not go on with the next one."""
    read: list[Run] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "record", with_ctrl_c(worlds.record))
        with pytest.raises(KeyboardInterrupt):
            Study("dpm-q", None).run("quickstart", ['duration="2 s"'], read.append)
    assert not read


def with_ctrl_c(record: Callable[..., Path]) -> Callable[..., Path]:
    """As `record`, with a Ctrl-C at its beginning."""

    def asked(*given: object, **more: object) -> Path:
        os.kill(os.getpid(), signal.SIGINT)
        return record(*given, **more)

    return asked


def test_a_work_that_is_stopped_keeps_its_rows_and_says_that_it_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpsbed.lab.reproduce import dpm_q, study

    def stopped(made: study.Study) -> None:
        made.cannot(next(iter(made.expected)), "for a test")
        raise KeyboardInterrupt

    monkeypatch.setattr(dpm_q, "reproduce", stopped)
    said = CliRunner().invoke(app, ["reproduce", "dpm-q", "--out", str(tmp_path)])
    assert said.exit_code == 130 and "stopped; 1 row done until then" in said.stderr
    found = json.loads((tmp_path / "dpm-q/rows.json").read_text())
    assert found["full"] is False and len(found["rows"]) == 1
    assert len(found["expected_sha256"]) == 64 and "commit" in found
    assert re.fullmatch(r"\S+, \d+ cores, \w+ [\d.]+", found["machine"]), "the kernel by its version alone"
    before = (tmp_path / "dpm-q/rows.json").read_bytes()
    again = CliRunner().invoke(app, ["reproduce", "dpm-q", "--out", str(tmp_path)])
    assert again.exit_code == 130 and "is unchanged" in again.stderr
    assert (tmp_path / "dpm-q/rows.json").read_bytes() == before


def test_a_case_is_told_by_its_name_with_its_seconds() -> None:
    from tcpsbed.lab.reproduce.study import Study

    told: list[str] = []
    Study("dpm-q", None, tell=told.append).each([("udp", 0.5, None)], lambda case: case)
    assert re.fullmatch(r"dpm-q: udp 0.5 took 0.0 s; 1 of 1, 0 s of about 0 s", told[0])
