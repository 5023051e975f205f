"""Studies: balanced orders, ratings that are never lost, tests as scipy has them, and a page that is told no condition."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tcpsbed import drawing
from tcpsbed.console.server import Newest
from tcpsbed.errors import ConfigError, DataError, WorldError
from tcpsbed.lab.study import plan, results, statistics
from tcpsbed.lab.study.conductor import Conductor, Measured
from tcpsbed.lab.study.order import order, square
from tcpsbed.lab.study.presentation import measured
from tcpsbed.lab.study.ratings import SCALES, Rating, Store, grades_of
from tcpsbed.lab.study.scripted import ScriptedSubject

NAMES = ["udp", "tcp", "parity"]
GOOD = dict.fromkeys(SCALES, 4)
SCENARIO = """
[components]
tactile-operator = "desk"
tactile-teleoperator = "field"
[flows.kinematic]
"""


@given(st.integers(2, 12))
def test_a_square_has_each_condition_once_in_each_place_and_behind_each_other(size):
    # [Williams 1949]
    rows = square(size)
    assert len(rows) == (2 * size if size % 2 else size)
    for place in range(size):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // size}
    behind = Counter(pair for row in rows for pair in pairwise(row))
    assert len(behind) == size * (size - 1) and set(behind.values()) == {len(rows) // size}


def test_orders_are_drawn_by_the_seed_and_balanced_over_subjects():
    orders = [order(NAMES, subject, 7) for subject in range(1, 13)]
    assert orders == [order(NAMES[::-1], subject, 7) for subject in range(1, 13)]
    assert orders != [order(NAMES, subject, 8) for subject in range(1, 13)]
    for place in range(3):
        assert set(Counter(names[place] for names in orders).values()) == {4}


def rated(subject: int, condition: str, *grades: int) -> Rating:
    return Rating(
        subject, 1, condition, dict(zip(SCALES, grades, strict=True)), "2026-01-01", "x", {"haptic": 1.5}
    )


def opened(folder: Path, fingerprint: str = "a") -> Store:
    """The folder of a study with nobody leading in it any more."""
    store = Store(folder, fingerprint)
    with store.leading():
        return store


def test_a_rating_is_on_the_disk_when_save_returns_and_half_a_line_costs_no_other(tmp_path):
    store, file = opened(tmp_path), tmp_path / "ratings.jsonl"
    store.save(rated(1, "udp", 5, 4, 3))
    torn = file.read_bytes() + b'{"subject": 1, "posi'  # the power went, or another terminal writes
    file.write_bytes(torn)
    reader = Store(tmp_path, "a")
    reader.read()
    assert reader.ratings == store.ratings and file.read_bytes() == torn, "reading writes nothing"
    again = opened(tmp_path)
    again.save(rated(1, "tcp", 1, 1, 1))
    reader.read()
    assert [r.condition for r in reader.ratings] == ["udp", "tcp"]
    assert again.next_subject(2) == 2 and again.next_subject(3) == 1


def test_ratings_of_another_study_or_of_scripts_are_not_mixed(tmp_path):
    opened(tmp_path).save(rated(1, "udp", 5, 4, 3))
    with pytest.raises(DataError, match="another study"):
        Store(tmp_path, "b").read()
    with pytest.raises(DataError, match="scripts"), Store(tmp_path, "a", scripted=True).leading():
        pass
    wrong_kind = json.dumps(asdict(rated(1, "udp", 5, 4, 3)) | {"delay_ms": {"haptic": "1 ms"}})
    for line in ('{"subject": 1}', "[" * 2000, wrong_kind):
        (tmp_path / "ratings.jsonl").write_text(line + "\n")
        with pytest.raises(DataError, match=r"ratings\.jsonl:1: found no rating"):
            Store(tmp_path, "a").read()


def test_one_terminal_leads_at_a_time_and_a_folder_that_is_only_looked_for_is_not_made(tmp_path):
    with pytest.raises(DataError, match="found no study"):
        Store(tmp_path / "out", "a").read()
    assert not (tmp_path / "out").exists()
    with Store(tmp_path / "out", "a").leading():
        with pytest.raises(DataError, match="another terminal"), Store(tmp_path / "out", "a").leading():
            pass
        Store(tmp_path / "out", "a").read()
    opened(tmp_path / "out")


@given(
    st.one_of(
        st.none(),
        st.dictionaries(st.sampled_from([*SCALES, "x"]), st.one_of(st.integers(), st.booleans(), st.text())),
    )
)
def test_an_answer_is_one_grade_for_each_scale_or_refused(said):
    try:
        given_grades = grades_of(said)
    except ValueError:
        return
    assert set(given_grades) == set(SCALES) and all(1 <= grade <= 5 for grade in given_grades.values())


def test_the_published_form_of_the_test_is_that_of_scipy():
    # [Gokhale 2017] paired t-test, two-sided
    drawn = np.random.default_rng(3)
    grades = drawn.integers(1, 6, (20, 2))
    ratings = [
        rated(s + 1, c, *[int(g)] * 3) for s in range(20) for c, g in zip("ab", grades[s], strict=True)
    ]
    (pair, *_) = statistics.comparisons(ratings, ["a", "b"])
    theirs = stats.ttest_rel(grades[:, 0], grades[:, 1])
    difference = (grades[:, 0] - grades[:, 1]).astype(float)
    assert (pair.t.statistic, pair.t.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)
    assert pair.t.effect == pytest.approx(difference.mean() / difference.std(ddof=1) * (1 - 3 / 75))
    ranks = stats.wilcoxon(difference)
    assert (pair.wilcoxon.statistic, pair.wilcoxon.p) == pytest.approx(
        (ranks.statistic, ranks.pvalue), rel=1e-10
    )
    low, high = theirs.confidence_interval()
    assert (pair.difference - pair.half, pair.difference + pair.half) == pytest.approx((low, high), rel=1e-5)


def test_who_all_differ_by_the_same_has_no_t():
    ratings = [rated(s, c, *[g] * 3) for s in (1, 2, 3) for c, g in (("a", 5), ("b", 3))]
    pair = statistics.comparisons(ratings, ["a", "b"])[0]
    assert (pair.difference, pair.half, pair.t, pair.bootstrap) == (2.0, None, None, None)
    assert pair.wilcoxon.effect == 1.0
    told = results.table(ratings, ["a", "b"], scripted=True)
    assert "5.00 (0.00; 3)" in told and results.SCRIPTED in told


def test_three_conditions_are_compared_at_once_too():
    """Friedman's test over the subjects who rated all; pairs over those who rated both."""
    drawn = np.random.default_rng(5)
    grades = np.clip(drawn.integers(1, 4, (12, 3)) + np.arange(3), 1, 5)
    ratings = [rated(s + 1, c, *[int(grades[s, n])] * 3) for s in range(12) for n, c in enumerate("abc")]
    (one, *_) = found = statistics.overall([*ratings, rated(13, "a", 1, 1, 1)], list("abc"))
    theirs = stats.friedmanchisquare(*grades.T)
    assert (one.n, one.friedman.statistic, one.friedman.p) == (12, theirs.statistic, theirs.pvalue)
    assert one.friedman.p_holm == pytest.approx(3 * theirs.pvalue), "three scales"
    assert one.friedman.effect == pytest.approx(theirs.statistic / 24) and len(found) == 3
    assert statistics.overall(ratings, ["a", "b"]) == []
    told = results.table(ratings, list("abc"), scripted=False)
    assert "all conditions (Friedman)" in told and "Kendall's W" in told


