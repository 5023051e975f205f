"""Options that would have no effect, or cannot be kept, are refused; what is printed for programs is JSON."""

from __future__ import annotations

import inspect
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import sample_run
import typer
from typer.testing import CliRunner

from tcpsbed.cli.app import app

REFUSED = {
    **{
        f"{option} of the built-in hand": (
            ["predict", "compare", option, value],
            f'{option}: found "{value}" for the built-in recording, whose columns and rate are known; allowed: no {option}',
        )
        for option, value in (("--columns", "x,y"), ("--rate", "500 Hz"))
    },
    "a rise time that nothing counts": (
        ["map", "{step}", "--rise", "50"],
        "--rise: found 50 without --reliability; allowed: both, such as --rise 50 --reliability 95%",
    ),
    "a loop that is not there": (
        ["map", "{step}", "--loop", "left"],
        '--loop: found "left"; allowed: a component that closes a loop: tactile-teleoperator',
    ),
    "a step that the controller cannot follow": (
        ["tune", "--rtt", "10 ms", "--c", "2,20"],
        '--c: found "2,20", with 20; allowed: numbers from 1.01 to 8, separated by commas, such as 1.5,2,4',
    ),
    "a duration without a unit": (
        ["step", "{step}", "--duration", "5", "--out", "never"],
        '--duration: found "5", a number without a unit',
    ),
    "a seed that is too large": (["check", "{step}", "--seed", "9" * 20], "--seed: found 9"),
    "a step that is no number": (["tune", "--rtt", "10 ms", "--c", "two"], '--c: found "two"'),
    **{
        f"{command} with {option} {value}": (
            [*words, option, value],
            f"{option}: found {value}; allowed: a finite number of 0 or more, in % of the step, such as 20",
        )
        for command, *words in (("tune", "tune", "--rtt", "10 ms"), ("step", "step", "{step}"))
        for option, value in (("--overshoot", "nan"), ("--overshoot", "inf"), ("--undershoot", "-1"))
    },
    **{
        f"{words[0]} with {option} {value}": (
            [*words, option, value],
            f'{option}: found "1000000 s"; allowed: at most {most}',
        )
        for option, value, most, *words in (
            ("--rtt", "1000000 s", '"1.2 s"', "step", "{step}", "--out", "never"),
            ("--rtt", "0 ms..1000000 s", '"1.2 s"', "map", "{step}"),
            ("--jitter", "1000000 s", '"1.2 s"', "map", "{step}"),
            ("--period", "1000000 s", '"1.2 s"', "map", "{step}"),
            ("--rtt", "1000000 s", '"10 s"', "tune"),
        )
    },
    "a run that is over before the step": (
        ["step", "{step}", "--duration", "1 ms", "--out", "never"],
        "--duration: found 1 ms, too short for the step at 200 ms and the robot's next tick at 201 ms; "
        'allowed: more than 201 ms, such as "1200 ms"',
    ),
    **{
        f"a scenario whose {words[0]} is over before the step": (
            [words[0], "{step}", "--set", 'duration="201 ms"', *words[1:]],
            "duration: found 201 ms, too short for the step at 200 ms and the robot's next tick at 201 ms; allowed: more",
        )
        for words in (["step", "--out", "never"], ["map", "--rtt", "0 ms..2 ms"])
    },
    "a period of tuning beyond the shipped step": (
        ["tune", "--rtt", "10 ms", "--period", "1 h"],
        "--period: found 3.6e+06 ms, too long for the shipped step; allowed: less than 1000 ms",
    ),
    "a Nyquist curve with an ending of nothing": (
        ["tune", "--rtt", "10 ms", "--nyquist", "x"],
        '--nyquist: x: found the ending ""',
    ),
    "a map that runs for too long": (
        ["map", "{step}", "--duration", "300 h"],
        '--duration: found "300 h", which is too large; allowed: a span of time such as "15 ms" (ns, us, ms, s, min, h), at '
        "most 1000000 s",
    ),
    "a folder where none can be": (
        ["run", "{step}", "--out", "/proc/x"],
        "/proc/x cannot be written (No such file or directory); allowed: a place where you may create a folder, such as "
        "--out",
    ),
    "lines into a place that takes none": (
        ["netns", "--delay", "1 ms", "--json", "/proc/x", "--", "true"],
        "/proc/x cannot be written (No such file or directory); allowed: a file in a folder where you may write, such as "
        "--json",
    ),
    "a negative rise time": (
        ["step", "{step}", "--rise", "-1"],
        "--rise: found -1; allowed: a finite number of 0 or more, in ms",
    ),
    "a rise time of a map that is no number": (
        ["map", "{step}", "--rise", "nan", "--reliability", "90 %"],
        "--rise: found nan; allowed: a finite number",
    ),
    "a cap below the floor": (
        ["latency", "{step}", "--floor", "50", "--cap", "20"],
        "--cap: found 20, which is below --floor 50; allowed: 50 or more, or a lower --floor",
    ),
    **{
        what: (["latency", "{step}", option, value], f'{option}: found "{value}"{said}')
        for what, option, value, said in (
            ("a period of commands before now", "--period", "-1 ms", ", which is negative"),
            ("a point that is none", "--points", "nosuch.exit", '; allowed: "all" or a point of kinematic'),
            ("a flow that is none", "--flow", "nosuch", "; allowed: a flow"),
            ("no time at all", "--max-time", "0 s", "; allowed: a time above 0"),
        )
    },
}


