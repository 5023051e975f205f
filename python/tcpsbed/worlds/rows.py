"""Rows on their way from the processes of a run into its folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tcpsbed import _tcps


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
        self._native = _tcps.Drain(list(zip(rings, self.parts, strict=True)))

    def drain(self) -> bytes:
        """Empties the rings."""
        return self._native.drain()

    def finish(self) -> None:
        """Empties the rings for the last time."""
        self.drain()

    def lost(self) -> int:
        """Rows for which a ring had no room."""
        return self._native.lost()
