"""Reads an archive from anywhere: nothing is unpacked before names, kinds, sizes and hashes are what they should be."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from tcpsbed import inputs
from tcpsbed.archive import content
from tcpsbed.archive.content import ABOUT, REMEDY, Cell, Content
from tcpsbed.errors import DataError, one_line

MOST_MEMBERS = 200_000
MOST_BYTES = 8 << 30
"""Most bytes of all members, unpacked."""
MOST_ABOUT_BYTES = 256 << 20
_PIECE = 1 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
"""What zipfile raises of bytes that are no zip; names that are no text are a ValueError."""


@dataclass(frozen=True)
class Archive:
    """An archive whose list of members was checked.

    Attributes
    ----------
    file : Path
        The zip.
    content : Content
        What it says of itself.
    """

    file: Path
    content: Content
    _zip: ZipFile

    def summary(self, cell: Cell) -> dict[str, Any]:
        """The archived summary of a run.

        Raises
        ------
        DataError
            If the member was changed, or is none.
        """
        try:
            found = json.loads(b"".join(self._pieces(cell.results)))
        except (ValueError, RecursionError):
            found = None
        summary = found.get("summary", found) if isinstance(found, dict) else None
        if not isinstance(summary, dict) or not isinstance(summary.get("flows"), dict):
            raise DataError(f"holds no summary in {cell.results}", file=self.file, allowed=REMEDY)
        return summary

    def unpack(self, folder: Path) -> Path:
        """Unpacks everything into a folder; the scenario's file there.

        Raises
        ------
        DataError
            If a member is not what the archive says, or there is no room.
        """
        total = sum(size for size, _ in self.content.files.values())
        if (free := shutil.disk_usage(folder).free) < total:
            found = f"needs {total >> 20} MiB, and {free >> 20} MiB are free in {folder}"
            raise DataError(found, file=self.file, allowed="--out DIR on a disk with more room")
        for name in sorted(self.content.files):
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as out:
                for piece in self._pieces(name):
                    out.write(piece)
            if self._zip.getinfo(name).external_attr >> 16 & 0o100:
                place.chmod(0o755)
        (folder / ABOUT).write_text(self.content.text(), encoding="utf-8")
        return folder / self.content.scenario

    def _pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a member; the error of one that was changed comes behind the last of them."""
        size, sha256 = self.content.files[name]
        digest, read = hashlib.sha256(), 0
        for piece in _read(self._zip, self.file, self._zip.getinfo(name)):
            digest.update(piece)
            read += len(piece)
            yield piece
        if (read, digest.hexdigest()) != (size, sha256):
            found = f"holds another {name} than was archived ({read} bytes, {size} expected; SHA-256 differs)"
            raise DataError(found, file=self.file, allowed=REMEDY)


@contextmanager
def opened(file: Path) -> Iterator[Archive]:
    """An archive, checked but for the bytes of its members, which are checked when they are read.

    Raises
    ------
    DataError
        If it is no archive of tcpsbed, or its members are not what tcpsbed writes: links, paths that leave the folder,
        names twice, more than it says.
    """
    inputs.regular(file, "an archive that tcpsbed archive wrote", MOST_BYTES)
    try:
        archive = ZipFile(file)
    except _DAMAGE as error:
        found = f"is no zip file, or its end is missing ({error})"
        raise DataError(found, file=file, allowed="a whole archive; copy it again") from None
    with archive:
        _refuse_hostile(archive, file)
        if ABOUT not in archive.namelist():
            raise DataError(f"is not an archive of tcpsbed: it has no {ABOUT}", file=file, allowed=REMEDY)
        about = archive.getinfo(ABOUT)
        if about.file_size > MOST_ABOUT_BYTES:
            raise DataError(f"has {ABOUT} of {about.file_size} bytes", file=file, allowed=REMEDY)
        try:
            said = json.loads(b"".join(_read(archive, file, about)))
        except (ValueError, RecursionError) as error:
            raise DataError(f"has a broken {ABOUT} ({error})", file=file, allowed=REMEDY) from None
        told = content.read(said, str(file))
        _refuse_unlisted(archive, file, told)
        yield Archive(file, told, archive)


def _read(archive: ZipFile, file: Path, info: ZipInfo) -> Iterator[bytes]:
    """The bytes of a member, at most as many as it says."""
    try:
        with archive.open(info) as source:
            while piece := source.read(_PIECE):
                yield piece
    except _DAMAGE as error:
        found = f"holds a damaged or truncated {info.filename} ({error})"
        raise DataError(found, file=file, allowed="a whole archive; copy it again") from None


def _refuse_hostile(archive: ZipFile, file: Path) -> None:
    """Raises `DataError` for members that tcpsbed does not write."""
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise DataError(f"holds {len(members)} files", file=file, allowed=f"at most {MOST_MEMBERS}")
    if (total := sum(info.file_size for info in members)) > MOST_BYTES:
        raise DataError(f"holds {total} bytes, unpacked", file=file, allowed=f"at most {MOST_BYTES}")
    known: set[str] = set()
    for info in members:
        if why := _amiss(info):
            raise DataError(f'holds "{one_line(info.filename)}", {why}', file=file, allowed=REMEDY)
        if info.filename in known:
            raise DataError(f'holds "{info.filename}" twice', file=file, allowed=REMEDY)
        known.add(info.filename)
    above = {str(parent) for name in known for parent in PurePosixPath(name).parents}
    for name in sorted(known & above):
        raise DataError(f'holds "{name}" as a file and as a folder', file=file, allowed=REMEDY)


def _amiss(info: ZipInfo) -> str:
    """What is wrong with a member; empty: nothing."""
    name, mode = info.orig_filename, info.external_attr >> 16
    parts = name.split("/")
    if (
        name.startswith("/")
        or "\\" in name
        or ":" in parts[0]
        or any(part in ("", ".", "..") for part in parts)
    ):
        return "which is no path within the archive"
    if inputs.unprintable({name: 0}) or len(name.encode(errors="replace")) > 1000:
        return "whose name cannot be shown, or is too long"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "which is a link or a device"
    if info.flag_bits & 1:
        return "which is encrypted"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "which is compressed by another method than deflate"
    return ""


def _refuse_unlisted(archive: ZipFile, file: Path, told: Content) -> None:
    """Raises `DataError` if members and list are not the same."""
    held, listed = set(archive.namelist()) - {ABOUT}, set(told.files)
    for name in sorted(held ^ listed):
        verb = "holds" if name in held else "does not hold"
        why = f"which its {ABOUT} does not list" if name in held else f"which its {ABOUT} lists"
        raise DataError(f'{verb} "{name}", {why}', file=file, allowed=REMEDY)
    for name, (size, _) in told.files.items():
        if (held_size := archive.getinfo(name).file_size) != size:
            found = f"holds another {name} than was archived ({held_size} bytes, {size} expected)"
            raise DataError(found, file=file, allowed=REMEDY)
