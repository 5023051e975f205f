"""What a real run takes beside its stages, loaded into virtual time, takes as long there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_run import chain, summary

import tcpsbed

Pair = tuple[dict[str, Any], dict[str, Any]]


def calibrated(folder: Path) -> Pair:
    """The summaries of a real run and of a virtual one with its costs."""
    (folder / "scenario.toml").write_text(chain("2 s"))
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "calibrate",
        "scenario.toml",
        "--to",
        "costs.json",
        "--out",
        "real",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert "3 nodes" in done.stdout
    nodes = json.loads((folder / "costs.json").read_text())["nodes"]
    # The node between others wakes up for datagrams and has no timers.
    assert {name: set(kinds) for name, kinds in nodes.items()} == {
        "ms": {"wakeup", "send", "receive"},
        "edge": {"send", "receive"},
        "ss": {"wakeup", "send", "receive"},
    }
    text = 'calibration = "costs.json"\n' + chain("2 s")
    (folder / "again.toml").write_text(text)
    tcpsbed.run(folder / "again.toml", world="virtual", out=folder / "virtual")
    return summary(folder / "real"), summary(folder / "virtual")


# [design: costs]
def test_sockets_and_wake_ups_take_as_long_in_virtual_time_as_measured(tmp_path: Path) -> None:
    real, virtual = calibrated(tmp_path)
    for name, flow in virtual["flows"].items():
        measured = real["flows"][name]["delay_ms"]["p50"]
        assert flow["delay_ms"]["p50"] == pytest.approx(measured, rel=0.5), name
        assert flow["delay_ms"]["min"] > 0, "without costs loopback takes no virtual time"
        assert flow["lost"] == 0 and flow["sent"] > 1000, name
    assert real["world"] == "real" and virtual["world"] == "virtual"
