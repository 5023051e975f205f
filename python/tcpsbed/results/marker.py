"""The marker of a results folder: what kind of result it holds, and which of its files tcpsbed wrote.

In a finished result a file is ours while it is in the list with the size and the very moment that it had when it was
written, or else, as where the folder was copied, with its content; one that somebody changed since is theirs. The content of
files beyond `MOST_HASHED` is not known: of these a moment that was only made coarser is enough.
While a result is written, a file is ours if it has a name that we give. In a folder that gains files from command to command
what is in the list must be as it was, and what is not must have a name of ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tcpsbed.errors import ConfigError

NAME = ".tcpsbed"
AGAIN = f"{NAME}-again"
"""A folder in one that is being written, with what is to take the place of what is there."""
VERSION = 1
RUN = "run"
"""The kind of result that a run leaves; `runs/latest` names the newest of them."""
WRITING, WHOLE, FORMER, GROWING = "writing", "whole", "former", "growing"
"""A folder that is being written, one that is finished, one in whose place a newer one comes, one that gains files from
command to command."""
SLACK_NS = 2_000_000_000
"""Coarsest moment of a change that file systems keep (FAT)."""
_COARSE_NS = 10_000_000
"""Moments that are a multiple of this were made coarser: by FAT, exFAT (10 ms), or a copy that keeps whole seconds."""
MOST_HASHED = 16 << 20
"""Bytes of the largest file whose content the marker knows."""
_PART = re.compile(r"(^|/)\.[^/]+\.\d+\.part(\.[^/.]*)?$")
"""What a kill leaves of a file that was being written whole (`files.whole`)."""
PARTS = (
    ("node[0-9]*.[0-9]*.ring.rows", "emulator.rows", "streams.rows"),
    ("node[0-9]*.[0-9]*.pcapng",),
)
"""Rows and packets of the loops of a run on the machine's clock, until they are merged."""
CELL = "[0-9a-f]" * 20
"""Names of cells of a campaign."""
_SWEEP = (
    *("sweep.json", "sweep.parquet", "sweep.html", "sweep.part"),
    *("cells/", f"cells/{CELL}.json", f"cells/{CELL}.*.broken", "failed/", f"failed/{CELL}.txt"),
    *("work/", f"work/{CELL}-*", f"work/{CELL}-*/**", f"work/.{CELL}-*"),
)
LAYOUT: dict[str, tuple[str, ...]] = {
    "run": (
        *("scenario.toml", "plan.json", "result.json", "summary.json", "series.json", "doctor.json"),
        *("records.bin", "packets.pcapng", "samples.parquet", "report.html", "reserve.part"),
        *(name for part in PARTS for name in part),
        *("inputs/", "inputs/*.f64", "inputs/*.frames", "seeds/", *(f"seeds/{name}" for name in _SWEEP)),
    ),
    "step": ("scenario.toml", "step.json", "step.html", "curves.parquet"),
    "map": ("scenario.toml", "map.json", "map.html"),
    "reproduction": ("index.html", "rows.json", "*.png"),
    "sweep": _SWEEP,
    "search": (*_SWEEP, "search.json", "search.html"),
    "rerun": (
        "archive.json",
        "ro-crate-metadata.json",
        "README.md",
        "rerun.json",
        "scenario/**",
        "results/**",
    ),
    "study": ("study.json", "ratings.jsonl", "ratings.csv", "results.json", "subject-*/**"),
}
"""Names that we give to the files of a result, by its kind."""
GROWS = ("sweep", "search", "study")
REMEDY = "a folder that is new, empty, or holds only what tcpsbed wrote: name another --out, or move that file away"


