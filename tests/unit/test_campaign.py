"""Campaigns: their file, designs, the rule that stops seeds, baseline, kills, and the warm process."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command import scenario, start, tcpsbed
from typer.testing import CliRunner

import tcpsbed as package
from tcpsbed import campaign
from tcpsbed.analysis.stats import interval
from tcpsbed.campaign import design, file, results, survey, worker
from tcpsbed.campaign import warm as warm_
from tcpsbed.campaign.grid import Axis, Cell
from tcpsbed.campaign.outcome import Outcome
from tcpsbed.campaign.warm import Warm
from tcpsbed.cli import sweep
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.processes import OURS
from tcpsbed.runs import progress
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.views.metric import metric

ROOT = Path(__file__).resolve().parents[2]
PLAN = """scenario = "short.toml"
seeds = 3
metrics = ["haptic.delay_ms.p99", "haptic.loss"]
baseline = { label = "a" }
[grid]
delay_ms = [1, 4]
label = ["a", "b"]
[labels]
a = "first of two"
haptic.delay_ms.p99 = "late force"
"""


def planned(folder: Path, text: str = PLAN, of: str = 'name = "short"\nduration = "10 s"\n') -> Path:
    scenario(folder, of)
    plan = folder / "plan.toml"
    plan.write_text(text)
    return plan


def table(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.read_table(folder / "sweep.parquet").to_pylist()
    return found


def refused(call: Any, *words: Any) -> list[str]:
    """What is told of a design that is wrong."""
    told: list[str] = []
    call(*words, lambda key, error: told.append(f"{key}: {error}"))
    return told


def test_a_range_has_exact_values() -> None:
    assert design.values_of("4..6 Mbit/s step 0.5") == [f"{n} Mbit/s" for n in ("4", "4.5", "5", "5.5", "6")]
    assert design.values_of("0..0.3 step 0.1") == ["0", "0.1", "0.2", "0.3"]
    assert design.values_of(["1..3 ms step 1", "10 ms"]) == ["1 ms", "2 ms", "3 ms", "10 ms"]
    assert design.values_of([True, "5", 5.5, "udp", ["x"]]) == ["true", '"5"', "5.5", "udp", '["x"]']


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("4..6 Mbit/s", "without a step"),
        ("6..4 ms step 1", "the smaller end first"),
        ("0..1 ms step 0.3", "whose last value is 0.9 ms"),
        ("0..1e9 ms step 0.001", "a larger step"),
        ("0..1 ms step -1", "positive step"),
        ("udp", "a list of values"),
        ([], "a list of values"),
        ([1, 1], "a value twice"),
    ],
)
def test_a_range_that_means_nothing_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        design.values_of(wrong)


def test_grid_and_zipped_factors_are_multiplied() -> None:
    told: list[Any] = []
    groups = [
        *design.each({"a": [1, 2], "b": ["x", "y"]}, lambda *one: told.append(one)),
        *design.zipped({"c": "1..2 step 1", "d": ["u", "v"]}, lambda *one: told.append(one)),
    ]
    axes, points = design.multiplied(groups)
    assert not told and [axis.key for axis in axes] == ["a", "b", "c", "d"]
    assert Counter(points) == Counter(
        (a, b, c, d) for a in "12" for b in "xy" for c, d in (("1", "u"), ("2", "v"))
    )
    assert refused(design.zipped, {"c": [1, 2], "d": [1]})[0].startswith("c: found 2 of c, 1 of d")


def test_zipped_factors_may_repeat_a_value_but_no_combination() -> None:
    groups = design.zipped({"delay": [0, 10, 10], "loss": [0, 0, 1]}, lambda *_: pytest.fail("refused"))
    axes, points = design.multiplied(groups)
    assert points == (("0", "0"), ("10", "0"), ("10", "1"))
    assert [axis.values for axis in axes] == [("0", "10"), ("0", "1")]
    (said,) = refused(design.zipped, {"delay": [0, 10, 0], "loss": [1, 2, 1]})
    assert said.startswith("delay: found the combination delay = 0, loss = 1 twice"), said


def test_a_latin_hypercube_has_one_value_in_each_stratum() -> None:
    for latin in (True, False):
        (group,) = design.drawn(
            {"a": "0..100 ms", "b": "0..10 packets step 1", "c": ["u", "v"]}, 50, 3, latin, print
        )
        strata = Counter(int(float(point[0].split()[0]) // 2) for point in group.points)
        assert (sorted(strata) == list(range(50))) == latin, "random points leave strata empty"
        assert all(float(point[1].split()[0]).is_integer() for point in group.points)
        if latin:
            assert Counter(point[2] for point in group.points) == {"u": 25, "v": 25}
    again = design.drawn({"a": "0..100 ms"}, 50, 3, True, print)[0].points
    assert [one[0] for one in again] == [
        one[0] for one in design.drawn({"a": "0..100 ms", "z": [1]}, 50, 3, True, print)[0].points
    ], "a factor has the same values whatever others there are"
    assert again != design.drawn({"a": "0..100 ms"}, 50, 4, True, print)[0].points


def test_the_rule_that_stops_seeds() -> None:
    share, wide = (
        design.until("haptic.delay_ms.p99 within 5 %"),
        design.until("a/b.delay_ms.p99 within 0.5 ms"),
    )
    assert (share.metric.flow, share.metric.key, wide.metric.flow) == ("haptic", "delay_p99_ms", "a/b")
    close = [10.0, 10.1, 9.9, 10.0]
    assert share.reached(interval(close)) and wide.reached(interval(close))
    assert not share.reached(interval(close[:3])), "three seeds say little"
    assert not share.reached(interval([10.0, 12.0, 8.0, 10.0])) and not share.reached(None)
    for wrong in ("haptic.delay_ms.p99", "haptic.delay_ms.p99 within 0 %", "haptic.delay_ms.p99 within 5 kg"):
        with pytest.raises(Refusal, match="within 5 %"):
            design.until(wrong)
    late = "haptic.delay_ms.p99"
    allowed = f'"{late} within 5 %", "{late} within 0.1 ms", "{late} within 5 % or 0.1 ms"'
    for wrong in ("5 % or 3 %", "5 % or 0 ms", "5 % or 1 kg", "1 ms or 2 ms"):
        with pytest.raises(Refusal) as told:
            design.until(f"{late} within {wrong}")
        assert told.value.context["allowed"] == allowed
    with pytest.raises(Refusal, match=r"did you mean .*delay_ms\.p99"):
        metric("haptic.delay_ms.p98")


def test_a_metric_that_is_0_has_seeds_enough() -> None:
    """A share of 0 is no width: all seeds may be equal, or an absolute width is given beside the share."""
    loss = design.until("haptic.loss within 5 %")
    assert loss.reached(interval([0.0] * 4)) and not loss.reached(interval([0.0] * 3))
    rare = [0.0, 0.0, 0.0, 0.0, 0.001]
    assert not loss.reached(interval(rare))
    assert design.until("haptic.loss within 5 % or 0.01 share").reached(interval(rare))
    assert not design.until("haptic.loss within 5 % or 0.0001 share").reached(interval(rare))


def test_combinations_whose_interval_stayed_wide_are_counted(tmp_path: Path) -> None:
    """By the label of the metric; what is near 0 has no share of the mean that can be reached."""
    delays = {"1": [10.0, 10.1, 9.9, 10.0], "2": [10.0, 14.0, 6.0, 10.0], "3": [-3.0, 3.0, -2.0, 2.0]}
    rows = [
        {"a": value, "seed": seed, "flow": "haptic", "delay_mean_ms": ms, "records_sha256": f"{seed}"}
        for value, of in delays.items()
        for seed, ms in enumerate(of, 1)
    ]
    rule, labels = design.until("haptic.delay_ms.mean within 5 %"), {"haptic.delay_ms.mean": "force"}
    made = design.Design(until=rule, labels=labels)

    def wide(*values: str) -> list[str]:
        asked = survey.Survey(
            tmp_path / "a.toml", (Axis("a", values),), (1, 2, 3, 4), (), "virtual", tmp_path, made
        )
        found = Outcome(asked, [row for row in rows if row["a"] in values], {})
        return [one for one in found.remarks if "is not known" in one]

    assert wide("1") == []
    assert wide("1", "2") == ["1 combination of 2: force is not known within 5 % after 4 seeds."]
    assert wide("1", "2", "3") == [
        "2 combinations of 3: force is not known within 5 % after 4 seeds. Near 0 a share of the mean is no width that "
        'can be reached; add one: "within 5 % or 0.1 ms".'
    ]


def test_every_row_is_compared_with_the_baseline_that_shares_its_other_values() -> None:
    axes = (Axis("rate", ("1", "2")), Axis("transport", ("tcp", "udp")))
    delays = {("1", "tcp"): 9.0, ("1", "udp"): 4.0, ("2", "tcp"): 7.0, ("2", "udp"): 1.0}
    rows = [
        {
            "rate": r,
            "transport": t,
            "seed": seed,
            "flow": "haptic",
            "delay_p99_ms": delay + seed,
            "disturbed": False,
        }
        for (r, t), delay in delays.items()
        for seed in (1, 2)
    ]
    column = (metric("haptic.delay_ms.p99").column,)
    shown = results.Shown(axes, column, column, ("haptic",), {"transport": "udp"}, {"udp": "plain UDP"})
    lines = [line.split() for line in shown.tables(rows).splitlines()[3:]]
    assert [line[-2] for line in lines] == ["5.000", "–", "6.000", "–"]
    assert "plain UDP" in shown.tables(rows) and "against baseline" in shown.tables(rows)


def test_all_that_is_wrong_with_a_file_is_one_message(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        'scenario = "short.toml"\nuntil = "haptic.delay_ms.p99 in 5 %"\nmetrics = ["haptic.delay"]\n'
        '[grid]\na = "1..2 ms"\nseed = [1, 2]\nb = [1]\n[zipped]\nb = [1]\n[latin]\nc = "1..2 ms"\n'
        "[baseline]\n",
    )
    plan.write_text(f'sedes = 3\norder = "x"\n{plan.read_text()}')
    done = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out")
    assert done.returncode == 2 and "Traceback" not in done.stderr and not (tmp_path / "out").exists()
    lines = done.stderr.strip().splitlines()
    assert "found 8 errors; nothing was run" in lines[0] and len(lines) == 9, done.stderr
    for place in (
        "plan.toml:1: sedes",
        "plan.toml:2: order",
        "plan.toml:4: until",
        "plan.toml:5: metrics",
        "plan.toml:7: grid.a",
        "plan.toml:8: grid.seed",
        "plan.toml:11: zipped.b",
        "plan.toml:12: latin.points is missing",
    ):
        assert any(place in line for line in lines[1:]), (place, done.stderr)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[grid]\na = [1]\n", "scenario is missing"),
        ('scenario = "none.toml"\n[grid]\na = [1]\n', 'scenario: found "none.toml"'),
        ('scenario = "short.toml"\n', "found no factor"),
        ('scenario = "short.toml"\nsedes = 3\n', "did you mean seeds"),
        ('scenario = "short.toml"\nseeds = 0\n[grid]\na = [1]\n', "seeds: found 0"),
        ('scenario = "short.toml"\nbaseline = { b = 1 }\n[grid]\na = [1]\n', '"b", which is not a factor'),
        ('scenario = "short.toml"\nbaseline = { a = 3 }\n[grid]\na = [1, 2]\n', "found 3"),
        ('scenario = "short.toml"\nseeds = 10000\n[grid]\na = "1..2000 step 1"\n', "1000000 cells"),
        ('scenario = "short.toml"\n[latin]\na = "1..2 ms"\n', "latin.points is missing"),
        ("scenario = \n", "invalid TOML"),
        (
            'scenario = "short.toml"\ngrid = 3\nlabels = { a = "x" }\n',
            "plan.toml:2: grid: found 3; allowed: a table",
        ),
        ('scenario = "short.toml"\n[grid]\na = [1]\na = [2]\n', "plan.toml:4: grid.a: found a second time"),
        (
            'scenario = "short.toml"\n[grid]\na.b = [1]\n"a.b" = [2]\n',
            "in another way of writing; allowed: a.b once",
        ),
        (
            'scenario = "short.toml"\n[grid]\nchannels.a.delay = ["1 ms"]\n[zipped]\n"channels.a" = [{ delay = "2 ms" }]\n',
            'plan.toml:5: zipped."channels.a": found the whole of channels.a.delay, which is a factor of [grid]; '
            "allowed: channels.a or channels.a.delay, not both",
        ),
        (
            'scenario = "short.toml"\n[zipped]\n"a.b" = [{ d = 2 }]\na.b.c = [1]\n',
            "plan.toml:4: zipped.a.b.c: found a part of a.b, which is a factor of [zipped]; allowed: a.b.c or a.b, not both",
        ),
        (
            'scenario = "short.toml"\nlabels = { c = "x" }\n[grid]\na = [1]\n',
            'plan.toml:2: labels.c: found "c", which is no factor, no value of one and no metric; allowed: a, 1',
        ),
        (
            'scenario = "short.toml"\nlabels = { x = "one", y = "one" }\n[grid]\na = ["x", "y"]\n',
            'labels.y: found "one" for x and for y; allowed: a label for each',
        ),
        (
            'scenario = "short.toml"\nseeds = 2\nuntil = "haptic.delay_ms.p99 within 5 %"\n[grid]\na = [1]\n',
            "plan.toml:2: seeds: found 2; allowed: 4 or more with until",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    done = CliRunner().invoke(app, ["campaign", str(planned(tmp_path, text)), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_cells_that_cannot_run_are_told_together_before_the_first_runs(tmp_path: Path) -> None:
    plan = planned(tmp_path, PLAN.replace("[1, 4]", "[1, -1, 4, -2]"))
    done = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out")
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert len(lines) == 3 and "found 2 errors; nothing was run" in lines[0], done.stderr
    assert "delay_ms=-1" in lines[1] and "1 other combination" in lines[1] and "delay_ms=-2" in lines[2]


WRONG = """scenario = "one.toml"
set = ['duration="10 parsecs"']
world = "virtuel"
[grid]
flows.kinematic.rate = ["100 Hz"]
"""


def test_what_a_scenario_refuses_is_told_where_the_campaign_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without stand-ins: not as an option of a command that nobody gave."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(OWN.replace("./hold.py:Hold", "zoh").replace("[links.l1]\n", ""))
    plan = tmp_path / "plan.toml"
    plan.write_text(WRONG)
    with pytest.raises(ConfigError) as found:
        file.load(plan)
    lines = str(found.value).splitlines()
    assert "plan.toml:2: set: found" in lines[1] and "--" not in str(found.value), lines
    assert "plan.toml:3: world: found" in lines[2] and "did you mean virtual" in lines[2], lines
    shown = 'metrics = ["kinematic.loss", "kinematic.los"]\n'
    plan.write_text(f'scenario = "one.toml"\n{shown}[grid]\nflows.kinematic.rate = ["100 Hz"]\n')
    with pytest.raises(ConfigError, match=r'plan\.toml:2: metrics\.1: found "kinematic\.los"'):
        file.load(plan)
    plan.write_text('scenario = "one.toml"\n[grid]\nflows.kinematics.rate = ["1 kHz", "2 kHz"]\n')
    with pytest.raises(ConfigError) as found:
        campaign.run(plan, out="out")
    assert f'{plan}:3: grid.flows.kinematics.rate: found "kinematics"' in str(found.value), found.value
    assert str(found.value).endswith("allowed: kinematic") and not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished campaign: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("campaign")
    ended = tcpsbed(folder, "campaign", str(planned(folder)), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


def test_a_campaign_leaves_a_table_and_a_page(done: tuple[Path, str]) -> None:
    rows, page = table(done[0] / "out"), (done[0] / "out/sweep.html").read_text()
    assert Counter((row["delay_ms"], row["label"], row["flow"]) for row in rows)[("1", "a", "haptic")] == 3
    assert len(rows) == 2 * 2 * 3 * 4 and "simulate_s" not in rows[0]
    assert "first of two" in page and "short campaign" in page
    assert "first of two" in done[1] and "kinematic" not in done[1], "flows without a metric are left out"
    assert (
        "late force ms" in done[1]
        and "late force against baseline ms" in done[1]
        and "delay p99" not in done[1]
    )
    assert "late force" in page and "The late force of haptic goes" in page and "label = first of two" in page
    line = next(line for line in done[1].splitlines() if line.startswith("4") and " b " in line)
    assert line.split()[2] == "3" and "0.000" in line, (
        "the label changes nothing: paired differences are none"
    )


def test_show_and_load_open_its_folder(done: tuple[Path, str]) -> None:
    shown = tcpsbed(done[0], "show", "out")
    assert shown.returncode == 0 and "first of two" in shown.stdout, shown.stderr
    assert "campaign of short.toml · virtual · delay_ms (2), label (2) · seeds 1 to 3" in shown.stdout
    assert "UNFINISHED" not in shown.stdout and "INCOMPLETE" not in shown.stdout
    loaded = package.load(done[0] / "out")
    assert isinstance(loaded, Outcome) and len(loaded.rows) == 2 * 2 * 3 * 4 and not loaded.state
    column = loaded.to_arrow().schema.field("delay_p99_ms")
    assert column.metadata == {b"unit": b"ms"} and str(column.type) == "double"


def test_what_is_missing_stands_where_results_are_shown(done: tuple[Path, str], tmp_path: Path) -> None:
    from tcpsbed.figures import material

    folder = tmp_path / "out"
    shutil.copytree(done[0] / "out", folder)
    for cell in sorted((folder / "cells").iterdir())[:2]:
        cell.unlink()
    for word in ("show", "compare"):
        told = tcpsbed(tmp_path, word, "out").stdout
        assert "INCOMPLETE: 2 results of 12 removed since it ended; the same command continues" in told, told
    described = json.loads((folder / "sweep.json").read_text())
    del described["ended"]
    (folder / "sweep.json").write_text(json.dumps(described))
    said = "UNFINISHED: 10 of 12 cells of this campaign have a result; the same command continues"
    for word in ("show", "compare"):
        assert said in tcpsbed(tmp_path, word, "out").stdout
    assert material.read([folder]).notes == (f"{folder}: {said}",)


@pytest.mark.slow
def test_results_that_are_removed_meanwhile_are_noticed(tmp_path: Path) -> None:
    plan = planned(tmp_path, of='name = "short"\nduration = "10 s"\ntakes_s = 0.3\n')
    run = start(tmp_path, "campaign", str(plan), "--out", "out", "--jobs", "1")
    until = time.monotonic() + 30
    while not (found := list((tmp_path / "out/cells").glob("[!.]*.json"))):
        assert time.monotonic() < until
        time.sleep(0.02)
    found[0].unlink()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 1 and "its result was removed while the campaign was running" in said, said
    ended = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out")
    assert ended.returncode == 0 and "INCOMPLETE" not in ended.stdout


def test_the_studio_and_plots_read_its_folder(done: tuple[Path, str]) -> None:
    from tcpsbed.campaign.filling import filling

    told = filling(done[0] / "out").look()
    assert (told["done"], told["all"], list(told["flows"])) == (12, 12, ["haptic"])
    assert len(told["head"]) == len(told["flows"]["haptic"]["lines"][0]) + 2
    from tcpsbed.figures import material

    assert len(material.read([done[0] / "out"]).runs) == 12


def test_the_order_is_random_and_changes_nothing_in_the_table(done: tuple[Path, str], tmp_path: Path) -> None:
    def order(out: Path) -> list[str]:
        files = sorted((out / "cells").iterdir(), key=lambda one: one.stat().st_mtime_ns)
        return [file.stem for file in files]

    orders = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = planned(folder, f"order = {number}\n{PLAN}")
        assert tcpsbed(folder, "campaign", str(plan), "--out", "out", "--jobs", "1").returncode == 0
        assert (folder / "out/sweep.parquet").read_bytes() == (done[0] / "out/sweep.parquet").read_bytes()
        orders.append(
            [
                json.loads((folder / f"out/cells/{key}.json").read_text())["settings"]
                for key in order(folder / "out")
            ]
        )
    assert (
        orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) and orders[0] != sorted(orders[0])
    )


@pytest.mark.slow
def test_seeds_stop_where_the_interval_is_narrow(tmp_path: Path) -> None:
    """The noise of the stand-in is the same everywhere, so it weighs less where the delay is longer."""
    text = PLAN.replace("seeds = 3", 'seeds = 20\nuntil = "haptic.delay_ms.p99 within 0.5 %"').replace(
        "[1, 4]", "[1, 40, 9]"
    )
    plan = planned(tmp_path, text)
    ended = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    rows = [row for row in table(tmp_path / "out") if row["flow"] == "haptic" and row["label"] == "a"]
    by_delay = {d: [row["delay_p99_ms"] for row in rows if row["delay_ms"] == d] for d in ("1", "9", "40")}
    rule = design.until("haptic.delay_ms.p99 within 0.5 %")
    for delay, found in by_delay.items():
        earlier = [n for n in (2, 4, 6, 9, 13, 19) if n < len(found)]
        assert not any(rule.reached(interval(found[:n])) for n in earlier), delay
        assert len(found) == 20 or rule.reached(interval(found)), delay
    assert len(by_delay["40"]) < len(by_delay["1"]), "the noise is the same, and weighs less"
    wide = [delay for delay, found in by_delay.items() if not rule.reached(interval(found))]
    assert ("not haptic.delay_ms.p99 known within 0.5 % after 20 seeds" in ended.stdout) == bool(wide)


def test_a_combination_is_named_by_what_varies_and_by_zipped_factors_of_the_same_values_once() -> None:
    sizes = [("udp", rate, size, size, 2 * size) for rate in "12" for size in ("50 B", "137 B")]
    assert results.naming(sizes) == [1, 2, 4]
    assert results.naming([("udp", "1")]) == []


@pytest.mark.slow
def test_several_worlds_are_a_factor(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'world = ["virtual", "real"]\n' + PLAN)
    ended = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    rows = table(tmp_path / "out")
    assert Counter(row["world"] for row in rows) == {"virtual": 48, "real": 48}
    kept = [json.loads(one.read_text())["summary"]["world"] for one in (tmp_path / "out/cells").iterdir()]
    assert Counter(kept) == {"virtual": 12, "real": 12}


KILLS = int(os.environ.get("TCPSBED_KILLS", "12"))
"""How often a campaign is killed; 50 take a minute."""


@pytest.mark.slow
def test_a_campaign_that_is_killed_at_any_moment_ends_with_the_same_bytes(tmp_path: Path) -> None:
    plan = PLAN.replace("seeds = 3", f'seeds = {9 * KILLS // 12}\nuntil = "haptic.delay_ms.p99 within 4 %"')
    slow = 'name = "short"\nduration = "10 s"\ntakes_s = 0.1\n'
    whole = tmp_path / "whole"
    whole.mkdir()
    assert tcpsbed(whole, "campaign", str(planned(whole, plan, slow)), "--out", "out").returncode == 0
    expected = (whole / "out/sweep.parquet").read_bytes()
    moments, killed = random.Random(18), 0
    folder = tmp_path / "killed"
    folder.mkdir()
    words = ("campaign", str(planned(folder, plan, slow)), "--out", "out", "--jobs", "2")
    for _ in range(KILLS):
        run = start(folder, *words)
        time.sleep(moments.uniform(0.2, 1.6))
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=60)
        killed += run.returncode == -signal.SIGKILL
    ended = tcpsbed(folder, *words)
    assert ended.returncode == 0 and killed >= KILLS // 4, ended.stderr
    assert (folder / "out/sweep.parquet").read_bytes() == expected
    assert not (folder / "out/work").exists() or not list((folder / "out/work").iterdir())


def test_a_killed_campaign_leaves_no_process_behind(tmp_path: Path) -> None:
    plan = planned(tmp_path, of='name = "short"\nduration = "10 s"\ntakes_s = 20\n')
    run = start(tmp_path, "campaign", str(plan), "--out", "out", "--jobs", "2")
    until = time.monotonic() + 30
    while len(list((tmp_path / "out/work").glob("*.err"))) < 2 if (tmp_path / "out/work").is_dir() else True:
        assert time.monotonic() < until
        time.sleep(0.05)
    session = _of(tmp_path)
    assert len(session) >= 3, "the command, the warm process, two cells"
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    until = time.monotonic() + 12
    while left := _of(tmp_path):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def _of(folder: Path) -> list[str]:
    """Processes of this program that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").resolve() == folder and b"tcpsbed" in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


