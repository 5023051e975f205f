"""The command line: what it prints, where it puts runs, how it fails."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import sample_run
from command import HERE, PYTHON, scenario, tcpsbed
from typer.testing import CliRunner

from tcpsbed.analysis.latency import Confidence
from tcpsbed.analysis.records import FIELDS
from tcpsbed.api.latency import judged, length_s, share_of, split_points
from tcpsbed.cli import calibrate, check, live
from tcpsbed.cli.app import COMMANDS, app, commands
from tcpsbed.errors import ConfigError


def test_help_names_every_command_with_examples(tmp_path: Path) -> None:
    top = tcpsbed(tmp_path, "--help")
    assert top.returncode == 0
    for name in (
        "run",
        "check",
        "init",
        "schema",
        "latency",
        "sweep",
        "show",
        "compare",
        "report",
        "export",
        "calibrate",
    ):
        assert f"\n  {name} " in top.stdout
        told = CliRunner().invoke(app, [name, "--help"]).output
        assert f"tcpsbed {name} " in told, f"{name} --help has no example"


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['tcpsbed', '--help']\nfrom tcpsbed.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "heavy = {'numpy', 'pydantic', 'rich', 'pyarrow', 'matplotlib', 'numba', 'tcpsbed.scenarios'}\n"
    code += "heavy &= set(sys.modules)\n"
    code += "sys.exit(str(heavy) if heavy else 0)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(PYTHON)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", COMMANDS)
def test_the_file_of_a_command_is_found_by_its_first_word(file: str) -> None:
    for first in COMMANDS[file]:
        made = commands(first)
        names = [one.name for one in [*made.registered_commands, *made.registered_groups]]
        assert names == COMMANDS[file]


def test_check_loads_nothing_that_takes_longer_than_the_check() -> None:
    code = "import sys; sys.argv = ['tcpsbed', 'check', sys.argv[1]]\nfrom tcpsbed.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "loaded = {'pyarrow', 'rich', 'tcpsbed.cli.run', 'tcpsbed.analysis.metrics', 'numpy', 'pydantic', 'typer'}\n"
    code += "loaded &= set(sys.modules)\n"
    code += "sys.exit(str(loaded) if loaded else 0)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(PYTHON.parent / "scenarios/quickstart.toml")],
        env={"PYTHONPATH": str(PYTHON)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        (["a.toml"], (Path("a.toml"), [])),
        (["--set", "seed=2", "a.toml", "--set", "x.y=z"], (Path("a.toml"), ["seed=2", "x.y=z"])),
        (["a.toml", "b.toml"], None),
        (["a.toml", "--set"], None),
        (["a.toml", "--seed", "2"], None),
        (["--help"], None),
        ([""], None),
        ([], None),
    ],
)
def test_only_a_plain_check_is_read_without_the_library(words: list[str], plain: object) -> None:
    assert check.plain(words) == plain


def test_a_node_starts_without_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(
        "import sys, types, tcpsbed\n"
        "def run_node(): print(sorted({'typer', 'numpy', 'pydantic'} & set(sys.modules)), file=sys.__stdout__)\n"
        "native = types.ModuleType('tcpsbed._tcps'); native.run_node = run_node\n"
        "sys.modules['tcpsbed._tcps'] = native; tcpsbed._tcps = native\n"
        "sys.argv = ['tcpsbed', 'node']\n"
        "from tcpsbed.__main__ import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "probe.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PYTHON)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_run_prints_tables_and_leaves_a_folder_linked_as_latest(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)))
    assert done.returncode == 0, done.stderr
    page = tmp_path / re.search(r"report: (\S+)", done.stdout)[1]
    assert page.is_file() and re.fullmatch(r"short-\d{8}-\d{6}", page.parent.name)
    assert (tmp_path / "runs/latest").resolve() == page.parent
    assert "bottleneck" in done.stdout and "end to end" in done.stdout
    assert "\nGlossary: tcpsbed docs glossary\nreport: " in done.stdout
    assert done.stderr == "", "no progress bar where standard error is no terminal"


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    done = tcpsbed(
        tmp_path,
        "run",
        str(scenario(tmp_path)),
        "--json",
        "--out",
        "here",
        "--seed",
        "9",
        "--duration",
        "20 s",
        "--no-report",
    )
    summary = json.loads(done.stdout)
    assert (summary["seed"], summary["duration_s"]) == (9, 20.0)
    assert not (tmp_path / "here/report.html").exists() and not (tmp_path / "runs").exists()
    assert (tmp_path / "here/samples.parquet").exists()
    tcpsbed(tmp_path, "run", "short.toml", "--no-samples", "--out", "there")
    assert not (tmp_path / "there/samples.parquet").exists() and (tmp_path / "there/report.html").exists()


def test_named_options_win_over_set(tmp_path: Path) -> None:
    done = tcpsbed(
        tmp_path,
        "run",
        str(scenario(tmp_path)),
        "--json",
        "--out",
        "here",
        "--set",
        "seed=3",
        "--seed",
        "4",
        "--set",
        "seed=5",
    )
    assert json.loads(done.stdout)["seed"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "absent.toml"], "absent.toml cannot be read"),
        (["check", "short.toml", "--set", "delay_ms=-1"], "delay_ms: found -1; allowed: a positive number"),
        (["run", "short.toml", "--set", 'fault="world"'], "node cloud died"),
        (["show", "nowhere"], "nowhere: no such folder"),
        (["compare", "."], "has no summary.json"),
        (["report", "."], "no summary.json"),
        (["run", "short.toml", "--live"], "--live"),
        (["latency", "short.toml", "--confidence", "five"], '--confidence: found "five"'),
        (["sweep", "short.toml", "--over", "delay_ms"], '--over: found "delay_ms"'),
        (["init", "short.toml"], "short.toml exists already"),
        (["run", "short.toml", "--out", "short.toml/x"], "short.toml"),
    ],
)
def test_bad_input_is_one_message_and_status_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    scenario(tmp_path)
    done = tcpsbed(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_ctrl_c_keeps_what_was_recorded_and_names_it(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "here", "--set", 'fault="interrupt"')
    assert done.returncode == 130
    assert "what was recorded until then is in here" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "here/report.html").is_file()


def test_a_run_with_errors_is_reported_and_fails(tmp_path: Path) -> None:
    done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", "here", "--set", 'fault="errors"')
    assert done.returncode == 1
    assert "ERROR: node cloud died" in done.stdout and "node cloud died" in done.stderr


def test_a_run_that_fails_leaves_the_former_one_whole(tmp_path: Path) -> None:
    file = scenario(tmp_path)
    tcpsbed(tmp_path, "run", str(file), "--out", "here")
    done = tcpsbed(tmp_path, "run", str(file), "--out", "here", "--set", 'fault="world"')
    assert done.returncode == 2
    assert (tmp_path / "here/summary.json").exists() and (tmp_path / "here/report.html").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["here", "short.toml", "site"]


def test_check_init_and_schema(tmp_path: Path) -> None:
    assert (
        "valid. 1 component, 1 flow, 2 nodes, 0 links, 10 s, seed 1"
        in tcpsbed(tmp_path, "check", str(scenario(tmp_path))).stdout
    )
    assert tcpsbed(tmp_path, "init", "new.toml").returncode == 0
    assert tomllib.loads((tmp_path / "new.toml").read_text()) == {"name": "new"}
    assert json.loads(tcpsbed(tmp_path, "schema").stdout) == {"type": "object"}


def test_latency_goes_on_until_every_mean_is_known(tmp_path: Path) -> None:
    """The sample's half-width is wide/√n of the mean: 0.5/√n ≤ 5 % needs n ≥ 100. [Polachan 2022: echoes]"""
    done = tcpsbed(tmp_path, "latency", str(scenario(tmp_path)), "--out", "here")
    assert done.returncode == 0, done.stderr
    assert (
        "round 1: 30 echoes per point" in done.stderr
        and "round 2" in done.stderr
        and "round 4" not in done.stderr
    )
    assert "every point's mean is known within 5 %" in done.stdout
    points = json.loads((tmp_path / "here/summary.json").read_text())["echo"]["kinematic"]["points"]
    assert all(100 <= point["n"] <= 200 for point in points)


