"""Single files that a command writes: whole or not at all, and never over a file that tcpsbed did not write.

A file that we wrote carries our mark, an extended attribute with its size and the moment of its last change: once somebody
edits or copies it, it is theirs. One that grows names the process that writes it, and is ours as long as that lives. Where a
file system keeps no such attribute, a file that is there is not ours.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tcpsbed.errors import REMEDIES, ConfigError
from tcpsbed.results import marker

MARK = "user.tcpsbed"
_STREAMED = "growing"
"""First word of the mark of a file that a run writes bit by bit, while it does."""
_ASKED: dict[Path, tuple[int, ...] | None] = {}
"""What files were when it was asked whether they may be written; of these only what has not changed since may go."""
_HELD: dict[Path, marker.Growth] = {}
"""The growing folders that this command holds, with what it wrote whole in them."""
_LISTING = threading.Lock()


def may_write(
    file: Path,
    *,
    force: bool = False,
    remedy: str = "another name, or --force to overwrite it",
    reads: Iterable[Path | str] = (),
) -> None:
    """Raises `ConfigError` if a file may not be written; called before the work that fills it.

    Parameters
    ----------
    file
        What the user named. A device or a pipe is written to as it is, if somebody reads the pipe.
    force
        Whether a file that tcpsbed did not write may go.
    remedy
        What to do about one that may not.
    reads
        Files, and folders of runs, that the command reads: none of them may go, whatever `force` says.
    """
    refuse_dash(file)
    refuse_link(file)
    _refuse_unread(file)
    _refuse_read(file, reads)
    may_replace(file, force=force, remedy=remedy)
    above = next(folder for folder in file.absolute().parents if folder.is_dir())
    if not file.exists() and not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError("cannot be written", file=file, allowed="a file in a folder of your own")


def refuse_dash(
    file: Path, allowed: str = "a file name such as ./result, or /dev/stdout", key: str = "FILE"
) -> None:
    """Raises `ConfigError` for `-`: commands that print what they make do so by themselves, and no file gets this name."""
    if str(file) == "-":
        raise ConfigError('found "-"', key=key, allowed=allowed)


def refuse_link(file: Path) -> None:
    """Raises `ConfigError` for a link to a file: what it leads to would be replaced. Devices behind links may be written."""
    if file.is_symlink() and (file.is_file() or not file.exists()):
        allowed = "the file itself, or another name"
        raise ConfigError(f"is a link to {file.readlink()}", file=file, allowed=allowed)


def _refuse_unread(file: Path) -> None:
    """Raises `ConfigError` for a pipe without a reader, for which a write would wait for ever."""
    if not file.is_fifo():
        return
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.ENXIO:
            allowed = f"a pipe with a reader, such as cat {file} &, or a file"
            raise ConfigError("is a pipe that nobody reads", file=file, allowed=allowed) from None


def _refuse_read(file: Path, reads: Iterable[Path | str]) -> None:
    """Raises `ConfigError` for a file that is read by this command, or that is part of a result."""
    if not file.is_file():
        return
    for one in map(Path, reads):
        if one.is_file() and one.samefile(file):
            found = "is an input of this command and would be overwritten"
            raise ConfigError(found, file=file, allowed=f"another name, such as new-{file.name}")
        if one.is_dir() and file.resolve().is_relative_to(one.resolve()):
            found = f'is in the folder "{one}", which this command reads, and would be overwritten'
            raise ConfigError(found, file=file, allowed=f"another name, such as new-{file.name}")
    at = file.resolve()
    for folder in at.parents:
        made = marker.read(folder)
        name = str(at.relative_to(folder))
        if made is not None and (name in made.files or made.owns(folder, name)):
            found = f'belongs to the {made.kind} in the folder "{folder}" and would be overwritten'
            raise ConfigError(found, file=file, allowed=f"another name, such as new-{file.name}")


def may_replace(file: Path, *, force: bool, remedy: str = "--force to write over it") -> None:
    """Raises `ConfigError` if there is no place for a file, or one that tcpsbed did not write without `force`."""
    refuse_link(file)
    if file.is_dir():
        raise ConfigError("is a folder", file=file, allowed=f"a file, such as {file / 'result'}")
    if file.parent.exists() and not file.parent.is_dir():
        raise ConfigError(f"is below {file.parent}, which is a file", file=file, allowed="a file in a folder")
    if file.is_file() and not force and not _is_ours(file):
        found = "exists already, and tcpsbed did not write it, or it was changed since"
        raise ConfigError(found, file=file, allowed=remedy)
    _ASKED[file.resolve()] = _state(file)


def _state(file: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        found = file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A path beside a file to write to; it takes the file's place when it is whole, and carries our mark then.

    Raises
    ------
    ConfigError
        If a file that is not ours came there meanwhile, or since `may_write`: both are kept.
    """
    refuse_link(file)
    if file.exists() and not file.is_file():
        _refuse_unread(file)
        with named(file):
            yield file
        return
    at = file.resolve()
    at.parent.mkdir(parents=True, exist_ok=True)
    before = _ASKED.get(at, _state(at))
    part = at.with_name(f".{at.name}.{os.getpid()}.part{at.suffix}")
    home = next((folder for folder in at.parents if folder in _HELD), None)
    try:
        try:
            part.touch()
            part.unlink()  # some writers take new files only
        except OSError as error:
            found = f"cannot be written ({os.strerror(error.errno or 0)})"
            allowed = REMEDIES.get(error.errno or 0, "a file in a folder of your own")
            raise ConfigError(found, file=file, allowed=allowed) from None
        with named(file):
            yield part
        mark(part)
        if _state(at) not in (None, before) and not _is_ours(at):
            kept = part.replace(at.with_name(f"{at.stem}.{os.getpid()}{at.suffix}"))
            found = "was created or changed while its replacement was written"
            raise ConfigError(found, file=file, allowed=f"another name; the result is in {kept}")
        if home is not None:
            with _LISTING:
                _HELD[home].delist(str(at.relative_to(home)))
        part.replace(at)
    finally:
        _ASKED.pop(at, None)
        part.unlink(missing_ok=True)
    if home is not None and (wrote := _state(at)) is not None:
        _ASKED[at] = wrote
        _HELD[home].wrote[str(at.relative_to(home))] = wrote[1], wrote[2]


