"""Names of runs without a given folder."""

from __future__ import annotations

import time
from pathlib import Path

from tcpsbed.errors import ConfigError
from tcpsbed.results.marker import RUN, WHOLE, Marker

RUNS = Path("runs")
"""Where runs go that are given no folder."""


def fresh(name: str) -> Path:
    """A new folder `runs/NAME-YYYYmmdd-HHMMSS`, of a run with nothing in it."""
    letters = (letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    safe = "".join(letters).strip(".-") or "run"
    stem = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        RUNS.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        allowed = "a folder that you may write, such as --out /tmp/mine"
        raise ConfigError(
            f"cannot be made here ({error.strerror})", file=RUNS, key="--out", allowed=allowed
        ) from None
    for number in range(1000):
        folder = RUNS / (stem if number == 0 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        Marker(RUN, WHOLE).write(folder)
        return folder
    raise ConfigError(
        "found a thousand runs of this second", file=RUNS, key="--out", allowed="a folder of your own"
    )


def link_latest(folder: Path) -> None:
    """Points `runs/latest` at a folder, in one step; a file system without links goes without, a file stays."""
    latest, part = folder.parent / "latest", folder.parent / f".latest-{folder.name}"
    if latest.exists() and not latest.is_symlink():
        return
    try:
        part.symlink_to(folder.name)
        part.replace(latest)
    except OSError:
        part.unlink(missing_ok=True)
