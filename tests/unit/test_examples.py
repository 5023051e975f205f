"""The examples run, say what they promise, and are short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed.analysis import signals

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def told(folder: Path, *command: str) -> str:
    """What a program prints that runs in this folder."""
    settings = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(EXAMPLES.parent / "python")}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=settings, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart(tmp_path):
    pytest.importorskip("matplotlib")
    lines = told(tmp_path, str(EXAMPLES / "quickstart.py"), "2 s")
    assert "kinematic: 1500 sent" in lines and "ms-com -> srv" in lines
    assert (tmp_path / "runs" / "latest" / "delay.png").is_file()


def test_larger_buffers_lose_less_and_delay_more(tmp_path):
    pytest.importorskip("matplotlib")
    lines = told(tmp_path, str(EXAMPLES / "compare_buffers.py"), "5 s").splitlines()
    rows = [line.split() for line in lines if "loss" in line]
    loss, delay = ([float(row[i]) for row in rows] for i in (3, 6))
    assert len(rows) == 4
    assert loss == sorted(loss, reverse=True) and loss[0] > loss[-1] == 0.0
    assert delay == sorted(delay) and delay[-1] > 1.2 * delay[0]
    assert (tmp_path / "buffers.png").is_file()


def test_own_robot_meets_its_stop_and_says_when_it_has_arrived(tmp_path):
    run = tcpsbed.run(EXAMPLES / "own_robot.toml", out=tmp_path, set=['duration="4 s"'])
    assert run.summary["stages"] == [] and run.summary["errors"] == []
    held = next(
        point for point in run.summary["echo"]["kinematic"]["points"] if point["point"].endswith("held")
    )
    assert held["n"] > 10
    assert run.summary["echo"]["kinematic"]["actuation_ms"]["mean"] > 1


def test_the_drawer_stops_where_it_must():
    sys.path.insert(0, str(EXAMPLES))
    try:
        from own_robot import Drawer
    finally:
        sys.path.pop(0)
    drawer, sense = Drawer(stop_m=0.2), np.zeros(3)
    for t_ms in range(1000):
        assert drawer.step(t_ms * 1_000_000, np.array([0.25]), sense) == 3
    force, x, v = sense
    assert 0.2 < x < 0.22 and abs(v) < 1e-3
    assert force == pytest.approx(5000 * (x - 0.2)) and force == pytest.approx(2000 * (0.25 - x), rel=0.01)
    assert not drawer.arrived()  # pushed into the stop by more than its tolerance
    drawer.goal_m = drawer.x_m = 0.1
    assert drawer.arrived()


def test_own_predictor_fills_the_gaps(tmp_path):
    """Half of the samples are lost, and yet the robot gets one a millisecond."""
    run = tcpsbed.run(EXAMPLES / "hooks" / "own_predictor.toml", out=tmp_path, set=['duration="3 s"'])
    flow = run.flows["kinematic"]
    assert 0.3 < flow["loss"] < 0.7
    assert flow["delivered"] + flow["repeated"] > 0.98 * flow["sent"]
    (stage,) = [stage for stage in run.summary["stages"] if stage["kind"] == "predict"]
    assert stage["failures"] == 0 and stage["calls"] > 2900


def test_own_source_fills_the_link_and_own_queue_lets_short_packets_go_first(tmp_path):
    def delay_ms(name):
        run = tcpsbed.run(EXAMPLES / f"{name}.toml", out=tmp_path / name, set=['duration="3 s"'])
        assert run.summary["errors"] == []
        return run.flows["kinematic"]["delay_ms"]["p99"]

    assert delay_ms("own_traffic") > 60 and delay_ms("own_queue") < 9


def test_own_component_smooths(tmp_path):
    points = 'measure.signals=["gateway.entry", "gateway.exit"]'
    sets = ['duration="3 s"', points, 'measure.records="samples"']
    run = tcpsbed.run(EXAMPLES / "own_component.toml", out=tmp_path, set=sets)
    assert run.summary["errors"] == [] and {stage["failures"] for stage in run.summary["stages"]} == {0}
    raw, smooth = (signals.read(tmp_path, f"gateway.{end}", "kinematic") for end in ("entry", "exit"))
    follows = [raw.values[0]]
    for value in raw.values[1:]:  # one a millisecond, and a lag of 10 ms
        follows.append(follows[-1] + (value - follows[-1]) / 11)
    size = len(smooth.values)
    assert smooth.values == pytest.approx(np.array(follows)[:size], abs=1e-6) and np.ptp(raw.values) > 0.01


def test_own_hook_halves_what_is_felt(tmp_path):
    sets = [
        'measure.records="samples"',
        'measure.signals=["tactile-operator.entry", "tactile-operator.exit"]',
    ]
    tcpsbed.run(EXAMPLES / "hooks" / "own_hook.toml", out=tmp_path, set=sets)
    came, felt = (signals.read(tmp_path, f"tactile-operator.{end}", "haptic") for end in ("entry", "exit"))
    assert np.abs(came.values).max() > 0
    assert felt.values == pytest.approx(np.clip(came.values / 2, -3, 3))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.*")), ids=lambda path: path.name)
def test_examples_are_short(path):
    if path.suffix in (".py", ".toml", ".c"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
