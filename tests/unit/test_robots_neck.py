"""A neck: the pose of a headset turns the cameras of a robot, no faster than it may and no farther than it reaches."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.errors import HookError
from tcpsbed.robots.cell import Cell, Followed
from tcpsbed.robots.neck import LONGEST_S, LOOK, Neck, angles

MS = 1_000_000
AHEAD = (0.0, 1.6, 0.0)
FREE = {"speed_rad_s": 1e6, "speed_m_s": 1e6}


def quaternion(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> list[float]:
    """x, y, z, w of a head turned about y, then x, then z."""
    cy, sy, cp, sp, cr, sr = (f(a / 2) for a in (yaw, pitch, roll) for f in (math.cos, math.sin))
    # Ry (cy + sy j), Rx (cp + sp i), Rz (cr + sr k), multiplied out.
    w, x, y, z = cy * cp, cy * sp, sy * cp, -sy * sp
    return [x * cr + y * sr, y * cr - x * sr, z * cr + w * sr, w * cr - z * sr]


class Worn:
    """A neck that is given a pose every 10 ms."""

    def __init__(self, folder: Path, **params: object) -> None:
        self.file = folder / "neck"
        self.neck = Neck(str(self.file), **params)  # type: ignore[arg-type]
        self.t_ns, self.y = 0, np.zeros(16)

    def pose(
        self, yaw: float, pitch: float = 0.0, roll: float = 0.0, place=AHEAD, ms: int = 10
    ) -> np.ndarray:
        """Where the cameras are after the pose."""
        self.t_ns += ms * MS
        x = np.array([*place, *quaternion(yaw, pitch, roll), 0.0])
        assert self.neck(self.t_ns, 0, x, np.zeros(0), self.y) == LOOK
        return self.y[:LOOK].copy()


@given(st.floats(-3.1, 3.1), st.floats(-1.4, 1.4), st.floats(-3.1, 3.1))
def test_angles_of_a_quaternion_are_those_it_was_made_of(yaw, pitch, roll):
    assert angles(np.array(quaternion(yaw, pitch, roll))) == pytest.approx((yaw, pitch, roll), abs=1e-6)


def test_pan_counts_from_the_first_look_and_tilt_from_level(tmp_path):
    worn = Worn(tmp_path, **FREE)
    worn.pose(0.7, -0.2)
    assert worn.pose(0.7, -0.2) == pytest.approx([0, -0.2, 0, 0, 0, 0])
    assert worn.pose(1.2, 0.3, 0.1)[:3] == pytest.approx([0.5, 0.3, 0.1])
    # A step forward of somebody who first looked to the left by 0.7 rad goes to the front of the robot's head.
    forward = (-0.1 * math.sin(0.7), 1.6, -0.1 * math.cos(0.7))
    assert worn.pose(0.7, place=forward)[3:] == pytest.approx([0, 0, -0.1])


def test_a_quick_head_is_followed_at_the_speed_of_the_neck(tmp_path):
    worn = Worn(tmp_path, speed_rad_s=2.0, speed_m_s=0.3)
    looks = [worn.pose(0.0)] + [worn.pose(1.0, place=(0.1, 1.6, 0.0)) for _ in range(60)]
    steps = np.abs(np.diff(looks, axis=0))
    assert steps[:, 0].max() <= 2.0 * 0.01 + 1e-12 and steps[:, 3].max() <= 0.3 * 0.01 + 1e-12
    there = int(np.argmax(np.array(looks)[:, 0] >= 1.0 - 1e-9))
    assert there == 50, "1 rad at 2 rad/s, by steps of 10 ms"
    assert looks[-1][3] == pytest.approx(0.1)


def test_a_pause_is_no_run_up(tmp_path):
    worn = Worn(tmp_path, speed_rad_s=2.0)
    worn.pose(0.0)
    assert worn.pose(1.5, ms=5000)[0] == pytest.approx(2.0 * LONGEST_S)


def test_the_neck_stops_at_its_reach_also_behind_the_back(tmp_path):
    worn = Worn(tmp_path, reach_rad=(1.0, 0.5, 0.2), reach_m=(0.05, 0.05, 0.05), **FREE)
    pans = [worn.pose(yaw)[0] for yaw in np.arange(0.0, 4.0, 0.1)]
    assert max(pans) == pytest.approx(1.0) and min(np.diff(pans)) >= 0.0, (
        "it does not swing round at half a turn"
    )
    assert worn.pose(0.0, 1.2, -1.0, (9.0, 9.0, -9.0))[1:] == pytest.approx([0.5, -0.2, 0.05, 0.05, -0.05])


@given(st.lists(st.floats(), max_size=9))
def test_no_pose_makes_nonsense(tmp_path_factory, values):
    worn = Worn(tmp_path_factory.mktemp("neck"), **FREE)
    before = [worn.pose(0.3), worn.pose(0.4)][-1]
    n = worn.neck(worn.t_ns + MS, 0, np.array(values), np.zeros(0), worn.y)
    assert n == LOOK and np.isfinite(worn.y[:LOOK]).all()
    read = Followed(worn.file).read()
    assert read is not None and (read[2] == worn.y[:LOOK]).all()
    if len(values) < 7 or not np.isfinite(values[:7]).all():
        assert (worn.y[:LOOK] == before).all()


def test_what_no_neck_can_do_is_refused(tmp_path):
    with pytest.raises(HookError, match=r"reaches .*allowed: numbers from 0 on; three in reach_rad"):
        Neck(str(tmp_path / "neck"), reach_rad=(1.0, 1.0))
    with pytest.raises(HookError, match=r"speeds .*allowed: numbers from 0 on"):
        Neck(str(tmp_path / "neck"), speed_rad_s=math.nan)
    with pytest.raises(HookError, match="cannot be written"):
        Neck(str(tmp_path / "nowhere" / "neck"))


@pytest.fixture
def arm():
    """The arm and its scene."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("needs mujoco")
    from tcpsbed.robots.arm import Arm

    one = made(Arm)
    yield one
    one.scene.close()