HOOK = """import os, random
from pathlib import Path
import numpy as np

LOADED = Path(__file__).with_name("loaded.txt")
with LOADED.open("a") as file:
    file.write(f"{os.getpid()} {random.random()} {np.random.random()}\\n")


class Hold:
    def __call__(self, now, origin, x, other, y):
        n = min(len(x), len(y)) if x is not None else 0
        if n:
            y[:n] = x[:n]
        return n
"""
OWN = """duration = "0.3 s"
[components]
ms-com = "a"
ss-com = "b"
[flows.kinematic]
rate = "100 Hz"
[hooks.hold]
kind = "predict"
run = "./hold.py:Hold"
at = "ss-com"
[links.l1]
"""


def test_records_are_those_of_a_run_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stand-ins: the hash of a cell is that of the same run alone."""
    monkeypatch.chdir(tmp_path)
    plan = {
        "scenario": str(ROOT / "scenarios/quickstart.toml"),
        "set": ['duration="0.8 s"'],
        "seeds": 2,
        "grid": {"links.l1.rate": ["4 Mbit/s", "6 Mbit/s"]},
    }
    shares: list[float] = []
    first = campaign.run(plan, out="one", jobs=2, progress=shares.append)
    second = campaign.run({**plan, "order": 5}, out="two", jobs=1)
    assert first.rows == second.rows and shares[-1] == 1.0 and not first.failures
    assert Path("one/sweep.parquet").read_bytes() == Path("two/sweep.parquet").read_bytes()
    for rate in plan["grid"]["links.l1.rate"]:  # type: ignore[index]
        settings = ['duration="0.8 s"', f"links.l1.rate={rate}"]
        alone = package.run(plan["scenario"], set=settings, seed=2, out=f"run {rate}")  # type: ignore[arg-type]
        (hashed,) = {
            row["records_sha256"] for row in first.rows if (row["links.l1.rate"], row["seed"]) == (rate, 2)
        }
        assert hashed == alone.summary["records_sha256"]


def test_code_of_the_users_is_loaded_anew_for_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And draws other random numbers in each, where it does not seed them."""
    (tmp_path / "hold.py").write_text(HOOK)
    (tmp_path / "own.toml").write_text(OWN.replace("[links.l1]\n", ""))
    monkeypatch.chdir(tmp_path)
    plan = {"scenario": "own.toml", "seeds": 2, "grid": {"flows.kinematic.rate": ["100 Hz", "200 Hz"]}}
    done = campaign.run(plan, out="out", jobs=1)
    assert not done.failures and len(done.rows) == 4, done.failures
    lines = [line.split() for line in (tmp_path / "loaded.txt").read_text().splitlines()]
    assert len(lines) >= 4
    for column in zip(*lines, strict=True):
        assert len(set(column)) == len(lines)


