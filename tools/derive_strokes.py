"""Writes scenarios/stroke.csv and scenarios/suturing.csv: a finger that strokes a texture, two hands that sew.

Both are computed, not measured. The finger goes 80 mm forth and back in 2 s over a grating of 1.5 mm with some roughness;
its accelerations are those of going over that relief, tangentially by friction. The hands take four stitches between key
poses, smoothly (minimum jerk), with a tremor of 8 Hz; columns have the names of the layout of JIGSAWS.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
STROKE_HZ, STROKE_S, FINE = 500, 4.0, 20
REACH_M, GRATING_M, DEPTH_M, ROUGH_M, FRICTION = 0.04, 1.5e-3, 2e-6, 1e-7, 0.3
SEW_HZ, STITCH_S, STITCHES, STEP_M = 30, 5.0, 4, 0.008
TREMOR_M, TREMOR_HZ = 5e-5, 8.0

# Moment in a stitch (s), then left x, y, z (m), opening (rad), right x, y, z (m), opening (rad), from the first entry on.
POSES = np.array(
    [
        [0.0, -0.020, 0.010, 0.030, 0.8, 0.020, 0.000, 0.030, 0.1],
        [0.8, -0.012, 0.004, 0.010, 0.8, 0.006, 0.000, 0.006, 0.1],
        [1.3, -0.010, 0.002, 0.004, 0.1, 0.003, 0.000, 0.000, 0.1],
        [2.2, -0.010, 0.002, 0.004, 0.1, -0.006, 0.000, -0.003, 0.1],
        [2.7, -0.008, 0.000, 0.002, 0.8, -0.008, 0.000, 0.001, 0.1],
        [3.1, -0.008, 0.000, 0.002, 0.1, -0.008, 0.000, 0.001, 0.8],
        [4.1, -0.030, 0.015, 0.045, 0.1, 0.010, -0.004, 0.030, 0.8],
        [4.6, -0.022, 0.011, 0.034, 0.1, 0.016, -0.002, 0.032, 0.1],
        [5.0, -0.020, 0.010, 0.030, 0.8, 0.020, 0.000, 0.030, 0.1],
    ]
)


def relief(x_m: np.ndarray, seed: int) -> np.ndarray:
    """Height of the texture: a grating, and waves of 0.8 to 3 mm."""
    rng = np.random.default_rng(seed)
    height = DEPTH_M * np.sin(2 * np.pi * x_m / GRATING_M)
    for length_m in np.geomspace(0.8e-3, 3e-3, 12):
        height += ROUGH_M * rng.standard_normal() * np.sin(2 * np.pi * (x_m / length_m + rng.random()))
    return height


def stroke() -> np.ndarray:
    """Moment, place (m), accelerations along, across and normal to the surface (m/s²)."""
    t = np.arange(0.0, STROKE_S, 1 / (STROKE_HZ * FINE))
    x = REACH_M * (1.0 - np.cos(np.pi * t))
    over = [np.gradient(np.gradient(relief(x, seed), t[1]), t[1])[::FINE] for seed in (1, 2)]
    along = FRICTION * over[0] * np.sign(np.sin(np.pi * t[::FINE]))
    return np.column_stack((t[::FINE], x[::FINE], along, 0.4 * over[1], over[0]))


def hands() -> np.ndarray:
    """Moment, then place and opening of the left and of the right hand."""
    t = np.arange(0.0, STITCHES * STITCH_S, 1 / SEW_HZ)
    within = t % STITCH_S
    part = np.clip(np.searchsorted(POSES[:, 0], within, side="right") - 1, 0, len(POSES) - 2)
    s = (within - POSES[part, 0]) / (POSES[part + 1, 0] - POSES[part, 0])
    smooth = (s**3 * (10 - 15 * s + 6 * s**2))[:, None]
    way = POSES[part, 1:] + smooth * (POSES[part + 1, 1:] - POSES[part, 1:])
    way[:, (1, 5)] += STEP_M * (t // STITCH_S)[:, None]  # every stitch is a step further along the wound
    for column in (0, 1, 2, 4, 5, 6):
        way[:, column] += TREMOR_M * np.sin(2 * np.pi * TREMOR_HZ * t + column)
    return np.column_stack((t, way))


def main() -> None:
    names = "t_s,x_m,along_m_s2,across_m_s2,normal_m_s2"
    np.savetxt(
        SCENARIOS / "stroke.csv",
        stroke(),
        ["%.3f", "%.5f", *["%.3f"] * 3],
        delimiter=",",
        header=names,
        comments="",
    )
    parts = [*(f"position.{axis}" for axis in "xyz"), "gripper"]
    header = ",".join(["t_s", *(f"master_{side}.{part}" for side in ("left", "right") for part in parts)])
    formats = ["%.4f", *["%.5f", "%.5f", "%.5f", "%.3f"] * 2]
    np.savetxt(SCENARIOS / "suturing.csv", hands(), formats, delimiter=",", header=header, comments="")


if __name__ == "__main__":
    main()
