"""Recordings that do not ship: which there are, where they lie, and how they come there.

```text
data/recordings.toml ─► address, SHA-256, licence, source ─► tcpsbed data NAME ─► folder of recordings
```
The folder is what `TCPSBED_DATA` names; without it `shared/data` beside a source tree, else `~/.cache/tcpsbed/recordings`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

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
    allowed = "entries as in the one that ships: what, licence, source, files with path, url, bytes, sha256"
    try:
        with registry.open("rb") as opened:
            tables = tomllib.load(opened)
        return {name: _recording(name, entry) for name, entry in tables.items()}
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=registry, allowed="a TOML file") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise DataError(found, file=registry, allowed=allowed) from None


def _recording(name: str, entry: dict[str, Any]) -> Recording:
    files = tuple(
        File(str(f["path"]), f.get("url"), int(f["bytes"]), str(f["sha256"]).lower()) for f in entry["files"]
    )
    for file in files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts:
            raise ValueError(f"{name}: {file.path} leaves the folder of recordings")
        if file.url is not None and urlsplit(file.url).scheme not in ("http", "https"):
            raise ValueError(f"{name}: {file.url} is no http address")
        if file.url is None and not entry.get("ask"):
            raise ValueError(f"{name}: {file.path} has no url, and nothing says how to ask for it")
    return Recording(name, entry["what"], entry["licence"], entry["source"], entry.get("ask", ""), files)


def fetch(recording: Recording, place: Path) -> list[Path]:
    """Brings the files of a recording that are missing into a folder; those that are new.

    Raises
    ------
    DataError
        One cannot be fetched, is not what its checksum says, or another file is in its place, which is kept.
    """
    if recording.ask:
        raise DataError(
            f"cannot be downloaded: its owners give it to those who ask ({recording.source})",
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
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def how(recording: Recording, place: Path) -> str:
    """What to do for a recording to be there."""
    if not recording.ask:
        return f"tcpsbed data {recording.name}"
    files = ", ".join(str(place / file.path) for file in recording.files)
    return f"{recording.ask}, and put it at {files}"


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
