"""Traces of links and of video: when a link may deliver, how large frames are."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpsbed import inputs
from tcpsbed.datasets.formats.lines import check_times, numbers
from tcpsbed.datasets.formats.table import layout
from tcpsbed.datasets.frames import MOST_FRAME_BYTES
from tcpsbed.errors import DataError

MOST_MS = 1e12
"""Latest time of a trace."""


def mahimahi(path: Path) -> NDArray[np.int64]:
    """Return the delivery opportunities of a Mahimahi trace (Netravali et al. 2015).

    Parameters
    ----------
    path
        One number a line: the millisecond at which the link can deliver 1500 bytes; several in one
        millisecond are several lines.

    Returns
    -------
    ndarray of int64, shape [n]
        Times in ns, never falling. The trace repeats after the last one, which therefore is above 0.

    Raises
    ------
    DataError
        A line is not a whole number of ms, or goes back.
    """
    inputs.regular(path, "a trace")
    values = numbers(path, None)
    if len(values) == 0:
        raise DataError("found no lines", file=path, allowed="a trace with at least one line, such as 4")
    if values.shape[1] != 1:
        found = f"found {values.shape[1]} values in a line"
        raise DataError(found, file=path, line=1, allowed="one time in ms per line, such as 4")
    times_ms = values[:, 0]
    wrong = np.flatnonzero((times_ms != np.floor(times_ms)) | (times_ms < 0) | (times_ms > MOST_MS))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"found {times_ms[row]:g}",
            file=path,
            line=row + 1,
            allowed=f"a time in whole milliseconds, from 0 to {MOST_MS:g}, such as 4",
        )
    check_times(path, times_ms / 1000.0, 1)
    if times_ms[-1] == 0:
        raise DataError(
            "found a trace that ends at 0 ms", file=path, allowed="a last time above 0, such as 4"
        )
    return times_ms.astype(np.int64) * 1_000_000


def frame_sizes(path: Path) -> NDArray[np.int64]:
    """Return the frame sizes of a video trace in bytes.

    Parameters
    ----------
    path
        Text with one frame a line: time (s), size (bits), and whether it is a key frame; or a table under
        a header with a column `bytes` or `bits`, or one column of bytes.

    Returns
    -------
    ndarray of int64, shape [n]
        Sizes in bytes, rounded up.

    Raises
    ------
    DataError
        No such column, or a size that is not above 0.
    """
    sizes, first_line = _sizes(path)
    wrong = np.flatnonzero(~((sizes > 0) & (sizes <= MOST_FRAME_BYTES)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"found a frame of {sizes[row]:g} bytes",
            file=path,
            line=first_line + row,
            allowed="a size above 0, at most 16 MB, such as 2000 bytes",
        )
    return np.ceil(sizes).astype(np.int64)


def _sizes(path: Path) -> tuple[NDArray[np.float64], int]:
    """Return sizes in bytes, not rounded, and the line of the first."""
    inputs.regular(path, "a trace")
    separator, names, skip = layout(path)
    values = numbers(path, separator, skip)
    if len(values) == 0:
        raise DataError("found no lines", file=path, allowed="a trace with at least one line")
    lower = [name.lower() for name in names]
    for name, share in (("bytes", 1.0), ("bits", 1.0 / 8.0)):
        if name in lower[: values.shape[1]]:
            return values[:, lower.index(name)] * share, skip + 1
    if names:
        columns = ", ".join(f"'{name}'" for name in names[:24])
        raise DataError(
            f"found a header with the columns {columns}",
            file=path,
            line=skip,
            allowed="a header with a column named bytes or bits, or only numbers: time (s), size (bits), "
            "key frame (0 or 1)",
        )
    return (values[:, 0] if values.shape[1] == 1 else values[:, 1] / 8.0), skip + 1
