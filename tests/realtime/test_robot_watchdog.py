"""The process of a robot and its node watch each other: a node that is away, a robot that was stopped or killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tcpsbed import hooks
from tcpsbed.errors import HookError, ProcessDied
from tcpsbed.robots.host import Hosted, Watchdog

pytestmark = [pytest.mark.realtime, pytest.mark.beside]
SLIDER = """
class Slider:
    own_process = True

    def __init__(self):
        self.at, self.goal, self.held = 0.0, 0.0, 0

    def step(self, t_ns, command, sense):
        if len(command):
            self.goal = float(command[0])
        self.at += max(-0.001, min(0.001, self.goal - self.at))
        sense[0], sense[1], sense[2] = self.at, len(command), self.held
        return 3

    def hold(self):
        self.goal, self.held = self.at, self.held + 1
"""


@pytest.fixture
def slider(tmp_path: Path) -> tuple[str, str]:
    """A robot that goes 1 m/s towards its command."""
    (tmp_path / "slider.py").write_text(SLIDER)
    return str(tmp_path / "slider.py"), "Slider"


def driven(robot: Hosted, seconds: float, command: float) -> np.ndarray:
    """What is sensed after commanding for a while."""
    sense, n, end = np.zeros(8), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        n = robot.step(time.monotonic_ns(), np.array([command]), sense)
        time.sleep(0.002)
    return sense[:n].copy()


@pytest.mark.parametrize("action", ["hold", "stop", "zero"])
def test_a_robot_whose_node_is_away_does_not_go_on_with_its_last_command(
    slider: tuple[str, str], action: str
) -> None:
    """At 1 m/s towards 5 m, it is away for 0.6 s: the robot goes on for no longer than the watchdog allows."""
    robot = Hosted(*slider, {"watchdog": action, "watchdog_ms": 50})
    before = driven(robot, 0.3, 5.0)[0]
    time.sleep(0.6)
    seen = robot._senses.read()
    assert seen is not None
    away, length = seen[2][2], seen[2][3]
    assert before < 5.0
    if action == "zero":
        assert away < before and length == 1, (before, away)
    else:
        assert away - before < 0.45, (before, away)
    assert driven(robot, 0.3, 5.0)[0] > away, "it goes on when commands come again"
    told = robot.close()
    assert told["watchdog"] == 1, "on a machine that is not loaded"


def test_a_robot_that_was_stopped_is_told_at_the_next_tick(slider: tuple[str, str]) -> None:
    robot = Hosted(*slider, {})
    driven(robot, 0.1, 0.1)
    os.kill(robot._child.pid, signal.SIGSTOP)
    time.sleep(0.05)
    with pytest.raises(ProcessDied, match="was stopped"):
        robot.step(0, np.zeros(1), np.zeros(8))
    robot.close()


def test_a_robot_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text(SLIDER + "\n    def arrived(self):\n        return True\n")
    (tmp_path / "hangs.py").write_text(
        "import time\nclass Hangs:\n    own_process = True\n    def step(self, t_ns, command, sense):\n"
        "        if len(command) and command[0] > 1:\n            time.sleep(60)\n        return 0\n"
    )
    robot = Hosted(str(tmp_path / "hangs.py"), "Hangs", {})
    driven(robot, 0.1, 0.5)
    with pytest.raises(ProcessDied, match="has not moved it for 1 s"):
        driven(robot, 20.0, 2.0)
    robot.close()


def test_a_watchdog_that_makes_no_sense_is_refused(slider: tuple[str, str]) -> None:
    for params, said in (
        ({"watchdog": "panic"}, "allowed: hold, stop, zero"),
        ({"watchdog_ms": 0}, "watchdog_ms: found 0"),
        ({"watchdog_ms": "soon"}, "found soon"),
    ):
        with pytest.raises(HookError, match=said):
            Hosted(*slider, params)
        with pytest.raises(HookError, match=said):
            hooks.load_robot(*slider, __import__("json").dumps(params))
    assert Watchdog.of({"watchdog": "stop", "x": 1})[1] == {"x": 1}
