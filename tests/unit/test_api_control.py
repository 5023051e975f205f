"""`tcpsbed.step`, `map`, `tune`, `latency`: the numbers that the commands print, as objects with types."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from test_api_run import SHORT
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import shipped
from tcpsbed.api.map import LoopMap
from tcpsbed.api.step import StepResponses
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.lab.control import values


def printed(folder: Path, *command: str) -> Any:
    """What a command prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", *command, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    shipped.write("step", tmp_path / "step.toml")
    return tmp_path / "step.toml"


def test_step_is_that_of_the_command(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(loop.parent)
    shares: list[float] = []
    found = tcpsbed.step(loop, runs=2, rtt=["5 ms", "10 ms"], loss="0", out="called", progress=shares.append)
    typed = printed(
        loop.parent,
        "step",
        "step.toml",
        "--runs",
        "2",
        "--rtt",
        "5 ms,10 ms",
        "--loss",
        "0",
        "--out",
        "typed",
    )
    assert found.figures == typed
    assert found["RTT 10 ms, loss 0"].responses[0].rise_ms == typed["settings"][1]["runs"][0]["rise_ms"]
    assert found.reliability("RTT 5 ms, loss 0").share == 1
    assert {file.name for file in found.folder.iterdir()} >= {"scenario.toml", "step.json", "step.html"}
    assert shares == sorted(shares) and shares[-1] == 1 and "RTT 10 ms" in str(found)
    with pytest.raises(KeyError, match="RTT 5 ms"):
        _ = found["RTT 5"]


def test_step_responses_are_a_table_with_units(loop: Path) -> None:
    found = tcpsbed.step(loop, runs=3, rtt="5 ms,40 ms", out=loop.parent / "out", seed=7)
    table = found.to_arrow()
    assert table.num_rows == 6 and table["seed"].to_pylist() == [7, 8, 9] * 2
    assert {one.name: one.metadata[b"unit"] for one in table.schema if one.metadata} == {
        "rise_ms": b"ms", "overshoot_percent": b"%", "undershoot_percent": b"%", "settling_ms": b"ms",
        "error_percent": b"%",
    }  # fmt: skip
    first, last = table.to_pylist()[0], table.to_pylist()[-1]
    assert first["setting"] == "RTT 5 ms" and first["good"] and not last["good"] and not last["disturbed"]
    assert first["rise_ms"] == found["RTT 5 ms"].responses[0].rise_ms
    assert last["overshoot_percent"] == found["RTT 40 ms"].responses[2].overshoot > 20


def test_the_scenario_in_the_folder_is_what_ran_first_with_what_makes_the_others(loop: Path) -> None:
    found = tcpsbed.step(
        loop, runs=1, rtt="5 ms,40 ms", loss="10 %", gain="0.2:0.05", out=loop.parent / "out"
    )
    kept = loop.parent / "out/scenario.toml"
    assert tcpsbed.load(found.folder).scenario.document["links"]["line"]["delay"] == "2500000 ns"
    alone = tcpsbed.step(kept, runs=1, out=loop.parent / "first")
    assert alone[""].responses == found["RTT 5 ms, loss 10 %, gain 0.2:0.05"].responses
    head, last = kept.read_text().splitlines()[:3:2]
    assert head == "# The scenario of the setting RTT 5 ms, loss 10 %, gain 0.2:0.05."
    name, _, words = last.removeprefix("#   ").partition("0.05: ")
    again = tcpsbed.step(kept, runs=1, set=shlex.split(words)[1::2], out=loop.parent / "last")
    assert again[""].responses == found[f"{name}0.05"].responses != alone[""].responses
    page = (loop.parent / "out/step.html").read_text()
    assert "scenario.toml is that of the first setting" in page
    tcpsbed.step(loop, runs=1, out=loop.parent / "plain")
    assert not (loop.parent / "plain/scenario.toml").read_text().startswith("#")


def test_load_gives_what_step_and_map_returned(loop: Path, tmp_path: Path) -> None:
    made = tcpsbed.step(loop, runs=2, rtt="5 ms,40 ms", offsets=True, undershoot=30, out=tmp_path / "step")
    found = tcpsbed.load(tmp_path / "step")
    assert isinstance(found, StepResponses) and found.folder == made.folder
    assert found.figures == made.figures and str(found) == str(made) and found.to_arrow() == made.to_arrow()
    assert [str(one.margins) for _, one in found.settings] == [str(one.margins) for _, one in made.settings]
    mine, theirs = (one["RTT 40 ms"].curves[1] for one in (found, made))
    assert mine.h.tobytes() == theirs.h.tobytes() and mine.t_ms.tobytes() == theirs.t_ms.tobytes()

    mapped = tcpsbed.map(
        loop,
        cells="4x2",
        runs=3,
        verify=1,
        verify_runs=2,
        reliability="90%",
        jitter="1 ms",
        out=tmp_path / "map",
    )
    again = tcpsbed.load(tmp_path / "map")
    assert isinstance(again, LoopMap) and again.figures == mapped.figures and str(again) == str(mapped)
    assert again == mapped != tcpsbed.map(loop, cells="4x2", runs=3, jitter="2 ms", reliability="90%")
    assert again.margins == mapped.margins and again.longest_rtt_ms(0) == mapped.longest_rtt_ms(0)
    (tmp_path / "step" / "curves.parquet").write_bytes(b"PAR1")
    with pytest.raises(TcpsbedError, match=r"curves.parquet holds no curves that can be read"):
        tcpsbed.load(tmp_path / "step")


def test_map_is_that_of_the_command(loop: Path) -> None:
    found = tcpsbed.map(loop, cells="3x3", runs=5)
    assert found.figures == printed(loop.parent, "map", "step.toml", "--cells", "3x3", "--runs", "5")
    assert found.map.mean["overshoot"].shape == (3, 3) and found.folder is None
    assert found.longest_rtt_ms(loss=0.0) == found.map.longest_rtt_ms(0)
    assert found.longest_rtt_ms(loss=0.0) >= found.longest_rtt_ms(loss=0.6)
    for outside in (0.9, 30, "30 %"):
        with pytest.raises(ConfigError, match=r"loss: found .*; allowed: a share from 0 to 0.6"):
            found.longest_rtt_ms(loss=outside)
    assert str(found).startswith("for a mean overshoot up to 20 %")
    assert "without loss, with 1/2 of the gain, as after the step: gain margin" in str(found)
    pushed = tcpsbed.map(
        plant=([40.0], [1.0, 6.0, 40.0]),
        gain="0.6:0.002",
        disturbance="output",
        rtt="0 ms..9 ms",
        cells="2x2",
        runs=2,
    )
    limit = re.search(
        r"without loss: .*, delay margin ([\d.]+) ms; unstable from an RTT of about ([\d.]+) ms on, with 60 % loss"
        r" each way from about ([\d.]+) ms on",
        str(pushed),
    )
    assert limit and float(limit[1]) + 1 == pytest.approx(float(limit[2]), abs=0.06)  # no delay is one tick
    assert float(limit[3]) == pytest.approx(float(limit[2]) - 3.0, abs=0.11)


def test_a_plant_of_a_notebook_is_given_as_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("__main__.__file__")  # as in a notebook
    names: dict[str, Any] = {"tcpsbed": tcpsbed, "__name__": "__main__"}
    exec(  # as a cell, which no file holds
        "class Lag(tcpsbed.Plant):\n    def matrices(self):\n        return [[-self.rate]], [self.rate], [1]\n",
        names,
    )
    grid: dict[str, Any] = {"rtt": "0 ms..40 ms", "loss": "0..20%", "cells": "5x3", "runs": 5}
    found = tcpsbed.map(plant=names["Lag"](rate=50.0), **grid)
    assert (
        found.map.mean["overshoot"] == tcpsbed.map(plant=([50.0], [1.0, 50.0]), **grid).map.mean["overshoot"]
    ).all()
    assert repr(found) == str(found) and (found._repr_png_() or b"\x89PNG").startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"found Lag, which .* or an object of it, such as Lag\(\)"):
        tcpsbed.map(plant=names["Lag"], **grid)
    named = names["Lag"](rate=50.0, num=[9.0], den=[1.0, 9.0])  # parameters are no transfer function
    assert (tcpsbed.map(plant=named, **grid).map.mean["overshoot"] == found.map.mean["overshoot"]).all()
    names["Lag"].matrices = lambda self: (1, 2, 3, 4, 5)
    with pytest.raises(ConfigError, match="plant: found 5 parts"):
        tcpsbed.map(plant=names["Lag"](), **grid)
    names["Lag"].matrices = lambda self: 1 / 0
    with pytest.raises(ConfigError, match=r"plant: found Lag, whose matrices\(\) failed: division by zero"):
        tcpsbed.map(plant=names["Lag"](), **grid)


