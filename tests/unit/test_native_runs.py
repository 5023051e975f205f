"""The native driver as a guest of the interpreter: what ends a run, what it raises, and who works meanwhile."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from tcpsbed import _tcps

HOOK = """
import os, signal

class Interrupts:
    def __init__(self):
        self.calls = 0

    def __call__(self, t_ns, index, x, other, y):
        self.calls += 1
        if self.calls == 100:
            os.kill(os.getpid(), signal.SIGINT)
        y[: len(x)] = x
        return len(x)
"""


BORN = """
class Born:
    def __init__(self, path):
        open(path, "a").write("born\\n")
        self.calls = 0

    def __call__(self, t_ns, index, x, other, y):
        self.calls += 1
        y[0] = self.calls
        return 1
"""


def plan(duration_s: float, **visit) -> str:
    """A flow of 1 kHz from one component to another on the same node."""
    component = {"kind": "x", "session": 0, "node": 0}
    return json.dumps(
        {
            "name": "p",
            "seed": 1,
            "duration_ns": int(duration_s * 1e9),
            "sessions": ["main"],
            "nodes": [{"name": "n"}],
            "components": [component | {"name": "a"}, component | {"name": "b"}],
            "flows": [
                {
                    "name": "f",
                    "session": 0,
                    "direction": "forward",
                    "period_ns": 1_000_000,
                    "codec": "f32",
                    "source": {"kind": "generated", "bytes": 8},
                    "sink": {"kind": "count"},
                    "path": [{"component": 0} | visit, {"component": 1}],
                }
            ],
        }
    )


def test_what_the_progress_callback_raises_comes_out():
    def progress(t_ns, split):
        raise RuntimeError(f"enough at {t_ns}")

    with pytest.raises(RuntimeError, match="enough at"):
        _tcps.run_virtual(plan(100_000), progress=progress)


def test_a_false_answer_ends_the_run_and_keeps_its_result():
    result = json.loads(_tcps.run_virtual(plan(100_000), progress=lambda t_ns, split: False))
    assert result["interrupted"] and result["records"] > 0


def test_ctrl_c_ends_a_run_without_hooks():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        _tcps.run_virtual(plan(100_000))


def test_ctrl_c_in_a_hook_ends_the_run_and_is_no_failure_of_the_hook(tmp_path):
    (tmp_path / "hook.py").write_text(HOOK)
    run = {"kind": "python", "name": str(tmp_path / "hook.py"), "symbol": "Interrupts"}
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _tcps.run_virtual(plan(100_000, steps=[{"kind": "kinematics", "run": run}]))
    assert time.monotonic() - begun < 5


def test_a_restarted_component_has_hooks_that_are_made_again(tmp_path):
    (tmp_path / "hook.py").write_text(BORN)
    params = {"path": str(tmp_path / "births")}
    run = {"kind": "python", "name": str(tmp_path / "hook.py"), "symbol": "Born", "params": params}
    killed = json.loads(plan(1, steps=[{"kind": "kinematics", "run": run}]))
    killed["events"] = [
        {"at_ns": at, "name": "e", "action": {"kind": "component", "component": 0, "alive": alive}}
        for at, alive in (
            (300_000_000, False),
            (301_000_000, True),
            (400_000_000, False),
            (500_000_000, True),
        )
    ]
    result = json.loads(_tcps.run_virtual(json.dumps(killed)))
    assert (tmp_path / "births").read_text() == "born\n" * 3
    assert result["errors"] == [] and result["stages"][0]["calls"] == 899


def test_other_threads_work_while_a_run_without_hooks_goes_on():
    turns = []
    over = threading.Event()

    def turn():
        while not over.wait(0.001):
            turns.append(time.monotonic())

    thread = threading.Thread(target=turn)
    thread.start()
    begun = time.monotonic()
    _tcps.run_virtual(plan(2_000))
    ended = time.monotonic()
    over.set()
    thread.join()
    within = [t for t in turns if begun + 0.01 < t < ended - 0.01]
    assert ended - begun > 0.1
    assert len(within) > 10
