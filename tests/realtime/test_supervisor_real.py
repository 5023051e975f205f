"""The follower's supervisor on the machine's clock, in random schedules of failure: 10, or 50 with FULL=1.

From the last good command to hold: the threshold plus at most one period, plus what the node itself reports as late. The
follower never moves faster than its limit, whatever fails. In every other schedule the wall clock is put forward or back by
seconds while the nodes run: a library before theirs answers for the kernel's clock and stamps.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import failing_schedules
import pytest
from real_run import summary, wall_clock_library

import tcpsbed

pytestmark = [pytest.mark.realtime, pytest.mark.beside, pytest.mark.slow]
SCHEDULES = 50 if os.environ.get("FULL") else 10


def lateness_ms(found: dict[str, Any]) -> float:
    """How late the follower's loop was at most, by its own report: ticks, and moments at which it stalled."""
    node = next(node for node in found["nodes"] if node["name"] == "ss")
    gaps = [float(node["late_ns"]["max"]) / 1e6, float(node.get("longest_gap_ns") or 0) / 1e6]
    return max(gaps)


@pytest.fixture(scope="module")
def wall_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that puts the wall clock of a process forward or back."""
    return wall_clock_library(tmp_path_factory.mktemp("clock"))


def test_random_schedules_of_failure(
    tmp_path: Path, wall_clock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds, late, stepped = 0, [], 0
    for seed in range(SCHEDULES):
        file, folder = failing_schedules.schedule(tmp_path, seed), tmp_path / str(seed)
        with monkeypatch.context() as around:
            if seed % 2:
                around.setenv("LD_PRELOAD", str(wall_clock))
                around.setenv("WALL_CLOCK_STEP", f"{3 if seed % 4 == 1 else -3} 0.8")
            tcpsbed.run(file, world="real", out=folder)
        found = summary(folder)
        beyond, count = failing_schedules.judged(folder)
        assert beyond <= lateness_ms(found), (seed, beyond, found["disturbances"])
        [watched] = found["states"]
        changes = [(c["from"], c["to"]) for c in watched["changes"]]
        assert watched["component"] == "ss-com" and watched["count"] == len(changes)
        # A supervisor that begins anew holds until it is given a command, and gives nothing out.
        assert 0 <= sum(to == "hold" for _, to in changes) - count <= 1, "every change is a row of the record"
        steps = sum(node["clock_steps"] for node in found["nodes"])
        assert (steps > 0) == bool(seed % 2), "the step is told where there was one"
        holds, late, stepped = holds + count, [*late, beyond], stepped + bool(steps)
    assert holds >= SCHEDULES, "most outages are longer than the threshold"
    told = {"holds": holds, "clock steps": stepped, "latest beyond the bound, ms": max(late)}
    print(json.dumps(told))