def test_links_have_metrics_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for each, in which 0 is a number; a link that is not there is refused."""
    monkeypatch.chdir(tmp_path)
    plan: dict[str, Any] = {
        "scenario": str(ROOT / "scenarios/quickstart.toml"),
        "set": ['duration="0.8 s"'],
        "seeds": 2,
        "metrics": [
            "network.l1.forward.utilisation",
            "network.l1.forward.duplicated",
            "queues.l1.backward.bytes.max",
        ],
        "grid": {"links.l1.rate": ["4 Mbit/s", "6 Mbit/s"]},
    }
    done = campaign.run(plan, out="out", jobs=2)
    alone = package.run(plan["scenario"], set=[*plan["set"], "links.l1.rate=4 Mbit/s"], out="alone")
    (link,) = [one for one in alone.summary["network"] if one["name"] == "l1.forward"]
    (row,) = [
        one
        for one in done.rows
        if (one["flow"], one["links.l1.rate"], one["seed"]) == ("network.l1.forward", "4 Mbit/s", 1)
    ]
    assert row["utilisation"] == link["utilisation"] > 0 and row["duplicated"] == 0
    assert (
        "network.l1.forward\n" in str(done)
        and "duplicated" in str(done)
        and "queues.l1.backward\n" in str(done)
    )
    assert {row["flow"] for row in table(Path("out"))} >= {
        "haptic",
        "network.l1.forward",
        "queues.l1.backward",
    }
    with pytest.raises(ConfigError, match=r'metrics\.0: found "network\.l1".*, network\.l1\.forward,'):
        file.load({**plan, "metrics": ["network.l1.loss"]})


def test_a_hook_that_never_returns_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its cell, the time and the line that it is at."""
    (tmp_path / "hold.py").write_text(
        "import time\nfrom pathlib import Path\n\nclass Hold:\n def __call__(self, now, *rest):\n"
        "  end = time.monotonic() + 20\n"
        "  while not Path('go').exists() and time.monotonic() < end:\n   time.sleep(0.01)\n  return 0\n"
    )
    (tmp_path / "own.toml").write_text(OWN.replace("[links.l1]\n", ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "SLOW_S", 1.0)
    monkeypatch.setattr(worker, "LOOK_S", 0.2)
    monkeypatch.setattr(worker.Here, "slow", _going_on(worker.Here.slow, tmp_path / "go"))
    plan = {"scenario": "own.toml", "seeds": 1, "grid": {"flows.kinematic.rate": ["100 Hz"]}}
    monkeypatch.setattr("tcpsbed.campaign.outcome.check", lambda *_: None)
    done = campaign.run(plan, out="out", jobs=1)
    said = capsys.readouterr().err
    assert re.search(
        r"flows.kinematic.rate=100 Hz seed=1 has run for \d+ s; it is at hold.py:\d, in __call__", said
    ), said
    assert not done.failures


def _going_on(slow: Any, go: Path) -> Any:
    """Lets the hook go on once something was said of it."""

    def told(place: Any) -> list[str]:
        said: list[str] = slow(place)
        if any("it is at" in line for line in said):
            go.touch()
        return said

    return told


def test_a_cell_that_a_place_loses_is_a_failed_one(tmp_path: Path) -> None:
    """With the message of the place, which hears which cell it was and why."""

    class Losing(worker.Here):
        def call(self, job: worker.Job) -> Any:
            def run() -> worker.Answer:
                if job.key == "b":
                    raise OSError("gone")
                return worker.Answer(0, "{}", "")

            return run

        def lost(self, job: worker.Job, error: BaseException) -> worker.Answer:
            return worker.Answer(1, "", f"{job.key}: {error}")

    jobs = [worker.Job(key, Cell((), 1), (f"x={key}",), "virtual") for key in "ab"]
    ended: dict[str, str | None] = {}
    crew = worker.Crew(
        Losing(tmp_path / "a.toml", tmp_path / "out/work", 1), tmp_path / "out", lambda _: None
    )
    with crew.at_work():
        crew.run(jobs, lambda job, failure: ended.update({job.key: failure}))
    assert ended == {"a": None, "b": "b: gone"}
    assert (tmp_path / "out/failed/b.txt").read_text() == "x=b\nb: gone\n"
    assert [file.name for file in (tmp_path / "out/cells").iterdir()] == ["a.json"]


CLOCKED = """import sys
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
(out / "summary.json").write_text("told")
print("said", file=sys.stderr)
sys.exit(3 if "fails=1" in sys.argv else 0)
"""


def test_a_cell_on_the_clock_is_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OURS", (sys.executable, "-c", CLOCKED))
    here = worker.Here(tmp_path / "a.toml", tmp_path / "work", 1)
    for status, settings in ((0, ()), (3, ("fails=1",))):
        answer = here.call(worker.Job(f"k{status}", Cell((), 1), settings, "real"))()
        assert answer == worker.Answer(status, "told", "said\n") and not here.cold
    here.stop()
    assert here.warm.process is None
    assert here.call(worker.Job("k", Cell((), 1), (), "real"))() == worker.Answer(130, "", "stopped")


def test_a_crash_costs_its_cell_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hold.py").write_text(
        "import ctypes\nclass Hold:\n def __call__(self, now, *rest):\n  if now > 2e8: ctypes.string_at(0)\n  return 0\n"
    )
    (tmp_path / "own.toml").write_text(OWN.replace("[links.l1]\n", ""))
    monkeypatch.chdir(tmp_path)
    plan = {"scenario": "own.toml", "seeds": 1, "grid": {"hooks.hold.run": ["./hold.py:Hold", "zoh"]}}
    done = campaign.run(plan, out="out", jobs=1)
    assert len(done.failures) == 1 and len(done.rows) == 1
    assert "SIGSEGV" in next(iter(done.failures.values())) or "-11" in next(iter(done.failures.values()))