def run(shipped_scenarios: Path, words: list[str]) -> tuple[int, str, str]:
    """Status, output and messages of a command."""
    done = CliRunner().invoke(app, [word.format(step=shipped_scenarios / "step.toml") for word in words])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("case", REFUSED)
def test_options_without_effect_are_refused(shipped_scenarios: Path, case: str) -> None:
    words, message = REFUSED[case]
    status, printed, said = run(shipped_scenarios, words)
    assert (status, printed) == (2, "") and said.startswith(f"tcpsbed: {message}")


def test_more_runs_than_can_be_are_refused(shipped_scenarios: Path) -> None:
    status, printed, said = run(shipped_scenarios, ["step", "{step}", "--runs", "10001"])
    assert (
        (status, printed)
        == (
            2,
            "",
        )
        and said.startswith('tcpsbed: --runs: found "10001"; allowed: a whole number of 10000')
        and "10000" in said
    )


def test_a_scenario_with_two_loops_asks_which(shipped_scenarios: Path, tmp_path: Path) -> None:
    text = (shipped_scenarios / "step.toml").read_text().replace('name = "step"', 'sessions = ["a", "b"]')
    robot = next(line for line in text.splitlines() if line.startswith("tactile-teleoperator"))
    robots = (
        robot.replace(
            "tactile-teleoperator = {", f'{name} = {{ kind = "tactile-teleoperator", session = "{session}",'
        )
        for name, session in (("left", "a"), ("right", "b"))
    )
    two = tmp_path / "two.toml"
    two.write_text(text.replace(robot, "\n".join(robots)).partition("[measure]")[0])
    few = ["--cells", "2x2", "--runs", "1", "--rtt", "0 ms..2 ms"]
    status, printed, said = run(shipped_scenarios, ["map", str(two), *few])
    assert (status, printed) == (2, "") and "--loop: found 2 loops; allowed: " in said
    names = said.partition("allowed: ")[2].strip().split(", ")
    assert len(names) == 2 and "right" in names[1]
    status, printed, said = run(shipped_scenarios, ["map", str(two), *few, "--loop", names[1]])
    assert status == 0 and "RTT" in printed, said