def test_latency_leaves_the_newest_run_alone_unless_it_is_given_a_folder(tmp_path: Path) -> None:
    file = str(scenario(tmp_path))
    assert tcpsbed(tmp_path, "run", file, "-q").returncode == 0
    newest = (tmp_path / "runs/latest").resolve()
    assert tcpsbed(tmp_path, "latency", file, "-q").returncode == 0
    assert (tmp_path / "runs/latest").resolve() == newest
    assert any(tmp_path.glob("runs/short-latency-*/report.html")), "it is kept"
    assert tcpsbed(tmp_path, "latency", file, "-q", "--out", "runs/mine").returncode == 0
    assert (tmp_path / "runs/latest").resolve() == tmp_path / "runs/mine"


def test_latency_stops_at_the_cap_and_says_so(tmp_path: Path) -> None:
    done = tcpsbed(
        tmp_path, "latency", str(scenario(tmp_path)), "--out", "here", "--set", "wide=5.0", "--cap", "200"
    )
    assert "NOT every point's mean is known within 5 %: the cap of 200" in done.stdout


def test_a_round_that_fails_leaves_the_rounds_before_it(tmp_path: Path) -> None:
    file = scenario(tmp_path, 'name = "short"\nduration = "10 s"\nfails_after_s = 3.0\n')
    done = tcpsbed(tmp_path, "latency", str(file), "--out", "here")
    assert done.returncode == 2 and "node cloud died" in done.stderr
    assert "tcpsbed: what was measured before round 2 is in here\n" in done.stderr
    assert "a torso" not in {part.read_text() for part in (tmp_path / "here").iterdir() if part.is_file()}
    found = json.loads((tmp_path / "here/summary.json").read_text())["echo"]["kinematic"]["points"]
    assert all(point["n"] == 30 for point in found)
    assert sorted(part.name for part in tmp_path.iterdir()) == ["here", "short.toml", "site"]


