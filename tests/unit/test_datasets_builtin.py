"""What ships: the recordings are there, small, and what they are said to be."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tcpsbed.datasets import builtin, frames, recordings
from tcpsbed.errors import DataError

HERE = Path()


def test_all_of_it_is_small():
    sizes = {path: path.stat().st_size for path in builtin.DATA.rglob("*") if path.is_file()}
    assert all(size < 1_000_000 for size in sizes.values()), sizes
    assert sum(sizes.values()) < 2_500_000, (
        "a film, its pictures, its sound, a sentence, a hand, arms, fabric, a surface"
    )


def test_the_hand_is_rates_and_forces_in_si_units():
    hand = recordings.open_values({"recording": "builtin:hand"}, 1000, HERE)
    assert hand.shape == (19_997, 6) and hand.dtype == np.float64 and hand.flags.c_contiguous
    force = np.linalg.norm(hand[:, 3:], axis=1)
    assert 9.0 < np.median(force) < 13.0  # gravity, and what a hand adds in motion
    assert 1.0 < np.abs(hand[:, :3]).max() < 15.0  # rad/s, of a hand in motion


@pytest.mark.parametrize("name", builtin.USUAL)
def test_the_first_row_is_that_of_all_values(name):
    spec = {"recording": f"builtin:{name}"}
    values = recordings.open_values(spec, 1000, HERE)
    assert builtin.first_row(spec) == values[0].tolist()
    assert builtin.first_row(spec | {"scale": 2.0}) is None, "what changes it needs all of it"


def test_the_orientation_that_the_sensor_computed_turns_gravity_up():
    spec = {"recording": "builtin:hand", "columns": ["accel_x", "accel_y", "accel_z", "qw", "qx", "qy", "qz"]}
    hand = recordings.open_values(spec, 256, HERE)
    f, q = hand[:, :3], hand[:, 3:]
    assert np.allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-12)
    w, v = q[:, :1], -q[:, 1:]  # from the earth's frame to the sensor's, turned round
    t = 2 * np.cross(v, f)
    up = (f + w * t + np.cross(v, t)).mean(axis=0)
    assert up[2] == pytest.approx(9.8, abs=0.5) and np.hypot(up[0], up[1]) < 1.5


def test_the_clip_is_h264_with_one_picture_a_frame():
    content, offsets = frames.open_frames({"frames": "builtin:clip"}, 25, HERE)
    assert len(offsets) == 126 and offsets[-1] == len(content)
    starts = {content[at : at + 4] for at in offsets[:-1]}
    assert starts <= {b"\0\0\0\1", b"\0\0\1\x06", b"\0\0\1\x67", b"\0\0\1\x41", b"\0\0\1\x01"}, starts
    assert (
        b"\0\0\0\1\x67" in content[:64] or b"\0\0\1\x67" in content[:64]
    )  # parameters before the first picture


def test_the_sound_comes_in_frames_of_20_ms():
    content, offsets = frames.open_frames({"frames": "builtin:sound"}, 50, HERE)
    assert offsets == list(range(0, 160_001, 640))  # 320 samples of 2 bytes
    samples = np.frombuffer(content, "<i2")
    assert 500 < np.abs(samples).max() < 32_767


def test_the_arms_follow_their_commands():
    track = recordings.open_track({"recording": "builtin:arms"}, HERE)
    assert {"action.kLeftElbow", "observation.state.kLeftElbow"} <= set(track.names)
    arms = recordings.open_values({"recording": "builtin:arms"}, 30.0, HERE)
    assert arms.shape[1] == 26 and 0.1 < np.ptp(arms, axis=0).max() < 4.0  # rad


def test_the_fabric_shakes_what_strokes_it():
    fabric = recordings.open_values({"recording": "builtin:fabric"}, 100.0, HERE)
    assert fabric.shape == (2000, 3) and np.all(fabric.std(axis=0) > 0.01)


def test_the_grating_has_grooves_of_half_a_micrometre():
    heights = np.load(builtin.DATA / "grating.npy", allow_pickle=False)
    assert heights.shape == (128, 128) and heights.min() == 0.0 and 500 < heights.max() < 600


def test_an_unknown_name_is_answered_with_what_there_is():
    with pytest.raises(DataError, match=r"no built-in recording 'song'.*builtin:hand.*builtin:sound"):
        builtin.resolve("builtin:song", HERE)


def test_a_file_that_is_absent_or_a_folder(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        builtin.resolve("nowhere.csv", tmp_path)
    with pytest.raises(DataError, match="a folder"):
        builtin.resolve(".", tmp_path)


def test_the_notice_names_every_recording():
    notice = (Path(__file__).resolve().parents[2] / "NOTICE").read_text(encoding="utf-8")
    index = json.loads((builtin.DATA / "clip.json").read_text())
    for name in [*builtin.FILES.values(), index["file"], "grating.npy"]:
        assert name in notice
    assert "Blender Foundation" in notice and "Thomas Haslwanter" in notice


def test_opening_twice_gives_the_same_bytes():
    once, again = (recordings.open_values({"recording": "builtin:hand"}, 1000, HERE) for _ in range(2))
    assert hashlib.sha256(once).digest() == hashlib.sha256(again).digest()
