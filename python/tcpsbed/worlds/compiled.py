"""Programs that are compiled on this machine, once for each state of their sources, and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tcpsbed.errors import WorldError


def cache(kind: str) -> Path:
    """The folder of one kind of program."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tcpsbed" / kind


def state(files: Iterable[Path], beside: str = "") -> str:
    """16 hexadecimal digits that identify the content of files, and other inputs of a program."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    digest.update(beside.encode())
    return digest.hexdigest()[:16]


def once(folder: Path, place: Path, what: str, arguments: Sequence[str], limit_s: int) -> None:
    """Has `make` in `place` fill a folder, if it is not there; of two runs that compile at once the first one's stays.

    Parameters
    ----------
    folder
        Where the program is to be; `make` is given one beside it as `OUT`, without its object files it becomes the folder.
    place
        The folder of the sources, with a `Makefile`.
    what
        What it is called in messages.
    arguments
        Of `make`.
    limit_s
        Longest time.

    Raises
    ------
    WorldError
        If it does not compile, or not in time, or the folder cannot be made.
    """
    if folder.exists():
        return
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        fresh.mkdir(parents=True, exist_ok=True)
        command = ["make", "-s", *arguments, f"OUT={fresh}"]
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, errors="replace", timeout=limit_s
        )
        if done.returncode:
            raise WorldError(f"{place}: {what} does not compile: {done.stderr.strip()[-600:]}")
        for part in fresh.glob("*.o"):
            part.unlink()
        with suppress(OSError):  # another run was faster
            fresh.rename(folder)
        if not folder.exists():
            raise WorldError(f"{folder}: {what} is compiled, but cannot be stored there")
    except subprocess.TimeoutExpired:
        raise WorldError(f"{place}: {what} did not compile within {limit_s} s") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
