"""Writes scenarios/head.csv: the pose of a head that looks around, as a headset gives it, for `"operator:head.csv"`.

The recording is computed, not measured: straight ahead, to the left, to the right faster than a neck of motors follows, up
and down, and a lean to the side; each way in the time course of least jerk (Flash and Hogan 1985).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RATE_HZ = 45
EYES_M = (0.0, 1.6, 0.0)  # x to the right, y up, z to the back
POSES = (  # when (s), yaw and pitch (degrees), to the right (m)
    (0.0, 0, 0, 0.0),
    (1.0, 0, 0, 0.0),
    (2.0, 30, 0, 0.0),
    (2.6, 30, 0, 0.0),
    (3.0, -40, 0, 0.0),
    (4.2, -40, 0, 0.0),
    (5.2, 0, 10, 0.0),
    (6.2, 0, -15, 0.0),
    (7.2, 0, 0, 0.0),
    (8.2, 0, 0, 0.1),
    (10.0, 0, 0, 0.0),
)


def least_jerk(t_s: np.ndarray, column: int) -> np.ndarray:
    """A column of the poses over time."""
    poses = np.array(POSES, dtype=float)
    part = np.clip(np.searchsorted(poses[:, 0], t_s, side="right") - 1, 0, len(poses) - 2)
    begin, end = poses[part], poses[part + 1]
    u = np.clip((t_s - begin[:, 0]) / (end[:, 0] - begin[:, 0]), 0.0, 1.0)
    way = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    return begin[:, column] + way * (end[:, column] - begin[:, column])


def main() -> None:
    t_s = np.arange(0.0, POSES[-1][0] + 1e-9, 1 / RATE_HZ)
    yaw, pitch = (np.radians(least_jerk(t_s, column)) / 2 for column in (1, 2))
    quaternion = np.stack(  # about y, then about x
        (
            np.cos(yaw) * np.sin(pitch),
            np.sin(yaw) * np.cos(pitch),
            -np.sin(yaw) * np.sin(pitch),
            np.cos(yaw) * np.cos(pitch),
        ),
        axis=1,
    )
    place = np.tile(EYES_M, (len(t_s), 1))
    place[:, 0] += least_jerk(t_s, 3)
    lines = ["time_s," + ",".join(f"v{i}" for i in range(8))]
    for t, row in zip(t_s, np.column_stack((place, quaternion)), strict=True):
        lines.append(f"{t:.4f}," + ",".join(f"{v:.5f}" for v in row) + f",{t:.4f}")
    (ROOT / "scenarios" / "head.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