def test_what_code_prints_is_none_of_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hold.py").write_text(
        "class Hold:\n def __init__(self): print('{}')\n def __call__(self, now, *rest): return 0\n"
    )
    (tmp_path / "own.toml").write_text(OWN.replace("[links.l1]\n", ""))
    monkeypatch.chdir(tmp_path)
    plan = {"scenario": "own.toml", "seeds": 1, "grid": {"flows.kinematic.rate": ["100 Hz", "200 Hz"]}}
    done = campaign.run(plan, out="out", jobs=1)
    assert not done.failures and len(done.rows) == 2


def test_a_world_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found a world twice"):
        file.load(planned(tmp_path, PLAN.replace("seeds = 3", 'seeds = 3\nworld = ["virtual", "virtual"]')))


def test_what_a_cell_says_is_read_whatever_its_bytes(tmp_path: Path) -> None:
    class Says:
        def run(self, words: Any, out: Path, err: Path) -> int:
            out.write_text("what code prints is none of its result\n")
            err.write_bytes(b"caf\xe9: no such file")
            return 3

    answer = worker.run_warm(Says(), [], tmp_path / "cell")  # type: ignore[arg-type]
    assert answer == worker.Answer(3, "", "caf\ufffd: no such file")
    assert not list(tmp_path.iterdir()), "nothing of the cell is left"


