"""A node that dies in the middle of a real run takes nothing with it that was recorded; nor does Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from real_run import NETWORK, SENT, Started, chain, children, gone, rows, started, summary

TEXT = chain("6 s", more=NETWORK)
NODES = {"node0": "ms", "node1": "edge", "node2": "ss", "emulator": "emulator"}
QUEUE, GAP = 10, 14
"""Kinds of the rows of the emulator: queues looked at, and moments at which it stood still."""


def until(run: Started, seconds: float) -> None:
    """Waits until a run has lasted some time."""
    while run.run_time_s("node0") < seconds:
        time.sleep(0.01)


def newest_s(run: Started, node: str) -> float:
    """Run time of the last row that a node left in the run folder."""
    return float(own_rows(run, node)["time"].max() / 1e9)


def own_rows(run: Started, node: str) -> np.ndarray:
    """Rows of a node in the run folder; the emulator numbers its queues as of no node, its gaps after the nodes."""
    found = rows(run.out)
    emulator = (found["kind"] == QUEUE) | (
        (found["kind"] == GAP) & (found["node"] == list(NODES).index("emulator"))
    )
    if node == "emulator":
        return found[emulator]
    return found[(found["node"] == list(NODES).index(node)) & ~emulator]


def count(run: Started, node: str) -> int:
    """Rows of a node in the run folder."""
    return len(own_rows(run, node))


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
    assert found["flows"]["kinematic"]["sent"] > 700
    assert found["flows"]["kinematic"]["delivered"] > 700
    assert "DISTURBED" in shown(run.out) and "stopped at" in shown(run.out)
    page = (run.out / "report.html").read_text()
    assert "stopped at" in page and "</html>" in page


def shown(out: Path) -> str:
    """What `tcpsbed show` says of a folder."""
    command = [sys.executable, "-m", "tcpsbed", "show", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


@pytest.mark.parametrize("victim", NODES)
def test_a_killed_node_loses_nothing_that_it_had_recorded(tmp_path: Path, victim: str) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 1.2)
        published = {node: run.published(node) for node in NODES}
        before_s = run.run_time_s(victim)
        os.kill(run.nodes[victim], signal.SIGKILL)
        after_s = max(run.run_time_s(node) for node in NODES)
        processes = list(run.nodes.values())
        status, _, errors = run.finish()
    assert status == 1, errors
    assert f"node {NODES[victim]} died (status -9)" in errors
    assert_nothing_left(run, processes)
    assert_readable(run)
    for node in NODES:
        assert count(run, node) >= published[node], f"rows of {node} are lost"
        assert newest_s(run, node) >= after_s - 0.1, f"the end of {node} is lost"
    assert newest_s(run, victim) >= before_s
    assert any(f"node {NODES[victim]} died" in error for error in summary(run.out)["errors"])


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_request_to_stop_keeps_what_was_recorded(tmp_path: Path, stop: signal.Signals) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 1.2)
        published = {node: run.published(node) for node in NODES}
        before_s = run.run_time_s("node0")
        run.command.send_signal(stop)
        processes = list(run.nodes.values())
        status, _, errors = run.finish()
    assert status == 130, errors
    assert "stopped early; what was recorded until then is in" in errors
    assert "Traceback" not in errors
    assert_nothing_left(run, processes)
    assert_readable(run)
    for node in NODES:
        assert count(run, node) >= published[node]
        assert before_s - 0.1 <= newest_s(run, node) < 4.0, "it stopped early, with all of its rows"
    found = summary(run.out)
    assert found["errors"] == []
    assert {node["name"] for node in found["nodes"]} == {*NODES.values()}, "every node told about itself"
    sent = rows(run.out)["kind"] == SENT
    assert sent.sum() >= 2 * 1000 * before_s * 0.95


def test_nodes_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, TEXT, len(NODES)) as run:
        until(run, 0.3)
        run.command.kill()
        run.command.wait(10)
        try:
            assert gone(list(run.nodes.values())), "a node outlives its command"
        finally:
            for folder in {ring.parent for ring in run.rings.values()}:
                shutil.rmtree(folder)  # a killed command cannot clear up
