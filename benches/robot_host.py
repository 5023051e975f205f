"""How late the physics of a robot wakes in its own process, alone and beside a process that draws a stereo pair.

    python benches/robot_host.py [SECONDS]

Runs three rounds of each, one after the other, and prints the medians of p50 and p99.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tcpsbed.robots.camera import CameraSource
from tcpsbed.robots.host import Hosted

START = np.array([0.0, 0.207, -0.305, 1.669, 0.0, 0.032])


def round_of(seconds: float, drawn: bool) -> tuple[dict[str, int], int, int]:
    """Lateness of the host, its ticks, and how many pairs were drawn."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        state = str(Path(folder) / "state")
        robot, sense, pairs = Hosted("tcpsbed.robots.arm", "Arm", {"publish": state}), np.zeros(32), [0]
        robot.step(0, START, sense)
        camera = None
        if drawn:
            size = {"width": 360, "height": 288, "rate_hz": 25.0}
            camera = CameraSource("mujoco-arm", {}, state, cameras=("left", "right"), **size)
            threading.Thread(
                target=lambda: [pairs.__setitem__(0, pairs[0] + 1) for _ in camera], daemon=True
            ).start()
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            robot.step(round((now - begun) * 1e9), START + 0.1 * np.sin(now), sense)
            time.sleep(0.001)
        if camera is not None:
            camera.close()
        told = robot.close()
    return told["late_ns"], told["ticks"], pairs[0]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    found: dict[bool, list[tuple[dict[str, int], int, int]]] = {False: [], True: []}
    for _ in range(3):
        for drawn in (False, True):
            found[drawn].append(round_of(seconds, drawn))
    for drawn, rounds in found.items():
        late = {p: np.median([late[p] for late, _, _ in rounds]) / 1000 for p in ("p50", "p99")}
        pairs = sum(n for _, _, n in rounds) / (3 * seconds)
        figures = f"late p50 {late['p50']:5.0f} us, p99 {late['p99']:5.0f} us; {pairs:.1f} pairs/s"
        print(f"{'drawing' if drawn else 'alone':8} {figures}")


if __name__ == "__main__":
    main()
