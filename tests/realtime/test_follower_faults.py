"""Processes of a run that stall or die during it: the follower goes to the safe side, and the run says why."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_run import SAFETY, motion

from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.errors import TcpsbedError
from tcpsbed.worlds import folder, local, real
from tcpsbed.worlds.process import Process

pytestmark = [pytest.mark.realtime, pytest.mark.beside]
SLIDER = """
class Slider:
    own_process = True

    def __init__(self):
        self.at = 0.3

    def step(self, t_ns, command, sense):
        goal = command[0] if len(command) else self.at
        self.at += max(-0.002, min(0.002, goal - self.at))
        sense[0], sense[1] = 0.0, self.at
        return 2
"""
SCENARIO = """
name = "faults"
duration = "{duration} s"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
[components.tactile-teleoperator]
node = "ss"
robot = {{ run = "./slider.py:Slider", senses = 2 }}
[flows.kinematic]
source = {{ recording = "motion.csv", columns = ["x"], repeat = "loop" }}
codec = "f64"
[flows.haptic]
source = "robot"
sample = "16 B"
codec = "f64"
{safety}
params = {{ hold_ms = 100, stop_ms = 500, speed = 1, tell = true, measured = [1], workspace = [[-1, 1]] }}
[measure]
signals = ["ss-com.exit"]
pcapng = "on"
"""
STEP = 1e-3 + 1e-9


class Fault:
    """Runs the scenario and does something to its processes 1.5 s after its beginning."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, duration_s: float) -> None:
        self.out, self.nodes = place / "out", []
        (place / "slider.py").write_text(SLIDER)
        motion(place, 0.5, 0.1)
        self.file = place / "faults.toml"
        self.file.write_text(SCENARIO.format(duration=duration_s, safety=SAFETY))
        nodes: list[Process] = self.nodes

        class Seen(Process):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                nodes.append(self)

        monkeypatch.setattr(local, "Process", Seen)

    def follower(self) -> int:
        """The process of the follower's node."""
        return self.nodes[1].child.pid

    def robot(self) -> int:
        """The process of the robot."""
        pid = self.follower()
        for task in Path(f"/proc/{pid}/task").iterdir():
            if children := (task / "children").read_text().split():
                return int(children[0])
        raise AssertionError("no process of a robot")

    def change(self, *pairs: tuple[str, str]) -> None:
        """Has another text in the scenario in place of each of these."""
        text = self.file.read_text()
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        self.file.write_text(text)

    def run(self, act: Callable[[], None], world: str = "real") -> dict[str, Any]:
        """The result of the run, also where it ends with an error."""
        begun = False

        def progress(share: float) -> bool:
            nonlocal begun
            if share > 0 and not begun:
                begun = True
                threading.Timer(1.5, act).start()
            return True

        try:
            folder.run(scenarios.load(self.file), world=world, out=self.out, progress=progress)
        except TcpsbedError as error:
            print(error)
        return json.loads((self.out / "result.json").read_text())

    def rows(self, kind: str) -> np.ndarray:
        """The rows of a kind."""
        rows = open_records(self.out / "records.bin")
        return np.asarray(rows[rows["kind"] == 1 + KINDS.index(kind)])

    def states(self) -> list[str]:
        """The states that the supervisor went through."""
        names = ["normal", "degraded", "hold", "safe stop", "recovering"]
        return [names[row["detail"]] for row in self.rows("state")]

    def steps(self) -> np.ndarray:
        """How far the follower was sent in each period."""
        return np.abs(np.diff(signals.read(self.out, "ss-com.exit", "kinematic").values[:, 0]))


def test_a_node_that_was_stopped_for_a_while_judges_the_gap_before_it_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(tmp_path, monkeypatch, 6)

    def stall() -> None:
        os.kill(fault.follower(), signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(fault.follower(), signal.SIGCONT)

    result = fault.run(stall)
    states = fault.rows("state")
    stops = states[states["detail"] == 3]
    assert len(stops) == 1 and stops["value"][0] > 2.4e9, "the age at the stop is that of the gap"
    names = fault.states()
    assert names[names.index("safe stop") + 1] == "recovering", names
    assert fault.steps().max() <= STEP
    assert not any("disk" in said or "capture" in said for said in result["errors"]), result["errors"]
    assert result["robots"][0]["watchdog"] >= 1, "the robot did not wait for its node"


@pytest.mark.slow
def test_a_node_that_was_stopped_for_good_is_noticed_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(tmp_path, monkeypatch, 60)
    begun = time.monotonic()
    result = fault.run(lambda: os.kill(fault.follower(), signal.SIGSTOP))
    assert time.monotonic() - begun < 40, "and not 20 s after its end"
    assert any("node ss: did not run for" in said for said in result["errors"]), result["errors"]
    assert result["interrupted"] and real.STOPPED_S == 5.0


@pytest.mark.parametrize(
    ("what", "said"),
    [(signal.SIGKILL, "robot's process ended"), (signal.SIGSTOP, "was stopped (SIGSTOP)")],
)
def test_a_robot_that_dies_or_is_stopped_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: signal.Signals, said: str
) -> None:
    fault, at = Fault(tmp_path, monkeypatch, 60), []

    def kill() -> None:
        at.append(time.monotonic())
        os.kill(fault.robot(), what)

    result = fault.run(kill)
    assert time.monotonic() - at[0] < 20
    assert result["interrupted"] and any(said in error for error in result["errors"]), result["errors"]
    assert any("tactile-teleoperator failed at" in error for error in result["errors"])
    died, states = fault.rows("died"), fault.rows("state")
    assert len(died) == 1 and states["detail"][-1] == 2, "it holds"
    assert states["time"][-1] - died["time"][0] < 20e6, "at the next tick"
    assert fault.steps().max() <= STEP


def test_a_node_that_dies_ends_the_run_and_the_other_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(tmp_path, monkeypatch, 60)
    result = fault.run(lambda: fault.nodes[0].child.kill())
    assert any("node ms died" in said for said in result["errors"]), result["errors"]
    assert fault.states()[-1] == "hold"
    assert fault.steps().max() <= STEP
