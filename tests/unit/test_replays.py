"""Texture over RTP and suturing: the shipped replays do what their pages say, and take recordings of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpsbed
from tcpsbed.analysis import signals

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HANDS = ["master_left.position", "master_left.gripper", "master_right.position", "master_right.gripper"]


def strokes(shipped_scenarios, out, *settings):
    run = tcpsbed.run(shipped_scenarios / "texture.toml", out=out, set=['duration="6 s"', *settings])
    assert run.summary["errors"] == []
    return run


def pitch_hz(values: np.ndarray, rate_hz: float) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(values * np.hanning(len(values))))
    return float(np.argmax(spectrum) * rate_hz / len(values))


def test_the_grating_is_felt_at_the_speed_of_the_stroke(shipped_scenarios, tmp_path):
    """At the middle of a stroke the finger goes 0.126 m/s over a grating of 1.5 mm."""
    run = strokes(shipped_scenarios, tmp_path)
    felt = signals.read(run.folder, "tactile-operator.exit", "haptic")
    made = signals.read(run.folder, "tactile-teleoperator.exit", "haptic")
    middle = (made.t_s > 2.4) & (made.t_s < 2.6)
    assert pitch_hz(made.values[middle, 2], 500.0) == pytest.approx(0.04 * np.pi / 1.5e-3, rel=0.1)
    assert len(felt.values) > 0.97 * len(made.values) and np.abs(felt.values[:, 2]).max() > 0.3


def likeness(run) -> float:
    """Correlation of what is shown with what was felt, a constant delay aside: 1 if it is the same."""
    made = signals.read(run.folder, "tactile-teleoperator.exit", "haptic")
    felt = signals.read(run.folder, "tactile-operator.exit", "haptic")
    t_s = np.arange(1.5, 5.5, 0.001)

    def held(signal, late_s: float) -> np.ndarray:
        return signal.values[np.searchsorted(signal.t_s, t_s + late_s, side="right") - 1, 2]

    return max(
        np.corrcoef(held(made, 0.0), held(felt, late_s))[0, 1] for late_s in np.arange(0.0, 0.08, 0.001)
    )


def test_older_payloads_and_playout_keep_the_texture(shipped_scenarios, tmp_path):
    plain = ('flows.haptic.transport.redundancy="none"', "flows.haptic.playout='hold'")
    runs = [
        strokes(shipped_scenarios, tmp_path / "plain", *plain),
        strokes(shipped_scenarios, tmp_path / "again"),
    ]
    lost, alike = [run.flows["haptic"]["loss"] for run in runs], [likeness(run) for run in runs]
    assert lost[0] == pytest.approx(0.01, abs=0.006) and lost[1] < 0.2 * lost[0]
    assert alike[1] > 0.97 and alike[0] < alike[1] - 0.1


def test_a_recording_of_strokes_goes_the_same_way(shipped_scenarios, tmp_path):
    columns = "['accel_x', 'accel_y', 'accel_z']"
    source = f"flows.haptic.source={{ recording = 'builtin:fabric', columns = {columns} }}"
    run = strokes(shipped_scenarios, tmp_path, source)
    assert run.flows["haptic"]["delivered"] > 2400


def sewn(shipped_scenarios, out, *settings):
    run = tcpsbed.run(shipped_scenarios / "suturing.toml", out=out, set=['duration="6 s"', *settings])
    assert run.summary["errors"] == []
    left = signals.read(run.folder, "ms-com.entry", "kinematic")
    there = signals.read(run.folder, "ss-com.exit", "kinematic")
    return run, left, there


def test_hands_of_30_hz_move_the_arms_at_1_khz(shipped_scenarios, tmp_path):
    run, left, there = sewn(shipped_scenarios, tmp_path)
    assert len(left.values) == pytest.approx(180, abs=2) and len(there.values) > 5800
    assert left.values.shape[1] == 8
    # A line through samples 33 ms apart is off by no more than a stitch turns meanwhile.
    late = np.interp(there.t_s - 0.002, left.t_s, left.values[:, 0])
    inside = (there.t_s > 0.5) & (there.t_s < 5.5)
    assert np.abs(there.values[inside, 0] - late[inside]).max() < 0.004
    points = {point["point"]: point for point in run.summary["echo"]["kinematic"]["points"]}
    assert points["ss-com.exit"]["round_trip_ms"]["mean"] > points["srv.entry"]["round_trip_ms"]["mean"]


def test_a_recording_in_the_layout_of_jigsaws_goes_the_same_way(shipped_scenarios, tmp_path):
    file = DATA / "kinematics" / "jigsaws" / "Suturing_D001.txt"
    if not file.exists():
        pytest.skip(f"needs {file}")
    _, left, there = sewn(shipped_scenarios, tmp_path, f"flows.kinematic.source.recording='{file}'")
    assert left.values.shape[1] == 8 and len(there.values) > 5500
    assert left.values[0, 0] == pytest.approx(0.176, abs=0.001)
