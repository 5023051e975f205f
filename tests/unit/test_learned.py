"""Learned models: trained on one recording, tried on another, run as a hook, compared by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recorded import recorded
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.cli.app import app
from tcpsbed.errors import DataError, TcpsbedError
from tcpsbed.lab.control import prediction, training
from tcpsbed.lab.control.network import Model, Network
from tcpsbed.lab.control.prediction import Recorded

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
COLUMNS = "position.x,position.y,position.z"
SHORT = training.Plan(epochs=4)


def hand(seed: int, seconds: float = 12.0) -> Recorded:
    """Two values that move like a hand: sums of slow sines whose phases the seed draws."""
    draw = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1e-3)
    columns = [
        sum(
            draw.uniform(0.2, 1) / hz * np.sin(2 * np.pi * hz * t + draw.uniform(0, 7))
            for hz in draw.uniform(0.3, 4, 6)
        )
        for _ in range(2)
    ]
    return Recorded(f"hand {seed}", 0.05 * np.stack(columns, axis=1), 1.0)


@pytest.fixture(scope="module")
def network() -> Network:
    return training.train([hand(1), hand(2)], SHORT)


@pytest.fixture(scope="module")
def model(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return network.save(tmp_path_factory.mktemp("model") / "hand.onnx")


def test_the_file_computes_what_the_network_does(network: Network, model: Path) -> None:
    found, draw = Model(model), np.random.default_rng(3)
    assert (found.window, found.horizons_ms, found.period_ms) == (32, (5, 10, 20, 50), 1)
    windows = draw.normal(size=(50, 32)).cumsum(axis=1)
    assert np.allclose(found.guess(windows), network.guess(windows), rtol=1e-9)
    still = np.full((1, 32), 0.7)
    assert np.allclose(found.guess(still), 0.7), "an input that rests is predicted to rest"


def test_unit_and_size_make_no_difference(network: Network) -> None:
    windows = np.random.default_rng(4).normal(size=(5, 32)).cumsum(axis=1)
    assert np.allclose(network.guess(1000 * windows + 7), 1000 * network.guess(windows) + 7)


# [model: predictors]
def test_on_a_signal_that_it_was_not_trained_on_it_beats_the_filter(model: Path) -> None:
    scores = prediction.compare(hand(9), [5, 12, 20, 50], ["kalman_velocity", "zoh", str(model)])
    rms = {(s.predictor, s.horizon_ms): s.rms for s in scores}
    for ms in (5, 12, 20, 50):
        assert rms["hand.onnx", ms] < rms["kalman_velocity", ms] < rms["zoh", ms], ms
    assert all(s.update_ns > 0 for s in scores)


@pytest.mark.slow
def test_trained_on_two_recordings_it_beats_the_filter_on_a_third(tmp_path: Path) -> None:
    """[model: predictors] A haptic device and a surgeon's hands teach it; the hand that ships, on which the filter's
    defaults were chosen, it has never seen: RMS at 20 ms.
    """
    device = {"recording": str(recorded("haptic/kinesthetic_1khz/sDB.txt")), "columns": COLUMNS.split(",")}
    surgeon = prediction.recorded(
        {"recording": str(recorded("kinematics/jigsaws/Suturing_D001.txt"))}, 1000.0
    )
    hands = Recorded("hands", surgeon.values[:, [0, 1, 2, 19, 20, 21]], surgeon.period_ms)
    found = training.train([prediction.recorded(device, 1000.0), hands], training.Plan(epochs=6))
    file = str(found.save(tmp_path / "two.onnx"))
    scores = prediction.compare(prediction.wrist(), [20], ["kalman_velocity", file])
    assert scores[1].rms < scores[0].rms, scores


@pytest.mark.slow
def test_on_a_recording_of_another_kind_the_answer_is_told(tmp_path: Path) -> None:
    """Trained on the wrist of the recording that ships, tried on one made with another device."""
    file = recorded("haptic/kinesthetic_1khz/sDB.txt")
    model = str(tmp_path / "wrist.onnx")
    arguments = ["--test", str(file), "--columns", COLUMNS, "--epochs", "6", "--json"]
    done = CliRunner().invoke(app, ["predict", "train", model, *arguments])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert not told["trained_on_it"]
    rms = {s["predictor"]: s["rms"] for s in told["recordings"][0]["scores"] if s["horizon_ms"] == 20}
    assert set(rms) == {"kalman_velocity", "wrist.onnx"} and all(value > 0 for value in rms.values())


def test_the_verdict_is_in_words(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    table = np.column_stack([np.arange(4000) / 1e3, hand(1, 4).values])
    np.savetxt(file, table, delimiter=",", header="time,x,y", comments="")
    arguments = ["--on", str(file), "--columns", "x,y", "--epochs", "1"]
    own = CliRunner().invoke(app, ["predict", "train", str(tmp_path / "m.onnx"), *arguments])
    assert own.exit_code == 0 and "on what it was trained on" in own.output, own.output
    assert "better" in own.output
    for option in ("--rate", "--columns"):
        idle = CliRunner().invoke(app, ["predict", "train", "m.onnx", option, "2 kHz"])
        assert idle.exit_code == 2 and "recording of your own" in idle.output, idle.output
    wrong = CliRunner().invoke(app, ["predict", "train", "m.bin"])
    assert wrong.exit_code == 2 and "ending in .onnx" in wrong.output


def test_it_runs_as_a_hook_that_fills_gaps(model: Path, tmp_path: Path) -> None:
    """Half of the commands are lost: the model's answers are nearer to the hand than the last command held."""
    values = hand(9, 4.0).values
    np.savetxt(tmp_path / "hand.csv", np.column_stack([np.arange(len(values)) / 1e3, values]), delimiter=",",
               header="time,x,y", comments="")  # fmt: skip
    text = f"""
name = "learned"
duration = "3 s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
[flows.kinematic]
source = {{ recording = "hand.csv", columns = ["x", "y"] }}
codec = "f64"
[hooks.guess]
kind = "predict"
run = "{model}"
at = "ss-com"
flow = "kinematic"
period = "1 ms"
params = {{ ahead_ms = 20 }}
[links.line]
from = "ms"
to = "ss"
delay = "20 ms"
loss = {{ kind = "gilbert-elliott", p = "10 %", r = "10 %" }}
[measure]
signals = ["ms-com.entry", "ss-com.exit"]
"""
    errors = {}
    held = text.replace(str(model), "zoh").replace("params = { ahead_ms = 20 }\n", "")
    for name, scenario in (("learned", text), ("zoh", held)):
        (tmp_path / "s.toml").write_text(scenario)
        run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / name)
        truth = signals.read(run.folder, "ms-com.entry", "kinematic")
        out = signals.read(run.folder, "ss-com.exit", "kinematic")
        there = np.stack([np.interp(out.t_ns, truth.t_ns, truth.values[:, i]) for i in (0, 1)], axis=1)
        errors[name] = np.sqrt(((out.values - there) ** 2)[500:].sum(axis=1).mean())
    assert errors["learned"] < 0.7 * errors["zoh"], errors


def test_what_is_no_model_is_refused_in_words(tmp_path: Path, model: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"no\.onnx"):
        Model(tmp_path / "no.onnx")
    with pytest.raises(DataError, match="no such file"):
        Model(tmp_path / "absent.onnx")
    with pytest.raises(DataError, match="CPUExecutionProvider"):
        Model(model, "MagicExecutionProvider")
    with pytest.raises(DataError, match="longer recording"):
        training.train([hand(1, 0.1)], SHORT)
    with pytest.raises(DataError, match="one rate"):
        training.train([hand(1), Recorded("slow", hand(2).values, 2.0)], SHORT)
    for horizon_ms in (0.4, 2.5):
        with pytest.raises(DataError, match="whole multiples"):
            training.train([hand(1)], training.Plan(horizons_ms=(horizon_ms, 5.0)))
    with pytest.raises(TcpsbedError, match="trained for"):
        prediction.compare(Recorded("slow", hand(2).values, 2.0), [20], [str(model)])
    with pytest.raises(TcpsbedError, match="farthest"):
        prediction.compare(hand(2), [100], [str(model)])
