"""Resampling of a recording to the rate of a flow.

Between two rows, continuous columns are interpolated linearly and event columns hold the older value.
Quaternions are brought to one hemisphere, interpolated linearly and normalised; rotation matrices are
interpolated linearly and replaced by the nearest rotation (the orthogonal factor of the polar decomposition,
[Higham 1986]). Going down in rate takes values at the new times without a filter: what the flow samples is
what a sensor polled at that rate would show.
"""

import numpy as np

from tcpsbed.datasets.track import BlockKind, Track, Values
from tcpsbed.errors import DataError

#: More rows than this are refused: 8 h at 1 kHz.
MOST_ROWS = 30_000_000


def resample(
    track: Track, rate_hz: float, start_s: float | None = None, stop_s: float | None = None
) -> Values:
    """Return the values at `start_s`, `start_s + 1/rate_hz`, ... up to `stop_s`, shape [n, columns].

    Parameters
    ----------
    track
        The recording.
    rate_hz
        Rows a second.
    start_s, stop_s
        The part wanted, in s after the recording's first row; absent: all of it.

    Raises
    ------
    DataError
        The part is empty, lies outside the recording, or would be too long.
    """
    at = _moments(track, rate_hz, start_s, stop_s)
    out = np.empty((len(at), track.values.shape[1]))
    aligned = _one_hemisphere(track)
    for column in range(out.shape[1]):
        if column in track.held:
            row = np.searchsorted(track.times_s, at, side="right") - 1
            out[:, column] = track.values[row, column]
        else:
            out[:, column] = np.interp(at, track.times_s, aligned[:, column])
    for block in track.blocks:
        normalise = _unit if block.kind is BlockKind.QUATERNION else nearest_rotations
        out[:, block.columns] = normalise(out[:, block.columns])
    return out


def _moments(track: Track, rate_hz: float, start_s: float | None, stop_s: float | None) -> Values:
    first, last = float(track.times_s[0]), float(track.times_s[-1])
    length = last - first
    start, stop = start_s or 0.0, length if stop_s is None else min(stop_s, length)
    if not 0.0 <= start <= stop:
        raise DataError(
            f"found no part from {start} s to {stop_s if stop_s is not None else length} s",
            file=track.path,
            key="start, stop",
            allowed=f"the recording is {length:.3f} s long",
        )
    # A millionth of a step is room for times that were rounded when they were written.
    rows = int((stop - start) * rate_hz + 1e-6) + 1
    if rows > MOST_ROWS:
        raise DataError(
            f"found {rows} rows at {rate_hz:g} Hz from a recording of {length:.0f} s",
            file=track.path,
            allowed=f"at most {MOST_ROWS} rows: choose a part with start and stop",
        )
    return np.asarray(first + start + np.arange(rows) / rate_hz)


def _one_hemisphere(track: Track) -> Values:
    """Return the values with the sign of quaternions chosen so that neighbours are near each other."""
    quaternions = [b for b in track.blocks if b.kind is BlockKind.QUATERNION]
    if not quaternions:
        return track.values
    values = track.values.copy()
    for block in quaternions:
        q = values[:, block.columns]
        flips = np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0)
        values[1:, block.columns] *= np.cumprod(flips)[:, None]
    return values


def _unit(q: Values) -> Values:
    norm = np.linalg.norm(q, axis=1, keepdims=True)
    identity = np.array([1.0, 0.0, 0.0, 0.0])
    return np.where(norm > 1e-9, q / np.maximum(norm, 1e-9), identity)


def nearest_rotations(matrices: Values) -> Values:
    """Return the rotation nearest to each row-major 3x3 matrix, shape [n, 9] in and out."""
    u, _, vt = np.linalg.svd(matrices.reshape(-1, 3, 3))
    u[:, :, 2] *= np.linalg.det(u @ vt)[:, None]
    return np.asarray((u @ vt).reshape(-1, 9))
