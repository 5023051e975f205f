"""Random schedules of failure before a follower with a supervisor, for the tests in both worlds.

Loss, packets that overtake each other, an outage of the line, components before and of the supervisor that die and are
restarted, clocks of both nodes that are put forward or back, and values outside the workspace.
"""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from failing_run import SAFETY

from tcpsbed.analysis import signals

HOLD_MS, PERIOD_MS, SPEED = 30.0, 1.0, 2.0
CLOCK_MS = 50.0
"""How far the supervisor lets the clocks of both nodes differ, as it does by itself."""
MOST_STEP_S = 3.0
ACCELERATION, REACH = 20.0, 0.06
TO_REST_MS = SPEED / ACCELERATION * 1e3 + 2
"""From the highest speed to rest, and a period at either end."""
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
source = {{ recording = "motion-{seed}.csv", columns = ["x"], repeat = "loop" }}
codec = "f64"
{safety}
[hooks.safety.params]
hold_ms = {hold}
stop_ms = 200
recover_ms = 20
speed = {speed}
acceleration = {acceleration}
workspace = [[-{reach}, {reach}]]
end_to_end_ms = {end_to_end}
tell = true
loss = 0.9
reordered = 0.9
[links.line]
from = "ms"
to = "ss"
delay = "2 ms"
loss = "{loss:.0%}"
jitter = {{ kind = "exponential", mean = "{jitter} ms", reorder = true }}
[measure]
signals = ["ss-com.entry", "ss-com.exit"]
"""


def schedule(folder: Path, seed: int) -> Path:
    """Writes a scenario with random loss, reordering, two random outages, the second of a component that is restarted, a
    restart of the supervisor's component, absurd values, and one to three clock steps at each node, after which
    commands count as too old by their origin in every other schedule.
    """
    draw = random.Random(seed)
    t = np.arange(0, 1, 1e-3)
    where = 0.05 * np.sin(2 * np.pi * t)
    for at in draw.sample(range(len(t)), 20):
        where[at] = draw.choice([1e30, -1e7, 5.0, -REACH * 1.01])
    motion = "\n".join(["time,x", *(f"{s:.3f},{x:.6g}" for s, x in zip(t, where, strict=True))])
    (folder / f"motion-{seed}.csv").write_text(motion)
    loss, jitter = round(draw.uniform(0, 0.4), 2), round(draw.uniform(0.01, 1.5), 2)
    text = HEAD.format(
        safety=SAFETY,
        seed=seed,
        hold=HOLD_MS,
        speed=SPEED,
        loss=loss,
        jitter=jitter,
        acceleration=ACCELERATION,
        reach=REACH,
        end_to_end=1_000 if seed % 2 else 30_000,
    )
    at, length = draw.uniform(0.4, 0.7), draw.uniform(0.02, 0.35)
    text += f'[[events]]\nat = "{at:.3f} s"\nlink = "line"\nup = false\n'
    text += f'[[events]]\nat = "{at + length:.3f} s"\nlink = "line"\nup = true\n'
    at, length = draw.uniform(1.2, 1.5), draw.uniform(0.04, 0.3)
    text += f'[[events]]\nat = "{at:.3f} s"\ncomponent = "ms-com"\nalive = false\n'
    text += f'[[events]]\nat = "{at + length:.3f} s"\ncomponent = "ms-com"\nalive = true\n'
    at, length = draw.uniform(1.8, 2.1), draw.uniform(0.01, 0.2)
    text += f'[[events]]\nat = "{at:.3f} s"\ncomponent = "ss-com"\nalive = false\n'
    text += f'[[events]]\nname = "restart"\nat = "{at + length:.3f} s"\ncomponent = "ss-com"\nalive = true\n'
    for node in ("ms", "ss"):
        for _ in range(draw.randint(1, 3)):
            at, step = draw.uniform(0.1, 2.4), draw.uniform(-MOST_STEP_S, MOST_STEP_S)
            text += f'[[events]]\nat = "{at:.3f} s"\nnode = "{node}"\nstep = "{step:.3f} s"\n'
    file = folder / f"{seed}.toml"
    file.write_text(text)
    return file


def judged(folder: Path) -> tuple[float, int]:
    """By how much in ms hold came later than the threshold and a period, at worst, and how often it came.

    Asserts that the follower never moved farther in a period than its speed allows, also over a restart of the supervisor,
    never left its workspace, and was at rest in time after each hold. A supervisor that was dead cannot hold in time: its
    first word after the restart is in time.
    """
    [restart_ms] = [event["at_ns"] / 1e6 for event in _events(folder) if event["name"] == "restart"]
    came = signals.read(folder, "ss-com.entry", "kinematic")
    out = signals.read(folder, "ss-com.exit", "kinematic")
    t_ms, where, state = out.t_ns / 1e6, out.values[:, 0], out.values[:, 1]
    assert np.isfinite(where).all()
    assert np.abs(np.diff(where)).max() <= SPEED * PERIOD_MS * 1e-3 + 1e-12, (
        "never farther than in one period"
    )
    assert np.abs(where).max() <= REACH
    rests = np.isin(state, (HOLD, SAFE_STOP))
    since_ms = np.maximum.accumulate(np.where(rests, -np.inf, t_ms))
    rested = rests[1:] & (t_ms[1:] - since_ms[1:] > TO_REST_MS)
    assert np.abs(np.diff(where))[rested].max(initial=0.0) < 1e-12, "at rest in time"
    good_ms = came.t_ns[_good(folder, came, out)] / 1e6
    age = t_ms - good_ms[np.maximum(np.searchsorted(good_ms, t_ms, side="right") - 1, 0)]
    holds = np.flatnonzero((state[1:] == HOLD) & (state[:-1] != HOLD)) + 1
    count = len(holds)
    holds = holds[holds != np.searchsorted(t_ms, restart_ms)]
    following = np.isin(state, (NORMAL, DEGRADED, RECOVERING))
    worst = max(age[following].max(), age[holds].max() if len(holds) else 0.0)
    return float(worst) - HOLD_MS - PERIOD_MS, count


def _events(folder: Path) -> list[Any]:
    return json.loads((folder / "plan.json").read_text())["events"]


def _clock(folder: Path, node: int, t_ns: np.ndarray) -> np.ndarray:
    """What the clock of a node shows at these moments."""
    steps = [e for e in _events(folder) if e["action"]["kind"] == "clock" and e["action"]["node"] == node]
    return t_ns + sum(np.where(t_ns >= e["at_ns"], e["action"]["step_ns"], 0) for e in steps)


def _good(folder: Path, came: signals.Signal, out: signals.Signal) -> np.ndarray:
    """Commands that a supervisor must follow: the newest of a tick, newer than those before, sound, and of an age, by the
    clocks of both nodes, that it accepts. One from a clock that is further ahead than clocks may differ is refused.
    """
    ticks = np.searchsorted(out.t_ns, came.t_ns)
    numbers = came.numbers.astype(np.int64)
    newest_of_tick = np.array([numbers[ticks == tick].max() for tick in ticks]) == numbers
    judged_ns = out.t_ns[np.minimum(ticks, len(out.t_ns) - 1)]
    age_ms = (_clock(folder, 1, judged_ns) - _clock(folder, 0, numbers * int(PERIOD_MS * 1e6))) / 1e6
    params = tomllib.loads((folder / "scenario.toml").read_text())["hooks"]["safety"]["params"]
    end_to_end_ms = params["end_to_end_ms"]
    borne = (age_ms >= -CLOCK_MS) & (age_ms <= end_to_end_ms - CLOCK_MS)
    sound = newest_of_tick & borne & (np.abs(came.values[:, 0]) <= REACH)
    newest = np.maximum.accumulate(np.where(sound, numbers, -1))
    return sound & (np.diff(newest, prepend=-1) > 0)
