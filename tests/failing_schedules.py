"""Random schedules of failure before a follower with a supervisor, for the tests in both worlds.

Loss, packets that overtake each other, an outage of the line, a component that dies and is restarted, and clocks of both
nodes that are put forward or back.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tcpsbed.analysis import signals

HOLD_MS, PERIOD_MS, SPEED = 30.0, 1.0, 2.0
MOST_STEP_S = 3.0
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
params = {{ hold_ms = {hold}, stop_ms = 200, recover_ms = 20, speed = {speed}, tell = true, loss = 0.9, reordered = 0.9 }}
[links.line]
from = "ms"
to = "ss"
delay = "2 ms"
loss = {loss}
jitter = {{ kind = "exponential", mean = "{jitter} ms", reorder = true }}
[measure]
signals = ["ss-com.entry", "ss-com.exit"]
"""


def schedule(folder: Path, seed: int) -> Path:
    """Writes a scenario with random loss, reordering, two random outages, the second of a component that is restarted, and
    one to three clock steps at each node.
    """
    t = np.arange(0, 1, 1e-3)
    motion = "\n".join(["time,x", *(f"{s:.3f},{0.05 * np.sin(2 * np.pi * s):.6f}" for s in t)])
    (folder / "motion.csv").write_text(motion)
    draw = random.Random(seed)
    loss, jitter = round(draw.uniform(0, 0.4), 2), round(draw.uniform(0.01, 1.5), 2)
    text = HEAD.format(seed=seed, hold=HOLD_MS, speed=SPEED, loss=loss, jitter=jitter)
    at, length = draw.uniform(0.4, 0.7), draw.uniform(0.02, 0.35)
    text += f'[[events]]\nat = "{at:.3f} s"\nlink = "line"\nup = false\n'
    text += f'[[events]]\nat = "{at + length:.3f} s"\nlink = "line"\nup = true\n'
    at, length = draw.uniform(1.2, 1.5), draw.uniform(0.04, 0.3)
    text += f'[[events]]\nat = "{at:.3f} s"\ncomponent = "ms-com"\nalive = false\n'
    text += f'[[events]]\nat = "{at + length:.3f} s"\ncomponent = "ms-com"\nalive = true\n'
    for node in ("ms", "ss"):
        for _ in range(draw.randint(1, 3)):
            at, step = draw.uniform(0.1, 2.4), draw.uniform(-MOST_STEP_S, MOST_STEP_S)
            text += f'[[events]]\nat = "{at:.3f} s"\nnode = "{node}"\nstep = "{step:.3f} s"\n'
    file = folder / f"{seed}.toml"
    file.write_text(text)
    return file


def judged(folder: Path) -> tuple[float, int]:
    """By how much in ms hold came later than the threshold and a period, at worst, and how often it came.

    Asserts that the follower never moved farther in a period than its speed allows.
    """
    came = signals.read(folder, "ss-com.entry", "kinematic")
    out = signals.read(folder, "ss-com.exit", "kinematic")
    t_ms, where, state = out.t_ns / 1e6, out.values[:, 0], out.values[:, 1]
    assert np.isfinite(where).all()
    assert np.abs(np.diff(where)).max() <= SPEED * PERIOD_MS * 1e-3 + 1e-12, (
        "never farther than in one period"
    )
    newest = np.maximum.accumulate(came.numbers)
    good_ms = came.t_ns[np.diff(newest, prepend=-1) > 0] / 1e6
    age = t_ms - good_ms[np.maximum(np.searchsorted(good_ms, t_ms, side="right") - 1, 0)]
    holds = np.flatnonzero((state[1:] == HOLD) & (state[:-1] != HOLD)) + 1
    following = np.isin(state, (NORMAL, DEGRADED, RECOVERING))
    worst = max(age[following].max(), age[holds].max() if len(holds) else 0.0)
    return float(worst) - HOLD_MS - PERIOD_MS, len(holds)