def test_a_warm_process_that_dies_is_started_again(tmp_path: Path) -> None:
    warm = Warm()
    try:
        assert warm.run(["--version"], tmp_path / "out", tmp_path / "err") == 0
        assert (tmp_path / "out").read_text().strip() == package.__version__
        assert warm.process is not None
        first = warm.process.started
        first.kill()
        first.wait()
        until = time.monotonic() + 10
        while not warm.process.over:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert warm.run(["nothing"], tmp_path / "out", tmp_path / "err") == 2
        assert "nothing" in (tmp_path / "err").read_text()
    finally:
        warm.close()
    assert warm.run(["--version"], tmp_path / "out", tmp_path / "err") == -signal.SIGTERM


def test_commands_are_forks_of_one_process_and_end_with_it(tmp_path: Path) -> None:
    """Also those that wait when it dies."""
    warm, ended = Warm(), list[int]()
    try:
        assert warm.run(["--version"], tmp_path / "out", tmp_path / "err") == 0
        assert warm.process is not None
        first = warm.process
        assert warm.run(["nothing"], tmp_path / "out", tmp_path / "err") == 2 and warm.process is first
        os.kill(first.started.pid, signal.SIGSTOP)
        waits = threading.Thread(
            target=lambda: ended.append(warm.run(["--version"], tmp_path / "out", tmp_path / "err"))
        )
        waits.start()
        while not first.waiting:
            time.sleep(0.01)
        first.started.kill()
        waits.join(30)
        assert ended == [-signal.SIGKILL]
    finally:
        warm.close()