def rows(*entries: tuple[int, int, int, int, int, int, int]) -> np.ndarray:
    """Rows of (time, value, index, flow, point, kind, detail)."""
    array = np.zeros(len(entries), np.dtype(FIELDS))
    for row, (t, value, index, flow, point, kind, detail) in zip(array, entries, strict=True):
        row["time"], row["value"], row["index"], row["flow"], row["point"], row["kind"], row["detail"] = (
            t,
            value,
            index,
            flow,
            point,
            kind,
            detail,
        )
    return array


def known(*points: tuple[int, float, float | None]) -> dict[str, object]:
    """The part of a summary that the rule reads: (n, mean, half-width) of each point."""
    trips = [
        {"n": n, "round_trip_ms": {"mean": mean, "ci95": half} if n else None} for n, mean, half in points
    ]
    return {"echo": {"kinematic": {"points": trips}}}


def test_the_rule_asks_for_t_s_over_root_n() -> None:
    """[Polachan 2022] [Polachan 2022: echoes] t·s/√n ≤ 0.05·mean, n ≥ 30: twice too wide needs four times the echoes."""
    rule = Confidence(0.05, 30, 20_000)
    assert judged(rule, known((30, 10.0, 0.5), (40, 10.0, 0.1))) == (True, 40)
    assert judged(rule, known((29, 10.0, 0.1)))[0] is False
    reached, needed = judged(rule, known((100, 10.0, 1.0), (100, 10.0, 0.1)))
    assert not reached and 400 <= needed <= 480
    assert judged(rule, known((100, 10.0, 90.0))) == (False, 20_000)
    assert judged(rule, known((20_000, 10.0, 0.6))) == (False, 20_000), "the cap does not make it known"
    assert judged(rule, known((30, 10.0, 0.1), (0, 0.0, None)))[0] is False, (
        "a point without an echo is not known"
    )
    assert judged(rule, known((30, 0.0, 0.0)))[0], "nothing between the points: known exactly"
    assert judged(rule, {})[0] is False


def test_the_length_of_a_latency_run_counts_all_points_at_the_samples_pace() -> None:
    plan = {
        "flows": [{"period_ns": 20_000_000}],
        "probes": [{"flow": 0, "points": [1, 2, 3], "period_ns": 10_000_000}],
    }
    assert length_s(plan, 100) == pytest.approx(3 * 100 * 0.02 + 1.2)


