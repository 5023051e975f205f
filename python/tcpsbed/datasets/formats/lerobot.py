"""Episodes of LeRobot (v2, v2.1): Parquet with lists of `action` and `observation.*` and a `timestamp` in s.

Column `k` of a list is named `action[k]`, or, where the data set's `info.json` lies beside the episode or in
the folder `meta` above it, `action.kLeftElbow`. Without a choice `action` is read.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tcpsbed.datasets.formats.lines import MOST, all_sound, check_times
from tcpsbed.datasets.track import Track, Values
from tcpsbed.errors import DataError

#: Columns of bookkeeping, not of motion.
BOOKS = ("timestamp", "frame_index", "episode_index", "index", "task_index", "next.done")
#: Rows a second that an `info.json` may say.
LEAST_FPS, MOST_FPS = 1e-3, 1e9


def read(path: Path) -> Track:
    """Read an episode; needs `pyarrow`, which is loaded here and not before."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        found = str(error).partition("\n")[0][:120] or type(error).__name__
        raise DataError(found, file=path, allowed="a Parquet file") from error
    if table.num_rows == 0:
        raise DataError("no samples", file=path, allowed="an episode with at least one row")
    features = _features(path)
    names: list[str] = []
    parts: list[Values] = []
    for column in table.column_names:
        if column not in BOOKS and (values := _numbers(path, table.column(column))) is not None:
            names += _names(column, values.shape[1], features)
            parts.append(values)
    if not parts:
        raise DataError("no column of numbers", file=path, allowed="an episode with action or observation.*")
    times_s = _times(path, table, features)
    action = [
        i for i, name in enumerate(names) if name == "action" or name.startswith(("action.", "action["))
    ]
    return Track(path, names, times_s, np.hstack(parts), default=action)


def _numbers(path: Path, column: Any) -> Values | None:
    """Return a column as [rows, width], or None if it holds something else than numbers."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        rows = column.to_pylist()
        widths = {len(row) if row is not None else -1 for row in rows}
        if len(widths) > 1 or not _is_numeric(kind.value_type):
            return None
        values = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    elif _is_numeric(kind):
        values = column.to_numpy().astype(np.float64).reshape(-1, 1)
    else:
        return None
    if not all_sound(values):
        raise DataError(
            "a value that is not finite, or too large", file=path, allowed=f"numbers, at most {MOST:g}"
        )
    return values


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _times(path: Path, table: Any, features: dict[str, Any]) -> Values:
    if "timestamp" in table.column_names:
        times_s = _numbers(path, table.column("timestamp"))
        if times_s is not None and times_s.shape[1] == 1:
            check_times(path, times_s[:, 0], 0)
            return times_s[:, 0]
    rate_hz = features.get("fps")
    if not isinstance(rate_hz, int | float) or not LEAST_FPS <= rate_hz <= MOST_FPS:
        allowed = f"a timestamp in s, or fps in info.json, {LEAST_FPS:g} to {MOST_FPS:g}"
        raise DataError("no column timestamp", file=path, allowed=allowed)
    return np.asarray(np.arange(table.num_rows) / rate_hz)


def _features(path: Path) -> dict[str, Any]:
    """Return what `info.json` says, or nothing if there is none."""
    for folder in (path.parent, path.parent / "meta", *(p / "meta" for p in list(path.parents)[1:4])):
        info = folder / "info.json"
        if not info.is_file():
            continue
        try:
            found = json.loads(info.read_text(encoding="utf-8"))
        except (ValueError, RecursionError, OSError) as error:
            raise DataError(
                f"not JSON: {error}", file=info, allowed="the info.json of the data set"
            ) from error
        return found if isinstance(found, dict) else {}
    return {}


def _names(column: str, width: int, features: dict[str, Any]) -> list[str]:
    known: Any = features.get("features")
    for key in (column, "names"):
        known = known.get(key) if isinstance(known, dict) else None
    if isinstance(known, list) and len(known) == 1 and isinstance(known[0], list):
        known = known[0]
    if isinstance(known, list) and len(known) == width and width > 1:
        return [f"{column}.{name}" for name in known]
    return [column] if width == 1 else [f"{column}[{k}]" for k in range(width)]