ASLEEP = """import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: {at_term})
print(1, flush=True)
time.sleep(60)
"""


def asleep(at_term: str) -> subprocess.Popen[str]:
    """A process in a group of its own that sleeps, and does that when it is asked to end."""
    words = [sys.executable, "-c", ASLEEP.format(at_term=at_term)]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None and started.stdout.readline() == "1\n"
    return started


def test_only_the_command_that_is_asked_for_writes_its_stack() -> None:
    """Without a handler the signal ends it."""
    one, other = asleep("None"), asleep("None")
    try:
        warm_._look({one.pid: 7, other.pid: 8}, 8)
        assert other.wait(30) == -signal.SIGUSR1 and one.poll() is None
    finally:
        for each in (one, other):
            each.kill()
            each.wait()


def test_commands_that_still_run_are_asked_to_end_and_then_made_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_, "GRACE_S", 0.3)
    started = [asleep("os._exit(0)"), asleep("None"), asleep("None")]
    started[2].kill()
    try:
        running = {one.pid: number for number, one in enumerate(started)}
        warm_._end_all(running)
        assert not running
        for one in started:
            with pytest.raises(ProcessLookupError):
                os.kill(one.pid, 0)
    finally:
        for one in started:
            one.kill()
            one.wait()


def test_a_mapping_is_checked_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="scenario is missing"):
        file.load({"grid": {"a": [1]}})
    assert not subprocess.run(["ls", "runs"], cwd=tmp_path, capture_output=True, check=False).stdout