def test_shares_and_points_as_text() -> None:
    assert share_of("5%") == share_of("0.05") == 0.05
    for bad in ("0", "100%", "5%%", "", "-1"):
        with pytest.raises(ConfigError):
            share_of(bad)
    assert split_points(["srv.entry,srv.exit", "ss.entry"]) == ["srv.entry", "srv.exit", "ss.entry"]
    assert split_points(None) == ["all"]


def test_the_live_view_counts_rows_and_forgets_old_delays() -> None:
    tally = live.Tally(["kinematic", "haptic"], ["op", "cloud"])
    seen = rows(
        (0, 0, 0, 0, 0, live.SENT, 0),
        (5, 2_000_000, 0, 0, 0, live.DELIVERED, 0),
        (6, 0, 0, 65535, 0, live.GAP, 0),
    )
    tally.add(seen.tobytes(), 0.1)
    assert tally.counts == {live.SENT: [1, 0], live.DELIVERED: [1, 0]} and tally.gaps == [1, 0]
    assert tally.delays_ms(0) == (2.0, 2.0, 2.0) and tally.delays_ms(1) is None
    tally.add(b"", 5.0)
    assert tally.delays_ms(0) is None


def test_the_live_view_draws_the_plans_flows(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(
        json.dumps(
            {"name": "demo", "duration_ns": 10**10, "flows": [{"name": "haptic"}], "nodes": [{"name": "op"}]}
        )
    )
    view = live.LiveView(tmp_path)
    view.tally.add(rows((0, 0, 0, 0, 0, live.SENT, 0)).tobytes(), 0.5)
    from rich.console import Console

    screen = io.StringIO()
    Console(width=120, file=screen).print(view.table(0.5))
    shown = screen.getvalue()
    assert "demo  0.5 s of 10 s" in shown and "haptic" in shown and "no node stalled" in shown


def test_calibration_keeps_stages_and_what_is_left_beside_them(tmp_path: Path) -> None:
    """[design: costs] 700 µs in srv, 200 of them in its inverse kinematics: 500 µs are work."""
    plan = {
        "components": [{"name": "op"}, {"name": "srv"}],
        "nodes": [],
        "flows": [{"name": "f", "path": [{"component": 1, "steps": [{"kind": "inverse_kinematics"}]}]}],
    }
    entries = []
    for i in range(50):
        start = i * 1_000_000
        entries += [
            (start, 0, i, 0, 2, calibrate.ENTER, 0),
            (start + 200_000, 200_000, i, 0, 1, calibrate.STAGE, 2),
        ]
        entries += [(start + 700_000, 0, i, 0, 3, calibrate.EXIT, 0)]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "records.bin").write_bytes(rows(*entries).tobytes())
    found = calibrate.stages_of(tmp_path)
    assert found["srv.inverse_kinematics"]["quantiles_ns"] == [200_000] * calibrate.QUANTILES
    assert found["srv.work"]["quantiles_ns"] == [500_000] * calibrate.QUANTILES
    assert set(found) == {"srv.inverse_kinematics", "srv.work"}


def test_calibration_keeps_wake_ups_and_sockets_of_each_node(tmp_path: Path) -> None:
    first = {"wakeup": [0, 10], "send": [4, 4], "receive": []}
    loops = [
        {"name": "home", "quantiles_ns": first},
        {"name": "home", "quantiles_ns": first | {"wakeup": [2, 20]}},
    ]
    (tmp_path / "result.json").write_text(json.dumps({"nodes": [*loops, {"name": "emulator"}]}))
    assert calibrate.nodes_of(tmp_path) == {
        "home": {"wakeup": {"quantiles_ns": [1, 15]}, "send": {"quantiles_ns": [4, 4]}}
    }


def test_calibration_leaves_work_out_where_a_delay_was_asked_for(tmp_path: Path) -> None:
    steps = [{"kind": "work", "delay": {"kind": "constant", "span_ns": 100}}]
    plan = {
        "components": [{"name": "op"}, {"name": "srv"}],
        "nodes": [],
        "flows": [{"name": "f", "path": [{"component": 1, "steps": steps}]}],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "records.bin").write_bytes(
        rows((0, 0, 0, 0, 2, calibrate.ENTER, 0), (900, 0, 0, 0, 3, calibrate.EXIT, 0)).tobytes()
    )
    assert calibrate.stages_of(tmp_path) == {}


