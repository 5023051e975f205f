"""The follower's supervisor on the machine's clock, in random schedules of outage and loss: 5, or 20 with FULL=1.

From the last good command to hold: the threshold plus at most one period, plus what the node itself reports as late. The
follower never moves faster than its limit, whatever fails.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_run import summary

import tcpsbed
from tcpsbed.analysis import signals

pytestmark = pytest.mark.realtime
SCHEDULES = 20 if os.environ.get("FULL") else 5
HOLD_MS, PERIOD_MS, SPEED = 30.0, 1.0, 2.0
NORMAL, DEGRADED, HOLD, SAFE_STOP, RECOVERING = range(5)
HEAD = """
name = "failures"
duration = "2.5 s"
seed = {seed}
[components]
op = {{ kind = "tactile-operator", node = "ms" }}
ms-com = "ms"
ss-com = "ss"
[flows.kinematic]
source = {{ recording = "motion.csv", columns = ["x"], repeat = "loop" }}
codec = "f64"
[hooks.safety]
kind = "predict"
run = "supervisor"
at = "ss-com"
flow = "kinematic"
period = "1 ms"
params = {{ hold_ms = {hold}, stop_ms = 200, recover_ms = 20, speed = {speed}, tell = true, loss = 0.9 }}
[links.line]
from = "ms"
to = "ss"
delay = "2 ms"
loss = {loss}
[measure]
signals = ["ss-com.entry", "ss-com.exit"]
"""


def schedule(seed: int) -> str:
    """A scenario with a random loss and two random outages, the second of a component that is restarted."""
    draw = random.Random(seed)
    text = HEAD.format(seed=seed, hold=HOLD_MS, speed=SPEED, loss=round(draw.uniform(0, 0.4), 2))
    at, length = draw.uniform(0.4, 0.7), draw.uniform(0.02, 0.35)
    text += f'[[events]]\nat = "{at:.3f} s"\nlink = "line"\nup = false\n'
    text += f'[[events]]\nat = "{at + length:.3f} s"\nlink = "line"\nup = true\n'
    at, length = draw.uniform(1.2, 1.5), draw.uniform(0.04, 0.3)
    text += f'[[events]]\nat = "{at:.3f} s"\ncomponent = "ms-com"\nalive = false\n'
    return text + f'[[events]]\nat = "{at + length:.3f} s"\ncomponent = "ms-com"\nalive = true\n'


def lateness_ms(found: dict[str, Any]) -> float:
    """How late the follower's loop was at most, by its own report: ticks, and moments at which it stood still."""
    node = next(node for node in found["nodes"] if node["name"] == "ss")
    gaps = [float(node["late_ns"]["max"]) / 1e6, float(node.get("longest_gap_ns") or 0) / 1e6]
    return max(gaps)


def judged(folder: Path) -> tuple[float, int]:
    """The worst time by which hold came too late, in ms, and how often it came; asserts the limit of speed."""
    came = signals.read(folder, "ss-com.entry", "kinematic")
    out = signals.read(folder, "ss-com.exit", "kinematic")
    t_ms, where, state = out.t_ns / 1e6, out.values[:, 0], out.values[:, 1]
    assert np.isfinite(where).all()
    steps = np.abs(np.diff(where))
    assert steps.max() <= SPEED * PERIOD_MS * 1e-3 + 1e-12, "never farther than in one period"
    worst, holds = -np.inf, 0
    for n in np.flatnonzero((state[1:] == HOLD) & (state[:-1] != HOLD)) + 1:
        newest = came.t_ns[came.t_ns / 1e6 <= t_ms[n]][-1] / 1e6
        worst, holds = max(worst, t_ms[n] - newest - HOLD_MS - PERIOD_MS), holds + 1
    aged = t_ms - came.t_ns[np.searchsorted(came.t_ns, out.t_ns, side="right") - 1] / 1e6
    following = np.isin(state, (NORMAL, DEGRADED, RECOVERING))
    return max(worst, float((aged[following]).max()) - HOLD_MS - PERIOD_MS), holds


def test_random_schedules_of_failure(tmp_path: Path) -> None:
    t = np.arange(0, 1, 1e-3)
    motion = "\n".join(["time,x", *(f"{s:.3f},{0.05 * np.sin(2 * np.pi * s):.6f}" for s in t)])
    (tmp_path / "motion.csv").write_text(motion)
    holds, late = 0, []
    for seed in range(SCHEDULES):
        (tmp_path / f"{seed}.toml").write_text(schedule(seed))
        folder = tmp_path / str(seed)
        tcpsbed.run(tmp_path / f"{seed}.toml", world="real", out=folder)
        found = summary(folder)
        beyond, count = judged(folder)
        assert beyond <= lateness_ms(found), (seed, beyond, found["disturbances"])
        [watched] = found["states"]
        changes = [(c["from"], c["to"]) for c in watched["changes"]]
        assert watched["component"] == "ss-com" and watched["count"] == len(changes)
        assert sum(to == "hold" for _, to in changes) == count, "every change is a row of the record"
        holds, late = holds + count, [*late, beyond]
    assert holds >= SCHEDULES, "most outages are longer than the threshold"
    print(json.dumps({"holds": holds, "latest beyond the bound, ms": max(late)}))
