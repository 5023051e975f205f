"""The demonstration's arm follows again whenever its operator comes back, however the connection broke."""

from __future__ import annotations

import json
import random
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_console import ended, running

from tcpsbed.analysis import signals

ROUNDS = 8
SETTLES_S = 3.0
"""Longest time for the arm to come back, with 150 ms each way: at `slowly` times its speed while it recovers."""
FREE, FREE_M = (0.2, 0.3, 0.1), (0.288, 0.024, 0.174)
"""A hand that touches nothing (right, up, further), and where the tip is then: as `turn` of the scenario has it."""
SCENARIO = """
include = "{demo}"
links.line.delay = "150 ms"
[components.tactile-teleoperator.robot]
run = "./watched.py:Watched"
senses = 12
params = {{ publish = "memory:arm" }}
[measure]
signals = ["tactile-operator.exit"]
"""
WATCHED = '''
"""The arm, which says where its tip is."""
from tcpsbed.robots.bench import Bench


class Watched(Bench):
    def step(self, t_ns, command, sense):
        n = super().step(t_ns, command, sense)
        with open("{file}", "a") as told:
            told.write(" ".join(str(float(v)) for v in self.scene.data.site_xpos[self._tip]) + "\\n")
        return n
'''


def hand(line: Any, place: tuple[float, ...]) -> None:
    line.send(json.dumps({"k": "hand", "p": [[0.0, *place, 0.0, 0.0]]}))


def breaks(line: Any) -> None:
    """The connection is gone without a word, as of a browser that was killed."""
    line.socket.shutdown(socket.SHUT_RDWR)
    line.socket.close()


def tip(file: Path) -> np.ndarray:
    """Where the tip was last, m."""
    return np.array([float(v) for v in file.read_text().splitlines()[-2].split()])


@pytest.mark.slow
@pytest.mark.needs("python:mujoco", "python:simplejpeg")
def test_the_arm_follows_the_hand_again_after_each_return(tmp_path: Path, shipped_scenarios: Path) -> None:
    from websockets.sync.client import connect

    file, chance = tmp_path / "tip", random.Random(7)
    (tmp_path / "watched.py").write_text(WATCHED.replace("{file}", str(file)))
    (tmp_path / "demo.toml").write_text(SCENARIO.format(demo=shipped_scenarios / "demo.toml"))
    off = []
    with running(tmp_path / "demo.toml", tmp_path / "out") as (process, address, out):
        ws = address.replace("http", "ws").replace("/?", "/ws?")
        line = connect(ws, close_timeout=0.1, max_queue=None).__enter__()
        while json.loads(line.recv(60))["k"] != "force":
            pass
        for n in range(ROUNDS):
            before, goal = FREE, tuple(chance.uniform(-1, 1) for _ in range(3))
            if n % 4 == 0:  # behind the wall's face: it is left while the arm hits the wall
                goal = (0.8, 0.2 * goal[1], 0.2 * goal[2])
            for part in np.linspace(0, 1, 20 if n % 4 else 60)[: chance.randint(5, 60)]:
                hand(line, tuple(a + part * (b - a) for a, b in zip(before, goal, strict=True)))
                time.sleep(0.01)
            breaks(line)
            time.sleep(chance.choice((0.05, 0.3, 1.0)) if n % 4 else 4.0)
            line = connect(ws, close_timeout=0.1, max_queue=None).__enter__()
            until = time.monotonic() + SETTLES_S
            while time.monotonic() < until:
                hand(line, FREE)
                time.sleep(0.05)
            off.append(float(np.linalg.norm(tip(file) - FREE_M)))
        ended(process)
        moved = signals.read(out, "tactile-operator.exit", "haptic").values[:, 3:6]
    assert max(off) < 0.02, [round(v, 3) for v in off]
    assert np.linalg.norm(moved, axis=1).max() <= 0.24 + 1e-9
