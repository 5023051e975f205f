"""Robots in MuJoCo: the arm moves as published, feels what it holds, and refuses what cannot be loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from recorded import recorded

import tcpsbed
from tcpsbed.errors import ConfigError, HookError
from tcpsbed.hooks import make_robot
from tcpsbed.robots import ROBOTS

pytestmark = pytest.mark.needs("python:mujoco")
ROOT = Path(__file__).resolve().parents[2]
MS = 1_000_000
START = np.array([0.0, 0.207, -0.305, 1.669, 0.0, 0.032])
URDF = "robots/phantomx_reactor/phantomx_reactor_wrist.urdf"


def turned(rad: float) -> np.ndarray:
    """The start with the base turned."""
    return START + np.array([rad, 0, 0, 0, 0, 0])


def made(name: str, **params):
    """A robot by its name."""
    return make_robot(*ROBOTS[name], params)


class Bench:
    """A robot stepped at 1 kHz."""

    def __init__(self, robot) -> None:
        self.robot, self.t_ms, self.sense = robot, 0, np.zeros(32)

    def run(self, ms: int, command) -> np.ndarray:
        """What it senses after so many ticks."""
        for _ in range(ms):
            n = self.robot.step(self.t_ms * MS, np.asarray(command, dtype=float), self.sense)
            self.t_ms += 1
        return self.sense[:n].copy()

    def until_arrived(self, command, most_ms: int = 1000) -> int:
        """Ticks until the robot says that it is there."""
        for ms in range(1, most_ms):
            self.run(1, command)
            if self.robot.arrived():
                return ms
        raise AssertionError(f"not there after {most_ms} ms")


def test_a_centimetre_forth_and_back_takes_the_published_time():
    """[Polachan 2022], [Polachan 2022: echoes] Echoes held until the arm has arrived: 110 ms for 1 cm forth and back."""
    bench = Bench(made("mujoco-arm"))
    bench.run(500, START)
    tip = bench.run(1, START)[5:8]
    # A turn of the base moves the tip sideways: 1 cm at its distance from the axis.
    turn = turned(0.01 / np.hypot(tip[0], tip[1]))
    times = []
    for _ in range(5):
        forth = bench.until_arrived(turn)
        bench.run(200, turn)
        back = bench.until_arrived(START)
        bench.run(200, START)
        times.append(forth + back)
    assert np.median(times) == pytest.approx(110, abs=15), times


def test_a_large_way_is_no_faster_than_the_servo_turns():
    """AX-12 without load: 4.573 rad/s."""
    bench = Bench(made("mujoco-arm", scene="reactor"))
    bench.run(200, START)
    bench.run(150, turned(1.5))
    before = np.arctan2(bench.sense[6], bench.sense[5])
    bench.run(50, turned(1.5))
    speed = (np.arctan2(bench.sense[6], bench.sense[5]) - before) / 0.05
    assert 3.0 < speed <= 4.6, f"{speed:.2f} rad/s"


def test_the_table_pushes_up_on_a_gripper_that_presses_down():
    bench = Bench(made("mujoco-arm", scene="reactor"))
    assert bench.run(300, START)[:3] == pytest.approx([0, 0, 0])
    pressing = bench.run(1000, START + np.array([0, 0.5, 0, 0, 0, 0]))
    assert 2 < pressing[2] < 60 and np.hypot(*pressing[:2]) < pressing[2], pressing[:3]


def test_a_command_that_is_no_number_changes_nothing():
    bench = Bench(made("mujoco-arm"))
    still = bench.run(300, START)
    bad = bench.run(300, [np.nan, 9.0, 9.0, 9.0, 9.0, 9.0])
    assert bad[5:8] == pytest.approx(still[5:8], abs=1e-4)


def test_a_urdf_is_driven_to_its_command(tmp_path):
    urdf = recorded(URDF)
    with pytest.raises(HookError, match=r"cannot load: .*base_link\.STL.*allowed: .*with its meshes"):
        made("mujoco-model", file=str(urdf))  # its meshes are not where it says
    tree = ElementTree.parse(urdf)
    for link in tree.getroot().iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    file = tmp_path / "arm.urdf"
    tree.write(file)
    robot = made("mujoco-model", file=str(file))
    bench = Bench(robot)
    wanted = np.zeros(robot.scene.model.njnt)
    wanted[:4] = 0.3, -0.2, 0.4, 0.1
    sense = bench.run(2000, wanted)
    assert sense[:4] == pytest.approx(wanted[:4], abs=0.02) and robot.arrived()


MJCF = """<mujoco><worldbody><body><joint name="a" type="hinge" axis="0 0 1" damping="1"/><geom size="0.05" mass="1"/>
</body></worldbody><actuator><position joint="a" kp="20"/></actuator><sensor><jointpos joint="a"/></sensor></mujoco>"""


def test_an_mjcf_takes_controls_and_gives_its_sensors(tmp_path):
    file = tmp_path / "mine.xml"
    file.write_text(MJCF)
    bench = Bench(made("mujoco-model", file=str(file)))
    assert bench.run(2000, [0.5]) == pytest.approx([0.5], abs=1e-3)


def test_a_model_that_does_not_load_is_named_with_the_reason(tmp_path):
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body><geom/></body></worldbody></mujoco>")
    with pytest.raises(HookError, match=r"broken\.xml.*cannot load.*allowed: "):
        made("mujoco-model", file=str(broken))
    with pytest.raises(HookError, match="no such model; allowed: an MJCF or URDF file"):
        made("mujoco-arm", scene="pik")
    with pytest.raises(HookError, match="no such camera; allowed: left, right, side"):
        made("mujoco-arm").render("top", 64, 48)


def test_without_mujoco_the_scenario_is_refused_with_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        ConfigError, match=r"robot\.run.*MuJoCo cannot be imported.*pip install 'tcpsbed\[robot\]'"
    ):
        tcpsbed.run(ROOT / "scenarios" / "pick-and-place.toml", out=tmp_path)


def test_the_belt_takes_the_glass_along_and_the_stop_feels_it():
    bench = Bench(made("mujoco-conveyor"))
    bench.run(200, [0.0])
    times = bench.until_arrived([0.1])
    moving = bench.run(500, [0.1])
    assert moving[6] == pytest.approx(0.1, abs=0.003) and 30 < times < 200
    against = bench.run(6000, [0.1])
    assert against[0] < -0.1 and abs(against[6]) < 0.01, against


def drawn(robot, camera: str) -> np.ndarray:
    """A picture, or a skip that says why there is none."""
    try:
        return robot.render(camera, 128, 96)
    except HookError as error:
        pytest.skip(str(error))


def test_pictures_change_with_the_arm_and_the_pair_differs():
    bench = Bench(made("mujoco-arm"))
    bench.run(10, START)
    before = drawn(bench.robot, "left")
    assert before.shape == (96, 128, 3) and before.dtype == np.uint8 and before.std() > 10
    assert np.abs(before.astype(int) - drawn(bench.robot, "right")).mean() > 1
    bench.run(500, turned(0.8))
    assert np.abs(before.astype(int) - drawn(bench.robot, "left")).mean() > 1
    bench.robot.scene.close()


def test_an_unknown_library_to_draw_with_is_told_with_those_that_there_are():
    script = "from tcpsbed.robots import scene\ntry:\n    scene.mujoco()\nexcept Exception as e:\n    print(repr(e))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"MUJOCO_GL": "nonsense"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    said = done.stdout
    assert said.startswith("HookError") and "MUJOCO_GL: nonsense" in said, done.stderr
    assert all(word in said for word in ("egl", "libegl1", "osmesa", "libosmesa6", "glfw", "libglfw3"))
