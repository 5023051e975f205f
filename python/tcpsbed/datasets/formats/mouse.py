"""Logs of mouse events: record time (s), client time (s), button, state, x, y (pixels).

Events come when they come. The position moves linearly between them, the button holds: 0 none, 1 left, 2
right, 3 middle. A log of a remote desktop stamps the same event twice; the client's time is the user's.
"""

from pathlib import Path

import numpy as np

from tcpsbed.datasets.formats.lines import MOST, all_sound
from tcpsbed.datasets.track import Track
from tcpsbed.errors import DataError

HEADER = ["record timestamp", "client timestamp", "button", "state", "x", "y"]
NAMES = ["x", "y", "button"]
BUTTONS = {"Left": 1.0, "Right": 2.0, "Middle": 3.0}
DOWN = ("Pressed", "Drag")


def looks_like(line: str) -> bool:
    """Tell whether a first line is this header."""
    return [field.strip() for field in line.split(",")] == HEADER


def read(path: Path) -> Track:
    """Read a log; columns are `x` and `y` in pixels and `button`."""
    rows: list[tuple[float, float, float, float]] = []
    held = 0.0
    with path.open(encoding="utf-8", errors="replace") as file:
        if not looks_like(file.readline()):
            raise DataError("found a header with other columns", file=path, line=1, allowed=",".join(HEADER))
        for number, line in enumerate(file, start=2):
            if line.strip():
                time_s, x, y, held = _event(path, number, line.split(","), held)
                rows.append((time_s, x, y, held))
    table = np.array(rows).reshape(-1, 4)
    # Client clocks may step back; no later event may seem older than one before it.
    times_s = np.maximum.accumulate(table[:, 0]) if len(table) else table[:, 0]
    # Clocks of browsers are coarse: of several events at one time the newest counts.
    newest = np.diff(times_s, append=np.inf) > 0
    return Track(path, list(NAMES), times_s[newest], table[newest, 1:], held={2})


def _event(path: Path, line: int, fields: list[str], held: float) -> tuple[float, float, float, float]:
    try:
        _, time_s, x, y = (float(fields[i]) for i in (0, 1, 4, 5))
        button, state = fields[2].strip(), fields[3].strip()
    except (ValueError, IndexError) as error:
        raise DataError(
            f"found {','.join(fields)[:60]!r}", file=path, line=line, allowed=",".join(HEADER)
        ) from error
    if not all_sound(np.array((time_s, x, y))):
        raise DataError(
            "found a value that is not finite, or too large",
            file=path,
            line=line,
            allowed=f"numbers, at most {MOST:g}",
        )
    if state in DOWN:
        # A drag names no button in some logs: the one that was pressed is still down.
        return time_s, x, y, BUTTONS.get(button, held)
    return time_s, x, y, 0.0 if state == "Released" else held
