"""The lock of a results folder: one writer at a time, by a locked file beside it."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcpsbed.errors import ConfigError

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


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
        descriptor = os.open(file, os.O_RDWR)
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
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            found = f"cannot be written ({error.strerror})"
            raise ConfigError(
                found, file=what, allowed="a folder of your own, such as a copy of it"
            ) from None
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


def _same(descriptor: int, file: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == file.stat().st_ino
    except FileNotFoundError:
        return False
