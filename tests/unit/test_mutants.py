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


def answers(mutants, tmp_path, *outcomes):
    """A copy of a file, whose tests end like this one after another; what it ran is in `ran`."""
    (tmp_path / "a.py").write_text("x + y")
    copy, left = mutants.Copy.__new__(mutants.Copy), iter(outcomes)
    copy.root, copy.ran = tmp_path, []

    def judge(part, chosen):
        copy.ran.append(((tmp_path / "a.py").read_text(), chosen))
        return (*next(left), 1.0)

    copy.judge = judge
    return copy


PLUS = ["caught", "t.py::test_a"]


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        ([PLUS, PLUS, ["missed", ""]], "caught"),
        ([PLUS, ["missed", ""], ["missed", ""]], "missed"),
        ([PLUS, PLUS, PLUS, ["missed", ""]], "missed"),
    ],
    ids=["sound", "by chance", "fails without a mutant, too"],
)
def test_only_a_test_that_fails_twice_and_passes_without_the_mutant_catches_it(
    mutants, tmp_path, capsys, outcomes, outcome
):
    copy = answers(mutants, tmp_path, *outcomes)
    one = mutants.Mutant("a.py", 1, "replace + with -", "x + y", lambda text: text.replace("+", "-"))
    found = mutants.tested(copy, mutants.PARTS["python-views"], one, ["t.py::test_a", "t.py::test_b"])
    assert found[0] == outcome
    assert copy.ran[:2] == [("x - y", ["t.py::test_a", "t.py::test_b"]), ("x - y", ["t.py::test_a"])]
    if outcome == "missed":
        assert copy.ran[-1] == ("x - y", ["t.py::test_b"])
        assert "left out: t.py::test_a" in capsys.readouterr().out
    else:
        assert copy.ran[-1] == ("x + y", ["t.py::test_a"])
    assert (tmp_path / "a.py").read_text() == "x + y"


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
