"""Resampling: exact on lines, held on events, rotations stay rotations."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.datasets.resample import nearest_rotations, resample
from tcpsbed.datasets.track import Block, BlockKind, Track
from tcpsbed.errors import DataError

PATH = Path("a recording")


def track(times_s, values, **more):
    values = np.asarray(values, dtype=float).reshape(len(times_s), -1)
    return Track(
        PATH, [str(i) for i in range(values.shape[1])], np.asarray(times_s, dtype=float), values, **more
    )


@given(st.floats(0.5, 5000), st.lists(st.floats(1e-3, 2), min_size=1, max_size=30))
def test_a_straight_line_stays_one_at_any_rate_and_with_any_gaps(rate_hz, gaps):
    times = np.concatenate([[3.0], 3.0 + np.cumsum(gaps)])
    out = resample(track(times, 2.0 * times - 1.0), rate_hz)[:, 0]
    at = 3.0 + np.arange(len(out)) / rate_hz
    assert np.allclose(out, np.minimum(2.0 * at, 2.0 * times[-1]) - 1.0, atol=1e-6)
    assert (len(out) - 1) / rate_hz <= times[-1] - 3.0 + 1e-5 < len(out) / rate_hz + 2e-5


def test_a_recording_at_the_flows_rate_is_left_as_it_is():
    values = np.random.default_rng(1).normal(size=(500, 3))
    assert np.allclose(resample(track(np.arange(500) / 250.0, values), 250.0), values, atol=1e-9)


def test_events_hold_until_the_next_one():
    out = resample(track([0.0, 0.25, 0.6], [1, 2, 3], held={0}), 10.0)[:, 0]
    assert out.tolist() == [1, 1, 1, 2, 2, 2, 3]


def test_a_part_is_counted_from_the_first_row():
    out = resample(track([10.0, 20.0], [0.0, 10.0]), 1.0, 2.0, 4.0)[:, 0]
    assert out.tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(("start", "stop"), [(5.0, None), (-1.0, None), (0.9, 0.5), (0.0, -1.0)])
def test_a_part_that_is_not_there_is_refused(start, stop):
    with pytest.raises(DataError, match=r"the recording is 1\.000 s long"):
        resample(track([0.0, 1.0], [0, 1]), 10.0, start, stop)


def test_more_than_fits_in_memory_is_refused_before_it_is_made():
    with pytest.raises(DataError, match="choose a part"):
        resample(track([0.0, 1e7], [0, 1]), 8000.0)


def test_quaternions_of_either_sign_give_unit_quaternions_in_between():
    angle = np.linspace(0.0, 6.0, 61)
    q = np.column_stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle])
    q[1::2] *= -1.0  # the same rotations
    out = resample(track(angle, q, blocks=[Block(BlockKind.QUATERNION, 0)]), 100.0)
    at = np.arange(len(out)) / 100.0
    assert np.allclose(np.linalg.norm(out, axis=1), 1.0)
    assert np.allclose(out[:, 0], np.cos(at / 2), atol=1e-4)


def test_rotation_matrices_stay_rotations():
    """[Higham 1986] Half way between two turns about one axis is half the turn."""

    def turn(a):
        return [np.cos(a), -np.sin(a), 0, np.sin(a), np.cos(a), 0, 0, 0, 1]

    out = resample(track([0.0, 1.0], [turn(0.2), turn(1.2)], blocks=[Block(BlockKind.ROTATION, 0)]), 2.0)
    assert np.allclose(out[1], turn(0.7), atol=1e-12)


def test_the_nearest_rotation_is_one_even_for_a_mirror_or_nothing():
    """[Higham 1986]"""
    rows = np.vstack([np.random.default_rng(2).normal(size=(200, 9)), -np.eye(3).ravel(), np.zeros(9)])
    r = nearest_rotations(rows).reshape(-1, 3, 3)
    assert np.allclose(r @ r.transpose(0, 2, 1), np.eye(3), atol=1e-9)
    assert np.allclose(np.linalg.det(r), 1.0)
