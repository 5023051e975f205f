"""Lines of numbers in text files, with messages that name the line."""

import io
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tcpsbed.datasets.track import Values
from tcpsbed.errors import DataError, counted

#: No recording has values beyond this in any unit; below it differences and squares of doubles do not overflow.
MOST = 1e100


def head(path: Path) -> Iterator[str]:
    """Yield the lines of the beginning of a file, whatever it holds, as a file opened for text has them."""
    with path.open("rb") as file:
        yield from io.StringIO(file.read(65_536).decode("utf-8", errors="replace"), newline=None)


def numbers(path: Path, separator: str | None, skip: int = 0) -> Values:
    """Return a table of finite numbers, none beyond `MOST`, shape [rows, columns].

    Parameters
    ----------
    path
        A text file; empty lines and lines that begin with `#` are left out.
    separator
        Between numbers; None: any white space.
    skip
        Lines before the first row.

    Raises
    ------
    DataError
        With the line that is not a row of numbers or has another length than the first.
    """
    try:
        with path.open(encoding="utf-8") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is an error below, not a warning
            table = np.loadtxt(file, delimiter=separator, skiprows=skip, ndmin=2, dtype=np.float64)
    except UnicodeDecodeError as error:
        found = f"cannot be read as text (byte 0x{error.object[error.start]:02x} is not UTF-8)"
        raise _bad_line(path, separator, skip) or _no_numbers(path, found) from error
    except (ValueError, OSError) as error:
        raise _bad_line(path, separator, skip) or _no_numbers(path, f"cannot be read ({error})") from error
    if not all_sound(table):
        raise _bad_line(path, separator, skip) or _no_numbers(
            path, "found a value that is not finite, or too large"
        )
    return table


def all_sound(values: Values) -> bool:
    """Tell whether all values are finite and none is beyond `MOST`."""
    return bool(np.all(np.abs(values) <= MOST))


def _no_numbers(path: Path, found: str) -> DataError:
    allowed = f'a text file with rows of finite numbers, at most {MOST:g}, such as "0.01 1.5"'
    return DataError(found, file=path, allowed=allowed)


def _bad_line(path: Path, separator: str | None, skip: int) -> DataError | None:
    """Find the first line that is wrong."""
    width = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            text = line.split("#")[0].strip()
            if number <= skip or not text:
                continue
            fields = text.split(separator)
            wrong = next((field for field in fields if not _sound(field)), None)
            if wrong is not None:
                allowed = f"finite numbers, at most {MOST:g}, such as 1.5"
                return DataError(f"found {wrong.strip()[:40]!r}", file=path, line=number, allowed=allowed)
            if width and len(fields) != width:
                found = f"found {counted(len(fields), 'value')}"
                return DataError(found, file=path, line=number, allowed=f"{width}, as in the lines before")
            width = len(fields)
    return None


def _sound(field: str) -> bool:
    try:
        return abs(float(field)) <= MOST
    except ValueError:
        return False


def check_times(path: Path, times_s: Values, first_line: int) -> None:
    """Refuse times that go back, naming the line (rows are taken to follow each other without gaps)."""
    back = np.flatnonzero(np.diff(times_s) < 0.0)
    if len(back):
        row = int(back[0]) + 1
        raise DataError(
            f"found the time {times_s[row]:g} s after {times_s[row - 1]:g} s",
            file=path,
            line=first_line + row,
            allowed="times that never go back",
        )
