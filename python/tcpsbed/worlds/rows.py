"""The transfer of rows from the processes of a run into its folder."""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tcpsbed import _tcps, results
from tcpsbed.errors import LIMIT, TcpsbedError, WorldError
from tcpsbed.results import marker
from tcpsbed.worlds.memory import RECORDS

T = TypeVar("T")
RESERVE_BYTES = 8 << 20
"""Room on the disk for summary and report of a run for which it gets full."""


class Drain(ABC):
    """Moves rows into files, each nearly in the order of time."""

    parts: list[Path]
    """The files."""

    @abstractmethod
    def drain(self) -> bytes:
        """Moves what has been recorded since; the new rows, unsorted."""

    @abstractmethod
    def finish(self) -> None:
        """Moves the last rows: nothing comes after."""

    def silent_s(self) -> dict[str, float]:
        """How long the loops of each process have not run, as far as that can be seen from here, by the name of its ring."""
        return {}

    @abstractmethod
    def lost(self) -> int:
        """Rows lost because somebody was too slow."""


class RingDrain(Drain):
    """Rows of rings in shared memory of this computer.

    Parameters
    ----------
    rings
        Files of the rings.
    folder
        Where the parts go.
    """

    def __init__(self, rings: Sequence[Path], folder: Path) -> None:
        self.parts = [folder / f"{ring.name}.rows" for ring in rings]
        self._names = [ring.name.split(".")[0] for ring in rings]
        self._native = _tcps.Drain(list(zip(rings, self.parts, strict=True)))

    def drain(self) -> bytes:
        """Empties the rings."""
        return self._native.drain()

    def silent_s(self) -> dict[str, float]:
        """By the longest silence of the rings of each process, whose names are its own and a number."""
        found: dict[str, float] = {}
        for name, silence_ns in zip(self._names, self._native.silences_ns(), strict=True):
            found[name] = max(found.get(name, 0.0), silence_ns / 1e9)
        return found

    def finish(self) -> None:
        """Empties the rings for the last time."""
        self.drain()

    def lost(self) -> int:
        """Rows for which a ring had no room."""
        return self._native.lost()


@contextmanager
def reserve(folder: Path) -> Iterator[Path]:
    """A file that holds room on the disk until it is removed.

    Raises
    ------
    WorldError
        If there is no such room when the run begins.
    """
    file = folder / "reserve.part"
    try:
        with file.open("wb") as opened:
            os.posix_fallocate(opened.fileno(), 0, RESERVE_BYTES)
    except OSError as error:
        file.unlink(missing_ok=True)
        found = f"{folder}: no room for a run ({error.strerror})"
        room = LIMIT if error.errno == errno.EFBIG else f"{RESERVE_BYTES >> 20} MiB and more on that disk"
        raise WorldError(found, allowed=room) from None
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def noted(move: Callable[[], T], errors: list[str]) -> T | None:
    """Moves rows; a disk that takes no more is an error of the run, which ends it and keeps what fits."""
    try:
        return move()
    except OSError as error:
        told = f"{error.filename}: {error.strerror}: the run ended there, and later rows are lost"
        if told not in errors:
            errors.append(told)
        return None


def merged(
    parts: list[Path], captures: list[Path], folder: Path, memory: Path, errors: list[str]
) -> tuple[int, str]:
    """Makes one file of the rows of all loops, and one of their datagrams; on a full disk the rows come first.

    Returns
    -------
    tuple
        Number of rows, and their hash.

    Raises
    ------
    WorldError
        If there is no room for them: they stay where they are, for `tcpsbed report`.
    """
    records = folder / RECORDS
    try:
        with results.whole(records) as part:
            rows, sha256 = _tcps.merge(parts, part)
    except (OSError, TcpsbedError):
        rows, sha256 = _merged_in_memory(parts, records, memory)
    for part in parts:
        part.unlink(missing_ok=True)
    packets = folder / "packets.pcapng"
    # One of a host that died at once may have nothing in it.
    begun = [part for part in captures if part.stat().st_size]
    try:
        if begun:
            with results.whole(packets) as part:
                _tcps.merge_captures(begun, part)
    except OSError as error:
        named, made = ", ".join(part.name for part in begun), marker.read(folder)
        told = packets.name if made is None else Path(made.target or folder) / packets.name
        errors.append(f"{told}: {error.strerror or error}: packets stay in {named}")
        return rows, sha256
    for part in captures:
        part.unlink()
    return rows, sha256


def _merged_in_memory(parts: list[Path], records: Path, memory: Path) -> tuple[int, str]:
    """Where the disk has no room for rows twice, they are merged in memory and written when the parts have gone.

    What cannot be written then stays in memory (`memory.folder`).
    """
    allowed = f"room on that disk, then: tcpsbed report {records.parent}"
    try:
        with results.whole(memory / RECORDS) as part:
            rows, sha256 = _tcps.merge(parts, part)
    except (OSError, TcpsbedError) as error:
        raise WorldError(str(error), allowed=allowed) from None
    for part in parts:
        part.unlink()
    try:
        with results.whole(records) as part:
            shutil.copyfile(memory / RECORDS, part)
    except OSError as error:
        found = f"{records}: {error.strerror}: rows stay in {memory}, until the computer is restarted"
        raise WorldError(found, allowed=allowed) from None
    (memory / RECORDS).unlink()
    return rows, sha256