@dataclass(frozen=True)
class Marker:
    """The content of `.tcpsbed`."""

    kind: str
    state: str = WRITING
    id: str = field(default_factory=lambda: os.urandom(8).hex())
    target: str = ""
    """The folder that it becomes, or became."""
    world: str = ""
    """Where a run takes place."""
    memory: str = ""
    """The folder in shared memory where a run keeps rows that are not in its folder yet."""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Files of ours: size, and when they were changed last, in ns."""
    hashes: dict[str, tuple[int, str]] = field(default_factory=dict)
    """SHA-256 of those that are not too large, beside the moment of that change."""
    version: int = VERSION

    def write(self, folder: Path) -> None:
        """Puts it into a folder in one step; a link that stands in its place is not followed."""
        part = folder / f"{NAME}.part"
        hashed = replace(self, hashes=dict(self._hashed(folder)))
        part.unlink(missing_ok=True)
        with part.open("x", encoding="utf-8") as file:
            json.dump(asdict(hashed), file)
        part.replace(folder / NAME)

    def owns(self, folder: Path, name: str) -> bool:
        """Whether a file in the folder is ours, by its name relative to it."""
        if _PART.search(name):
            return True
        if self.state == WRITING or (self.state == GROWING and name not in self.files):
            return any(_matches(name, pattern) for pattern in LAYOUT[self.kind])
        if name.endswith("/"):  # empty: of a kill, or as it was made
            return any(listed.startswith(name) for listed in self.files)
        if name not in self.files:
            return False
        found, (size, mtime_ns) = (folder / name).lstat(), self.files[name]
        if found.st_size != size:
            return False
        coarse = found.st_mtime_ns % _COARSE_NS == 0
        if found.st_mtime_ns == mtime_ns and not coarse:
            return True
        if self._knows(name):
            return _hash(folder / name) == self.hashes[name][1]
        return coarse and size > MOST_HASHED and abs(found.st_mtime_ns - mtime_ns) <= SLACK_NS

    def _knows(self, name: str) -> bool:
        """Whether it has the hash of a file as it is listed."""
        return name in self.hashes and self.hashes[name][0] == self.files[name][1]

    def _hashed(self, folder: Path) -> Iterator[tuple[str, tuple[int, str]]]:
        """Hashes of the files in the list: those that are known, and of others that are as they are listed."""
        for name, (size, mtime_ns) in self.files.items():
            if self._knows(name):
                yield name, self.hashes[name]
            elif size <= MOST_HASHED and (found := _hash(folder / name, mtime_ns)):
                yield name, (mtime_ns, found)

    def accused(self, folder: Path, name: str) -> str:
        """A description of a file that is not part of the result."""
        if name not in self.files:
            return "which is not a result of tcpsbed"
        same_size = (folder / name).lstat().st_size == self.files[name][0]
        copied = "copied or " if same_size and not self._knows(name) else ""
        return f"which was {copied}changed since tcpsbed wrote it"

    def listing(self, folder: Path) -> Marker:
        """The marker of a folder that was being written with all files of ours in it, whole."""
        return replace(self, state=WHOLE, files=_stated(folder, self.ours(folder)))

    def ours(self, folder: Path) -> list[str]:
        """What is ours in a folder."""
        return [name for name in files(folder) if self.owns(folder, name)]


def kind_of(folder: Path) -> str:
    """The kind of result in a folder; empty if its marker does not say."""
    found = read(folder)
    return "" if found is None else found.kind


def _hash(file: Path, mtime_ns: int | None = None) -> str:
    """The SHA-256 of a regular file; empty for others, or if it was changed at another time than the given one."""
    with suppress(OSError):
        found = file.lstat()
        if stat.S_ISREG(found.st_mode) and mtime_ns in (None, found.st_mtime_ns):
            return hashlib.sha256(file.read_bytes()).hexdigest()
    return ""


def _matches(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern, part by part; `**` at the end matches everything below."""
    parts, wanted = name.split("/"), pattern.split("/")
    if wanted[-1] == "**" and len(parts) >= len(wanted):
        parts, wanted = parts[: len(wanted) - 1], wanted[:-1]
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _stated(folder: Path, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    found = {name: (folder / name).lstat() for name in names}
    return {name: (of.st_size, of.st_mtime_ns) for name, of in found.items()}


def read(folder: Path) -> Marker | None:
    """The marker of a folder; `None` if it has none that can be understood."""
    if not (folder / NAME).is_file():
        return None
    try:
        content: dict[str, Any] = json.loads((folder / NAME).read_text(encoding="utf-8"))
        found = Marker(**{key.name: content[key.name] for key in fields(Marker) if key.name in content})
        if found.version != VERSION or (found.state in (WRITING, GROWING) and found.kind not in LAYOUT):
            return None
        return replace(
            found,
            files={name: (size, at) for name, (size, at) in found.files.items()},
            hashes={name: (at, digest) for name, (at, digest) in found.hashes.items()},
        )
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def files(folder: Path) -> Iterator[str]:
    """Names of everything below a folder that is no folder, and of empty folders (`NAME/`); not those of the marker."""
    for place, folders, names in os.walk(folder):
        if not (folders or names) and Path(place) != folder:
            yield f"{Path(place).relative_to(folder)}/"
        folders[:] = [name for name in folders if not name.startswith(f"{NAME}-")]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in [*names, *links]:
            found = str((Path(place) / name).relative_to(folder))
            if not found.startswith(NAME):
                yield found


def sweep_parts(folder: Path) -> None:
    """Removes what a kill left of files that were being written whole; only for who holds the lock of the folder."""
    for name in [name for name in files(folder) if _PART.search(name)]:
        (folder / name).unlink(missing_ok=True)


def foreign(folder: Path) -> str | None:
    """A file in a folder that tcpsbed did not write, or that has changed since; `None` if there is none."""
    marker = read(folder)
    return next(
        (name for name in sorted(files(folder)) if marker is None or not marker.owns(folder, name)), None
    )


def refuse_foreign(folder: Path, kind: str) -> None:
    """Raises `ConfigError` if a folder holds what tcpsbed did not write, or a result of another kind."""
    if (name := foreign(folder)) is not None:
        marker = read(folder)
        what = "which is not a result of tcpsbed" if marker is None else marker.accused(folder, name)
        raise ConfigError(f"holds {name}, {what}", file=folder, key="--out", allowed=REMEDY)
    marker = read(folder)
    if marker is not None and marker.kind != kind and next(files(folder), None) is not None:
        raise ConfigError(
            f"holds a {marker.kind}, not a {kind}", file=folder, key="--out", allowed="another --out"
        )


def note(folder: Path, **said: str) -> None:
    """Records `world` and `memory` of a run in the marker of the folder that is being written."""
    found = read(folder)
    if found is not None:
        replace(found, **said).write(folder)  # type: ignore[arg-type]


def add(folder: Path, *names: str) -> None:
    """Puts files that we wrote into the list of a finished result: later, or again."""
    marker = read(folder)
    if marker is not None and marker.state in (WHOLE, FORMER):
        replace(marker, files=marker.files | _stated(folder, names)).write(folder)


class Growth:
    """A growing folder while a command holds it: nobody else changes its marker, which is read once.

    Parameters
    ----------
    folder
        The folder, with its marker.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._marker = folder, read(folder)
        self.listed = dict(self._marker.files) if self._marker is not None else {}
        self.wrote: dict[str, tuple[int, int]] = {}
        """What was written whole: size, and when it was changed last."""

    def delist(self, name: str) -> None:
        """Takes a file that is written anew out of the list: a kill leaves it ours by its name."""
        if self.listed.pop(name, None) is not None:
            self._write()

    def enlist(self) -> None:
        """Puts what was written whole into the list, as it was then."""
        if self._marker is not None and self._marker.state == GROWING and self.wrote:
            self.listed |= self.wrote
            self._write()

    def _write(self) -> None:
        if self._marker is not None and (self._folder / NAME).is_file():
            replace(self._marker, files=self.listed).write(self._folder)


def let_go(folder: Path) -> None:
    """Removes a folder created for a result if it contains none; an empty folder of the user stays."""
    found = read(folder)
    if found is not None and found.state == WHOLE and next(files(folder), None) is None:
        remove(folder)


def clear(folder: Path, marker: Marker) -> None:
    """Removes what is ours from a folder, and the folders below it that are empty then."""
    ours = marker.ours(folder)
    for name in ours:
        if not name.endswith("/"):
            (folder / name).unlink(missing_ok=True)
    above = {parent for name in ours for parent in (name.rstrip("/"), *map(str, Path(name).parents))}
    for name in sorted(above - {"."}, reverse=True):
        with suppress(OSError):
            (folder / name).rmdir()


def remove(folder: Path) -> None:
    """Removes what is ours from a folder, and the folder; where something else is in it, it is the user's from then on."""
    if (marker := read(folder)) is not None:
        remove(folder / AGAIN)
        clear(folder, marker)
        (folder / NAME).unlink()
    (folder / f"{NAME}.part").unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
