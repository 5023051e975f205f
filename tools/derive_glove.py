"""Writes scenarios/glove.csv: what the sensors of a glove would show of the motion in scenarios/pick_and_place.csv.

The recording is computed, not measured: the wrist goes as far as the tool does, an elbow is found for it, and the rates
and forces of ideal inertial sensors in the middle of upper arm and forearm are differences of what the arm does. Noise of
a cheap sensor is added. The wrist goes to and from its places with rounded corners, as a hand does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
UPPER_M, FOREARM_M = 0.3, 0.25
RATE_HZ, FINE_HZ = 100, 1000
RATE_NOISE, FORCE_NOISE = 0.002, 0.02  # rad/s, m/s²
GRAVITY = np.array([0.0, 0.0, 9.80665])


def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Moments, way of the wrist (m) and bend of the fingers (0 to 1)."""
    read = np.genfromtxt(ROOT / "scenarios" / "pick_and_place.csv", delimiter=",", names=True)
    t = np.arange(0.0, read["t_s"][-1], 1 / FINE_HZ)
    columns = [np.interp(t, read["t_s"], read[name]) for name in ("x_m", "y_m", "z_m", "opening_m")]
    window = np.hanning(301)
    rounded = [
        np.convolve(np.pad(c, 150, mode="edge"), window / window.sum(), mode="valid")[: len(t)]
        for c in columns
    ]
    way = np.stack(rounded[:3], axis=1)
    return t, way - way[0], 1.0 - rounded[3] / rounded[3][0]


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The shortest rotation from direction a to direction b, as a matrix."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    v = np.cross(a, b)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1.0 + a @ b)


def elbow(wrist: np.ndarray) -> np.ndarray:
    """Where the elbow is for a wrist, below the line from the shoulder to it."""
    distance = np.linalg.norm(wrist)
    along = wrist / distance
    a = (distance**2 + UPPER_M**2 - FOREARM_M**2) / (2 * distance)
    down = np.array([0.0, 0.0, -1.0]) - along * (along @ np.array([0.0, 0.0, -1.0]))
    return a * along + np.sqrt(np.maximum(UPPER_M**2 - a**2, 0.0)) * down / np.linalg.norm(down)


def frames(way: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rotations and middles of upper arm and forearm over time, each turned on from the one before."""
    start = np.array([FOREARM_M, 0.0, -UPPER_M])
    rotations, middles = [], []
    turned = [np.eye(3), np.eye(3)]
    rests = [np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0])]
    for step in way:
        wrist = start + step
        bend = elbow(wrist)
        for i, link in enumerate((bend, wrist - bend)):
            turned[i] = between(turned[i] @ rests[i], link) @ turned[i]
        rotations.append(np.stack(turned))
        middles.append(np.stack([bend / 2, (bend + wrist) / 2]))
    return rotations, middles


def sensed(rotations: list[np.ndarray], middles: list[np.ndarray]) -> np.ndarray:
    """Rates and specific forces of both sensors: 12 columns."""
    turned, at = np.stack(rotations), np.stack(middles)
    columns = []
    for i in (0, 1):
        difference = np.gradient(turned[:, i], 1 / FINE_HZ, axis=0)
        skew = np.einsum("tji,tjk->tik", turned[:, i], difference)
        rates = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
        speed = np.gradient(at[:, i], 1 / FINE_HZ, axis=0)
        pull = np.gradient(speed, 1 / FINE_HZ, axis=0) + GRAVITY
        columns += [rates, np.einsum("tji,tj->ti", turned[:, i], pull)]
    return np.concatenate(columns, axis=1)


def main() -> None:
    t, way, bend = motion()
    seen = sensed(*frames(way))
    rng = np.random.default_rng(5)
    noise = np.tile(np.repeat([RATE_NOISE, FORCE_NOISE], 3), 2)
    seen += noise * rng.standard_normal(seen.shape)
    rows = np.column_stack([t, seen, bend, bend])[:: FINE_HZ // RATE_HZ]
    names = [
        f"{link}_{what}_{axis}" for link in ("upper", "fore") for what in ("rate", "force") for axis in "xyz"
    ]
    header = ",".join(["t_s", *names, "thumb", "finger"])
    formats = ["%.2f", *["%.4f"] * 14]
    np.savetxt(ROOT / "scenarios" / "glove.csv", rows, formats, delimiter=",", header=header, comments="")


if __name__ == "__main__":
    main()
