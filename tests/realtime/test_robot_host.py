"""A robot in a process of its own keeps its tick, and pictures of it are drawn in another."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tcpsbed
from tcpsbed.errors import HookError
from tcpsbed.robots.camera import CameraSource
from tcpsbed.robots.cell import SLOTS, Cell
from tcpsbed.robots.host import Hosted

pytestmark = pytest.mark.needs("python:mujoco")
BEGUN = time.monotonic()
ARM = ("tcpsbed.robots.arm", "Arm")
START = np.array([0.0, 0.207, -0.305, 1.669, 0.0, 0.032])


def turned(rad: float) -> np.ndarray:
    """The start with the base turned."""
    return START + np.array([rad, 0, 0, 0, 0, 0])


def driven(robot: Hosted, seconds: float, command: np.ndarray) -> np.ndarray:
    """What is sensed after commanding for a while."""
    sense, n, end = np.zeros(32), 0, time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        n = robot.step(round((now - BEGUN) * 1e9), command, sense)
        time.sleep(0.002)
    return sense[:n]


@pytest.mark.beside
def test_the_host_steps_at_1_khz_whatever_its_node_does():
    robot = Hosted(*ARM, {})
    driven(robot, 0.5, START)
    before = driven(robot, 0.3, START).copy()
    time.sleep(0.5)  # the node is away; the robot goes on
    after, end = driven(robot, 0.2, turned(0.5)), time.monotonic() + 20.0
    while not robot.arrived() and time.monotonic() < end:
        after = driven(robot, 0.05, turned(0.5))
    assert robot.arrived() and not np.allclose(before[5:8], after[5:8], atol=0.05)
    told = robot.close()
    assert told["ticks"] > 300, "of some 2000: a busy machine misses some"
    assert told["late_ns"]["p50"] <= told["late_ns"]["p99"] <= told["late_ns"]["max"]
    assert told["ticks"] + told["missed_ticks"] > 900, "what it left out is counted"


@pytest.mark.beside
def test_a_host_that_cannot_load_says_why():
    with pytest.raises(HookError, match="no such model; allowed: an MJCF or URDF file"):
        Hosted(*ARM, {"scene": "pik"})


@pytest.mark.beside
def test_a_host_that_died_is_told():
    robot = Hosted(*ARM, {})
    driven(robot, 0.2, START)
    robot._child.kill()
    robot._child.wait()
    with pytest.raises(HookError, match="robot's process ended"):
        driven(robot, 0.5, turned(0.5))
    assert robot.close() == {}


@pytest.mark.beside
def test_pictures_come_at_their_rate_beside_the_physics(tmp_path):
    state = str(tmp_path / "state")
    robot = Hosted(*ARM, {"publish": state})
    driven(robot, 0.2, START)
    try:
        camera = CameraSource(
            "mujoco-arm", {}, state, cameras=("left", "right"), width=160, height=120, rate_hz=20
        )
    except HookError as error:
        robot.close()
        pytest.skip(str(error))
    pictures = []
    for i in range(12):
        driven(robot, 0.05, turned(0.08 * i))
        pictures.append(next(camera))
    camera.close()
    told = robot.close()
    times, first, last = [t for t, _ in pictures], pictures[0][1], pictures[-1][1]
    assert first.shape == (120, 320, 3) and times == sorted(set(times))
    assert np.abs(first.astype(int) - last).mean() > 1, "the arm has moved"
    assert told["ticks"] > 100, "of some 1000 beside the pictures"


def test_a_state_is_read_while_its_writer_passes_from_one_slot_to_the_next(tmp_path, monkeypatch):
    Cell.create(tmp_path / "state", 3).write(5, np.ones(3))
    seen = iter([SLOTS - 2, SLOTS - 1])
    monkeypatch.setattr(Cell, "_whole", lambda _: next(seen))
    assert Cell.open(tmp_path / "state").read()[1] == 5


@pytest.mark.beside
def test_a_camera_whose_robot_is_gone_ends_without_a_traceback(tmp_path, capfd):
    state = tmp_path / "state"
    Cell.create(state, 32)
    camera = CameraSource("mujoco-arm", {}, str(state), width=64, height=48, rate_hz=50)
    state.unlink()
    camera._child.wait(10)
    with pytest.raises(StopIteration, match="state cannot be read"):
        next(camera)
    camera.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.beside
def test_a_camera_that_is_not_there_is_told(tmp_path):
    robot = Hosted(*ARM, {"publish": str(tmp_path / "state")})
    with pytest.raises(HookError, match=r"allowed: left, right, side|no picture can be drawn"):
        CameraSource("mujoco-arm", {}, str(tmp_path / "state"), cameras=("top",), width=64, height=48)
    with pytest.raises(HookError, match=r"cannot be read|no picture can be drawn"):
        CameraSource("mujoco-arm", {}, str(tmp_path / "absent"), width=64, height=48)
    robot.close()


def test_pick_and_place_in_the_real_world(shipped_scenarios, tmp_path):
    file = shipped_scenarios / "pick-and-place.toml"
    run = tcpsbed.run(file, world="real", out=tmp_path / "run", set=['duration="5 s"'])
    assert run.summary["errors"] == []
    (robot,) = run.summary["robots"]
    assert (robot["component"], robot["node"]) == ("tactile-teleoperator", "robot")
    assert robot["late_ns"]["p50"] <= robot["late_ns"]["p99"] <= robot["late_ns"]["max"]
    told = [text for text in run.summary["disturbances"] if text.startswith("robot ")]
    assert bool(told) == bool(robot["missed_ticks"] or robot["late_ns"]["p99"] > 1_000_000)
    assert run.flows["kinematic"]["delivered"] > 4000
    assert run.flows["haptic"]["sent"] > 4000
    assert robot["ticks"] > 4000


CHATTY = """
class Chatty:
    own_process = True

    def step(self, t_ns, command, sense):
        print("moving")
        if len(command) and command[0] > 1:
            raise ValueError("too far")
        sense[0] = command[0] if len(command) else 0.0
        return 1
"""


@pytest.mark.beside
def test_a_robot_of_the_users_may_print_and_its_failure_is_told(tmp_path, capfd):
    (tmp_path / "chatty.py").write_text(CHATTY)
    robot = Hosted(str(tmp_path / "chatty.py"), "Chatty", {})
    assert driven(robot, 0.3, np.array([0.5]))[0] == 0.5
    with pytest.raises(HookError, match="the robot failed in its process: ValueError: too far"):
        driven(robot, 2.0, np.array([1.5]))
    robot.close()
    assert "moving" in capfd.readouterr().err
