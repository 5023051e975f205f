"""Hooks that give nonsense or raise, in virtual time: the follower is safe, the record is whole, the report says why."""

from __future__ import annotations

import json
from pathlib import Path

import failing_run
import pytest

import tcpsbed


@pytest.mark.parametrize("name", ["Nan", "Raises", "TooMuch"])
def test_a_hook_that_fails_leads_to_a_safe_stop(tmp_path: Path, name: str) -> None:
    run = tcpsbed.run(failing_run.scenario(tmp_path, name), out=tmp_path / "out")
    found = json.loads((run.folder / "summary.json").read_text())
    failing_run.stands_still(run.folder, found)
    [stage] = [stage for stage in found["stages"] if stage["kind"] == "kinematics"]
    assert stage["calls"] == 1000 and stage["failures"] == (0 if name == "Nan" else 700)
    assert stage["not_finite"] == (700 if name == "Nan" else 0)
    said = {
        "Nan": "returned values that are not finite, 700 times",
        "Raises": "left its domain",
        "TooMuch": "10000",
    }[name]
    assert said in json.dumps(found)


def test_a_hook_that_waits_costs_no_virtual_time(tmp_path: Path) -> None:
    """Virtual time does not advance while a hook sleeps: nothing is late, no command is missing."""
    run = tcpsbed.run(failing_run.scenario(tmp_path, "Blocks", "{ seconds = 0.3 }"), out=tmp_path / "out")
    found = json.loads((run.folder / "summary.json").read_text())
    [watched] = found["states"]
    assert watched["count"] == 0 and list(watched["spent_s"]) == ["normal"]
    assert found["flows"]["kinematic"]["lost"] == 0
