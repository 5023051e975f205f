"""A process that stalls is told, whatever its loop waited for."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from real_run import chain, started, summary

pytestmark = [pytest.mark.realtime, pytest.mark.beside]
STOPPED_S = 0.3


@pytest.mark.parametrize("transport", ["udp", "kernel-tcp"])
def test_a_node_that_only_forwards_tells_that_it_stood_still(tmp_path: Path, transport: str) -> None:
    more = "".join(f'[flows.{name}.transport]\nkind = "{transport}"\n' for name in ("kinematic", "haptic"))
    with started(tmp_path, chain("3 s", more=more), 3, "-q") as run:  # node1: edge
        time.sleep(1)
        os.kill(run.nodes["node1"], signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(run.nodes["node1"], signal.SIGCONT)
        assert run.finish()[0] == 0
    found = summary(tmp_path / "out")
    (edge,) = (node for node in found["nodes"] if node["name"] == "edge")
    assert edge["gaps_over_1ms"] >= 1, edge
    assert any("node edge stalled" in one for one in found["disturbances"]), found["disturbances"]
    # A stream has no stamps: its stall is counted from the end of the longest sleep, 20 ms.
    assert found["stalls"]["longest_ms"] > 1e3 * STOPPED_S - 30, found["stalls"]