def test_no_gains_are_json_too(shipped_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpsbed.lab.control.tuning.tune", lambda *_, **__: None)
    status, printed, _ = run(shipped_scenarios, ["tune", "--rtt", "400 ms", "--json"])
    assert status == 1 and json.loads(printed)["kp"] is None


def test_a_reproduction_without_matplotlib_has_its_rows_and_says_what_figures_need(
    shipped_scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    draw = partial(pytest.fail, "drawn")
    monkeypatch.setattr(
        "tcpsbed.lab.reproduce.hudson2001.reproduce", lambda study: study.figure("web", "Beside users", draw)
    )
    status, printed, _ = run(
        shipped_scenarios, ["reproduce", "hudson2001", "--short", "--out", str(tmp_path)]
    )
    assert status == 0 and "NO FIGURES" in printed and "tcpsbed[plot]" in printed
    assert "NO FIGURES" in (tmp_path / "hudson2001/index.html").read_text()
    assert json.loads((tmp_path / "hudson2001/rows.json").read_text())


def test_a_summary_that_is_no_summary_is_told_by_check_qos(shipped_scenarios: Path, tmp_path: Path) -> None:
    sample_run.write(tmp_path, name="x", world="virtual", seed=1, seconds=10.0)
    summary = json.loads((tmp_path / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps(summary | {"flows": 3}))
    status, _, said = run(shipped_scenarios, ["check-qos", str(tmp_path), "--profile", "telehaptics"])
    assert status == 2 and "summary.json: flows: found 3; allowed: " in said


def test_force_writes_over_nothing_that_the_command_reads(shipped_scenarios: Path, tmp_path: Path) -> None:
    mine, run_folder = tmp_path / "mine.toml", tmp_path / "out"
    text = 'duration = "50 ms"\n[links.l]\nfrom = "a"\nto = "b"\n[components]\n'
    text += 'tactile-operator = "a"\ntactile-teleoperator = "b"\n[flows.kinematic]\nrate = "1 kHz"\nsample = "24 B"\n'
    mine.write_text(text)
    assert run(shipped_scenarios, ["run", str(mine), "-q", "--out", str(run_folder)])[0] == 0
    records = (run_folder / "records.bin").read_bytes()
    for words in (
        ["export", str(run_folder), "--csv", "--to", str(run_folder / "records.bin")],
        ["export", str(run_folder), "--operator", str(run_folder / "records.bin")],
        ["calibrate", str(mine), "--to", str(mine)],
        ["config", "to-xlsx", str(mine), "--out", str(mine)],
        ["config", "from-xlsx", str(mine), "--out", str(mine)],
    ):
        status, printed, said = run(shipped_scenarios, [*words, "--force"])
        assert (status, printed) == (2, "") and ("this command" in said), said
    assert mine.read_text() == text and (run_folder / "records.bin").read_bytes() == records
    words = ["export", str(run_folder), "--csv", "--to", str(run_folder / "samples.csv")]
    assert run(shipped_scenarios, words)[0] == run(shipped_scenarios, words)[0] == 0


def test_a_file_that_holds_no_records_is_named(tmp_path: Path) -> None:
    sample_run.write(tmp_path / "out")
    for content, said in (
        (b"x" * 33, "is damaged, or tcpsbed did not write it (33 bytes"),
        (b"\xee" * 64, "is damaged, or tcpsbed did not write it (row 0 has the unknown kind 238)"),
    ):
        (tmp_path / "out/records.bin").write_bytes(content)
        for words in (["report"], ["show"], ["export", "--csv"]):
            status, printed, message = run(tmp_path, [words[0], str(tmp_path / "out"), *words[1:]])
            assert (status, printed) == (2, "")
            assert message.startswith(f"tcpsbed: {tmp_path / 'out/records.bin'} {said}"), message


def _numbers() -> list[tuple[str, Any]]:
    """Every option of every command that is a number."""
    found: list[tuple[str, Any]] = []

    def look(group: typer.Typer, path: str) -> None:
        for one in group.registered_commands:
            assert one.callback is not None
            for parameter in inspect.signature(one.callback, eval_str=True).parameters.values():
                of, *options = get_args(parameter.annotation) or (None,)
                if {int, float} & {of, *get_args(of)}:
                    found.extend((f"{path} {one.name}", option) for option in options)
        for inner in group.registered_groups:
            if inner.typer_instance is not None:
                look(inner.typer_instance, f"{path} {inner.name}")

    look(app, "")
    return found


CHECKED = {"--seed", "--margin-ms", "--rise", "--overshoot", "--undershoot", "--quantile"}
"""Bounds that depend on others, which the commands check; any lateness may be allowed."""


def test_options_that_are_numbers_have_bounds() -> None:
    found = [(command, option) for command, option in _numbers() if option.default not in CHECKED]
    assert len(found) > 15
    assert not [f"{c} {one.default}" for c, one in found if one.min is None or one.max is None]


@pytest.mark.parametrize("value", ["1e3", "-1", "99999999999999999999", "nan", "", "0x10", "٣"])
def test_absurd_numbers_are_refused_in_a_sentence(tmp_path: Path, value: str) -> None:
    file = tmp_path / "my.toml"
    file.write_text('duration = "10 ms"\n[components]\nms-com = "a"\n[flows.kinematic]\n')
    for words in (
        ["run", str(file), "--seeds"],
        ["latency", str(file), "--floor"],
        ["run", str(file), "--seed"],
    ):
        done = CliRunner().invoke(app, [*words, value, "--out", str(tmp_path / "out")])
        assert done.exit_code == 2, (words, done.output)
        assert not done.exception or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "{step}", "--out", "-"],
        ["sweep", "{step}", "--over", "name=a,b", "--out", "-"],
        ["map", "{step}", "--cells", "2x2", "--out", "-"],
        ["config", "to-xlsx", "{step}", "--out", "-"],
        ["calibrate", "{step}", "--to", "-"],
        ["proxy", "--delay", "1 ms", "7000=127.0.0.1:7100", "--pcapng", "-"],
        ["init", "-"],
        ["init", "--xlsx", "-"],
        ["data", "--to", "-"],
    ],
    ids=lambda words: words[0],
)
def test_no_file_and_no_folder_is_called_dash(shipped_scenarios, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [word.format(step=shipped_scenarios / "step.toml") for word in words])
    assert done.exit_code == 2 and ': found "-"; allowed: a' in done.output, done.output
    assert not list(tmp_path.iterdir())