def test_tune_is_that_of_the_command(loop: Path) -> None:
    found = tcpsbed.tune("2 ms", runs=2, c=[1.5, 2])
    assert found is not None
    assert found.figures == printed(loop.parent, "tune", "--rtt", "2 ms", "--runs", "2", "--c", "1.5,2")
    assert len(found.steps) == 2 and found.best in found.steps and found.margins.delay_ms > 0


@pytest.mark.parametrize(("rows", "told"), [(2, 2), (9, 9), (10, 5), (12, 5)])
def test_a_map_speaks_of_each_loss_or_names_those_it_leaves_out(rows: int, told: int) -> None:
    found = tcpsbed.map(cells=f"2x{rows}", loss="0..50%", runs=1)
    losses = [f"{100 * loss:.3g}" for loss in found.map.grid.loss]
    spoken = [loss for loss in losses if any(f" {loss} % loss" in line for line in found.sentences)]
    assert len(spoken) == told
    if rows == told:
        assert len(found.sentences) == rows
        return
    left = [loss for loss in losses if loss not in spoken]
    named = ", ".join(left)
    assert found.sentences[-1] == f"left out here: {len(left)} of {rows} losses ({named} %)"


def test_latency_is_that_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    found = tcpsbed.latency(file, confidence=0.2, seed=3, out=tmp_path / "called")
    typed = printed(tmp_path, "latency", "short.toml", "--confidence", "20%", "--seed", "3", "--out", "typed")
    assert found.run.summary["echo"] == typed and found.reached
    assert found.verdict.startswith("every point's mean is known within 20 %")
    assert found.table.to_arrow().num_rows == len(found.table) > 3


