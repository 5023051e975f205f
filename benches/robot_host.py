"""How late the physics of a robot wakes in its own process, alone and beside a process that draws a stereo pair."""

from __future__ import annotations

import importlib.util
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from measure import CannotMeasureError, Result, Row
from tcpsbed.robots.camera import CameraSource
from tcpsbed.robots.host import Hosted

TITLE = "Physics of a robot in its own process"
START = np.array([0.0, 0.207, -0.305, 1.669, 0.0, 0.032])


def round_of(seconds: float, drawn: bool) -> tuple[dict[str, int], int, int]:
    """Lateness of the host, its ticks, and how many pairs were drawn."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        state = str(Path(folder) / "state")
        robot, sense, pairs = Hosted("tcpsbed.robots.arm", "Arm", {"publish": state}), np.zeros(32), [0]
        robot.step(0, START, sense)
        camera = None
        if drawn:
            eyes = ("left", "right")
            camera = CameraSource("mujoco-arm", {}, state, cameras=eyes, width=360, height=288, rate_hz=25.0)
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


def measure(quick: bool) -> Result:
    """Three rounds of each, in turns; medians of their percentiles."""
    if importlib.util.find_spec("mujoco") is None:
        raise CannotMeasureError("the package mujoco is not there: pip install 'tcpsbed[robot]'")
    seconds = 3.0 if quick else 10.0
    found: dict[bool, list[tuple[dict[str, int], int, int]]] = {False: [], True: []}
    for _ in range(3):
        for drawn in (False, True):
            found[drawn].append(round_of(seconds, drawn))
    rows = []
    for drawn, rounds in found.items():
        late = {p: np.median([late[p] for late, _, _ in rounds]) / 1000 for p in ("p50", "p99")}
        pairs = sum(n for _, _, n in rounds) / (3 * seconds)
        what = f"beside {pairs:.0f} stereo pairs a second" if drawn else "alone"
        told = f"late p50 {late['p50']:.0f}, p99 {late['p99']:.0f} µs"
        rows.append(Row(f"1 kHz, {what}", told, "", "", "p99 1 ms", bool(late["p99"] < 1000)))
    return Result("robot_host", TITLE, rows, {str(drawn): rounds for drawn, rounds in found.items()})
