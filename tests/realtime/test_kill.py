"""A node that dies in the middle of a real run takes nothing with it that was recorded; nor does Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from real_run import NETWORK, Started, chain, children, gone, rows, shown, started, summary

from tcpsbed import scenarios, worlds
from tcpsbed.worlds import memory

pytestmark = pytest.mark.beside

TEXT = chain("60 s", more=NETWORK)
NODES = {"node0": "ms", "node1": "edge", "node2": "ss", "emulator": "emulator"}
LONG_BEFORE_S = 55.0
"""A run that was stopped ends long before the 60 s that it was meant to last."""


def until(run: Started, seconds: float) -> None:
    """Waits until a run has lasted some time."""
    while run.run_time_s("node0") < seconds:
        time.sleep(0.01)


def seen(run: Started) -> dict[str, tuple[int, float]]:
    """Rows that each node has published so far, and the run time of its newest one."""
    return {node: (run.published(node), run.run_time_s(node)) for node in NODES}


def assert_kept(run: Started, before: dict[str, tuple[int, float]]) -> None:
    """Everything that was published at a moment is in the run folder."""
    for node, (published, newest) in before.items():
        assert len(own_rows(run, node)) >= published, f"rows of {node} are lost"
        assert newest_s(run, node) >= newest, f"the end of {node} is lost"


def newest_s(run: Started, node: str) -> float:
    """Run time of the last row that a node left in the run folder."""
    return float(own_rows(run, node)["time"].max() / 1e9)


def own_rows(run: Started, node: str) -> np.ndarray:
    """Rows of a node in the run folder; those of the emulator are of no node, or of one after the nodes."""
    found = rows(run.out)
    number = list(NODES).index(node)
    return found[found["node"] >= number] if node == "emulator" else found[found["node"] == number]


def assert_nothing_left(run: Started, processes: list[int]) -> None:
    """No process and no shared memory is left."""
    assert gone(processes)
    assert children(run.command.pid) == []
    for ring in run.rings.values():
        assert not ring.parent.exists(), "shared memory is left"
    assert list(run.out.glob("*.rows")) == [], "parts of the records are left"


def assert_readable(run: Started) -> None:
    """Rows are in order and whole; summary and report are made, and can be made again."""
    assert (run.out / "records.bin").stat().st_size % 32 == 0
    times = rows(run.out)["time"]
    assert (times[1:] >= times[:-1]).all()
    found = summary(run.out)
    assert found["flows"]["kinematic"]["sent"] > 100
    assert found["flows"]["kinematic"]["delivered"] > 100
    assert "DISTURBED" in shown(run.out) and "stopped at" in shown(run.out)
    page = (run.out / "report.html").read_text()
    assert "stopped at" in page and "</html>" in page


@pytest.mark.parametrize(
    "victim",
    [pytest.param(node, marks=() if node in ("node1", "emulator") else pytest.mark.slow) for node in NODES],
)
def test_a_killed_node_loses_nothing_that_it_had_recorded(tmp_path: Path, victim: str) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 1.2)
        before = seen(run)
        os.kill(run.nodes[victim], signal.SIGKILL)
        processes = list(run.nodes.values())
        status, _, errors = run.finish()
    assert status == 1, errors
    assert f"node {NODES[victim]} died by SIGKILL: " in errors
    assert_nothing_left(run, processes)
    assert_readable(run)
    assert_kept(run, before)
    assert any(f"node {NODES[victim]} died" in error for error in summary(run.out)["errors"])


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(signal.SIGINT, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_a_request_to_stop_keeps_what_was_recorded(tmp_path: Path, stop: signal.Signals) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 1.2)
        before = seen(run)
        run.command.send_signal(stop)
        processes = list(run.nodes.values())
        status, _, errors = run.finish()
    assert status == 130, errors
    assert "stopped early; what was recorded until then is in" in errors
    assert "Traceback" not in errors
    assert_nothing_left(run, processes)
    assert_readable(run)
    assert_kept(run, before)
    assert all(newest_s(run, node) < LONG_BEFORE_S for node in NODES), "it stopped early"
    found = summary(run.out)
    assert found["errors"] == []
    assert {node["name"] for node in found["nodes"]} == {*NODES.values()}, "every node told about itself"


HOOK = """
import multiprocessing, pathlib, time


class Mine:
    def __init__(self):
        ours = multiprocessing.get_context("fork").Process(target=time.sleep, args=(90,))
        ours.start()
        pathlib.Path(__file__).with_suffix(".pid").write_text(str(ours.pid))

    def __call__(self, t_ns, index, x, other, y):
        return 0
"""


def test_a_process_that_code_of_a_killed_node_started_ends_after_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HOOK)
    hooks = '[hooks]\nkinematics = { at = "srv", run = "./mine.py:Mine" }\n'
    with started(tmp_path, TEXT + hooks, len(NODES)) as run:
        until(run, 0.3)
        child = int((tmp_path / "mine.pid").read_text())
        assert child in children(run.nodes["node1"])
        os.kill(run.nodes["node1"], signal.SIGKILL)
        killed = time.monotonic()
        assert gone([child], 20) and time.monotonic() - killed < 8


def test_nodes_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 0.3)
        run.command.kill()
        run.command.wait(10)
        assert gone(list(run.nodes.values())), "a node outlives its command"
    end = time.monotonic() + 10  # another command that starts just now may be clearing up
    while any(ring.exists() for ring in run.rings.values()):
        assert time.monotonic() < end, "the next start clears up"
        memory.sweep()


def test_an_error_beside_the_run_keeps_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(TEXT)

    def live(_rows: bytes, now_s: float, _split: str) -> None:
        if now_s > 0.5:
            raise RuntimeError("no terminal")

    scenario = scenarios.load(tmp_path / "scenario.toml", ['measure.pcapng="on"'])
    with pytest.raises(RuntimeError, match="no terminal"):
        worlds.run(scenario, world="real", out=tmp_path / "out", live=live)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["interrupted"] and result["errors"] == ["RuntimeError: no terminal"]
    assert len(rows(tmp_path / "out")) == result["records"] > 100
    assert (tmp_path / "out" / "packets.pcapng").stat().st_size > 1000
    left = [file.name for file in (tmp_path / "out").iterdir()]
    assert not [name for name in left if name.endswith(".rows") or name.startswith("node")]
