"""Kinematics of the da Vinci arms in the layout of JIGSAWS (Gao et al. 2014): 76 numbers at 30 Hz, SI.

Four arms of 19 columns: position (m), rotation matrix (row-major), linear velocity (m/s), angular velocity
(rad/s), gripper angle (rad).
"""

from pathlib import Path

import numpy as np

from tcpsbed.datasets.formats.lines import numbers
from tcpsbed.datasets.track import Block, BlockKind, Track
from tcpsbed.errors import DataError

RATE_HZ = 30.0
ARMS = ("master_left", "master_right", "slave_left", "slave_right")
PARTS = (
    [f"position.{axis}" for axis in "xyz"]
    + [f"rotation.{row}{column}" for row in "123" for column in "123"]
    + [f"velocity.{axis}" for axis in "xyz"]
    + [f"angular_velocity.{axis}" for axis in "xyz"]
    + ["gripper"]
)


def looks_like(line: str) -> bool:
    """Tell whether a first line has 76 fields and no comma."""
    return "," not in line and len(line.split()) == len(ARMS) * len(PARTS)


def read(path: Path) -> Track:
    """Read a file of kinematics; columns are named `slave_left.position.x` and so on."""
    values = numbers(path, None)
    names = [f"{arm}.{part}" for arm in ARMS for part in PARTS]
    if values.shape[1] != len(names):
        raise DataError(
            f"found {values.shape[1]} columns", file=path, allowed=f"{len(names)} columns (JIGSAWS)"
        )
    first_of_rotation = PARTS.index("rotation.11")
    blocks = [Block(BlockKind.ROTATION, arm * len(PARTS) + first_of_rotation) for arm in range(len(ARMS))]
    return Track(path, names, np.arange(len(values)) / RATE_HZ, values, blocks=blocks)