def test_without_scipy_there_are_effects_and_no_p(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    ratings = [rated(s, c, s % 5 + 1, 5 - s % 3, 3) for s in range(1, 8) for c in "abc" if (s, c) != (1, "c")]
    pairs = statistics.comparisons(ratings, list("abc"))
    assert all(test.p is None for pair in pairs for test in (pair.t, pair.wilcoxon) if test)
    assert "pip install 'tcpsbed[stats]'" in results.table(ratings, list("abc"), scripted=False)


def test_csv_json_and_figure(tmp_path):
    ratings = [rated(s, c, s, 5, g) for s in (1, 2, 3) for c, g in (("a", s), ("b", 4))]
    results.write(tmp_path, ratings, ["a", "b"], scripted=False)
    lines = (tmp_path / "ratings.csv").read_text().splitlines()
    assert lines[0].startswith(
        "subject,position,condition,transparency,smoothness,overall,at,haptic_delay_ms"
    )
    assert len(lines) == 7 and ",1.5," in lines[1]
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["subjects"] == 3 and len(document["tests"]) == 3 and "Holm" in document["correction"]
    for test in (found for pair in document["tests"] for found in (pair["t"], pair["wilcoxon"]) if found):
        assert test["effect"] is not None and test["effect_name"], "no p without an effect"
    pytest.importorskip("matplotlib")
    drawn = results.figure(ratings, ["a", "b"], "x", scripted=False)
    assert drawing.saved(drawn, tmp_path / "o.svg").stat().st_size > 1000


@pytest.mark.parametrize("ending", ["", ".xyz"])
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_study(tmp_path, ending):
    pytest.importorskip("matplotlib")
    drawing.drawable(tmp_path / "o.pdf")
    with pytest.raises(DataError, match=r"--figure: .*: found the ending .*\.pdf, \.svg, \.png or \.pgf"):
        drawing.drawable(tmp_path / f"o{ending}")


@pytest.fixture
def study(tmp_path: Path) -> plan.Study:
    return written(tmp_path)


def written(folder: Path, more: str = "") -> plan.Study:
    """A study of three conditions."""
    file = folder / "study.toml"
    conditions = "".join(f"[conditions.{name}]\nset = ['seed={n}']\n" for n, name in enumerate(NAMES))
    (folder / "scenario.toml").write_text(SCENARIO)
    file.write_text(f'scenario = "scenario.toml"\n{more}{conditions}')
    return plan.load(file)


class Subject:
    """Answers all questions at once, until it has had enough."""

    def __init__(self, rates: int = 100) -> None:
        self.shown: list[dict] = []
        self.ran: list[tuple[str | None, Path]] = []
        self.rates = rates
        self.conductor: Conductor | None = None

    def present(self, name, length_ns, folder):
        self.ran.append((name, folder))
        return Measured({"haptic": 2.0}, 30.0)

    def notify(self, told):
        self.shown.append(json.loads(json.dumps(told)))
        assert self.conductor is not None
        if told["phase"] == "rate":
            self.rates -= 1
            if self.rates < 0:
                raise KeyboardInterrupt
        if told["phase"] in ("go", "rate", "done"):
            answer = {"k": "study", "n": told["n"], "do": told["phase"], "grades": GOOD}
            for wrong in (
                {"n": told["n"] - 1},
                {"do": "wait"},
                *([{"grades": {"overall": 9}}] * (told["phase"] == "rate")),
            ):
                with pytest.raises(ValueError):
                    self.conductor.hear(answer | wrong)
            self.conductor.hear(answer)
            with pytest.raises(ValueError):
                self.conductor.hear(answer)  # a second click

    def lead(self, study, store, number=1):
        self.conductor = Conductor(study, store, number, self.present, self.notify)
        return self.conductor.lead()


def test_a_subject_meets_training_pairs_and_questions_and_never_a_condition(tmp_path, study):
    store, subject = opened(tmp_path / "out", study.fingerprint), Subject()
    assert subject.lead(study, store) == 3
    names = order(NAMES, 1, study.seed)
    assert [name for name, _ in subject.ran] == [None, *[x for name in names for x in (None, name)]]
    assert [told["what"] for told in subject.shown if told["phase"] == "run"][:3] == [
        "training",
        "reference",
        "condition",
    ]
    assert subject.shown[-1]["phase"] == "done"
    everything = json.dumps(subject.shown) + "".join(str(folder) for _, folder in subject.ran)
    assert not any(name in everything for name in NAMES)
    assert [(r.condition, r.position, r.delay_ms) for r in store.ratings] == [
        (name, place, {"haptic": 2.0}) for place, name in enumerate(names, 1)
    ]


def test_after_a_break_it_goes_on_where_it_was(tmp_path, study):
    store = opened(tmp_path / "out", study.fingerprint)
    with pytest.raises(KeyboardInterrupt):
        Subject(rates=1).lead(study, store)
    again, later = opened(tmp_path / "out", study.fingerprint), Subject()
    assert again.next_subject(3) == 1
    assert later.lead(study, again) == 2
    assert [r.condition for r in again.ratings] == order(NAMES, 1, study.seed)
    assert Subject().lead(study, again) == 0, "nothing is left"


def test_what_stops_a_script_stops_the_study(tmp_path, study):
    asked: queue.Queue[dict] = queue.Queue()
    conductor = Conductor(study, opened(tmp_path / "out"), 1, Subject().present, asked.put)
    threading.Thread(target=lambda: (asked.get(), conductor.fail(DataError("no pictures")))).start()
    with pytest.raises(DataError, match="no pictures"):
        conductor.lead()


class Failing(Subject):
    """Sees a condition that fails."""

    def present(self, name, length_ns, folder):
        self.ran.append((name, folder))
        return measured({"errors": ["hook arm: no such robot"] * (name is not None), "flows": {}} | NOTHING)


NOTHING = {"media": {}, "disturbances": []}


def test_what_failed_is_not_rated_and_the_same_subject_goes_on(tmp_path, study):
    store, subject = opened(tmp_path / "out"), Failing()
    with pytest.raises(WorldError, match=r"hook arm: no such robot; allowed: .*same subject"):
        subject.lead(study, store)
    assert "rate" not in [told["phase"] for told in subject.shown] and store.ratings == []
    assert opened(tmp_path / "out").next_subject(3) == 1


def test_the_next_subject_is_not_shown_what_the_last_one_saw():
    newest, seen, late = Newest(), {}, {}
    newest.put(0, "done")
    assert newest.wait((0,), seen, 0.0) == [(0, "done")]
    newest.drop(0)
    assert newest.wait((0,), late, 0.0) == newest.wait((0,), seen, 0.0) == []
    newest.put(0, "go")
    assert newest.wait((0,), late, 0.0) == newest.wait((0,), seen, 0.0) == [(0, "go")]


def test_a_script_whose_console_is_gone_says_so():
    sync = pytest.importorskip("websockets.sync.server", reason="needs the package websockets")
    pytest.importorskip("simplejpeg", reason="needs the package simplejpeg")
    server = sync.serve(lambda line: None, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(WorldError, match="closed the connection"):
            ScriptedSubject(f"http://127.0.0.1:{server.socket.getsockname()[1]}/?token=x", 1).answer_all()
    finally:
        server.shutdown()


def test_a_script_that_was_shown_no_reference_says_so():
    """Without training and pairs there is nothing that a condition could be slower than."""
    subject = ScriptedSubject("http://127.0.0.1:1/?token=x", 1)
    subject.what, subject.seen_ms = "test", [12.0]
    with pytest.raises(WorldError, match=r"no reference.*allowed: training above 0 s, or pairs = true"):
        subject._follow(SimpleNamespace(send=pytest.fail), {"phase": "rate", "n": 1})


def test_a_study_is_another_one_when_its_scenario_is(tmp_path, study):
    assert written(tmp_path).fingerprint == study.fingerprint
    (tmp_path / "moved").mkdir()
    assert written(tmp_path / "moved").fingerprint == study.fingerprint
    (tmp_path / "scenario.toml").write_text(SCENARIO + 'rate = "200 Hz"\n')
    assert plan.load(tmp_path / "study.toml").fingerprint != study.fingerprint


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('duration = "3"\n', "duration: found"),
        ('durations = "3 s"\n', "did you mean duration"),
        ("[reference]\nset = ['links.none.loss=0']\n", "reference: "),
        ("[reference]\nset = ['flows.nix.rate=\"1 Hz\"']\n", "nix"),
    ],
)
def test_a_study_that_makes_no_sense_is_told_before_anybody_sits_down(tmp_path, more, told):
    with pytest.raises(ConfigError, match=told):
        written(tmp_path, more)


def test_the_shipped_study_is_right(root):
    study = plan.load(root / "examples" / "study.toml")
    assert list(study.conditions) == NAMES
