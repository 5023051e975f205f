"""Boards in virtual time: what their line and their work take, what the watchdog does, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from virtual_run import simulated

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError

SCENARIO = """
name = "boards"
duration = "400 ms"
[components]
tactile-operator = "ms"
ms-com = "ms"
ss-com = "ss"
ss-embsys = { node = "ss", board = { watchdog = "50 ms" }, cost = "20 us" }
tactile-teleoperator = { node = "ss", robot = "wall_mass" }
[flows.kinematic]
sample = "24 B"
[flows.haptic]
sample = "12 B"
[links.line]
from = "ms"
to = "ss"
delay = "2 ms"
[measure]
grace = "100 ms"
echo = { points = "all", period = "5 ms" }
"""
BYTE_MS = 0.01
"""Ten bits at 1 Mbit/s."""
STOP = """
[[events]]
at = "200 ms"
flow = "kinematic"
running = false
[[events]]
at = "300 ms"
flow = "kinematic"
running = true
"""

WILD = """
class Wild:
    def __call__(self, t_ns, index, x, other, y):
        y[:6] = 0.1 if index < 50 else float("nan")
        return 6
"""


# [Polachan 2022: echoes]
def test_line_and_board_are_parts_of_their_own_and_add_up(tmp_path):
    run = simulated(tmp_path, SCENARIO)
    sample, answer = (24 + 8) * BYTE_MS, (24 + 18) * BYTE_MS
    parts = run.parts_ms("kinematic")
    assert parts["ss-com -> ss-embsys"] == pytest.approx(sample, abs=1e-6)
    assert parts["ss-embsys"] == pytest.approx(0.02, abs=1e-6)
    # A force that goes up at the same time has the line first, or not.
    assert answer <= parts["ss-embsys -> tactile-teleoperator"] + 1e-6 < answer + (12 + 18) * BYTE_MS
    assert sum(parts.values()) == pytest.approx(run.summary["flows"]["kinematic"]["delay_ms"]["mean"])
    spans = {s["name"]: s["latency_ms"]["mean"] for kind in ("components", "links") for s in
             run.summary["echo"]["kinematic"][kind]}  # fmt: skip
    assert spans["ss-com -> ss-embsys"] == pytest.approx(sample, abs=1e-6)
    assert spans["ss-embsys"] == pytest.approx(0.02, abs=1e-6)
    (board,) = run.summary["boards"]
    assert (
        board["component"] == "ss-embsys" and board["lost"] == board["safe"] == board["refused_values"] == 0
    )
    assert all(board[key] is None for key in ("late", "damaged", "damaged_there", "clock_bound_ns"))
    assert board["sent"] >= board["answered"] > 700


def test_a_line_that_is_too_slow_waits_and_drops(tmp_path):
    run = simulated(tmp_path, SCENARIO, 'components.ss-embsys.board.rate="100 kbit/s"', 'duration="6 s"')
    flow = run.summary["flows"]["kinematic"]
    assert flow["loss"] > 0.3 and set(flow["drops"]) == {"ss-embsys line"}
    # The answers are longer, so that they wait; 64 samples may be in flight.
    waits = run.parts_ms("kinematic")["ss-embsys -> tactile-teleoperator"]
    assert 100 < waits < 64 * (24 + 18) * 10 * BYTE_MS


@pytest.mark.parametrize("safe, state, rest", [('"hold"', "hold", None), ("[0.25]", "safe stop", 0.25)])
def test_silence_leads_to_the_safe_output_and_the_robot_obeys_it(tmp_path, safe, state, rest):
    signal = 'measure.signals=["tactile-teleoperator.sense"]'
    run = simulated(tmp_path, SCENARIO + STOP, f"components.ss-embsys.board.safe={safe}", signal)
    (watched,) = run.summary["states"]
    assert (watched["component"], watched["flow"]) == ("ss-embsys", "kinematic")
    assert [(c["from"], c["to"]) for c in watched["changes"]] == [("normal", state), (state, "normal")]
    # The last command is on its way through link and line for 2.76 ms, and the watchdog waits from its exit.
    barked, back = (c["t_s"] for c in watched["changes"])
    assert barked == pytest.approx(0.199 + 0.002 + 0.050, abs=0.002)
    assert back == pytest.approx(0.300 + 0.002, abs=0.002)
    assert run.summary["boards"][0]["safe"] == 1
    if rest is not None:
        rows = run.rows("signal")
        x_m = rows[(rows["detail"] == 1) & (rows["time"] > 290_000_000) & (rows["time"] < 300_000_000)]
        before = rows[(rows["detail"] == 1) & (rows["time"] < 200_000_000)]
        assert len(x_m) and len(before)
        assert not (x_m["value"] == before["value"][-1]).all(), "it moved on to the safe output"


def test_a_line_far_too_slow_takes_only_what_would_be_back_within_half_a_second(tmp_path):
    run = simulated(tmp_path, SCENARIO, 'components.ss-embsys.board.rate="9600 bit/s"', 'duration="6 s"')
    flow, (board,) = run.summary["flows"]["kinematic"], run.summary["boards"]
    assert flow["delivered"] > 50 and board["lost"] == 0 and set(flow["drops"]) == {"ss-embsys line"}
    parts = run.parts_ms("kinematic")
    # A line that is a quarter of a second behind takes no more; forces share it, and leave commands their part.
    assert 200 < parts["ss-com -> ss-embsys"] + parts["ss-embsys -> tactile-teleoperator"] < 450


def test_what_is_no_number_moves_nothing_in_virtual_time_either(tmp_path):
    (tmp_path / "wild.py").write_text(WILD)
    hook = 'hooks.inverse_kinematics={ run = "wild.py:Wild", at = "ss-com" }'
    signal = 'measure.signals=["ss-embsys.exit"]'
    run = simulated(tmp_path, SCENARIO, hook, signal)
    (board,) = run.summary["boards"]
    assert board["refused_values"] >= 100
    seen = run.rows("signal")
    assert len(seen) > 1000 and np.isfinite(seen["value"]).all()


def test_the_same_run_twice_leaves_the_same_rows(tmp_path):
    runs = [simulated(tmp_path, SCENARIO + STOP, out=f"out{i}").summary["records_sha256"] for i in range(2)]
    assert runs[0] == runs[1]


def test_a_dead_board_drops_and_its_watchdog_acts(tmp_path):
    events = '[[events]]\nat = "200 ms"\ncomponent = "ss-embsys"\nalive = false\n'
    run = simulated(tmp_path, SCENARIO + events)
    assert run.summary["flows"]["kinematic"]["drops"].keys() == {"ss-embsys dead"}
    assert run.summary["boards"][0]["safe"] == 1


@pytest.mark.parametrize(
    ("override", "key", "says"),
    [
        ('components.ms-com={node="ms", board="host"}', "components.ms-com.board", "a board at ms-embsys"),
        ('components.ss-embsys.delay="1 ms"', "components.ss-embsys.delay", "a delay of a board"),
        ('components.ss-embsys.cost="0.5 us"', "components.ss-embsys.cost", "whole number of microseconds"),
        ('components.ss-embsys.board.watchdog="0.5 ms"', "board.watchdog", "whole milliseconds"),
        ('components.ss-embsys.board.firmware="no.elf"', "board.firmware", "no such file"),
        ('components.ss-embsys.board={line="/dev/ttyS0", firmware="qemu"}', "board.firmware", "not both"),
        (
            'components.ss-embsys.board.safe="slowly"',
            "board.safe",
            '"hold", "zero", or a list of numbers, such as [0.5]',
        ),
        (f"components.ss-embsys.board.safe={[0.0] * 59}", "board.safe", "at most 58"),
        ("components.ss-embsys.board.safe=[1e39]", "board.safe", "3.4e38"),
        ('flows.kinematic.sample="240 B"', "flows.kinematic", "at most 236 B"),
        ('flows.kinematic.to="ss-embsys"', "flows.kinematic", "at an end of the way"),
        ("flows.kinematic.blocking_send=true", "flows.kinematic.blocking_send", "false"),
        (
            'hooks.inverse_kinematics={run="arm3", at="ss-embsys"}',
            "components.ss-embsys.board",
            "its firmware",
        ),
    ],
)
def test_what_a_board_cannot_do_is_refused_with_its_key(tmp_path, override, key, says):
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    with pytest.raises(ConfigError) as caught:
        scenarios.check(scenarios.load(path, [override]))
    assert key in str(caught.value) and says in str(caught.value), str(caught.value)


def test_an_image_for_arm_is_for_qemu_and_another_program_is_not(tmp_path):
    (tmp_path / "image.elf").write_bytes(b"\x7fELF\x01\x01" + bytes(12) + b"\x28\x00" + bytes(40))
    (tmp_path / "program").write_text("#!/bin/sh\n")
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    for name, kind in (("image.elf", "qemu"), ("program", "program")):
        scenario = scenarios.load(path, [f'components.ss-embsys.board.firmware="{name}"'])
        plan = scenarios.compile_plan(scenario, tmp_path / "inputs")
        (board,) = [c["board"] for c in plan["components"] if c["board"]]
        assert board["attached"] == {"kind": kind, "path": str(tmp_path / name)}