def eye(arm, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Place of a camera and its axes: right, up, back."""
    number = arm.scene.number("camera", name)
    return arm.scene.data.cam_xpos[number].copy(), arm.scene.data.cam_xmat[number].reshape(3, 3).copy()


def test_both_eyes_turn_as_one_head(arm):
    rest = {name: eye(arm, name) for name in ("left", "right")}
    middle = (rest["left"][0] + rest["right"][0]) / 2
    for look in (
        [0.6, 0, 0, 0, 0, 0],
        [0, 0.4, 0, 0, 0, 0],
        [0, 0, 0.3, 0, 0, 0],
        [-0.4, 0.2, -0.1, 0.05, 0.02, 0.1],
    ):
        arm.look(["left", "right"], np.array(look))
        (left, axes), (right, other) = eye(arm, "left"), eye(arm, "right")
        assert axes == pytest.approx(other, abs=1e-9)
        assert right - left == pytest.approx(0.064 * axes[:, 0], abs=1e-6), "64 mm apart, level with the head"
        moved = (left + right) / 2 - middle
        assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(look[3:]), abs=1e-6)
    arm.look(["left", "right"], np.zeros(LOOK))
    assert eye(arm, "left")[0] == pytest.approx(rest["left"][0]), "and back to where they were"


def test_pan_keeps_the_horizon_and_tilt_looks_up(arm):
    _, rest = eye(arm, "left")
    arm.look(["left"], np.array([0.5, 0, 0, 0, 0, 0]))
    _, panned = eye(arm, "left")
    assert panned[2, 0] == pytest.approx(0.0, abs=1e-9), "the right-hand axis stays level"
    forward, before = -panned[:2, 2], -rest[:2, 2]
    assert before[0] * forward[1] > before[1] * forward[0] and panned[2, 2] == pytest.approx(rest[2, 2]), (
        "to the left"
    )
    arm.look(["left"], np.array([0, 0.2, 0, 0, 0, 0]))
    assert -eye(arm, "left")[1][2, 2] > -rest[2, 2] + 0.1, "up"


def drawn(arm, name: str) -> np.ndarray:
    """A picture, or a skip that says why there is none."""
    try:
        return arm.render(name, 128, 96)
    except HookError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_the_camera_of_a_flow_looks_where_the_neck_looks(arm, tmp_path):
    from tcpsbed.robots.camera import RobotCamera

    drawn(arm, "left")
    state, worn = str(tmp_path / "state"), Worn(tmp_path, **FREE)
    Cell.create(state, len(arm.scene.state())).write(0, arm.scene.state())
    camera = RobotCamera(128, 96, True, "mujoco-arm", state, look=str(worn.file))
    ahead = camera.frame(0, 0)
    worn.pose(0.0)
    turned = worn.pose(0.5, 0.1)
    seen = camera.frame(0, 1)
    camera.source.close()
    assert np.abs(seen.astype(int) - ahead.astype(int)).mean() > 3
    arm.look(["left", "right"], turned)
    expected = np.concatenate([arm.render(name, 128, 96) for name in ("left", "right")], axis=1)
    assert np.abs(seen.astype(int) - expected.astype(int)).mean() < 0.5


def test_a_robot_whose_cameras_do_not_turn_is_named(tmp_path):
    from tcpsbed.robots.camera import RobotCamera
    from tcpsbed.robots.pottery import Pottery

    made(Pottery, publish=str(tmp_path / "state"))
    worn = Worn(tmp_path)
    with pytest.raises(HookError, match="pottery has no cameras that turn; allowed: no `look`"):
        RobotCamera(150, 100, False, "pottery", str(tmp_path / "state"), look=str(worn.file))


@pytest.mark.slow
def test_a_recorded_head_steers_the_cameras_of_the_scenario(shipped_scenarios, tmp_path, arm):
    pytest.importorskip("simplejpeg")
    drawn(arm, "left")
    state, look = tmp_path / "state", tmp_path / "neck"
    sets = [
        'duration="4.5 s"',
        f'flows.head.source="operator:{shipped_scenarios / "head.csv"}"',
        'flows.video.rate="5 Hz"',
        f'components.tactile-teleoperator.robot.params.publish="{state}"',
        f'flows.video.picture.params.state="{state}"',
        f'flows.video.picture.params.look="{look}"',
        f'hooks.neck.params.publish="{look}"',
    ]
    run = tcpsbed.run(shipped_scenarios / "headset.toml", out=tmp_path / "out", set=sets)
    assert run.summary["errors"] == [] and run.flows["head"]["lost"] == 0
    assert run.summary["media"]["video"]["unread"] == 0
    came = signals.read(run.folder, "ss-embsys.entry", "head")
    went = signals.read(run.folder, "ss-embsys.exit", "head")
    head_rad = np.unwrap([angles(q)[0] for q in came.values[:, 3:7]])
    speed_rad_s = np.abs(np.diff(went.values[:, 0])) / np.diff(went.t_s)
    assert np.abs(np.gradient(head_rad, came.t_s)).max() > 4.0, "the head is quicker than the neck may be"
    assert 2.9 < speed_rad_s.max() <= 3.0 + 1e-6
    assert went.values[:, 0].max() == pytest.approx(math.radians(30), abs=0.01)
    assert went.values[-1, 0] == pytest.approx(head_rad[-1], abs=0.05), "and it gets there"