@contextmanager
def enlisted(folder: Path) -> Iterator[None]:
    """Within it, what is written whole into a growing folder comes into its list; nothing that somebody changes is lost."""
    held = marker.Growth(folder)
    for name in held.listed:
        _ASKED[folder / name] = _state(folder / name)
    _HELD[folder] = held
    try:
        yield
    finally:
        _HELD.pop(folder).enlist()
        for file in [file for file in _ASKED if file.is_relative_to(folder)]:
            del _ASKED[file]


@contextmanager
def named(place: Path) -> Iterator[None]:
    """Gives the error of a full disk the name of what did not fit."""
    try:
        yield
    except OSError as error:
        if error.errno not in REMEDIES or error.filename:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from None


def write_whole(file: Path, text: str) -> None:
    """Writes a text: a kill leaves the old file, the new one, or none, never half of it."""
    with whole(file) as part:
        part.write_text(text, encoding="utf-8")


def write_new(file: Path, text: str, mode: int = 0o666) -> None:
    """Writes a file that is not there yet; where it does not fit there is none.

    Raises
    ------
    FileExistsError
        It is there already.
    OSError
        It cannot be written.
    """
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with named(file), os.fdopen(opened, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError:
        file.unlink(missing_ok=True)
        raise


@contextmanager
def streamed(files: Iterable[Path]) -> Iterator[None]:
    """Holds files that a run writes bit by bit, such as sound; it never replaces a file of the user.

    Raises
    ------
    ConfigError
        If one is there that tcpsbed did not write.
    """
    named = sorted(files)
    for file in named:
        may_write(file, remedy="move it away, or name another file in the scenario")
    for file in named:
        with suppress(OSError, AttributeError):
            file.touch()
            os.setxattr(file, MARK, f"{_STREAMED} {os.getpid()} {_began(os.getpid())}".encode())
    try:
        yield
    finally:
        for file in named:
            if file.is_file() and file.stat().st_size == 0:
                file.unlink()
            else:
                mark(file)


def mark(file: Path) -> None:
    """Marks a file as ours, once it is on the disk; not a device or a pipe."""
    if not file.is_file():
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    found = file.stat()
    with suppress(OSError, AttributeError):  # macOS has no such call
        os.setxattr(file, MARK, f"{found.st_size} {found.st_mtime_ns}".encode())


def _began(pid: int) -> str:
    """Start time of a process by the kernel's clock, to tell it from another one with its number; "" if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return ""


def _is_ours(file: Path) -> bool:
    found = file.stat()
    with suppress(OSError, ValueError, AttributeError):
        said, *rest = os.getxattr(file, MARK).decode().split()
        if said == _STREAMED:
            return len(rest) == 2 and _began(int(rest[0])) == rest[1] != ""
        return [said, *rest] == [str(found.st_size), str(found.st_mtime_ns)]
    return found.st_size == 0
