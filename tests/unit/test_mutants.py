"""tools/mutants.py draws the same mutants again, and its ledger counts right."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

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
    made.root, made.limit_s = tmp_path, 7200
    return made


@pytest.fixture
def one(mutants):
    return mutants.Mutant("a.py", 1, "replace + with -", "x + y", lambda text: text.replace("+", "-"))


def test_the_code_stays_as_it_is_behind_a_mutant(mutants, copy, one):
    ran = []

    def run(command, limit_s, stop):
        ran.append(((copy.root / "a.py").read_text(), limit_s))
        return "passed", "1 passed", 2.0

    copy.run, copy.limit_s = run, 66
    assert copy.judge(["t.py::test_a"], one) == ("missed", "", 2.0)
    assert ran == [("x - y", 66)] and (copy.root / "a.py").read_text() == "x + y"


def test_a_mutant_of_rust_meets_the_tests_that_reach_it_the_quickest_first(mutants, tmp_path):
    rust, ran = mutants.mutants_rust, []
    took_s = {"slow": 3.0, "quick": 0.1, "python": 0.2, "other": 0.3, "broken": 0.1}
    reached = {"slow": "7\n", "quick": "7\n8\n", "python": "7\n", "other": "", "broken": "7\n"}

    def run(command, limit_s, more, stop):
        name, number = command[-1], more[rust.NUMBER]
        if file := more.get(rust.REACHED):
            Path(file).write_text(reached[name])
            return "failed" if name == "broken" else "passed", "", took_s[name]
        ran.append((name, number, limit_s))
        return "failed" if name == "slow" and number == "7" else "passed", "", 1.0

    made = [rust.Test(name, [sys.executable if name == "python" else name, name]) for name in took_s]
    known = rust.measured(tmp_path, made, run)
    assert [test.name for test in known] == ["quick", "other", "slow", "python"]
    reaching = [test for test in known if 7 in test.reached]
    assert rust.judge(7, reaching, run) == ("caught", "slow", 4.0)
    again = [("slow", number, 35.0) for number in ("7", rust.NONE, "7")]
    assert ran == [("quick", "7", 20.5), *again]
    assert rust.judge(9, [], run) == ("missed", "no test reaches it", 0.0)
    alone = rust.judge(None, known, lambda *_, **__: ("failed", "", 1.0))
    assert alone == ("caught", "quick", 2.0)


@pytest.mark.parametrize(
    "outcomes", [["failed", "failed"], ["timeout", "timeout"], ["failed", "passed", "passed"]]
)
def test_a_test_that_fails_by_chance_catches_no_mutant_of_rust(mutants, outcomes):
    rust, left = mutants.mutants_rust, iter(outcomes)
    told = rust.judge(7, [rust.Test("a", ["a"])], lambda *_, **__: (next(left), "", 1.0))
    assert told == ("missed", "", len(outcomes)) and not list(left)


def test_a_build_that_breaks_is_no_mutant_that_does_not_compile(mutants):
    def built(message):
        line = json.dumps({"message": message}) + "\n"
        return subprocess.CompletedProcess([], 101, line, "rustc was killed")

    mutants.mutants_rust.refuse(built({"level": "error", "spans": [{}]}))
    for other in (None, {"level": "warning", "spans": [{}]}, {"level": "error", "spans": []}):
        with pytest.raises(SystemExit, match="mutants: cargo failed: rustc was killed"):
            mutants.mutants_rust.refuse(built(other))


def test_the_state_of_a_part_is_that_of_its_code_without_tests(mutants, tmp_path):
    def state(text):
        (tmp_path / "a.rs").write_text(text)
        return mutants.state(mutants.Part(("a.rs",), 0.9), tmp_path)

    code = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n"
    assert state(code) != state(code.replace("fn b() {}", "fn b() { a() }"))
    assert state(code) == state(code + "\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n")


def test_an_error_is_of_the_mutants_in_whose_place_it_is(mutants):
    text = "é; /*<3*/(if is(3) {a - b} else {/*<11*/(if is(11) {c} else {d})/*11>*/})/*3>*/; e".encode()
    places = mutants.mutants_rust.ranges(text)
    assert {n: text[a:b].decode()[-6:] for n, (a, b) in places.items()} == {3: "/*3>*/", 11: "*11>*/"}
    assert places[3][0] < places[11][0] < places[11][1] < places[3][1]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is missing")
def test_mutants_stand_behind_switches(root):
    command = ["cargo", "test", "--quiet", "--manifest-path", str(root / "tools" / "switches" / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(root / "target" / "switches")}
    subprocess.run(command, env=environment, check=True)


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

    def judge(chosen, mutant):
        ran.append(chosen)
        return next(left)

    copy.judge = judge
    chosen = ["t.py::test_a", "t.py::test_a[1 b]", "t.py::test_a_longer"]
    assert mutants.tested(copy, one, chosen)[0] == "caught"
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

    def judge(chosen, mutant):
        ran.append((mutant, chosen))
        return (*next(left), 1.0)

    copy.judge = judge
    both = ["t.py::test_a", "t.py::test_b"]
    assert mutants.tested(copy, one, both)[0] == outcome
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
