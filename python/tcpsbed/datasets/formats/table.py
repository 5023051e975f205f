"""Plain tables: numbers separated by commas, semicolons, tabs or spaces, with or without a header.

Time is the column named `time`, `t`, `timestamp` or one of these with a unit (`time_s`, `t_ms`, `time_us`,
`t_ns`), or the one that `time` names; without one `rate_hz` says how fast the rows come. Four columns in a
row named `qw, qx, qy, qz` (or `x, y, z, w`) after a common front form a quaternion. A table with `gyro_x` ...
`accel_z` gives these six, in this order, unless the scenario names others.
"""

import re
from pathlib import Path

import numpy as np

from tcpsbed.datasets.formats.lines import check_times, head, numbers
from tcpsbed.datasets.track import Block, BlockKind, Track, Values
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIME_NAME = re.compile(r"(time|t|timestamp)(?:[_ ]?\(?\[?(s|ms|us|ns)\)?\]?)?", re.IGNORECASE)
#: The inertial sensor that ships: its rates and forces are the usual input of `imu_wrist`.
INERTIAL = ["gyro_x", "gyro_y", "gyro_z", "accel_x", "accel_y", "accel_z"]


def read(
    path: Path, rate_hz: float | None = None, time: str | int | None = None, time_unit: str | None = None
) -> Track:
    """Read a table.

    Parameters
    ----------
    path
        The file.
    rate_hz
        Rows a second, where no column holds the time.
    time
        The column of time, by name or number from 0.
    time_unit
        `s`, `ms`, `us` or `ns`; absent: from the column's name, else s.
    """
    separator, names, skip = layout(path)
    table = numbers(path, separator, skip)
    if len(table) == 0:
        raise DataError("found no samples", file=path, allowed="at least one row under the header")
    names = names or [str(i) for i in range(table.shape[1])]
    if len(names) != table.shape[1]:
        found = f"found {table.shape[1]} values under {len(names)} names"
        raise DataError(found, file=path, line=skip + 1, allowed="one name for each column")
    at, unit = _time_column(path, names, time)
    if at is None:
        return _track(path, names, _regular(path, rate_hz, len(table)), table)
    if rate_hz is not None:
        found = f"found rate_hz beside the column of time {names[at]}"
        raise DataError(found, file=path, allowed="no rate_hz, or a file without a column of time")
    times_s = table[:, at] * _seconds(path, time_unit or unit)
    check_times(path, times_s, skip + 1)
    return _track(path, names[:at] + names[at + 1 :], times_s, np.delete(table, at, axis=1))


def layout(path: Path) -> tuple[str | None, list[str], int]:
    """Return the separator, the names in the header (none without one) and the lines before the rows."""
    for number, line in enumerate(head(path), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        separator = next((s for s in (",", ";", "\t") if s in text), None)
        fields = [field.strip().strip('"') for field in text.split(separator)]
        if all(_is_number(field) for field in fields):
            return separator, [], number - 1
        return separator, fields, number
    raise DataError("found no rows", file=path, allowed='a table of numbers, such as "0.01 1.5"')


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _time_column(path: Path, names: list[str], wanted: str | int | None) -> tuple[int | None, str | None]:
    """Return the number of the column of time, if there is one, and the unit in its name."""
    if wanted is None:
        hits = [(i, m) for i, name in enumerate(names) if (m := TIME_NAME.fullmatch(name))]
        return (hits[0][0], hits[0][1].group(2)) if hits else (None, None)
    at = wanted if isinstance(wanted, int) else names.index(wanted) if wanted in names else -1
    if not 0 <= at < len(names):
        raise DataError(
            f"found no column {wanted!r}", file=path, key="time", allowed=close_match(str(wanted), names[:24])
        )
    match = TIME_NAME.fullmatch(names[at])
    return at, match.group(2) if match else None


def _seconds(path: Path, unit: str | None) -> float:
    if unit is not None and unit.lower() not in SECONDS:
        raise DataError(f"found {unit!r}", file=path, key="time_unit", allowed=close_match(unit, SECONDS))
    return SECONDS[(unit or "s").lower()]


def _regular(path: Path, rate_hz: float | None, rows: int) -> Values:
    if rate_hz is None:
        raise DataError(
            "found no column of time", file=path, allowed="a column named time, or the key rate_hz"
        )
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise DataError(
            f"found {rate_hz}", file=path, key="rate_hz", allowed="a number above 0, such as 1000"
        )
    return np.asarray(np.arange(rows) / rate_hz)


def _track(path: Path, names: list[str], times_s: Values, values: Values) -> Track:
    lower = [name.lower() for name in names]
    default = [names.index(name) for name in INERTIAL] if set(INERTIAL) <= set(names) else []
    return Track(path, names, times_s, values, blocks=_quaternions(lower), default=default)


def _quaternions(names: list[str]) -> list[Block]:
    """Find four neighbours that end in w, x, y, z (or x, y, z, w) after the same front with a q in it."""
    blocks = []
    for first in range(len(names) - 3):
        four = names[first : first + 4]
        fronts = {name[:-1] for name in four if name}
        ends = "".join(name[-1:] for name in four)
        if len(fronts) == 1 and ends in ("wxyz", "xyzw") and "q" in fronts.pop():
            blocks.append(Block(BlockKind.QUATERNION, first))
    return blocks
