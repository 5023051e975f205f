"""The shipped shipped_scenarios with robots do what their pages say, headless, in virtual time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from made import made

import tcpsbed
from tcpsbed import Run
from tcpsbed.analysis import operator, signals
from tcpsbed.errors import ConfigError, HookError
from tcpsbed.robots.camera import RobotCamera
from tcpsbed.robots.microscope import ROW
from tcpsbed.robots.pottery import Pottery

SENSE = "tactile-teleoperator.sense"


def ran(shipped_scenarios: Path, out: Path, name: str, *settings: str) -> Run:
    """A scenario's run, without an error and without a failure of a stage."""
    run = tcpsbed.run(shipped_scenarios / f"{name}.toml", out=out, set=settings)
    assert run.summary["errors"] == []
    assert [stage for stage in run.summary["stages"] if stage["failures"]] == []
    return run


def sensed(run: Run, point: str = SENSE) -> tuple[np.ndarray, np.ndarray]:
    """Moments (s) and what the robot senses."""
    found = signals.read(run.folder, point)
    return found.t_s, found.values


@pytest.fixture
def simulator():
    """MuJoCo, where a scenario needs it."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("needs mujoco")


@pytest.mark.parametrize("name", ["pick-and-place", pytest.param("glove", marks=pytest.mark.slow)])
def test_the_object_is_carried_to_the_tray_and_both_wings_feel_it(
    shipped_scenarios, tmp_path, simulator, name
):
    run = ran(shipped_scenarios, tmp_path, name)
    t, sense = sensed(run)
    left, right, place = sense[:, 3], sense[:, 4], sense[:, 9:12]
    held, before, after = (t > 5.5) & (t < 6.5), t < 2.0, t > 11.0
    assert left[held].min() > 0.5 and right[held].min() > 0.5, "it is soft: 3 mm a side are about 3 N"
    assert left[held].mean() == pytest.approx(right[held].mean(), rel=0.25)
    assert left[before].max() == 0.0 and left[after].max() == 0.0
    assert place[held][:, 2].min() > 0.05, "in the air"
    assert place[-1][:2] == pytest.approx([0.155, -0.155], abs=0.03) and place[-1][2] < 0.03
    motors = signals.read(run.folder, "ms-embsys.exit", "haptic").values
    assert motors[:, 0].max() > 50, "the motor of the left wing turns, in Hz"


@pytest.mark.slow
def test_what_a_glove_did_is_a_recording_that_does_the_task_again(shipped_scenarios, tmp_path, simulator):
    point = 'measure.signals=["tactile-operator.exit"]'
    first = ran(shipped_scenarios, tmp_path / "first", "glove", point)
    file = operator.export(first.folder, tmp_path / "glove.csv")
    again = ran(shipped_scenarios, tmp_path / "again", "glove", f'flows.kinematic.source="operator:{file}"')
    t, sense = sensed(again)
    assert sense[(t > 5.5) & (t < 6.5), 11].min() > 0.05, "in the air"
    assert sense[-1, 9:11] == pytest.approx([0.155, -0.155], abs=0.03)


@pytest.mark.slow
def test_actuation_is_what_held_echoes_say(shipped_scenarios, tmp_path, simulator):
    run = ran(shipped_scenarios, tmp_path, "pick-and-place", 'duration="8 s"')
    assert run.summary["echo"]["kinematic"]["actuation_ms"]["mean"] > 1


@pytest.mark.slow
def test_a_wall_is_hard_and_a_body_is_soft(shipped_scenarios, tmp_path, simulator):
    run = ran(shipped_scenarios, tmp_path, "explore")
    t, sense = sensed(run)
    force, tip = sense[:, 0], sense[:, 5]
    free, wall, soft = (t > 4.6) & (t < 5.9), (t > 3) & (t < 3.4), (t > 7.5) & (t < 7.9)
    assert (sense[free, :3] == 0).all()
    assert force[wall].mean() < force[soft].mean() < -0.5, "both push back, towards the arm"
    assert tip[wall].mean() < 0.322 and tip[soft].mean() > tip[wall].mean() + 0.003


@pytest.mark.slow
def test_the_mouse_lifts_the_object(shipped_scenarios, tmp_path, simulator):
    t, sense = sensed(ran(shipped_scenarios, tmp_path, "mouse-arm"))
    assert sense[t < 3, 11].max() < 0.017
    assert sense[t > 6.5, 11].min() > 0.04, "lifted with the left button held"
    assert sense[-1, 6] < -0.05, "and carried to the right"


def test_the_wheel_steers_the_belt(shipped_scenarios, tmp_path, simulator):
    t, sense = sensed(ran(shipped_scenarios, tmp_path, "conveyor"))
    belt, glass = sense[:, 7], sense[:, 3]
    assert belt[(t > 1) & (t < 2.9)] == pytest.approx(0.1, abs=1e-3)
    assert belt[(t > 3.5) & (t < 3.9)] == pytest.approx(0.0, abs=1e-3)
    assert belt[(t > 4.5) & (t < 7.9)] == pytest.approx(-0.1, abs=1e-3)
    assert glass[np.searchsorted(t, 3.0)] > 0.2 and glass[-1] < glass[np.searchsorted(t, 4.0)] - 0.3


@pytest.mark.slow
def test_pottery_by_dpm_and_without_merging(shipped_scenarios, tmp_path):
    """[Gokhale 2017: opinions] The headers of 1000 packets a second do not fit beside 9 Mbit/s; those of merged ones do."""
    flows = {}
    for kind in ("dpm", "no-merge"):
        setting = f'channels.telehaptic.transport.kind="{kind}"'
        run = ran(shipped_scenarios, tmp_path / kind, "pottery", setting, 'duration="6 s"')
        flows[kind] = run.flows
        sound = run.flows["audio"]
        assert 0 < sound["suppressed"] < sound["sent"], "sound only in contact"
    for flow in ("haptic", "audio", "video"):
        assert flows["dpm"][flow]["loss"] == 0.0, flow
    assert flows["no-merge"]["video"]["loss"] > 0.3, "frames lack a packet"
    assert flows["no-merge"]["haptic"]["delay_ms"]["mean"] > flows["dpm"]["haptic"]["delay_ms"]["mean"] + 5


def test_the_microscope_answers_and_its_plane_is_felt_at_1_khz(shipped_scenarios, tmp_path):
    """[Hudson 2001: streams] 30 answers of 56 B a second; the force is computed where the hand is."""
    run = ran(shipped_scenarios, tmp_path, "microscope")
    response = run.flows["response"]
    assert response["sent"] == pytest.approx(300, abs=2) and response["delay_ms"]["p50"] > 30
    felt = signals.read(run.folder, "tactile-operator.exit", "response")
    assert np.median(np.diff(felt.t_s)) == pytest.approx(0.001, abs=1e-6)
    assert (felt.values[:, 2] > 0).mean() > 0.1


def test_two_operators_share_a_robot_each_with_delays_of_its_own(shipped_scenarios, tmp_path):
    run = ran(shipped_scenarios, tmp_path, "two-operators")
    near, far = (run.flows[f"{who}/haptic"]["delay_ms"]["mean"] for who in ("near", "far"))
    assert far > near + 20
    _, sense = sensed(run)
    assert np.isfinite(sense).all()


def test_a_file_of_a_robot_is_looked_for_beside_the_scenario(shipped_scenarios, tmp_path):
    text = (
        (shipped_scenarios / "microscope.toml")
        .read_text()
        .replace("stroke.csv", str(shipped_scenarios / "stroke.csv"))
    )
    (tmp_path / "mine.toml").write_text(text)
    np.save(tmp_path / "flat.npy", np.full((64, 64), 12.0) + np.eye(64))
    params = "components.tactile-teleoperator.robot.params"
    sets = ['duration="0.5 s"', f'{params}.surface="flat.npy"', f'{params}.archive="kept.bin"']
    run = tcpsbed.run(tmp_path / "mine.toml", out=tmp_path / "out", set=sets)
    assert run.summary["errors"] == []
    rows = np.fromfile(tmp_path / "kept.bin", ROW)
    assert 10 <= len(rows) <= 16 and rows["height"].max() < 5
    with pytest.raises(ConfigError, match=r"other\.npy cannot be read.*allowed: a height map"):
        tcpsbed.run(tmp_path / "mine.toml", out=tmp_path / "out", set=[f'{params}.surface="other.npy"'])


def test_an_unknown_robot_is_answered_with_those_there_are(shipped_scenarios, tmp_path):
    sets = ['components.tactile-teleoperator.robot.run="microskope"']
    with pytest.raises(ConfigError, match=r'found "microskope" \(did you mean microscope\?\); allowed: '):
        tcpsbed.run(shipped_scenarios / "microscope.toml", out=tmp_path, set=sets)


PICTURED = """
name = "pictured"
duration = "1 s"
[components]
tactile-operator = "hand"
[components.tactile-teleoperator]
node = "wheel"
robot = {{ run = "pottery", senses = 8, params = {{ publish = "{state}" }} }}
[flows.kinematic]
source = {{ recording = "{shipped_scenarios}/pottery.csv", start = "1.5 s" }}
[flows.video]
rate = "10 Hz"
[flows.video.picture]
codec = "raw"
width = 150
height = 100
stamp = false
camera = "tcpsbed.robots.camera:RobotCamera"
params = {{ robot = "pottery", state = "{state}" }}
[links.line]
from = "hand"
to = "wheel"
delay = "5 ms"
"""


def test_the_camera_of_a_robot_feeds_a_flow_of_pictures(shipped_scenarios, tmp_path):
    text = PICTURED.format(state=tmp_path / "state", shipped_scenarios=shipped_scenarios)
    (tmp_path / "pictured.toml").write_text(text)
    run = tcpsbed.run(tmp_path / "pictured.toml", out=tmp_path / "out")
    assert run.summary["errors"] == []
    video = run.flows["video"]
    assert video["delivered"] >= 9 and video["payload_bytes"] >= 9 * 45_000


def test_a_camera_may_look_at_a_robot_of_a_later_node(shipped_scenarios, tmp_path):
    text = PICTURED.format(state=tmp_path / "state", shipped_scenarios=shipped_scenarios)
    for here, there in (
        ("[components]", 'sessions = ["touch", "sight"]\n[nodes]\nhead = { cores = 1 }\n[components]\n'
            'head = { kind = "tactile-teleoperator", node = "head", session = "sight" }'),
        ('node = "wheel"', 'node = "wheel"\nsession = "touch"'),
        ("[flows.kinematic]", '[flows.kinematic]\nsession = "touch"'),
        ("[flows.video]", '[flows.video]\nsession = "sight"'),
    ):  # fmt: skip
        text = text.replace(here, there, 1)
    (tmp_path / "pictured.toml").write_text(text + '[links.other]\nfrom = "hand"\nto = "head"\n')
    run = tcpsbed.run(tmp_path / "pictured.toml", out=tmp_path / "out")
    [video] = [flow for name, flow in run.flows.items() if "video" in name]
    assert video["delivered"] >= 9


def test_the_camera_shows_the_newest_state_also_of_a_robot_made_again(tmp_path):
    state = str(tmp_path / "state")
    pottery = made(Pottery, publish=state)
    camera = RobotCamera(150, 100, False, "pottery", state)
    pictures = [camera.frame(0, 0)]
    pottery.step(0, np.array([0.05, 0.0, 0.1]), np.zeros(8))
    pottery.step(90_000_000, np.array([0.05, 0.0, 0.1]), np.zeros(8))
    pictures.append(camera.frame(0, 1))
    assert (pictures[1] == pottery.render("left", 150, 100)).all()
    again = made(Pottery, radius_m=0.03, publish=state)
    again.step(0, np.zeros(0), np.zeros(8))
    assert (camera.frame(0, 2) == again.render("left", 150, 100)).all()
    assert (pictures[0] != pictures[1]).any()
    camera.source.close()


@pytest.mark.slow
def test_the_telerobot_carries_and_shows_what_it_does(shipped_scenarios, tmp_path, simulator):
    pytest.importorskip("simplejpeg")
    state = tmp_path / "state"
    sets = [
        'duration="9 s"',
        f'components.tactile-teleoperator.robot.params.publish="{state}"',
        f'flows.video.picture.params.state="{state}"',
        'flows.video.rate="5 Hz"',
    ]
    try:
        run = ran(shipped_scenarios, tmp_path / "out", "telerobot", *sets)
    except HookError as error:
        if "no picture can be drawn" not in str(error):
            raise
        pytest.skip(str(error))
    t, sense = sensed(run, f"touch/{SENSE}")
    assert sense[(t > 5.5) & (t < 6.5), 11].min() > 0.05, "in the air"
    eyes, ears = run.summary["media"]["sight/video"], run.summary["media"]["sight/audio"]
    assert eyes["shown"] > 35 and eyes["unread"] == 0
    assert ears["mouth_to_ear_ms"]["n"] >= 7
    assert run.flows["touch/kinematic"]["lost"] == 0