def test_progress_tells_cells_their_cost_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those that are still to run: cells that were finished before took no time now."""
    now = iter([0.0, *(20.0 * n for n in range(1, 20) for _ in range(2))])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(progress, "Beat", lambda _: None)
    monkeypatch.setattr(progress.Progress, "__exit__", lambda *_: None)

    def run(told: Any) -> None:
        for done in (7, 8, 9):
            told(done, 10, None, None)

    sweep.run_cells(run, "campaign", quiet=False)
    assert capsys.readouterr().err.splitlines() == [
        "campaign 70 %  7 of 10 cells, one in 20 s  60 s left",
        "campaign 80 %  8 of 10 cells, one in 20 s  40 s left",
        "campaign 90 %  9 of 10 cells, one in 20 s  20 s left",
    ]


def test_the_check_of_all_combinations_has_a_bar_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    monkeypatch.setattr(progress, "Beat", lambda _: None)
    monkeypatch.setattr(progress.Progress, "__exit__", lambda *_: None)
    plan = {
        "scenario": str(ROOT / "scenarios/quickstart.toml"),
        "grid": {"links.l1.delay": ["1 ms", "-1 ms"]},
    }
    for drawn in (True, False):
        with pytest.raises(ConfigError):
            campaign.run(plan, out="out", progress=drawn)
        lines = [line.split("  ")[0] for line in capsys.readouterr().err.splitlines()]
        assert lines == (["checking 50 %", "checking 100 %"] if drawn else [])


def test_a_campaign_makes_the_folders_above_its_own(tmp_path: Path) -> None:
    """Without cells it is only described."""
    (tmp_path / "a.toml").write_text("")
    out = tmp_path / "runs/today/out"
    made = survey.Survey(tmp_path / "a.toml", (), (), (), "virtual", out)
    assert made.run(1, lambda *_: None) == {} and (out / "sweep.json").is_file()


def test_warm_up_runs_come_first_on_the_clock_and_are_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(OWN.replace("./hold.py:Hold", "zoh").replace("[links.l1]\n", ""))
    ran: list[tuple[str, int]] = []

    def answer(_: object, job: Any) -> worker.Answer:
        ran.append((job.world, job.cell.seed))
        if len(ran) == 3:
            return worker.Answer(1, "", "a warm-up that fails costs nothing")
        flow = {"delay_ms": {"mean": float(len(ran)), "p99": 1.0}, "loss": 0.0}
        told = {"flows": {"kinematic": flow}, "records_sha256": f"{len(ran)}"}
        return worker.Answer(0, json.dumps(told), "")

    monkeypatch.setattr(worker.Here, "_answer", answer)
    plan = {
        "scenario": "own.toml",
        "seeds": 2,
        "world": ["virtual", "real"],
        "warmup": 2,
        "grid": {"flows.kinematic.rate": ["100 Hz"]},
    }
    done = campaign.run(plan, out="out", jobs=1)
    assert [world for world, _ in ran] == ["virtual"] * 2 + ["real"] * 4 and not done.failures
    kept = [row["delay_mean_ms"] for row in done.rows if row["world"] == "real"]
    assert sorted(kept) == [5.0, 6.0], "the third and the fourth are discarded"
    campaign.run(plan, out="out", jobs=1)
    assert len(ran) == 6, "nothing is warmed up for nothing"


def test_another_campaign_in_the_same_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table would take the place of the first one; the same file, changed, continues."""
    monkeypatch.chdir(tmp_path)
    plan = 'scenario = "short.toml"\nseeds = 1\n[grid]\nlinks.l1.rate = ["5 Mbit/s", "6 Mbit/s"]\n'
    first = planned(tmp_path, plan)
    assert tcpsbed(tmp_path, "campaign", str(first), "--out", "out", "-q").returncode == 0
    before = Path("out/sweep.parquet").read_bytes()
    other = first.with_name("other.toml")
    other.write_text(first.read_text())
    refused = tcpsbed(tmp_path, "campaign", "other.toml", "--out", "out", "-q")
    assert refused.returncode == 2
    assert f"--out: found the results of {first.name} in out; allowed: " in refused.stderr
    assert Path("out/sweep.parquet").read_bytes() == before
    first.write_text(first.read_text().replace('"6 Mbit/s"', '"7 Mbit/s"'))
    assert tcpsbed(tmp_path, "campaign", first.name, "--out", "out", "-q").returncode == 0


