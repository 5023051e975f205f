"""Predictors on recorded motion: the built-in hand, a file made for it, and the command."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded import recorded
from typer.testing import CliRunner

from tcpsbed import _tcps
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.lab.control import prediction

HORIZONS = (5.0, 10.0, 20.0, 50.0)


def scores(found: prediction.Recorded, *predictors: str) -> dict[tuple[str, float], prediction.Score]:
    every = prediction.compare(found, HORIZONS, predictors or _tcps.builtins()["predictors"])
    return {(score.predictor, score.horizon_ms): score for score in every}


def test_on_a_hand_that_moves_a_model_of_it_is_better_than_a_hold():
    """[model: predictors] RMS at 20 ms: operator's model, Kalman filter and line beat the zero-order hold by far."""
    found = scores(prediction.wrist())
    assert set(found) == {(name, ms) for name in _tcps.builtins()["predictors"] for ms in HORIZONS}
    for name in ("operator", "kalman_velocity", "linear"):
        assert found[name, 20.0].rms < 0.5 * found["zoh", 20.0].rms, name
    assert found["operator", 20.0].rms < found["kalman_velocity", 20.0].rms
    for score in found.values():
        assert 0 < score.rms <= score.worst and score.blended == pytest.approx(score.worst / 3)


def test_a_hold_is_wrong_by_what_the_signal_moves():
    """[model: predictors] Against numpy: x(t + h) - x(t) over the samples after the first half second."""
    values = np.sin(np.arange(4000) / 100.0)[:, None] * [1.0, 2.0]
    found = scores(prediction.Recorded("sine", values, 1.0), "zoh")
    for ms in HORIZONS:
        moved = np.linalg.norm(values[500 + int(ms) :] - values[500 : -int(ms)], axis=1)
        assert found["zoh", ms].rms == pytest.approx(math.sqrt((moved**2).mean()))
        assert found["zoh", ms].worst == pytest.approx(moved.max())


@pytest.mark.parametrize("path", ["haptic/kinesthetic_1khz/sDB.txt", "kinematics/jigsaws/Suturing_D001.txt"])
def test_recordings_beside_the_project(path):
    """All predictors stay within ten times the hold's error at 20 ms, force and robot motion alike (the first 10 s)."""
    whole = prediction.recorded({"recording": str(recorded(path))}, 1000.0)
    found = scores(replace(whole, values=whole.values[:10_000]))
    for name in _tcps.builtins()["predictors"]:
        assert found[name, 20.0].rms < 10 * found["zoh", 20.0].rms, name


def test_what_cannot_be_compared_is_a_message():
    short = prediction.Recorded("short", np.zeros((100, 1)), 1.0)
    for found, horizons, text in (
        (short, [5.0], "0.10 s"),
        (prediction.Recorded("x", np.zeros((9000, 1)), 1.0), [0.1], "--horizons"),
        (prediction.Recorded("x", np.full((9000, 1), np.nan), 1.0), [5.0], "not finite"),
    ):
        with pytest.raises(ConfigError if text.startswith("--") else DataError, match=text):
            prediction.compare(found, horizons, ["zoh"])
    with pytest.raises(ConfigError) as refused:
        prediction.compare(prediction.Recorded("x", np.zeros((9000, 1)), 1.0), [5.0], ["linear", "linaer"])
    assert str(refused.value) == (
        '--predictors: found "linaer" (did you mean linear?); allowed: ar, kalman_acceleration, kalman_velocity, '
        "linear, operator, zoh, or a learned model such as hand.onnx"
    )


def test_the_command_prints_a_table_and_json(tmp_path: Path):
    file = tmp_path / "ramp.csv"
    file.write_text("t_ms,x\n" + "".join(f"{n},{n / 1000}\n" for n in range(2000)))
    command = ["predict", "compare", str(file), "--horizons", "20 ms", "--predictors", "zoh,linear"]
    table = CliRunner().invoke(app, command)
    assert table.exit_code == 0 and "RMS 20 ms" in table.output and "linear" in table.output
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["scores"]
    assert found[0]["rms"] == pytest.approx(0.02) and found[1]["rms"] == pytest.approx(0, abs=1e-9)
