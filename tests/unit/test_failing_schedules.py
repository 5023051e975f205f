"""What a summary says of the follower's supervisor in random schedules of failure, clock steps of both nodes among them:
100, or 10,000 with FULL=1. The supervisor itself has `crates/tcps-run/tests/virtual_time/faults.rs`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import failing_schedules
import numpy as np
import pytest
import virtual_run

import tcpsbed

SCHEDULES = int(os.environ.get("SCHEDULES", 10_000 if os.environ.get("FULL") else 100))


@pytest.mark.slow
def test_hold_comes_in_time_and_the_speed_is_kept_in_every_schedule(tmp_path: Path) -> None:
    """From the last good command to hold: the threshold plus at most one period; each hold is in the summary."""
    holds, outside, late = 0, 0, []
    # In 1284 the clock is put back while the supervisor's component is dead.
    for seed in dict.fromkeys([1284, *range(SCHEDULES)]):
        folder = tmp_path / str(seed)
        run = tcpsbed.run(failing_schedules.schedule(tmp_path, seed), out=folder)
        beyond, count = failing_schedules.judged(folder)
        assert beyond <= 1e-6, (seed, beyond)
        [watched] = run.summary["states"]
        # A supervisor that begins anew holds until it is given a command, and gives nothing out.
        assert 0 <= sum(change["to"] == "hold" for change in watched["changes"]) - count <= 1, seed
        [said] = run.summary["supervisors"]
        assert " refused " in said, seed
        outside += "outside the workspace" in said
        holds, late = holds + count, [*late, beyond]
        shutil.rmtree(folder)
    assert holds >= SCHEDULES, "most outages are longer than the threshold"
    print(json.dumps({"schedules": SCHEDULES, "holds": holds, "latest beyond the bound, ms": max(late)}))
    assert outside >= 0.9 * SCHEDULES, (
        "the first refusal is told, and 2 % of commands are absurd from the beginning"
    )


STEPPED = """
name = "stepped"
duration = "2 s"
[components]
ms-com = "ms"
ss-com = "ss"
[flows.kinematic]
codec = "f64"
[flows.haptic]
sample = "24 B"
codec = "f64"
[channels.both]
flows = ["kinematic", "haptic"]
transport = {transport}
[links.line]
from = "ms"
to = "ss"
delay = "2 ms"
"""
STEPS = """
[[events]]
at = "0.5 s"
node = "ms"
step = "-3 s"
[[events]]
at = "1 s"
node = "ss"
step = "1 s"
[measure]
sync = "100 ms"
"""


@pytest.mark.parametrize(
    "transport",
    ['"udp"', '"rtp"', '"tcp"', '"quic"', '{ kind = "parity", data = 4, parity = 2 }'],
)
def test_a_clock_step_moves_stamps_and_no_timer(tmp_path: Path, transport: str) -> None:
    """What was on its way comes when it would have come; its delay, by the clocks of both nodes, says what they show.

    Controllers that go by delays are not asked: theirs jump.
    """
    text = STEPPED.format(transport=transport)
    plain = virtual_run.simulated(tmp_path, text, out="plain")
    stepped = virtual_run.simulated(tmp_path, text + STEPS, out="stepped")
    for flow in ("kinematic", "haptic"):
        arrived, moved = (one.rows("delivered") for one in (plain, stepped))
        arrived, moved = (rows[rows["flow"] == plain.flow(flow)] for rows in (arrived, moved))
        assert np.array_equal(arrived["time"], moved["time"]) and len(moved) > 1900
        shift_ms = (moved["value"] - arrived["value"]) / 1e6
        sign = 1 if flow == "kinematic" else -1
        for low, high, shown in ((0.0, 0.49, 0.0), (0.6, 0.99, 3000.0), (1.1, 1.9, 4000.0)):
            part = (moved["time"] >= low * 1e9) & (moved["time"] < high * 1e9)
            assert np.allclose(shift_ms[part], sign * shown), (flow, low)
    assert stepped.summary["errors"] == []
