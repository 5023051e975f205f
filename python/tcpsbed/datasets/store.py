"""Recordings that do not ship: their list, their folder, and their download.

```text
data/recordings.toml ─► address, SHA-256, licence, source ─► tcpsbed data NAME ─► folder of recordings
```
The folder is what `TCPSBED_DATA` names; without it `shared/data` beside a source tree, else `~/.cache/tcpsbed/recordings`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from tcpsbed import inputs
from tcpsbed.datasets import builtin
from tcpsbed.errors import DataError

REGISTRY = builtin.DATA / "recordings.toml"
TIMEOUT_S = 30


def folder() -> Path:
    """Where recordings lie."""
    if named := os.environ.get("TCPSBED_DATA"):
        return Path(named)
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return beside if beside.is_dir() else cache / "tcpsbed" / "recordings"


@dataclass(frozen=True)
class File:
    """A file of a recording: its place in the folder, its address (None: to be asked for), length and SHA-256."""

    path: str
    url: str | None
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Recording:
    """A recording that does not ship: what it is, its licence as stated by its source, and how to ask where one must."""

    name: str
    what: str
    licence: str
    source: str
    ask: str
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(file.bytes for file in self.files)

    def missing(self, place: Path) -> list[File]:
        """Its files that are not in a folder."""
        return [file for file in self.files if not (place / file.path).exists()]


def listed(registry: Path = REGISTRY) -> dict[str, Recording]:
    """All recordings of a registry, by name.

    Raises
    ------
    DataError
        The registry cannot be read, or says something that cannot be.
    """
    text = inputs.text(registry, "a list of recordings in TOML")
    tables = inputs.tables(text, registry)
    if hidden := inputs.unprintable(tables):
        found = f"found {inputs.unseen(hidden[1])}"
        key = ".".join(map(str, hidden[0]))
        raise DataError(found, file=registry, key=key, allowed="text that can be seen")
    return {name: _recording(_Entry(registry, name, entry)) for name, entry in tables.items()}


@dataclass(frozen=True)
class _Entry:
    """A table of a registry."""

    registry: Path
    key: str
    table: Any

    def error(self, key: str, found: str, allowed: str) -> DataError:
        """What is wrong at a key of it."""
        return DataError(found, file=self.registry, key=f"{self.key}.{key}".rstrip("."), allowed=allowed)

    def get(self, key: str, example: Any, default: Any = None) -> Any:
        """The value of a key: of the kind of an example."""
        if not isinstance(self.table, dict):
            allowed = "a table with the keys `what`, `licence`, `source` and `files`"
            raise self.error("", f"found {_said(self.table)}", allowed)
        value = self.table.get(key, default)
        if not isinstance(value, type(example)) or isinstance(value, bool):
            found = "is missing" if value is None else f"found {_said(value)}"
            if isinstance(example, list):
                allowed = f"a list of tables, such as {key} = [{{ path = ... }}], or [[{self.key}.{key}]]"
            else:
                allowed = f"{_KINDS[type(example)]}, such as {key} = {json.dumps(example)}"
            raise self.error(key, found, allowed)
        return value


_KINDS = {str: "text", int: "a whole number"}


def _said(value: Any) -> str:
    """A value of TOML in a message."""
    return "one table" if isinstance(value, dict) else f"{json.dumps(value, default=str):.80}"


def _recording(entry: _Entry) -> Recording:
    ask = entry.get("ask", "write to its owners", "")
    files = tuple(
        _file(_Entry(entry.registry, f"{entry.key}.files.{number}", table), ask)
        for number, table in enumerate(entry.get("files", [{"path": "glove/walk.csv"}]))
    )
    what, licence = entry.get("what", "a walk with a glove"), entry.get("licence", "CC-BY-4.0")
    source = entry.get("source", "https://example.org/walk")
    return Recording(entry.key, what, licence, source, ask, files)


def _file(entry: _Entry, ask: str) -> File:
    path, url = entry.get("path", "glove/walk.csv"), entry.get("url", "https://example.org/walk.csv", "")
    if Path(path).is_absolute() or ".." in Path(path).parts:
        found = f'found "{path}", which leaves the folder of recordings'
        raise entry.error("path", found, 'a place in it, such as "glove/walk.csv"')
    if url and urlsplit(url).scheme not in ("http", "https"):
        allowed = 'such as "https://example.org/walk.csv"'
        raise entry.error("url", f'found "{url}", which is not an http address', allowed)
    if not url and not ask:
        raise entry.error(
            "url", "is missing, and nothing says how to ask for it", "a url, or ask beside files"
        )
    size, sha256 = entry.get("bytes", 4096), entry.get("sha256", "64 digits").lower()
    if size < 0:
        raise entry.error("bytes", f"found {size}", "the length of the file, such as bytes = 4096")
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise entry.error("sha256", f'found "{sha256}"', "the 64 digits that sha256sum prints")
    return File(path, url or None, size, sha256)


def fetch(recording: Recording, place: Path) -> list[Path]:
    """Brings the files of a recording that are missing into a folder; those that are new.

    Raises
    ------
    DataError
        One cannot be fetched, is not what its checksum says, or another file is in its place, which is kept.
    """
    if recording.ask:
        raise DataError(
            "cannot be downloaded: its owners give it to those who ask",
            key=recording.name,
            allowed=how(recording, place),
        )
    for file in recording.files:
        at = place / file.path
        if at.exists() and digest(at) != file.sha256:
            raise DataError("is not the recording that belongs here", file=at, allowed="another place for it")
    return [_download(file, place) for file in recording.missing(place)]


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with inputs.regular(file, "a recording").open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def how(recording: Recording, place: Path) -> str:
    """What to do for a recording to be there."""
    if not recording.ask:
        return f"tcpsbed data {recording.name}"
    files = ", ".join(str(place / file.path) for file in recording.files)
    return f"{recording.source}: {recording.ask}, and put it at {files}"


def _download(file: File, place: Path) -> Path:
    pooch = _pooch()
    at = place / file.path
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=at.name,
            path=at.parent,
            downloader=_bounded(pooch, file.bytes),
        )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
        found = f"could not be fetched ({str(error).splitlines()[0][:200]})"
        allowed = f"a network that reaches {urlsplit(file.url or '').netloc}, or the file at {at}"
        raise DataError(found, file=file.url or "", allowed=allowed) from None
    return at


class _Bounded:
    """A file that takes no more bytes than it should have, whatever a server sends."""

    def __init__(self, out: BinaryIO, most: int) -> None:
        self.out, self.left, self.flush = out, most, out.flush

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("more bytes than the recording has")
        return self.out.write(data)


def _bounded(pooch: Any, most: int) -> Callable[[str, str, Any], None]:
    """What downloads a file of at most so many bytes."""
    download = pooch.HTTPDownloader(timeout=TIMEOUT_S)

    def into(url: str, output: str, caller: Any) -> None:
        with Path(output).open("wb") as out:
            download(url, _Bounded(out, most), caller)

    return into


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise DataError("needs pooch", allowed="pip install 'tcpsbed[data]'") from None
    pooch.get_logger().setLevel(logging.ERROR)
    return pooch
