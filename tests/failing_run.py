"""A follower whose commands pass a hook that fails, for both worlds, and what others with a supervisor share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tcpsbed.analysis import signals

HERE = Path(__file__).parent
SPEED = 2.0
SAFETY = """
[hooks.safety]
kind = "predict"
run = "supervisor"
at = "ss-com"
flow = "kinematic"
period = "1 ms"
""".strip()
"""The supervisor's hook, but for its parameters."""
SCENARIO = """
name = "failing"
duration = "1 s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
[flows.kinematic]
source = {{ recording = "motion.csv", columns = ["x"], repeat = "loop" }}
codec = "f64"
[hooks.model]
kind = "kinematics"
run = "{hook}"
at = "ms-com"
params = {params}
{more}
{safety}
params = {{ hold_ms = 30, stop_ms = 200, speed = 2, tell = true }}
[measure]
signals = ["ss-com.exit"]
"""

ISOLATED = 'isolate = { time = "100 ms", memory = "200 MB" }'
"""The keys of a hook in a process of its own."""
ACCIDENTS = {
    "Aborts": "SIGABRT",
    "Faults": "SIGSEGV",
    "Hogs": "out of memory (limit 200 MB)",
    "Raises": "left its domain",
    "Stops": "Stop: it is enough",
    "Spins": "no answer within 100 ms",
    "Strays": "stray bytes on its socket",
    "TooMuch": "wrote 10000 of 256 values",
}
"""What is said of each failing hook in a process of its own."""
MARK = "TCPSBED_TEST_RUN"
"""Variable of the environment by which processes of a run are found."""


def left(folder: Path) -> list[str]:
    """Processes of hooks that live on, of a run with `MARK` set to a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            mine = f"{MARK}={folder}".encode() in (place / "environ").read_bytes()
            if mine and b"-m\0tcpsbed.watched" in (place / "cmdline").read_bytes():
                found.append(place.name)
    return found


def motion(folder: Path, middle: float = 0.0, swing: float = 0.05) -> None:
    """Writes `motion.csv`: a second of a sine at 1 kHz."""
    rows = [f"{s:.3f},{middle + swing * np.sin(2 * np.pi * s):.6f}" for s in np.arange(0, 1, 1e-3)]
    (folder / "motion.csv").write_text("\n".join(["time,x", *rows]))


def scenario(folder: Path, name: str, params: str = "{}", more: str = "") -> Path:
    """Writes the scenario with one of the failing hooks, and `more` keys of it."""
    motion(folder)
    file = folder / "failing.toml"
    file.write_text(
        SCENARIO.format(hook=f"{HERE / 'failing.py'}:{name}", params=params, more=more, safety=SAFETY)
    )
    return file


def stands_still(folder: Path, found: dict[str, Any]) -> None:
    """The follower went to its safe state, never too fast, and the record says so."""
    out = signals.read(folder, "ss-com.exit", "kinematic")
    where, state = out.values[:, 0], out.values[:, 1]
    assert np.isfinite(where).all()
    assert np.abs(np.diff(where)).max() <= SPEED * 1e-3 + 1e-12
    assert state[-1] == 3, "safe stop"
    assert np.ptp(where[-100:]) < 1e-9, "at rest"
    [watched] = found["states"]
    assert [change["to"] for change in watched["changes"]][-2:] == ["hold", "safe stop"]