def test_latency_measures_each_flow_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(f"{SHORT}\n[flows.haptic]\n")
    alone = tcpsbed.latency(file, confidence=0.2, out=tmp_path / "one").verdict
    assert alone.endswith("measured with kinematic; --flow NAME, or all, measures others: haptic")
    every = printed(tmp_path, "latency", "short.toml", "--confidence", "20%", "--flow", "all", "--out", "all")
    assert list(every) == ["kinematic", "haptic"]
    two = tcpsbed.latency(file, confidence=0.2, flow=["kinematic", "haptic"], out=tmp_path / "two")
    assert two.run.summary["echo"] == every and "measured with" not in two.verdict
    with pytest.raises(ConfigError, match=r'^flow: found "haptik"'):
        tcpsbed.latency(file, flow=["kinematic", "haptik"])


def test_tune_keeps_a_least_margin(loop: Path) -> None:
    fast = tcpsbed.tune("2 ms", runs=2)
    assert fast is not None and fast.margins.gain < 6
    for margin, gain, delay_ms in (("6", 6, 0.0), ("20 ms", 1, 20.0), ("6,20 ms", 6, 20.0)):
        calm = tcpsbed.tune("2 ms", runs=2, margin=margin)
        assert calm is not None and calm.margins.gain >= gain and calm.margins.delay_ms >= delay_ms
        assert calm.best.rise_ms >= fast.best.rise_ms
    shares: list[float] = []
    assert tcpsbed.tune("2 ms", runs=2, margin="1e9", progress=shares.append) is None
    assert shares == sorted(shares) and sum(0.36 < share < 0.5 for share in shares) > 20, (
        "also between the runs"
    )
    for wrong in ("0.5", "nan", "3 apples", "3,1.2", "3,5", "5 ms,6 ms", "", "abc"):
        with pytest.raises(ConfigError, match=r"^--margin: found") as said:
            tcpsbed.tune("2 ms", runs=2, margin=wrong)
        assert wrong == "3 apples" or '"3,5 ms"' in str(said.value), wrong


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda file: tcpsbed.step(file, rtt="5"), '--rtt: found "5", a number without a unit'),
        (lambda file: tcpsbed.step(file, rtt=20), '--rtt: found 20; allowed: a text such as "5 ms"'),
        (lambda file: tcpsbed.step(file, loss=[0.1]), "--loss: found 0.1; allowed: a text such as"),
        (lambda file: tcpsbed.step(file, gain=0.2), "--gain: found 0.2; allowed: a text such as"),
        (
            lambda file: tcpsbed.step(file, rtt="0 ms..50 ms"),
            '^--rtt: found "0 ms..50 ms", a range; allowed: values with commas, such as "0 ms,50 ms"; .*map takes',
        ),
        (lambda file: tcpsbed.step(file, loss="0..30%"), 'such as "0%,30%"; a range is what tcpsbed map'),
        (lambda file: tcpsbed.map(file, rtt=(0, 50)), r"--rtt: found \(0, 50\); allowed: .*0 ms..50 ms"),
        (lambda file: tcpsbed.map(file, loss=0.1), "--loss: found 0.1; allowed: .*0..60%"),
        (lambda file: tcpsbed.map(file, cells=(5, 3)), r"--cells: found \(5, 3\); allowed: a text such as .50x50"),
        (lambda file: tcpsbed.map(file, gain=(0.2, 0.1)), r"--gain: found \(0.2, 0.1\); allowed: a text"),
        (lambda file: tcpsbed.map(file, reliability=0.95), "--reliability: found 0.95, a share without a percent"),
        (lambda file: tcpsbed.map(file, plant=(1, [1, 1])), r"^plant: num: found 1; allowed: .* such as \[1\]"),
        (lambda file: tcpsbed.tune("1..5 ms"), '--rtt: found "1..5 ms", a range; allowed: one span'),
        (lambda file: tcpsbed.tune("5 ms", loss=0.1), "--loss: found 0.1, a share without a percent sign"),
        (lambda file: tcpsbed.map(file, cells="3"), '--cells: found "3"; allowed: 2 to 1000'),
        (lambda file: tcpsbed.map(file, rise=20), "--rise: found 20 without --reliability"),
        (lambda file: tcpsbed.tune("2 ms", c=0.5), '--c: found "0.5"'),
        (lambda file: tcpsbed.tune("2"), '--rtt: found "2"'),
        (lambda file: tcpsbed.latency(file, cap=3, floor=4), "--cap: found 3, which is below --floor 4"),
        (lambda file: tcpsbed.latency(file, confidence=2), '--confidence: found "2"'),
        (lambda file: tcpsbed.latency(file, points=["nowhere.exit"]), "^points: found"),
        (lambda file: tcpsbed.latency(file, max_time="0 s"), "--max-time: found"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(loop: Path, ask: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ask(loop)


LAW = ([0.5, 10], [1, 0])


def test_factors_are_numbers_of_any_kind_and_none_of_them_is_none(loop: Path, tmp_path: Path) -> None:
    import numpy as np

    def settings(factor: Any, folder: str) -> list[str]:
        found = tcpsbed.step(
            loop, controller=LAW, factor=factor, runs=1, duration="0.6 s", out=tmp_path / folder
        )
        return list(found)

    assert settings(np.array([0.5, 1.0]), "a") == ["factor 0.5", "factor 1.0"]
    assert settings([np.float64(0.5), np.int64(1)], "b") == ["factor 0.5", "factor 1"]
    assert settings(None, "c") == settings([], "d") == [""]
    small = {"cells": "2x2", "runs": 1, "rtt": "2 ms..4 ms", "loss": "0..10%", "controller": LAW}
    plain, none, halved = (tcpsbed.map(loop, factor=one, **small) for one in (None, [], np.float64(0.5)))
    assert plain.figures == none.figures != halved.figures
    assert len(tcpsbed.tune("2 ms", runs=1, c=np.array([1.5, 2.0])).steps) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"rtt": "5 ms,0.005 s"},
            '--rtt: found "5 ms" and "0.005 s", the same value; allowed: each value once',
        ),
        ({"loss": ["0", "0 %"]}, '--loss: found "0" and "0 %", the same value'),
        ({"gain": "0.2:0.09,0.20:.09"}, '--gain: found "0.2:0.09" and "0.20:.09"'),
        ({"factor": ["1", "1.0"], "controller": LAW}, '--factor: found "1" and "1.0"'),
        ({"rtt": "5 ms,5 ms"}, '--rtt: found "5 ms" twice'),
        (
            {"factor": "[1,2]"},
            r'--factor: found "\[1,2\]", a list in brackets; allowed: values with commas and without',
        ),
        ({"rtt": ["5 ms", "(1 ms"]}, r'--rtt: found "\(1 ms", a list in brackets'),
    ],
)
def test_a_value_that_is_written_in_two_ways_is_refused(
    loop: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        tcpsbed.step(loop, **given)


@pytest.mark.parametrize(("c", "message"), [("2,2", '"2" twice'), ([2, 2.0], '"2" and "2.0"')])
def test_tune_takes_each_step_once(c: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^--c: found {message}"):
        tcpsbed.tune("2 ms", runs=1, c=c)


def test_numbers_of_every_kind_are_texts() -> None:
    assert values.texts(Decimal("1.5")) == ["1.5"]
    assert values.texts([Decimal("1.5"), Fraction(1, 4), 2]) == ["1.5", "0.25", "2"]


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        ("", 'found ""; allowed: "1.2"'),
        ("1,1", 'found "1" twice; allowed: each value once'),
        ("1e308", 'found "1e308"; allowed: 1e-31 to 1e.29, with this controller'),
        (True, "found True"),
    ],
)
def test_factors_that_cannot_be_are_refused_by_step_and_map(loop: Path, factor: Any, message: str) -> None:
    for ask in (tcpsbed.step, tcpsbed.map):
        with pytest.raises(ConfigError, match=f"^--factor: {message}"):
            ask(loop, controller=LAW, factor=factor)
    with pytest.raises(ConfigError, match=r'^--factor: found "1,2"; allowed: one factor'):
        tcpsbed.map(loop, controller=LAW, factor="1,2")
    with pytest.raises(ConfigError, match=r'^--c: found ""'):
        tcpsbed.tune("2 ms", c=None)
    done = CliRunner().invoke(app, ["step", str(loop), "--factor", ""])
    assert done.exit_code == 2 and done.stderr.startswith('tcpsbed: --factor: found ""'), done.output


