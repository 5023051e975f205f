"""CoppeliaSim's remote API: the real client library against a stand-in for the simulator."""

from __future__ import annotations

import time

import numpy as np
import pytest
from coppeliasim_stand_in import Simulator

import tcpsbed
from tcpsbed.analysis import signals
from tcpsbed.errors import HookError
from tcpsbed.hooks import make_robot
from tcpsbed.robots import ROBOTS

MS = 1_000_000


@pytest.fixture
def simulator():
    """A server, where the client library is there."""
    pytest.importorskip("coppeliasim_zmqremoteapi_client")
    server = Simulator()
    yield server
    server.over.set()
    server.join()


def made(simulator: Simulator, **params):
    """The robot at the server."""
    given = {"joints": ["/arm/a", "/arm/b"], "sensors": ["/arm/force"], "host": "127.0.0.1"}
    return make_robot(*ROBOTS["coppeliasim"], given | {"port": simulator.port} | params)


def test_the_client_speaks_the_protocol(simulator):
    robot = made(simulator)
    assert not simulator.running, "to make a robot starts nothing"
    robot.step(0, np.zeros(0), np.zeros(5))
    first = simulator.requests[0]
    assert first["ver"] == 2 and first["lang"] == "python" and first["timeout"] > 0
    assert all({"func", "args", "argsL", "uuid"} <= set(request) for request in simulator.requests)
    assert simulator.stepping is True and simulator.running and robot.tick_ns == 5 * MS


def test_joints_go_where_they_are_sent_in_lock_step(simulator):
    robot, sense = made(simulator), np.zeros(9)
    assert robot.step(0, np.zeros(0), sense) == 5
    for t_ms in range(0, 101):
        n = robot.step(t_ms * MS, np.array([0.6, -0.3]), sense)
    assert simulator.steps == 20, "100 ms are 20 steps, whatever the period of the robot"
    assert n == 5 and sense[:2] == pytest.approx([0.6, -0.3], abs=0.001) and robot.arrived()
    assert sense[2:5] == pytest.approx([0.6, 0.0, 2.5], abs=0.001)
    told = [request for request in simulator.requests if request["func"] == "sim.setJointTargetPosition"]
    assert len(told) == 2, "a goal is told once"
    robot.step(101 * MS, np.array([np.nan, 0.0]), sense)
    robot.step(110 * MS, np.zeros(0), sense)
    assert simulator.targets == {"/arm/a": 0.6, "/arm/b": -0.3}
    robot.close()
    assert not simulator.running


def test_no_step_is_left_out_and_in_real_time_a_late_call_ends(simulator):
    robot, sense = made(simulator), np.zeros(9)
    robot.step(0, np.zeros(0), sense)
    robot.step(150 * 5 * MS, np.zeros(0), sense)
    assert simulator.steps == 150, "in virtual time all at once"
    robot.may_lag = True
    for steps in (250, 300, 301):
        robot.step(300 * 5 * MS + (steps - 300) * 5 * MS * (steps > 300), np.zeros(0), sense)
        assert simulator.steps == steps, "late, then caught up with"


def test_the_scenario_of_the_arm_runs_on_the_simulator(simulator, shipped_scenarios, tmp_path):
    params = f'joints = ["/arm/a", "/arm/b"], sensors = ["/arm/force"], host = "127.0.0.1", port = {simulator.port}'
    robot = f'{{ run = "coppeliasim", period = "5 ms", senses = 5, params = {{ {params} }} }}'
    sets = [
        'duration="4 s"',
        f"components.tactile-teleoperator.robot={robot}",
        'flows.kinematic.rate="200 Hz"',
    ]
    sets.append('measure.signals=["ss-com.exit", "tactile-teleoperator.sense"]')
    run = tcpsbed.run(shipped_scenarios / "pick-and-place.toml", out=tmp_path, set=sets)
    assert run.summary["errors"] == [] and simulator.steps == pytest.approx(800, abs=2)
    told = signals.read(tmp_path, "ss-com.exit", "kinematic").values
    sense = signals.read(tmp_path, "tactile-teleoperator.sense").values
    assert np.ptp(told[:, 1]) > 0.05 and sense[-1, :2] == pytest.approx(told[-1, :2], abs=0.02)
    assert run.flows["haptic"]["delivered"] > 3000, "the force of its sensor comes back at 1 kHz"
    assert not simulator.running, "stopped at the end"


def test_the_end_of_the_simulator_is_noticed_at_once_and_its_silence_after_patience(simulator):
    robot = made(simulator, patience_s=0.3)
    robot.step(0, np.zeros(0), np.zeros(9))
    simulator.deaf.set()
    with pytest.raises(HookError, match=r"no answer in 0\.3 s; allowed"):
        robot.step(5 * MS, np.zeros(0), np.zeros(9))
    simulator.deaf.clear()
    other = made(simulator, patience_s=60.0)
    other.step(0, np.zeros(0), np.zeros(9))
    simulator.over.set()
    simulator.join()
    begin = time.monotonic()
    with pytest.raises(
        HookError, match=r"CoppeliaSim at tcp://127\.0\.0\.1:\d+: OSError: it has ended; allowed"
    ):
        other.step(5 * MS, np.zeros(0), np.zeros(9))
    assert time.monotonic() - begin < 1.0, "its patience is a minute"


def test_an_object_that_is_not_there_is_told_in_the_simulators_words(simulator):
    with pytest.raises(HookError, match=r"object does not exist: '/arm/c'; allowed: a running CoppeliaSim"):
        made(simulator, joints=["/arm/c"])


@pytest.mark.parametrize(
    "reply", ["9ad85f823bf981d882d87f", "d83ba1bfff613b", "9aa1c31bffc341c33b", "ff", "83"]
)
def test_a_reply_that_is_no_cbor_is_told_and_crashes_nothing(simulator, reply):
    robot = made(simulator)
    simulator.broken = bytes.fromhex(reply)
    with pytest.raises(
        HookError, match=r"CoppeliaSim at tcp://127\.0\.0\.1:\d+: found an answer that .*; allowed"
    ):
        robot.step(0, np.zeros(0), np.zeros(9))


def test_a_simulator_that_cannot_be_reached_is_told_soon():
    pytest.importorskip("coppeliasim_zmqremoteapi_client")
    params = {"joints": [], "port": 1, "patience_s": 0.2}
    with pytest.raises(
        HookError, match=r"CoppeliaSim at tcp://localhost:1: .*allowed: a running CoppeliaSim"
    ):
        make_robot(*ROBOTS["coppeliasim"], params)
