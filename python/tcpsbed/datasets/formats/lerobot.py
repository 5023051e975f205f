"""Episodes of LeRobot (v2, v2.1, v3): Parquet with lists of `action` and `observation.*` and a `timestamp` in s.

```text
v2  data/chunk-000/episode_000013.parquet      a file an episode
v3  data/chunk-000/file-000.parquet            episodes one after the other; where each is: meta/episodes/*/*.parquet
    videos/KEY/chunk-000/file-000.mp4          the same for each camera
```
A recording is such a file, or the folder of the data set with an `episode`. For the pictures see `tcpsbed.media.episode`.

Column `k` of a list is named `action[k]`, or, where the data set's `info.json` lies beside the episode or in
the folder `meta` above it, `action.kLeftElbow`. Without a choice `action` is read.
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from tcpsbed import inputs
from tcpsbed.datasets.formats.lines import MOST, all_sound, check_times
from tcpsbed.datasets.track import Track, Values
from tcpsbed.errors import DataError

#: Columns of bookkeeping, not of motion.
BOOKS = ("timestamp", "frame_index", "episode_index", "index", "task_index", "next.done")
#: Rows a second that an `info.json` may say.
LEAST_FPS, MOST_FPS = 1e-3, 1e9
#: Patterns that lead out of a data set, or write numbers as wide as memory, are none.
_PLAIN = re.compile(r"(?!/)(?:[\w./ -]|\{\w+(?::0?\d{0,2}d)?\})+")
#: Where the file of an episode is, unless `info.json` says otherwise.
V2_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
V3_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
V2_VIDEO = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
V3_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


def is_data_set(folder: Path) -> bool:
    """Tell whether a folder is a data set of LeRobot."""
    return (folder / "meta" / "info.json").is_file()


def read(path: Path, episode: int | None = None) -> Track:
    """Read an episode, of a data set the first unless another is named."""
    if path.is_dir():
        if not is_data_set(path):
            raise DataError(
                "found no meta/info.json in this folder",
                file=path,
                allowed="the folder of a data set of LeRobot",
            )
        path, episode = file_of(path, episode or 0), episode or 0
    table = _episode(path, _parquet(path), episode)
    features = _features(path)
    names: list[str] = []
    parts: list[Values] = []
    for column in table.column_names:
        if column not in BOOKS and (values := _numbers(path, table.column(column))) is not None:
            names += _names(column, values.shape[1], features)
            parts.append(values)
    if not parts:
        raise DataError(
            "found no column of numbers", file=path, allowed="an episode with action or observation.*"
        )
    times_s = _times(path, table, features)
    action = [
        i for i, name in enumerate(names) if name == "action" or name.startswith(("action.", "action["))
    ]
    return Track(path, names, times_s, np.hstack(parts), default=action)


def file_of(folder: Path, episode: int) -> Path:
    """The Parquet file of a data set that holds an episode."""
    place: dict[str, Any] = {}
    if (folder / "meta" / "episodes").is_dir():
        columns = {"chunk_index": "data/chunk_index", "file_index": "data/file_index"}
        place = _of_episode(folder, episode, columns)
    return _path(folder, episode, "data_path", V3_PATH if place else V2_PATH, place)


def video_of(folder: Path, episode: int, video: str) -> tuple[Path, tuple[float, float]]:
    """The file that holds what a camera saw in an episode of a data set, and the span of it in seconds."""
    names = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
    if not (folder / "meta" / "episodes").is_dir():
        return _path(folder, episode, "video_path", V2_VIDEO, {"video_key": video}), (0.0, math.inf)
    place = _of_episode(folder, episode, {name: f"videos/{video}/{name}" for name in names})
    span_s = float(place["from_timestamp"]), float(place["to_timestamp"])
    return _path(folder, episode, "video_path", V3_VIDEO, place | {"video_key": video}), span_s


def _path(folder: Path, episode: int, key: str, default: str, place: dict[str, Any]) -> Path:
    """The file that a pattern of `info.json` means."""
    info = _features(folder / "meta" / "info.json")
    pattern = str(info.get(key) or default)
    chunk = episode // _chunk_size(folder, info)
    try:
        if not _PLAIN.fullmatch(pattern) or ".." in Path(pattern).parts:
            raise ValueError("it leads out of the data set, or is not a file pattern")
        path = folder / pattern.format(episode_index=episode, episode_chunk=chunk, **place)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        found = f"found {pattern!r} ({error})"
        raise DataError(found, file=folder / "meta" / "info.json", key=key, allowed=default) from None
    if not path.is_file():
        allowed = f"0 to {info['total_episodes'] - 1}" if _is_count(info.get("total_episodes")) else "another"
        raise DataError(f"found no episode {episode}", file=path, key="episode", allowed=allowed)
    return path


def _chunk_size(folder: Path, info: dict[str, Any]) -> int:
    size = info.get("chunks_size", 1000)
    if not _is_count(size):
        file = folder / "meta" / "info.json"
        raise DataError(f"found {size!r}", file=file, key="chunks_size", allowed="a whole number above 0")
    return int(size)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _of_episode(folder: Path, episode: int, columns: dict[str, str]) -> dict[str, Any]:
    """The entry of an episode in the tables of `meta/episodes` (v3), by the names of `columns`."""
    known = 0
    for file in sorted((folder / "meta" / "episodes").glob("*/*.parquet")):
        table = _parquet(file, ["episode_index", *columns.values()])
        indices = table.column("episode_index").to_pylist()
        if episode in indices:
            row = indices.index(episode)
            return {name: table.column(column)[row].as_py() for name, column in columns.items()}
        known += len(indices)
    allowed = f"0 to {known - 1}" if known else "a data set with episodes"
    raise DataError(f"found no episode {episode}", file=folder, key="episode", allowed=allowed)


def _parquet(path: Path, columns: list[str] | None = None) -> Any:
    """A Parquet file as a table; needs `pyarrow`, which is loaded here and not before."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise DataError("found two columns of one name", file=path, allowed="columns of different names")
        if missing := [name for name in columns or () if name not in names]:
            raise DataError(
                f"found no column {missing[0]}", file=path, allowed="a table of episodes of LeRobot v3"
            )
        table = pa.Table.from_batches(_batches(path, file, columns))
    except (pa.ArrowException, OSError, ValueError) as error:  # the last: names that are not text
        said = str(error).partition("\n")[0].replace(f"Could not open Parquet input source '{path}': ", "")
        found = said[:120].rstrip(".") or type(error).__name__
        raise DataError(found, file=path, allowed="a Parquet file") from error
    return table


