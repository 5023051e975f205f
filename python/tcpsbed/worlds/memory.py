"""The folder of a run in shared memory: rings of rows, states of robots, and remains of dead processes.

```text
 /dev/shm/tcpsbed-PID-xxxxxxxx/.lock         held by the process whose run it is, as long as it lives, then by who saves it
                              /.folder       the run's folder on disk while it is written
                              /node0.0.ring  a ring of rows
                              /records.bin   all rows, if there was no room for them on the disk
                              /arm           the state that a robot publishes (`publish = "memory:arm"`)
```
The environment variable `TCPSBED_MEMORY` names a folder in place of /dev/shm. Rows go from here once they are on the disk in
whole, and not before.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcpsbed import _tcps, results
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.results import marker
from tcpsbed.robots import MEMORY

VARIABLE = "TCPSBED_MEMORY"
_NAME = "tcpsbed-"
_LOCK, _FOLDER = ".lock", ".folder"
RECORDS = "records.bin"


def home() -> Path:
    """Where shared memory is: the folder of `TCPSBED_MEMORY`, else /dev/shm, else where temporary files go.

    Raises
    ------
    ConfigError
        If the folder that the variable names is not there or cannot be written.
    """
    named = os.environ.get(VARIABLE)
    shared = Path(named or "/dev/shm")
    if os.access(shared, os.W_OK) and shared.is_dir():
        return shared.absolute()
    if named:
        raise ConfigError(f"{named!r} is not a writable folder", key=VARIABLE, allowed=f"{VARIABLE}=/dev/shm")
    return Path(tempfile.gettempdir())


@contextmanager
def folder(run: Path | None = None) -> Iterator[Path]:
    """A folder in shared memory that goes away at the end; first that of dead processes goes.

    Parameters
    ----------
    run
        The run's folder, into which rows are saved if this process dies.
    """
    sweep()
    begun = Path(tempfile.mkdtemp(prefix=f".{_NAME}{os.getpid()}-", dir=home()))
    made = begun.with_name(begun.name[1:])
    descriptor = os.open(begun / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if run is not None:
            (begun / _FOLDER).write_text(str(run.resolve()), encoding="utf-8")
            marker.note(run, memory=str(made))
        begun.rename(made)  # nobody has seen it without its lock
        yield made
    finally:
        shutil.rmtree(begun, ignore_errors=True)
        if not (made / RECORDS).exists():
            shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


def sweep() -> None:
    """Removes what dead processes of this user left, once the rows in it are in the folders of their runs."""
    for left in home().glob(f"{_NAME}*-*"):
        try:
            if left.stat().st_uid == os.getuid():
                with _taken(left) as dead:
                    if dead:
                        save(left)
                        shutil.rmtree(left)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TcpsbedError) as error:
            print(f"tcpsbed: {left}: rows of a dead run stay there: {error}", file=sys.stderr)


def _is_ours(left: Path) -> bool:
    """Whether a path is a folder that this user's runs have made: what a marker names may be anything."""
    named = left.parent == home() and re.fullmatch(rf"{_NAME}\d+-\w+", left.name)
    return bool(named) and not left.is_symlink() and left.is_dir() and left.stat().st_uid == os.getuid()


@contextmanager
def _taken(left: Path, *, wait: bool = False) -> Iterator[bool]:
    """Holds what a dead process left; false if the process lives, or another one holds it, or it is of no known kind."""
    try:
        descriptor = os.open(left / _LOCK, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            dead = left.exists()
        except BlockingIOError:
            dead = False
        yield dead
    finally:
        os.close(descriptor)


def save(left: Path) -> None:
    """Adds the rows that a dead process left in memory to those that it had saved in the folder of its run.

    Raises
    ------
    OSError, TcpsbedError
        If they cannot be saved: they must stay.
    """
    if not (left / _FOLDER).is_file():
        return
    run = Path((left / _FOLDER).read_text(encoding="utf-8"))
    if not (run / "plan.json").is_file() or (run / RECORDS).exists() or (run / "result.json").exists():
        return
    (run / "reserve.part").unlink(missing_ok=True)
    if (left / RECORDS).is_file():
        with results.whole(run / RECORDS) as part:
            shutil.copyfile(left / RECORDS, part)
        return
    for part in sorted(run.glob("*.rows")):
        if (left / part.stem).is_file():
            _tcps.Drain([(left / part.stem, part)], resume=True).drain()


@contextmanager
def rescued(run: Path) -> Iterator[None]:
    """Saves the rows that a dead process left in memory; the memory is released afterwards."""
    found = marker.read(run)
    left = Path(found.memory) if found is not None and found.memory else None
    if left is None or not _is_ours(left):
        sweep()
        yield
        return
    with _taken(left, wait=True) as dead:  # somebody may be saving them just now
        if dead:
            save(left)
        yield
        if dead:
            shutil.rmtree(left, ignore_errors=True)


def placed(content: Any, memory: Path | str) -> Any:
    """A plan with the names in shared memory (`memory:arm`) as paths in this folder."""
    if isinstance(content, dict):
        return {key: placed(value, memory) for key, value in content.items()}
    if isinstance(content, list):
        if content and isinstance(content[0], int | float):
            return content
        return [placed(value, memory) for value in content]
    if isinstance(content, str) and content.startswith(MEMORY):
        return f"{memory}/{content.removeprefix(MEMORY)}"
    return content
