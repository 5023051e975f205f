"""Rows of a run as numpy arrays, and the names of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps, documents
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROW_BYTES = _tcps.RECORD_BYTES
_FIRST_ROWS = 1000
"""Rows that are looked at to tell whether a file holds records."""
FIELDS = [
    ("time", "<i8"),
    ("value", "<i8"),
    ("index", "<u4"),
    ("size", "<u4"),
    ("flow", "<u2"),
    ("point", "<u2"),
    ("node", "<u2"),
    ("kind", "u1"),
    ("detail", "u1"),
]
"""Layout of a row (crates/tcps-core/src/record.rs)."""
_KINDS, _REASONS, _STEPS = _tcps.record_names()
_BY_NUMBER = {number: name for number, name, _ in _KINDS}
KINDS = tuple(_BY_NUMBER.get(number, f"kind {number}") for number in range(1, max(_BY_NUMBER) + 1))
"""Names of kinds; a row's `kind` is 1 more than the place in this list. Numbers that are not given have no name."""
REASONS = {number: name for number, name, _ in _REASONS}
"""Why a packet was dropped, by the `detail` of its row."""
STEP_KINDS = {number: name for number, name, _ in _STEPS}
"""Names of kinds of stages by the `detail` of their rows."""
HELD = _tcps.HELD
_NUMBERS = 1 << 16
_LISTS = tuple(dict.fromkeys(place for _, _, place in [*_KINDS, *_REASONS] if place))
"""Lists of a plan that a row's `point` counts in."""


def open_records(path: Path) -> NDArray[np.void]:
    """The rows of a `records.bin`, mapped, not read.

    Returns
    -------
    numpy.ndarray
        Shape (rows,), with the fields of `FIELDS`. A torn last row is left out.
    """
    import numpy as np

    if not path.is_file():
        raise DataError("found no such file", file=path, allowed="a run whose records were kept")
    rows = path.stat().st_size // ROW_BYTES
    if rows == 0:
        return np.empty(0, dtype=np.dtype(FIELDS))
    return np.memmap(path, dtype=np.dtype(FIELDS), mode="r", shape=(rows,))


def refuse_foreign(path: Path) -> None:
    """Raises `DataError` for an invalid `records.bin`, by its length or the kinds of its first rows."""
    import numpy as np

    length, allowed = path.stat().st_size, "the file as tcpsbed wrote it: run the scenario again"
    if length % ROW_BYTES:
        found = (
            f"is damaged, or tcpsbed did not write it ({length} bytes are no whole rows of {ROW_BYTES} bytes)"
        )
        raise DataError(found, file=path, allowed=allowed)
    kinds = np.fromfile(path, dtype=np.dtype(FIELDS), count=_FIRST_ROWS)["kind"].tolist()
    strange = next((row for row, kind in enumerate(kinds) if kind not in _BY_NUMBER), None)
    if strange is not None:
        found = (
            f"is damaged, or tcpsbed did not write it (row {strange} has the unknown kind {kinds[strange]})"
        )
        raise DataError(found, file=path, allowed=allowed)


POLL_S = 0.02
"""Interval between looks for more rows."""


def record_blocks(path: Path, block_rows: int, complete: Event | None = None) -> Iterator[NDArray[np.void]]:
    """The rows of a `records.bin`, read in blocks: pages of a mapped file would count as memory of the process.

    With `complete`, which is set when all rows are there, it waits for blocks that are still to come.
    """
    import numpy as np

    if not path.is_file():
        raise DataError("found no such file", file=path, allowed="a run whose records were kept")
    read = 0
    with path.open("rb") as file:
        while True:
            awaited = complete if complete and not complete.is_set() else None  # before the look at the size
            there = path.stat().st_size // ROW_BYTES - read
            if awaited and there < block_rows:
                awaited.wait(POLL_S)
            elif there > 0:
                rows = np.fromfile(file, dtype=np.dtype(FIELDS), count=min(block_rows, there))
                read += len(rows)
                yield rows
            else:
                return


def plan_of(folder: Path) -> dict[str, Any]:
    """The compiled scenario of a run folder.

    Raises
    ------
    DataError
        If it is absent or not what a run leaves.
    """
    return documents.read(folder / "plan.json", ("components", "nodes", "flows"))


@dataclass(frozen=True)
class Names:
    """Names of flows, nodes and places of a plan, as one dictionary each and tables from number to code.

    Attributes
    ----------
    flows, nodes, places
        The names; the last of each is empty and stands for none.
    """

    flows: list[str]
    nodes: list[str]
    places: list[str]
    _tables: NDArray[np.int32]

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Names:
        """Names of a compiled scenario."""
        import numpy as np

        components = [component["name"] for component in plan["components"]]
        points = {2 * i: f"{name}.entry" for i, name in enumerate(components)}
        points |= {2 * i + 1: f"{name}.exit" for i, name in enumerate(components)}
        points |= {HELD | i: f"{name}.held" for i, name in enumerate(components)}
        nodes = [node["name"] for node in plan["nodes"]]
        named = {
            "points": points,
            "links": dict(enumerate(link["name"] for link in plan.get("network", {}).get("links", ()))),
            "components": dict(enumerate(components)),
            "nodes": dict(enumerate(nodes)),
            "channels": dict(enumerate(channel["name"] for channel in plan.get("channels", ()))),
        }
        places = [*dict.fromkeys(name for table in named.values() for name in table.values()), ""]
        codes = {name: code for code, name in enumerate(places)}
        tables = np.full((len(named), _NUMBERS), len(places) - 1, dtype=np.int32)
        for row, list_name in enumerate(_LISTS):
            for number, name in named[list_name].items():
                tables[row, number] = codes[name]
        return cls([*(flow["name"] for flow in plan["flows"]), ""], [*nodes, ""], places, tables)

    def place_codes(self, rows: NDArray[np.void]) -> NDArray[np.int32]:
        """Code in `places` of each row's point."""
        import numpy as np

        dropped = rows["kind"] == 1 + KINDS.index("dropped")
        table = np.where(dropped, _lists(_REASONS)[rows["detail"]], _lists(_KINDS)[rows["kind"]])
        codes: NDArray[np.int32] = self._tables[np.maximum(table, 0), rows["point"]]
        return np.where(table < 0, len(self.places) - 1, codes).astype(np.int32)

    def flow_codes(self, rows: NDArray[np.void]) -> NDArray[np.int32]:
        """Code in `flows` of each row's flow."""
        return _capped(rows["flow"], len(self.flows) - 1)

    def node_codes(self, rows: NDArray[np.void]) -> NDArray[np.int32]:
        """Code in `nodes` of each row's node."""
        return _capped(rows["node"], len(self.nodes) - 1)


def _lists(numbered: list[tuple[int, str, str]]) -> NDArray[np.int8]:
    """For every number of a byte the place in `_LISTS` of what `point` counts in; -1 for nothing."""
    import numpy as np

    places = np.full(256, -1, dtype=np.int8)
    for number, _, place in numbered:
        places[number] = _LISTS.index(place) if place else -1
    return places


def _capped(numbers: NDArray[np.uint16], none: int) -> NDArray[np.int32]:
    import numpy as np

    return np.minimum(numbers, none).astype(np.int32)