def _batches(path: Path, file: Any, columns: list[str] | None) -> list[Any]:
    """The rows in parts, within a size limit: a few bytes of Parquet can encode any number of equal values."""
    if file.metadata.num_rows > MOST:
        allowed = f"an episode of at most {MOST} rows: take a part of it"
        raise DataError(f"found {file.metadata.num_rows} rows", file=path, allowed=allowed)
    found, taken = [], 0
    for batch in file.iter_batches(batch_size=16_384, columns=columns):
        taken += batch.nbytes
        if taken > inputs.DATA_BYTES:
            allowed = f"an episode of at most {inputs.DATA_BYTES >> 20} MiB: take a part of it"
            raise DataError("found more values than fit", file=path, allowed=allowed)
        found.append(batch)
    if not found:
        raise DataError("found no samples", file=path, allowed="an episode with at least one row")
    return found


def _episode(path: Path, table: Any, episode: int | None) -> Any:
    """The rows of an episode; of a file with several one must be named."""
    import pyarrow.compute as pc

    if "episode_index" in table.column_names:
        index = table.column("episode_index")
        held = pc.unique(index).to_pylist()
        if episode is None and len(held) > 1:
            allowed = f"one of them, such as episode = {held[0]}"
            raise DataError(f"found {len(held)} episodes", file=path, key="episode", allowed=allowed)
        if episode is not None:
            if episode not in held:
                raise DataError(f"found no episode {episode}", file=path, key="episode", allowed=_spelt(held))
            table = table.filter(pc.equal(index, episode))
    elif episode:
        raise DataError("found no column episode_index", file=path, key="episode", allowed="no key episode")
    if table.num_rows == 0:
        raise DataError("found no samples", file=path, allowed="an episode with at least one row")
    return table


def _spelt(held: list[int], most: int = 8) -> str:
    return ", ".join(str(one) for one in held[:most]) + (", …" if len(held) > most else "")


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
            "found a value that is not finite, or too large", file=path, allowed=f"numbers, at most {MOST:g}"
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
        raise DataError("found no column timestamp", file=path, allowed=allowed)
    return np.asarray(np.arange(table.num_rows) / rate_hz)


def _features(path: Path) -> dict[str, Any]:
    """Return the content of `info.json`, or nothing if it does not exist."""
    for folder in (path.parent, path.parent / "meta", *(p / "meta" for p in list(path.parents)[1:4])):
        info = folder / "info.json"
        if not info.is_file():
            continue
        found = inputs.from_json(info, "the info.json of the data set", inputs.DOCUMENT_BYTES)
        return found if isinstance(found, dict) else {}
    return {}


def _names(column: str, width: int, features: dict[str, Any]) -> list[str]:
    known: Any = features.get("features")
    for key in (column, "names"):
        known = known.get(key) if isinstance(known, dict) else None
    if isinstance(known, dict) and len(known) == 1:  # {"motors": [...]}
        known = next(iter(known.values()))
    if isinstance(known, list) and len(known) == 1 and isinstance(known[0], list):
        known = known[0]
    if isinstance(known, list) and len(known) == width and width > 1:
        return [f"{column}.{name}" for name in known]
    return [column] if width == 1 else [f"{column}[{k}]" for k in range(width)]
