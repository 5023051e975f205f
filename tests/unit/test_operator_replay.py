"""What an operator did, recorded in one session and replayed in another, comes out as it went in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import operator, signals
from tcpsbed.errors import ConfigError, DataError

SCENARIO = """
name = "hand"
duration = "2 s"
[components]
tactile-operator = "desk"
ms-com = "desk"
ss-embsys = "field"
tactile-teleoperator = { node = "field", robot = "arm" }
[flows.kinematic]
rate = "500 Hz"
codec = "f64"
start = "3 ms"
source = { recording = "builtin:hand" }
[flows.haptic]
[hooks]
inverse_kinematics = { run = "arm3", at = "ss-embsys" }
kinematics = { run = "imu_wrist", at = "tactile-operator" }
"""
POINTS = '["tactile-operator.exit", "ss-embsys.entry", "tactile-teleoperator.sense"]'


def run(folder: Path, *sets: str) -> Path:
    """A session of two seconds."""
    folder.mkdir(exist_ok=True)
    (folder / "hand.toml").write_text(SCENARIO)
    tcpsbed.run(folder / "hand.toml", out=folder / "out", set=[f"measure.signals={POINTS}", *sets])
    return folder / "out"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("first"))


def test_a_session_replayed_is_the_same_session(first, tmp_path):
    file = operator.export(first, tmp_path / "hand.csv")
    again = run(tmp_path / "again", f"flows.kinematic.source=operator:{file}")
    for point in ("ss-embsys.entry", "tactile-teleoperator.sense"):
        before, after = signals.read(first, point), signals.read(again, point)
        assert np.array_equal(before.t_ns, after.t_ns)
        assert np.allclose(before.values, after.values, rtol=0, atol=1e-9, equal_nan=True)
    assert np.nanmax(np.ptp(signals.read(again, "ss-embsys.entry").values, axis=0)) > 0.01, "the hand moves"


def test_hooks_at_the_operator_are_left_out_and_others_run(first, tmp_path):
    file = operator.export(first, tmp_path / "hand.csv")
    (tmp_path / "hand.toml").write_text(SCENARIO)
    plan = scenarios.check(
        scenarios.load(tmp_path / "hand.toml", ["flows.kinematic.source=operator:hand.csv"])
    )
    steps = {
        plan["components"][at["component"]]["name"]: [step["kind"] for step in at["steps"]]
        for at in plan["flows"][0]["path"]
    }
    assert steps["tactile-operator"] == [] and steps["ss-embsys"] == ["inverse_kinematics"]
    assert plan["flows"][0]["source"] | {"path": ""} == {
        "kind": "values",
        "path": "",
        "columns": 6,
        "repeat": "hold",
    }
    assert file.read_text().splitlines()[0].startswith("time_s,v0,v1")


LATE = """
class Late:
    def __call__(self, t_ns, index, x, other, y):
        y[:3] = 0.2, 0.0, 0.1 + 1e-4 * index
        return 3 if index >= 50 else 0
"""


def test_an_operator_who_begins_later_begins_later_again(tmp_path):
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "late.py").write_text(LATE)
    late = run(tmp_path / "late", 'hooks.kinematics.run="./late.py:Late"')
    rows = operator.export(late, tmp_path / "hand.csv").read_text().splitlines()[1:4]
    assert [float(row.split(",")[0]) for row in rows] == pytest.approx([0.0, 0.1, 0.102])
    assert rows[0].split(",")[1:] == rows[1].split(",")[1:]


def test_every_console_session_records_its_operator(shipped_scenarios):
    scenario = scenarios.load(shipped_scenarios / "console.toml")
    (override,) = operator.recording(scenario)
    asked = scenarios.load(shipped_scenarios / "console.toml", [override]).measure.signals
    assert asked == [*scenario.measure.signals, "tactile-operator.exit"]


def test_what_was_not_recorded_cannot_be_replayed(first, tmp_path):
    with pytest.raises(DataError, match=r"--flow: .*allowed: kinematic"):
        operator.export(first, tmp_path / "x.csv", "haptic")
    silent = run(tmp_path / "silent", 'measure.signals=["ss-embsys.entry"]')
    with pytest.raises(DataError, match=r"tactile-operator\.exit"):
        operator.export(silent, tmp_path / "x.csv")
    (tmp_path / "hand.toml").write_text(SCENARIO)
    with pytest.raises(ConfigError, match=r"source.*nowhere\.csv"):
        scenarios.check(
            scenarios.load(tmp_path / "hand.toml", ["flows.kinematic.source=operator:nowhere.csv"])
        )
