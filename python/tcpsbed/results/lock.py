"""The lock of a results folder: one writer at a time, by a locked file beside it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcpsbed.errors import ConfigError

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""No link is followed, and no pipe waited for."""


@contextmanager
def held(file: Path, what: Path) -> Iterator[None]:
    """Holds the lock file; it goes away with the lock.

    Raises
    ------
    ConfigError
        If another process holds it: with its number; or if there can be none.
    """
    descriptor = _taken(file, what)
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def is_held(file: Path) -> bool:
    """Whether a process holds a lock."""
    try:
        descriptor = os.open(file, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _taken(file: Path, what: Path) -> int:
    while True:
        try:
            descriptor = os.open(file, _OPEN | os.O_CREAT, 0o644)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise _not_ours(file) from None
            if error.errno not in _REFUSED:
                raise OSError(error.errno, error.strerror, str(what)) from None  # nobody named the lock
            found = f"cannot be written ({error.strerror})"
            there = "a folder of your own, such as a copy of it"
            new = "a place where you may create a folder, such as --out runs/mine"
            raise ConfigError(found, file=what, allowed=there if what.exists() else new) from None
        if not _is_ours(descriptor):
            os.close(descriptor)
            raise _not_ours(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            found = f"is being written by another tcpsbed (process {pid})"
            raise ConfigError(
                found, file=what, key="--out", allowed="another --out, or wait for it"
            ) from None
        if _same(descriptor, file):
            return descriptor
        os.close(descriptor)  # its holder removed it between our two steps


def _is_ours(descriptor: int) -> bool:
    """Whether an open file can be a lock: a plain file with nothing or the number of a process in it."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return False
    return found.st_size == 0 or os.pread(descriptor, 32, 0).strip().isdigit()


def _not_ours(file: Path) -> ConfigError:
    return ConfigError(
        f"holds {file.name}, which is not a lock of tcpsbed",
        file=file.parent,
        allowed=f"a folder without it: move {file.name} away",
    )


def _same(descriptor: int, file: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == file.stat().st_ino
    except FileNotFoundError:
        return False
