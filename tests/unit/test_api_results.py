"""Typed results: every key of the summary is an attribute of its type; tables leave with numbers and units."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import sample_run
from analysis_run import write
from test_api_run import SHORT

import tcpsbed
from tcpsbed import DataError, Run
from tcpsbed.analysis import parts, typed
from tcpsbed.analysis.metrics import classes
from tcpsbed.analysis.parts import Distribution, Part
from tcpsbed.analysis.typed import Summary


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write(tmp_path_factory.mktemp("run")))


def walk(part: Part) -> None:
    """Asks for every attribute, of parts below too."""
    for name, kind in parts._types(type(part)).items():
        if kind in (int, bool) and part.get(name) is None:
            continue
        value = getattr(part, name)
        for one, of in inside(value, kind):
            assert isinstance(one, float | int if of is float else get_origin(of) or of), (
                type(part),
                name,
                one,
            )
            if isinstance(one, Part):
                walk(one)


def inside(value: Any, kind: Any) -> list[tuple[Any, Any]]:
    """A value with its type, or those in it."""
    if get_origin(kind) is list:
        return [pair for one in value for pair in inside(one, get_args(kind)[0])]
    if get_origin(kind) is dict:
        return [pair for one in value.values() for pair in inside(one, get_args(kind)[1])]
    return [] if kind is Any else [(value, kind)]


def test_the_types_are_those_of_the_table_of_metrics() -> None:
    assert classes.FILE.read_text(encoding="utf-8") == classes.module(), "stale: tools/tables.py --write"
    for name, part in vars(typed).items():
        if isinstance(part, type) and issubclass(part, Part):
            assert not [key for key in parts._types(part) if hasattr(dict, key)], name


def test_every_number_has_the_type_that_it_says(run: Run) -> None:
    walk(run.summary)
    walk(Summary(sample_run.summary()))


def test_attributes_and_keys_are_the_same_numbers(run: Run) -> None:
    flow = run.flows["kinematic"]
    assert (
        flow.delay_ms.p99 == flow["delay_ms"]["p99"] == run.summary["flows"]["kinematic"]["delay_ms"]["p99"]
    )
    assert isinstance(flow.delay_ms, Distribution) and flow.sent == 4000
    assert (
        run.summary.path["kinematic"][0].latency_ms.mean
        == run.summary["path"]["kinematic"][0]["latency_ms"]["mean"]
    )
    assert run.summary.echo["kinematic"].components[0].from_ == "srv.entry"
    assert json.loads(json.dumps(run.summary)) == copy.deepcopy(run.summary) == run.summary


def test_what_a_run_lacks_is_nan_empty_or_said(run: Run) -> None:
    flow = run.flows["kinematic"]
    assert flow.snr_db is not None and math.isnan(flow.snr_db) and flow["snr_db"] is None
    assert not flow.playout and math.isnan(flow.playout.age_ms.p99) and flow.playout.get("late") is None
    with pytest.raises(AttributeError, match="this run has no late of FlowPlayout"):
        _ = flow.playout.late
    with pytest.raises(AttributeError, match=r"Flow has no delay_m \(did you mean delay_ms\?\)"):
        _ = flow.delay_m  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match=r"found .*kinematik.* \(did you mean kinematic\?\)"):
        _ = run.flows["kinematik"]


def test_a_cell_of_a_notebook_has_a_bar_for_each_place_that_took_time(run: Run) -> None:
    shown = run._repr_html_()
    took = [part for part in run.summary.path["kinematic"] if part.latency_ms.mean > 0]
    assert shown.count('<svg class="lane"') == len(took) > 1
    assert all(part.name.replace("->", "→").replace(" → ", " → ") in shown for part in took)
    assert "#term-" not in shown and "<li>kinematic: 4000 sent" in shown


def test_tables_leave_with_numbers_and_units(run: Run) -> None:
    latency = run.latency.to_arrow()
    assert str(latency.schema.field("p99").type) == "double"
    assert latency.schema.field("p99").metadata == {b"unit": b"ms"}
    assert latency["mean"].to_pylist() == [row["mean"] for row in run.latency]
    samples = run.samples.to_arrow()
    units = {one.name: one.metadata for one in samples.schema if one.metadata}
    assert units == {"time_ns": {b"unit": b"ns"}, "value_ns": {b"unit": b"ns"}, "size_bytes": {b"unit": b"B"}}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_tables_leave_to_data_frames(run: Run, package: str) -> None:
    pytest.importorskip(package)
    for table in (run.latency, run.samples):
        frame = getattr(table, f"to_{package}")()
        assert type(frame).__module__.startswith(package)
        assert (
            list(frame.columns) == table.to_arrow().column_names and len(frame) == table.to_arrow().num_rows
        )
    assert run.latency.to_arrow()["p99"][0].as_py() == getattr(run.latency, f"to_{package}")()["p99"][0]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(run: Run, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=rf"found no package {package}.*pip install 'tcpsbed\[{package}\]'"):
        getattr(run.latency, f"to_{package}")()


def test_results_are_opened_from_their_folder(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    run = tcpsbed.run(tmp_path / "short.toml", out=tmp_path / "out")
    assert tcpsbed.load(tmp_path / "out").summary == run.summary


def test_what_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    for where, message in (
        (tmp_path / "nowhere", "no such folder"),
        (tmp_path, r"has no summary\.json"),
        (tmp_path / "short.toml", r"is a scenario; allowed: tcpsbed\.Scenario\.read"),
    ):
        with pytest.raises(DataError, match=message):
            tcpsbed.load(where)


@pytest.mark.slow
def test_a_program_is_clean_for_a_checker_of_types(tmp_path: Path, root: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(
        "import tcpsbed\n"
        "run = tcpsbed.run('a.toml', set={'links.wan.rate': '2 Mbit/s'}, seeds=2, progress=True)\n"
        "late: float = run.flows['haptic'].delay_ms.p99\n"
        "part: str = run.summary.path['haptic'][0].name\n"
        "link = tcpsbed.Link(rate='2 Mbit/s', from_='a', to='b')\n"
        "scenario = tcpsbed.Scenario(duration='1 s', links={'wan': link})\n"
        "text: str = scenario.to_toml()\n"
        "rows: int = len(run.latency)\n"
    )
    wrong.write_text(f"{right.read_text()}run.flows['haptic'].delay_m\ntcpsbed.Link(rat='1 Mbit/s')\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--follow-imports=silent",
        right,
        wrong,
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if "right.py" in line] == [], done.stdout
    assert 'error: "Flow" has no attribute "delay_m"' in done.stdout
    assert 'Unexpected keyword argument "rat" for "Link"' in done.stdout
    assert "checked 2 source files" in lines[-1], done.stdout + done.stderr


def test_runs_are_compared_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    fast, slow = (
        tcpsbed.run(tmp_path / "short.toml", set={"links.wan.delay": delay}, out=tmp_path / delay[0])
        for delay in ("1 ms", "3 ms")
    )
    found = tcpsbed.compare(fast, tmp_path / "3")
    (row,) = (row for row in found.rows if row.metric.name == "delay_mean_ms")
    assert row.difference(1) == pytest.approx(2)
    assert row.ratio(1) == slow.flows["kinematic"].delay_ms.mean / fast.flows["kinematic"].delay_ms.mean
    lines = [line for line in found.to_arrow().to_pylist() if line["metric"] == "delay_mean_ms"]
    assert [(line["run"], line["unit"], line["difference"]) for line in lines] == [
        ("A", "ms", 0),
        ("B", "ms", row.difference(1)),
    ]
    assert "delay mean (ms)" in str(found) and "<table" in found._repr_html_()
