"""Rows with names in other formats: Parquet, csv, MCAP; a block of rows at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tcpsbed import results
from tcpsbed.analysis.frame import Frame, field
from tcpsbed.analysis.records import KINDS, Names, plan_of, record_blocks
from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_ROWS = 250_000
_NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        field("time_ns", pa.int64(), "ns"),
        ("kind", _NAME),
        ("flow", _NAME),
        ("point", _NAME),
        ("index", pa.uint32()),
        field("value_ns", pa.int64(), "ns"),
        field("size_bytes", pa.uint32(), "B"),
        ("node", _NAME),
        ("detail", pa.uint8()),
    ]
)
"""Columns: an empty name stands for none. `value_ns` is by kind (docs/summary.md)."""
_ENCODED = dict.fromkeys(("time_ns", "index"), "DELTA_BINARY_PACKED")
"""Columns that mostly grow by small steps: smaller, and written faster, than as a dictionary."""
_LISTED = [name for name in SCHEMA.names if name not in (*_ENCODED, "value_ns")]
"""Columns of few different values."""


class Samples(Frame):
    """The rows of a run with names, a line each; `.to_arrow()`, `.to_pandas()`, `.to_polars()`.

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the columns of `SCHEMA`; the metadata of a column's field has its unit."""
        return table(self._folder)

    def __repr__(self) -> str:
        columns = ", ".join(SCHEMA.names)
        return f"Samples of {self._folder}: {columns}; .to_arrow(), .to_pandas(), .to_polars()"


def table(folder: Path) -> pa.Table:
    """All rows of a run as one table, from `samples.parquet` if it is there."""
    kept = folder / "samples.parquet"
    if kept.is_file():
        from pyarrow import parquet

        return parquet.read_table(kept, schema=SCHEMA)
    return pa.Table.from_batches(_batches(folder), SCHEMA)


def to_parquet(folder: Path, out: Path | None = None, *, complete: Event | None = None) -> Path:
    """Writes `samples.parquet`, one row group a block; memory does not depend on their number.

    Parameters
    ----------
    folder
        The run folder.
    out
        The file; absent: `samples.parquet` in the folder.
    complete
        Set when all rows are there; absent: they are.
    """
    from pyarrow import parquet

    def write(file: Path) -> None:
        encoding: dict[str, Any] = {"use_dictionary": _LISTED, "column_encoding": _ENCODED}
        with parquet.ParquetWriter(file, SCHEMA, compression="zstd", **encoding) as writer:
            for batch in _batches(folder, complete):
                writer.write_batch(batch)

    return _whole(out or folder / "samples.parquet", write)


def to_csv(folder: Path, out: Path | None = None) -> Path:
    """Writes `samples.csv` with a header line."""
    from pyarrow import csv

    plain = pa.schema([(f.name, pa.string() if f.type == _NAME else f.type) for f in SCHEMA])

    def write(file: Path) -> None:
        with csv.CSVWriter(file, plain) as writer:
            for batch in _batches(folder):
                writer.write_table(pa.Table.from_batches([batch]).cast(plain))

    return _whole(out or folder / "samples.csv", write)


def to_mcap(folder: Path, out: Path | None = None) -> Path:
    """Writes `samples.mcap`, which Foxglove and PlotJuggler open: a topic for each flow and kind, messages in JSON.

    Raises
    ------
    DataError
        If the package `mcap` is absent.
    """
    try:
        from mcap.writer import Writer
    except ImportError:
        raise DataError(
            "found no package mcap, which this export needs", allowed="pip install tcpsbed[mcap]"
        ) from None

    def write(file: Path) -> None:
        with file.open("wb") as stream:
            writer: Any = Writer(stream)
            writer.start()
            _messages(writer, folder)
            writer.finish()

    return _whole(out or folder / "samples.mcap", write)


_MESSAGE = {
    "type": "object",
    "properties": {
        "index": {"type": "integer"},
        "value_ms": {"type": "number"},
        "size_bytes": {"type": "integer"},
        "point": {"type": "string"},
        "node": {"type": "string"},
        "detail": {"type": "integer"},
    },
}


def _messages(writer: Any, folder: Path) -> None:
    schema = writer.register_schema("tcpsbed.Row", "jsonschema", json.dumps(_MESSAGE).encode())
    topics: dict[str, int] = {}
    for batch in _batches(folder):
        for row in batch.to_pylist():
            topic = f"/{row['flow'] or 'run'}/{row['kind']}"
            if topic not in topics:
                topics[topic] = writer.register_channel(topic, "json", schema)
            told = {key: row[key] for key in ("index", "size_bytes", "point", "node", "detail")}
            data = json.dumps({**told, "value_ms": row["value_ns"] / 1e6}).encode()
            at = max(row["time_ns"], 0)
            writer.add_message(topics[topic], at, data, at)


def _batches(folder: Path, complete: Event | None = None) -> Iterator[pa.RecordBatch]:
    names = Names.of(plan_of(folder))
    for rows in record_blocks(folder / "records.bin", BATCH_ROWS, complete):
        yield _batch(rows, names)


def _batch(rows: NDArray[np.void], names: Names) -> pa.RecordBatch:
    import numpy as np

    kinds = np.minimum(rows["kind"].astype(np.int32) - 1, len(KINDS) - 1)
    named = {
        "kind": _named(kinds, list(KINDS)),
        "flow": _named(names.flow_codes(rows), names.flows),
        "point": _named(names.place_codes(rows), names.places),
        "node": _named(names.node_codes(rows), names.nodes),
    }
    fields = {
        "time_ns": "time",
        "index": "index",
        "value_ns": "value",
        "size_bytes": "size",
        "detail": "detail",
    }
    plain = {column: pa.array(np.ascontiguousarray(rows[field])) for column, field in fields.items()}
    columns = named | plain
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _named(codes: NDArray[np.int32], names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string()))


def _whole(file: Path, write: Callable[[Path], None]) -> Path:
    """Lets a file be written beside first, so that a reader never sees half of it."""
    with results.whole(file) as part:
        write(part)
    return file