def test_the_package_gives_its_names_lazily() -> None:
    import tcpsbed

    assert issubclass(tcpsbed.ConfigError, tcpsbed.TcpsbedError)
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = tcpsbed.nothing_such
    workspace = tomllib.loads((HERE.parents[1] / "Cargo.toml").read_text())
    assert workspace["workspace"]["package"]["version"] == tcpsbed.__version__


def test_run_from_python_takes_text_and_returns_the_run(tmp_path: Path) -> None:
    code = (
        "import tcpsbed\n"
        "run = tcpsbed.run('name = \"typed\"\\nduration = \"5 s\"\\n', seed=4, set=['delay_ms=2'], out='typed')\n"
        "print(type(run).__name__, run.summary['name'], run.summary['seed'], run.folder)\n"
    )
    from command import environment

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert done.stdout.strip() == "Run typed 4 typed", done.stderr


def test_export_writes_what_is_asked_for(tmp_path: Path) -> None:
    sample_run.write(tmp_path / "a")
    done = tcpsbed(tmp_path, "export", "a", "--csv", "--parquet")
    assert done.stdout.split() == ["a/samples.csv", "a/samples.parquet"], done.stderr
    assert tcpsbed(tmp_path, "export", "a", "--mcap", "--to", "b.mcap").stdout.split() == ["b.mcap"]
    assert tcpsbed(tmp_path, "export", "a", "--csv", "--to", "/dev/stdout").stdout == "", (
        "rows alone go there"
    )
    for wrong, named in (
        ([], "--operator FILE"),
        (["--csv", "--mcap", "--to", "x"], "--to"),
        (["--csv", "--flow", "haptic"], "--flow"),
        (["--operator", "f.csv", "--to", "g"], "--to"),
    ):
        done = tcpsbed(tmp_path, "export", "a", *wrong)
        assert done.returncode == 2 and named in done.stderr, done.stderr
    assert not (tmp_path / "f.csv").exists()


def test_show_and_compare_print_the_numbers(tmp_path: Path) -> None:
    sample_run.write(tmp_path / "a")
    sample_run.write(tmp_path / "b", shift=2.0)
    shown = tcpsbed(tmp_path, "show", "a")
    assert "kinematic: echo point" in shown.stdout and "records sha256" in shown.stdout
    table = tcpsbed(tmp_path, "compare", "a", "b").stdout
    assert re.search(r"delay mean \(ms\)\s+23\.680\s+25\.680\s+\+2\.000\s+1\.084", table)
    whole = tcpsbed(tmp_path, "compare", "a", "b", "--all").stdout
    assert re.search(r"^sent  +(\S.*?)  +\1  +0 ", whole, re.M) and not re.search(r"^sent ", table, re.M)
    assert re.search(r"^loss ", table, re.M), "what is tested is shown in any case"
    rows = [sum(line.count("  ") > 2 for line in told.splitlines()) for told in (table, whole)]
    left = re.search(
        r"^(\d+) of \d+ rows do not differ, or their difference may be 0; --all shows them\.$", table, re.M
    )
    assert left and int(left[1]) == rows[1] - rows[0] and "--all" not in whole
    asked = tcpsbed(tmp_path, "compare", "a", "b", "--metric", "kinematic.sent").stdout
    assert len(re.findall(r"^sent ", asked, re.M)) == 1


def test_strict_ends_with_3_where_a_run_was_disturbed(tmp_path: Path) -> None:
    """A sample run in real time is disturbed, one in virtual time is not."""
    file = str(scenario(tmp_path))
    for world, strict, status in (("real", (), 0), ("real", ("--strict",), 3), ("virtual", ("--strict",), 0)):
        done = tcpsbed(tmp_path, "run", file, "--world", world, "--out", f"{world}-{len(strict)}", *strict)
        assert done.returncode == status, done.stderr
        assert ("--strict was given" in done.stderr) == (status == 3)
