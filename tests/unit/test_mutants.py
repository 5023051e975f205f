"""tools/mutants.py draws the same mutants again, and its ledger counts right."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
from test_tools import tool


@pytest.fixture
def mutants(root):
    return tool(root, "mutants")


def row(mutant, outcome, state="now"):
    return {"part": "net", "mutant": mutant, "line": 1, "outcome": outcome, "state": state}


def test_a_larger_sample_holds_the_smaller_and_other_code_does_not_move_it(mutants):
    keys = [f"a.rs: replace + with -: x + {number}" for number in range(40)]
    whole = mutants.drawn(keys, 1)
    assert whole != keys and whole != mutants.drawn(keys, 2)
    others = mutants.drawn([*reversed(keys), "b.rs: replace > with <: y > 0"], 1)
    assert [key for key in others if key in keys] == whole


def test_mutants_of_one_name_are_told_apart_but_not_by_their_line(mutants):
    def keys(*lines):
        made = [mutants.Mutant("a.rs", line, "replace + with -", "x + y", str) for line in lines]
        return [one.key for one in mutants.numbered(made)]

    assert len(set(keys(3, 9))) == 2
    assert keys(3, 9) == keys(4, 30)


def test_a_mutant_counts_as_it_was_at_first_and_as_it_is_now(mutants):
    ledger = [
        row("a", "caught", "earlier"),
        row("b", "missed"),
        row("c", "timeout"),
        row("d", "unviable"),
        row("e", "missed"),
    ]
    rows = [*ledger, row("f", "missed", "earlier"), row("f", "caught")]
    cells, survivors = mutants.counted(rows, {"e": "the same"}, "now")
    assert cells[:4] == ["6", "5", "1", "1"]
    assert [cell.split(":")[0] for cell in cells[4:]] == ["2 of 4", "3 of 4"]
    assert [one["mutant"] for one in survivors] == ["b"]


def test_the_interval_is_that_of_wilson(mutants):
    low, high = mutants.wilson(15, 20)  # by R: binom.confint(15, 20, methods = "wilson")
    assert (low, high) == pytest.approx((0.5313, 0.8881), abs=5e-5)
    assert mutants.wilson(0, 0) == (0, 1)


def test_a_part_without_rows_keeps_its_line_of_the_page(mutants):
    old = "| `plan` | as it was |\n| `net` | older |\n"
    markdown, _ = mutants.table([row("a", "caught")], {}, old)
    assert "| `plan` | as it was |" in markdown and "older" not in markdown
    assert "| `net` | 1 | 0 | 0 | 0 | 1 of 1: 100 %" in markdown


def test_a_mutant_that_is_no_longer_in_the_code_does_not_count(mutants):
    rows = [row("a", "missed"), row("b", "missed"), row("b", "gone"), row("c", "gone"), row("c", "missed")]
    markdown, survivors = mutants.table(rows, {})
    assert "| `net` | 2 |" in markdown and [one["mutant"] for one in survivors] == ["a", "c"]


@pytest.fixture
def copy(mutants, tmp_path):
    """A copy with one line of code."""
    (tmp_path / "a.py").write_text("x + y")
    made = mutants.Copy.__new__(mutants.Copy)
    made.root, made.limits_s = tmp_path, {}
    return made


@pytest.fixture
def one(mutants):
    return mutants.Mutant("a.py", 1, "replace + with -", "x + y", lambda text: text.replace("+", "-"))


def test_a_step_runs_once_as_the_code_is_and_the_code_stays_so(mutants, copy, one):
    ran = []

    def run(command, limit_s=7200, stop=False):
        ran.append((*command, (copy.root / "a.py").read_text(), limit_s))
        return "passed", "", 2.0

    copy.run, copy.steps = run, lambda part, chosen: [([], ["lib"]), ([], ["run"])]
    as_it_is = [(step, "x + y", 7200) for step in ("lib", "run")]
    mutated = [(step, "x - y", 66) for step in ("lib", "run")]
    assert copy.judge(mutants.PARTS["net"], [], one) == ("missed", "", 4.0)
    assert ran == [as_it_is[0], mutated[0], as_it_is[1], mutated[1]]
    copy.judge(mutants.PARTS["net"], [], one)
    assert ran[4:] == mutated and (copy.root / "a.py").read_text() == "x + y"


def test_tests_that_fail_without_a_mutant_end_it(mutants, copy, one):
    copy.run, copy.steps = lambda *_, **__: ("failed", "test_a", 1.0), lambda *_: [([], ["lib"])]
    with pytest.raises(SystemExit, match="lib does not pass without a mutant: test_a"):
        copy.judge(mutants.PARTS["net"], [], one)


def test_a_process_that_a_mutant_crashes_failed_and_one_without_a_mutant_is_no_answer(
    mutants, copy, one, monkeypatch
):
    monkeypatch.setattr(mutants.resource, "setrlimit", lambda *_: None)
    crash = [sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"]
    refused = [sys.executable, "-c", "print('ERROR: conftest'); raise SystemExit(4)"]
    for command, last in ((crash, ""), (refused, "ERROR: conftest")):
        with copy.mutated(one):
            assert copy.run(command)[:2] == ("failed", last)
        with pytest.raises(SystemExit, match=r"mutants: status (-11|4) of "):
            copy.run(command)


@pytest.mark.parametrize(
    ("by", "failed"),
    [
        ("t.py::test_a", ["t.py::test_a", "t.py::test_a[1 b]"]),
        ("t.py::test_a[1", ["t.py::test_a[1 b]"]),
        ("t.py", ["t.py::test_a", "t.py::test_a[1 b]", "t.py::test_a_longer"]),
    ],
)
def test_a_failed_test_is_not_one_with_a_longer_name(mutants, copy, one, by, failed):
    ran, left = [], iter([("caught", by, 1.0), ("caught", by, 1.0), ("missed", "", 1.0)])

    def judge(part, chosen, mutant):
        ran.append(chosen)
        return next(left)

    copy.judge = judge
    chosen = ["t.py::test_a", "t.py::test_a[1 b]", "t.py::test_a_longer"]
    assert mutants.tested(copy, mutants.PARTS["python-views"], one, chosen)[0] == "caught"
    assert ran[1] == failed


PLUS = ["caught", "t.py::test_a"]


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        ([PLUS, PLUS, ["missed", ""]], "caught"),
        ([PLUS, ["missed", ""], ["missed", ""], ["missed", ""]], "missed"),
        ([PLUS, PLUS, PLUS, ["missed", ""]], "missed"),
    ],
    ids=["sound", "by chance", "fails without a mutant, too"],
)
def test_only_a_test_that_fails_twice_and_passes_without_the_mutant_catches_it(
    mutants, copy, one, capsys, outcomes, outcome
):
    ran, left = [], iter(outcomes)

    def judge(part, chosen, mutant):
        ran.append((mutant, chosen))
        return (*next(left), 1.0)

    copy.judge = judge
    both = ["t.py::test_a", "t.py::test_b"]
    assert mutants.tested(copy, mutants.PARTS["python-views"], one, both)[0] == outcome
    assert ran[:3] == [(one, both), (one, both[:1]), (None, both[:1])]
    assert ran[3:] == [(one, both[1:])] * (outcome == "missed")
    assert ("left out: t.py::test_a" in capsys.readouterr().out) == (outcome == "missed")


def test_parts_have_files_and_none_is_in_two(mutants, root):
    files = [path for part in mutants.PARTS.values() for path in mutants.sources(part, root)]
    assert all(mutants.sources(part, root) for part in mutants.PARTS.values())
    assert len(files) == len(set(files))


def test_what_is_judged_no_mistake_is_still_in_the_code(root):
    judged = tomllib.loads((root / "tools" / "mutants.toml").read_text())["no_mistake"]
    for one in judged:
        lines = (root / one["mutant"].split(": ")[0]).read_text().splitlines()
        name = re.sub(r" #\d+$", "", one["mutant"])
        assert one["reason"] and any(name.endswith(f": {line.strip()}") for line in lines if line), name


def test_an_unknown_part_is_refused_in_one_line(root):
    command = [sys.executable, root / "tools" / "mutants.py", "transports"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "'transports' is no part; the parts are safety, security, net, transport, control, node, plan, analysis, "
        "python-scenarios, python-campaign, python-views, python-analysis"
    )
