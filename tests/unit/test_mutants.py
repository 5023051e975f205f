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


def row(mutant, outcome):
    return {"part": "net", "mutant": mutant, "line": 1, "outcome": outcome}


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
        row("a", "caught"),
        row("b", "missed"),
        row("c", "timeout"),
        row("d", "unviable"),
        row("e", "missed"),
    ]
    cells, survivors = mutants.counted([*ledger, row("f", "missed"), row("f", "caught")], {"e": "the same"})
    assert cells[:3] == ["6", "1", "1"]
    assert [cell.split(":")[0] for cell in cells[3:]] == ["2 of 4", "3 of 4"]
    assert [one["mutant"] for one in survivors] == ["b"]


def test_the_interval_is_that_of_wilson(mutants):
    low, high = mutants.wilson(15, 20)  # by R: binom.confint(15, 20, methods = "wilson")
    assert (low, high) == pytest.approx((0.5313, 0.8881), abs=5e-5)
    assert mutants.wilson(0, 0) == (0, 1)


def test_a_part_without_rows_keeps_its_line_of_the_page(mutants):
    old = "| `plan` | as it was |\n| `net` | older |\n"
    markdown, _ = mutants.table([row("a", "caught")], {}, old)
    assert "| `plan` | as it was |" in markdown and "older" not in markdown
    assert "| `net` | 1 | 0 | 0 | 1 of 1: 100 %" in markdown


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