def test_a_huge_campaign_is_asked_about_before_it_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of 10,000 combinations takes minutes."""
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'scenario = "{ROOT}/scenarios/quickstart.toml"\nset = [\'duration="1000000 s"\']\n'
        '[grid]\nlinks.l1.typo = ["1 ms"]\n'
    )
    words = [*OURS, "campaign", plan.name, "--out", "out", "-q"]
    asked, checked = (
        subprocess.run([*words, *more], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        for more in ([], ["--yes"])
    )
    assert asked.returncode == 2 and "--yes" in asked.stderr and "typo" not in asked.stderr
    assert checked.returncode == 2 and "typo" in checked.stderr and not Path("out").exists()


def test_the_processor_is_part_of_a_cell_with_code_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hold.py").write_text(HOOK)
    for name, hook in (("own.toml", "./hold.py:Hold"), ("builtin.toml", "zoh")):
        (tmp_path / name).write_text(OWN.replace("./hold.py:Hold", hook).replace("[links.l1]\n", ""))

    def keys(name: str) -> list[str]:
        plan = {"scenario": name, "seeds": 1, "grid": {"flows.kinematic.rate": ["100 Hz"]}}
        return [job.key for job in file.load(plan).jobs()]

    first = [keys("own.toml"), keys("builtin.toml")]
    monkeypatch.setattr(survey, "processor", lambda: "another one")
    assert [keys("own.toml") == first[0], keys("builtin.toml") == first[1]] == [False, True]
