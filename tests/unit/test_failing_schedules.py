"""The follower's supervisor in whole runs in virtual time, in random schedules of failure, clock steps of both nodes among
them: 12, or 1000 with FULL=1."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import failing_schedules

import tcpsbed

SCHEDULES = 1000 if os.environ.get("FULL") else 12


def test_hold_comes_in_time_and_the_speed_is_kept_in_every_schedule(tmp_path: Path) -> None:
    """From the last good command to hold: the threshold plus at most one period; each hold is in the summary."""
    holds = 0
    for seed in range(SCHEDULES):
        folder = tmp_path / str(seed)
        run = tcpsbed.run(failing_schedules.schedule(tmp_path, seed), out=folder)
        beyond, count = failing_schedules.judged(folder)
        assert beyond <= 1e-6, (seed, beyond)
        [watched] = run.summary["states"]
        assert sum(change["to"] == "hold" for change in watched["changes"]) == count, seed
        holds += count
        shutil.rmtree(folder)
    assert holds >= SCHEDULES, "most outages are longer than the threshold"
