"""Recordings of motion and force as values at a flow's rate.

A scenario says

```toml
[flows.kinematic.source]
recording = "builtin:hand"       # or a path relative to the scenario file
format = "auto"                  # auto, csv, jigsaws, lerobot, mouse, kinesthetic, vibtac12
columns = ["gyro_x", "gyro_y"]   # names, fronts of names or numbers from 0; absent: the usual ones
scale = 0.001                    # factor to SI units, one for all columns or one each
start = 2.0                      # s
stop = 12.0                      # s
```
and, for a csv without a column of time, `rate_hz`; for one whose time is not in seconds, `time_unit`; of a data set of
LeRobot the `episode` (from 0), of VibTac-12 the `texture` (1 to 12).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcpsbed.datasets import builtin
from tcpsbed.datasets.formats import READERS, guess, is_data_set
from tcpsbed.datasets.resample import resample
from tcpsbed.datasets.track import Track, Values
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

#: Keys that only one format understands.
OPTIONS = {"csv": ("rate_hz", "time", "time_unit"), "lerobot": ("episode",), "vibtac12": ("texture",)}
KEYS = (
    *("recording", "format", "columns", "scale", "start", "stop"),
    *(key for keys in OPTIONS.values() for key in keys),
)


def open_values(spec: Mapping[str, Any], rate_hz: float, base: Path) -> Values:
    """Return a recording's values at `rate_hz`.

    Parameters
    ----------
    spec
        The keys of the module's example.
    rate_hz
        Rate of the flow.
    base
        Folder that relative paths start from.

    Returns
    -------
    ndarray of float64, shape [n, columns]
        In SI units after `scale`; row `i` is `i / rate_hz` after the start.

    Raises
    ------
    DataError
        The file is absent, unreadable or not of its format; a key or a column does not exist.
    """
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise DataError(f"found a rate of {rate_hz} Hz", allowed="a rate above 0, such as 1000 Hz")
    track = open_track(spec, base)
    wanted = track.columns(_columns(spec, track))
    values = resample(track, rate_hz, _number(spec, "start"), _number(spec, "stop"))[:, wanted]
    return np.ascontiguousarray(values * _scale(spec, len(wanted)), dtype=np.float64)


def open_track(spec: Mapping[str, Any], base: Path) -> Track:
    """Return a recording with its own times and all its columns (see `open_values`)."""
    _known_keys(spec)
    path = _place(str(spec["recording"]), base)
    name = spec.get("format", "auto")
    if name == "auto":
        name = guess(path)
    if name not in READERS:
        raise DataError(
            f"found {name!r}", file=path, key="format", allowed=close_match(str(name), ["auto", *READERS])
        )
    for other, keys in OPTIONS.items():
        if given := [key for key in keys if key in spec and other != name]:
            allowed = f"only with format {other}"
            raise DataError(f"found {', '.join(given)} with format {name}", file=path, allowed=allowed)
    track = READERS[name](path, **{key: spec[key] for key in OPTIONS.get(name, ()) if key in spec})
    _check_moves(track)
    return track


def _place(recording: str, base: Path) -> Path:
    """The file of a recording, or the folder of a data set."""
    if not recording.startswith(builtin.PREFIX) and is_data_set(
        folder := base / Path(recording).expanduser()
    ):
        return folder
    return builtin.resolve(recording, base)


def _check_moves(track: Track) -> None:
    """Refuse what is no motion over time: a single row, or rows of the same time where a clock gave it."""
    times_s = track.times_s
    if len(times_s) < 2:
        raise DataError(
            "found one row", file=track.path, allowed="a recording of at least two rows: its times are played"
        )
    same = np.flatnonzero(~(np.diff(times_s) > 0.0))
    if len(same):
        row = int(same[0]) + 1
        raise DataError(
            f"found row {row + 1} at {times_s[row]:g} s, after a row at {times_s[row - 1]:g} s",
            file=track.path,
            key="time",
            allowed="rising times: delete one of the two rows, or take another column with time",
        )


def _known_keys(spec: Mapping[str, Any]) -> None:
    unknown = [key for key in spec if key not in KEYS]
    if unknown or "recording" not in spec:
        found = f"found the unknown key {unknown[0]!r}" if unknown else "found no recording"
        raise DataError(found, key="source", allowed=close_match(unknown[0] if unknown else "", KEYS))


def _columns(spec: Mapping[str, Any], track: Track) -> Sequence[int | str] | None:
    columns = spec.get("columns")
    if columns is None or (
        isinstance(columns, Sequence)
        and not isinstance(columns, str)
        and all(isinstance(c, int | str) and not isinstance(c, bool) for c in columns)
        and columns
    ):
        return columns
    raise DataError(
        f"found {columns!r}", file=track.path, key="columns", allowed="a list of names or numbers"
    )


def _number(spec: Mapping[str, Any], key: str) -> float | None:
    value = spec.get(key)
    if value is None or (isinstance(value, int | float) and np.isfinite(value)):
        return value
    raise DataError(
        f"found {value!r}", file=str(spec["recording"]), key=key, allowed="a number of seconds, such as 1.5"
    )


def _scale(spec: Mapping[str, Any], columns: int) -> Values:
    try:
        scale = np.asarray(spec.get("scale", 1.0), dtype=np.float64)
    except (TypeError, ValueError):
        scale = np.array([np.nan])
    if not np.all(np.isfinite(scale)) or scale.shape not in ((), (columns,)):
        raise DataError(
            f"found {spec['scale']!r}",
            file=str(spec["recording"]),
            key="scale",
            allowed=f"one number, or a list of {columns}",
        )
    return scale