def test_the_delay_of_drops_is_told_where_a_link_loses_whatever_a_setting_is_called(
    loop: Path, tmp_path: Path
) -> None:
    for number, (asked, is_told) in enumerate(
        (
            ({"loss": "0"}, False),
            ({"loss": "10 %"}, True),
            ({"set": ['links.line.loss="10 %"']}, True),
        )
    ):
        out = tmp_path / str(number)
        found = tcpsbed.step(loop, runs=1, duration="0.6 s", out=out, **asked)  # type: ignore[arg-type]
        assert ("acts as 2 p / (1 - p) ticks" in str(found)) == is_told, asked
        assert str(tcpsbed.load(out)) == str(found)


def test_a_loss_that_leaves_no_round_trip_of_a_tick_is_unstable_at_every_one(loop: Path) -> None:
    found = tcpsbed.map(loop, runs=1, cells="2x2", rtt="2 ms..4 ms", loss="0..94.81%")
    (remark,) = found.remarks
    assert "with 94.8 % loss each way at every RTT" in remark, remark


def test_a_reproduction_has_rows_with_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcpsbed.lab.reproduce import dpm_q, study

    def one(made: study.Study) -> None:
        first, second = list(made.expected)[:2]
        made.cannot(first, "for a test")
        made.compare(second, made.expected[second].published or 0.0)
        made.tell("done")

    monkeypatch.setattr(dpm_q, "reproduce", one)
    told: list[str] = []
    found = tcpsbed.reproduce("dpm-q", short=True, out=tmp_path, tell=told.append)
    assert told == ["done"] and found.page == tmp_path / "dpm-q" / "index.html" and found.page.is_file()
    lines = found.to_arrow().to_pylist()
    assert [line["key"] for line in lines] == [row.key for row in found.rows] and len(lines) >= 2
    assert lines[0]["ours"] is None and lines[0]["reason"] == "for a test" and lines[1]["ours"] is not None
    assert found.missed == [row for row in found.rows if row.verdict == "missed, unexplained"]
    assert found.reference in str(found)
    with pytest.raises(ConfigError, match="did you mean dpm-q"):
        tcpsbed.reproduce("dpmq")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tcpsbed.step(runs="2"), "runs: found '2'; allowed: a whole number"),
        (lambda: tcpsbed.step(runs=2.5), "runs: found 2.5; allowed: a whole number"),
        (lambda: tcpsbed.map(verify="2"), "verify: found '2'; allowed: a whole number"),
        (lambda: tcpsbed.search("step", 5, until="h > 1"), "over: found int; allowed: a text"),
        (lambda: tcpsbed.search("step", "a=0..1 ms", until=3), "until: found int; allowed: a text"),
    ],
)
def test_values_of_wrong_types_are_one_message(call: Any, said: str) -> None:
    with pytest.raises(tcpsbed.ConfigError, match=re.escape(said)):
        call()


def test_the_settings_of_step_responses_are_listed(tmp_path: Path) -> None:
    found = tcpsbed.step(rtt="4 ms", runs=1, duration="0.5 s", out=tmp_path / "out")
    (name,) = found
    assert name in found and found[name].curves and "elsewhere" not in found
