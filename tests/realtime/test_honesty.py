"""What a real run says of keys that have no effect, of stages slower than their cost, and of spinning without cores."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_run import chain, shown, whole

from tcpsbed.errors import WorldError
from tcpsbed.worlds import real

SPIN = """
class Spin:
    \"\"\"Takes two milliseconds of the processor every tenth time.\"\"\"

    def __init__(self):
        self.calls = 0

    def __call__(self, t_ns, index, x, other, y):
        import time

        self.calls += 1
        until = time.thread_time_ns() + (2_000_000 if self.calls % 10 == 0 else 0)
        while time.thread_time_ns() < until:
            pass
        y[: len(x)] = x
        return len(x)
"""
SLOW = """
[hooks.kinematics]
run = "./spin.py:Spin"
cost = "1 ms"
"""
CORES = """
[nodes.edge]
cores = 2
scheduling = "priority"
"""


def test_calls_slower_than_their_cost_are_counted_and_keys_without_effect_listed(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)
    text = chain("2 s", more=SLOW + CORES)
    text = text.replace("[flows.kinematic]", '[flows.kinematic]\nrate = "100 Hz"')
    found, _ = whole(tmp_path, text)
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    # Every tenth call is slower by itself; a slow machine makes no other one so, for processor time is what counts.
    assert stage["calls"] // 10 <= stage["overruns"] <= stage["calls"] // 2
    assert stage["calls"] > 50 and stage["cpu_ns"]["p50"] == pytest.approx(1e6, rel=0.2)
    keys = [text.split(" = ")[0] for text in found["ignored"]]
    assert keys == ["nodes.edge.cores", "nodes.edge.scheduling"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Without effect in this world" in page and "over cost" in page
    screen = shown(tmp_path / "out")
    assert all(f"without effect in this world: {text}" in screen for text in found["ignored"])


@pytest.mark.beside
@pytest.mark.parametrize(
    ("cores", "loops", "emulated", "refused"), [(4, 3, False, False), (4, 3, True, True), (2, 2, False, True)]
)
def test_as_many_spinning_loops_as_cores_are_refused(
    monkeypatch: pytest.MonkeyPatch, cores: int, loops: int, emulated: bool, refused: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    ready: list[dict[str, Any]] = [{"loops": [{}] * loops}, *([{"gates": []}] if emulated else [])]
    real.refuse_crowd({"real": {"waiting": "timer"}}, ready)
    with pytest.raises(WorldError, match=f"{cores} cores") if refused else contextlib.nullcontext():
        real.refuse_crowd({"real": {"waiting": "hybrid"}}, ready)


@pytest.mark.beside
@pytest.mark.needs("taskset")
def test_the_refusal_is_one_message_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(chain("1 s", waiting="hybrid"))
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-m", "tcpsbed", "run"]
    done = subprocess.run(
        [*command, "scenario.toml", "--world", "real", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 2, done.stderr
    assert 'real.waiting: found "hybrid" for 3 loops on 1 cores' in done.stderr
    assert "real.crowded = true" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "summary.json").exists()
