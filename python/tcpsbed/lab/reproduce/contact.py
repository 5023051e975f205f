"""Force of repeated contact, three values at 1 kHz: a recording if present, otherwise generated.

```text
hand ──► depth = bump + tremor ──► F_z = k depth, never pulling ──► F_x, F_y = friction along the stroke
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpsbed.lab.reproduce.recordings import DATA

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORDED = DATA / "haptic" / "kinesthetic_1khz" / "sDB.txt"
LENGTH_S = 25.0
"""Of the recording, and of what is generated in its place."""
CONTACTS, IN_CONTACT = 11, 0.55
"""How often the surface is touched in that time, and for what share of it."""
STIFFNESS_N_M, DEEPEST_M, TREMOR_M, FRICTION = 800.0, 4e-3, 1e-4, 0.3


def source(folder: Path) -> str:
    """The `source` of a flow with the force of a contact.

    Parameters
    ----------
    folder
        Where a generated trace is written.

    Returns
    -------
    str
        A TOML table.
    """
    if RECORDED.exists():
        return f"{{ recording = '{RECORDED}', columns = ['force'] }}"
    path = folder / "contact.csv"
    np.savetxt(path, generated(), delimiter=",", header="time,fx,fy,fz", comments="")
    return f"{{ recording = '{path}', columns = ['fx', 'fy', 'fz'] }}"


def generated(seed: int = 1) -> NDArray[np.float64]:
    """Rows of time (s) and force along x, y, z (N), one a millisecond."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, LENGTH_S, 1e-3)
    period = LENGTH_S / CONTACTS
    phase = np.clip((time % period) / (period * IN_CONTACT), 0.0, 1.0)
    deepest = DEEPEST_M * rng.uniform(0.5, 1.0, CONTACTS)[(time / period).astype(int)]
    bump = deepest * np.sin(np.pi * phase)
    tremor = TREMOR_M * (np.sin(2 * np.pi * 9.0 * time) + 0.5 * np.sin(2 * np.pi * 23.0 * time + 1.0))
    normal = STIFFNESS_N_M * np.where(phase < 1.0, np.maximum(bump + tremor, 0.0), 0.0)
    stroke = 2 * np.pi * 0.4 * time
    along = FRICTION * normal
    return np.column_stack((time, along * np.cos(stroke), along * np.sin(stroke), normal))
