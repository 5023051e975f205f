"""Recordings of a haptic device at 1 kHz: force, velocity and position under a header, time in ms."""

from pathlib import Path

from tcpsbed.datasets.formats.lines import check_times, numbers
from tcpsbed.datasets.track import Track
from tcpsbed.errors import DataError

HEADER = ["time", "SF_x", "SF_y", "SF_z", "MV_x", "MV_y", "MV_z", "MP_x", "MP_y", "MP_z"]
NAMES = [f"{what}.{axis}" for what in ("force", "velocity", "position") for axis in "xyz"]


def looks_like(line: str) -> bool:
    """Tell whether a first line is this header."""
    return line.split() == HEADER


def read(path: Path) -> Track:
    """Read a recording; columns are named `force.x`, `velocity.x`, `position.x` and so on."""
    table = numbers(path, None, skip=1)
    if table.shape[1] != len(HEADER):
        raise DataError(f"found {table.shape[1]} columns", file=path, line=2, allowed=" ".join(HEADER))
    times_s = table[:, 0] / 1000.0
    check_times(path, times_s, 2)
    return Track(path, list(NAMES), times_s, table[:, 1:])
