"""A simulator (ns-3, CoppeliaSim) that ends during a run: the follower holds, and the run ends with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from coppeliasim_stand_in import Simulator
from test_follower_faults import STEP, Fault

from tcpsbed import scenarios
from tcpsbed.errors import WorldError
from tcpsbed.worlds import folder, ns3_program

pytestmark = [pytest.mark.realtime, pytest.mark.beside]
END_S = 1.5
NS3 = f"""#!{sys.executable}
import json, sys, time

def say(**line):
    print(json.dumps(line), flush=True)

network = json.loads(sys.stdin.readline())["network"]
say(ready="ns-3")
start_ns, waiting = 0, []
for line in sys.stdin:
    told = json.loads(line)
    start_ns = told.get("start_ns", start_ns)
    if "until" in told:
        say(at=told["until"], arrived=waiting)
        waiting = []
    if "send" in told:
        number, *_, at_ns = told["send"]
        if at_ns > {END_S} * 1e9:
            sys.exit("msg=out of packets")
        waiting.append(number)
    if "send" in told and network["by_clock"]:
        say(at=time.monotonic_ns() - start_ns, arrived=waiting)
        waiting = []
"""
"""In place of the compiled program: hands every packet on at once, and ends at the first after 1.5 s."""
LINE = """
[links.line]
from = "ms"
to = "ss"
delay = "1 ms"
"""


@pytest.fixture
def over_ns3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """A scenario whose link is simulated by that program. Without its end the supervisor would hold after 2 s."""
    program = tmp_path / "tcpsbed-ns3"
    program.write_text(NS3)
    program.chmod(0o700)
    monkeypatch.setattr(ns3_program, "missing", lambda: None)
    monkeypatch.setattr(ns3_program, "built", lambda: program)
    fault = Fault(tmp_path, monkeypatch, 60)
    fault.change(
        ("hold_ms = 100, stop_ms = 500", "hold_ms = 2000, stop_ms = 5000"), ("[measure]", f"{LINE}[measure]")
    )
    return fault


def test_ns3_that_ends_on_the_clock_ends_the_run_and_the_follower_holds(over_ns3: Fault) -> None:
    result = over_ns3.run(lambda: None, world="ns3")
    assert result["interrupted"] and result["errors"] == ["ns-3 ended (exit status: 1): msg=out of packets"]
    last = over_ns3.rows("state")[-1]
    assert over_ns3.states()[-1] == "hold" and last["value"] < 1e9, (
        "the run's end led to it, and no old command"
    )
    assert 0 < last["time"] - END_S * 1e9 < 1e9
    [died] = over_ns3.rows("died")
    assert 0 <= last["time"] - died["time"] < 1e9, "the row is there before the follower holds"
    assert over_ns3.steps().max() <= STEP


def test_ns3_that_ends_in_virtual_time_is_an_error_with_its_last_message(over_ns3: Fault) -> None:
    with pytest.raises(WorldError, match=r"^ns-3 ended \(exit status: 1\): msg=out of packets$"):
        folder.run(scenarios.load(over_ns3.file), world="ns3-virtual", out=over_ns3.out)
    assert not over_ns3.out.exists(), "there is no half of a result"


@pytest.mark.parametrize("world", ["real", "virtual"])
def test_coppeliasim_that_ends_is_a_row_and_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    pytest.importorskip("coppeliasim_zmqremoteapi_client")
    simulator, fault = Simulator(), Fault(tmp_path, monkeypatch, 60)
    t = np.arange(0, 1, 1e-3)
    both = np.column_stack((t, 0.1 * np.sin(2 * np.pi * t), 0.1 * np.sin(4 * np.pi * t)))
    np.savetxt(tmp_path / "motion.csv", both, "%.6f", ",", header="time,x,y", comments="")
    params = f'joints = ["/arm/a", "/arm/b"], sensors = ["/arm/force"], host = "127.0.0.1", port = {simulator.port}'
    fault.change(
        (
            'run = "./slider.py:Slider", senses = 2',
            f'run = "coppeliasim", period = "5 ms", senses = 5, params = {{ {params} }}',
        ),
        ('columns = ["x"]', 'columns = ["x", "y"]'),
        ('sample = "16 B"', 'sample = "40 B"'),
        ("measured = [1], workspace = [[-1, 1]]", "measured = [0, 1], workspace = [[-1, 1], [-1, 1]]"),
    )
    result = fault.run(simulator.over.set, world=world)
    simulator.over.set()
    assert result["interrupted"], result["errors"]
    first = result["errors"][0]
    assert (
        "tactile-teleoperator failed at" in first
        and "CoppeliaSim at tcp://" in first
        and "it has ended" in first
    )
    died, states = fault.rows("died"), fault.rows("state")
    assert len(died) == 1 and fault.states()[-1] == "hold"
    assert 0 <= states["time"][-1] - died["time"][0] < 20e6, "at the next tick"
    assert fault.steps().max() <= STEP
