"""A recording in memory: values in columns, each row at its own time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import DataError

Values = NDArray[np.float64]


class BlockKind(Enum):
    """Groups of columns whose values are not independent of each other."""

    QUATERNION = 4
    ROTATION = 9


@dataclass
class Block:
    """A quaternion (4 columns, either order) or a rotation matrix (9, row-major) from column `first`."""

    kind: BlockKind
    first: int

    @property
    def columns(self) -> slice:
        """The columns of the block."""
        return slice(self.first, self.first + self.kind.value)


@dataclass
class Track:
    """A recording.

    Attributes
    ----------
    path
        Where it comes from, for messages.
    names
        Names of the columns.
    times_s
        Time of each row in s, never falling, shape [n].
    values
        Shape [n, columns].
    held
        Columns of events: between two rows the older value holds.
    blocks
        Quaternions and rotation matrices among the columns.
    default
        Columns that are meant when the scenario names none; empty: all.
    """

    path: Path
    names: list[str]
    times_s: Values
    values: Values
    held: set[int] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)
    default: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.times_s) == 0:
            raise DataError("found no samples", file=self.path, allowed="a recording with at least one row")

    def column(self, wanted: int | str) -> list[int]:
        """Return the numbers of the columns meant by a number (from 0), a name, or the front part of names.

        `"slave_left.position"` means its x, y and z.
        """
        if isinstance(wanted, int):
            found = [wanted] if 0 <= wanted < len(self.names) else []
        elif wanted in self.names:
            found = [number for number, name in enumerate(self.names) if name == wanted]
            if len(found) > 1:
                allowed = f"one of them by its number: {', '.join(map(str, found))}"
                raise DataError(
                    f"found {len(found)} columns {wanted!r}", file=self.path, key="columns", allowed=allowed
                )
        else:
            found = [i for i, name in enumerate(self.names) if name.startswith((wanted + ".", wanted + "["))]
        if not found:
            raise DataError(
                f"found no column {wanted!r}",
                file=self.path,
                key="columns",
                allowed=f"0 to {len(self.names) - 1}, or {_few(self.names)}",
            )
        return found

    def columns(self, wanted: Sequence[int | str] | None) -> list[int]:
        """Return the numbers of all wanted columns, in the order asked for."""
        if wanted is None:
            return self.default or list(range(len(self.names)))
        return [number for one in wanted for number in self.column(one)]


def _few(names: list[str], most: int = 24) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
