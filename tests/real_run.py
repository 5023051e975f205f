"""What the tests of real runs share: a scenario, a run of the command, and a look at its nodes from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpsbed.analysis.records import open_records

HEAD, FIRST_ROW, ROW = 0, 192, 32
"""Layout of a ring (crates/tcps-run/src/real/ring.rs)."""
SENT, DELIVERED = 1, 2
WALL_CLOCK = Path(__file__).parent / "realtime" / "wall_clock.c"
START_S = 90.0
"""Longest time until all nodes of a run are running on a loaded machine."""

CHAIN = """
name = "chain"
duration = "{duration}"
warmup = "{warmup}"
[components]
tactile-operator = "ms"
ms-com = "ms"
srv = "edge"
ss-com = "ss"
tactile-teleoperator = "ss"
[flows.kinematic]
sample = "64 B"
[flows.haptic]
sample = "64 B"
[real]
waiting = "{waiting}"
"""
"""Operator, server and robot on a node each, 1 kHz both ways."""

NETWORK = """
[topology]
routers = ["n1"]
[links.access]
from = "ms"
to = "n1"
delay = "5 ms"
rate = "100 Mbit/s"
queue = "10000000 B"
[links.edge]
from = "n1"
to = "edge"
[links.egress]
from = "n1"
to = "ss"
delay = "5 ms"
[measure]
queues = "5 ms"
"""
"""A network between them, so that the emulator takes part."""

BOXED = """
name = "boxed"
duration = "3 s"
[components]
ms-com = "left"
ss-com = "right"
[flows.kinematic]
sample = "24 B"
rate = "200 Hz"
[links.l1]
from = "left"
to = "right"
delay = "10 ms"
"""
"""Two nodes and a link of 10 ms, 200 Hz one way."""


def chain(duration: str = "3 s", *, warmup: str = "0 s", waiting: str = "timer", more: str = "") -> str:
    """A scenario of three nodes."""
    return CHAIN.format(duration=duration, warmup=warmup, waiting=waiting) + more


@dataclass
class Started:
    """A real run in progress, started as a user starts it."""

    command: subprocess.Popen[str]
    out: Path
    nodes: dict[str, int] = field(default_factory=dict)
    rings: dict[str, Path] = field(default_factory=dict)

    def published(self, node: str) -> int:
        """Rows that a node has published so far."""
        with self.rings[node].open("rb") as ring:
            return int(struct.unpack("<Q", ring.read(8))[0])

    def run_time_s(self, node: str) -> float:
        """Run time of the newest row of a node."""
        rows = (self.rings[node].stat().st_size - FIRST_ROW) // ROW
        last = (self.published(node) - 1) % rows
        with self.rings[node].open("rb") as ring:
            ring.seek(FIRST_ROW + ROW * last)
            return float(struct.unpack("<q", ring.read(8))[0]) / 1e9

    def finish(self, seconds: float = 120) -> tuple[int, str, str]:
        """Waits for the command: exit status, standard output, standard error."""
        output, errors = self.command.communicate(timeout=seconds)
        return self.command.returncode, output, errors


@contextlib.contextmanager
def started(folder: Path, text: str, nodes: int, *arguments: str) -> Iterator[Started]:
    """Starts `tcpsbed run --world real` and finds its node processes; ends them all whatever happens."""
    (folder / "scenario.toml").write_text(text)
    run = Started(_command(folder, *arguments), folder / "out")
    try:
        _find_nodes(run, nodes)
        yield run
    finally:
        for pid in [run.command.pid, *run.nodes.values()]:
            with contextlib.suppress(ProcessLookupError):
                if run.command.pid != pid or run.command.poll() is None:
                    os.kill(pid, signal.SIGKILL)
        run.command.communicate()


def _command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tcpsbed", "run", "scenario.toml", "--world", "real", "--out", "out"]
    return subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env=os.environ | {"COLUMNS": "160"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _find_nodes(run: Started, count: int) -> None:
    """Waits until every node has published a row: the run has begun."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and run.command.poll() is None:
        for pid in children(run.command.pid):
            for ring in rings_of(pid):
                name = ring.name.split(".")[0]
                run.nodes[name], run.rings[name] = pid, ring
        if sum(run.published(node) > 0 for node in run.nodes) == count:
            return
        time.sleep(0.02)
    raise AssertionError(f"only {sorted(run.nodes)} of {count} nodes came up: {run.command.poll()}")


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def rings_of(pid: int) -> list[Path]:
    """The rings that a process has mapped."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return sorted(
            {
                Path(line.split(maxsplit=5)[5])
                for line in lines
                if line.endswith(".ring") or "/emulator" in line
            }
        )
    return []


def alive(pid: int) -> bool:
    """Whether a process runs."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pids: list[int], seconds: float = 30.0) -> bool:
    """Whether all processes end within a time."""
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def whole(folder: Path, text: str, *, ok: bool = True) -> tuple[dict[str, Any], str]:
    """Runs a scenario to its end: its summary and what the terminal showed."""
    (folder / "scenario.toml").write_text(text)
    command = _command(folder)
    output, errors = command.communicate(timeout=150)
    assert not ok or command.returncode == 0, errors + output
    return summary(folder / "out"), output


def summary(out: Path) -> dict[str, Any]:
    """The summary of a run folder."""
    content: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return content


def rows(out: Path) -> np.ndarray:
    """The rows of a run folder."""
    return np.asarray(open_records(out / "records.bin"))


def shown(out: Path) -> str:
    """What `tcpsbed show` says of a run folder."""
    command = [sys.executable, "-m", "tcpsbed", "show", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def wall_clock_library(folder: Path) -> Path:
    """The library that puts the wall clock of a process forward or back; without a compiler the test is skipped."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the wall clock cannot be put forward or back")
    library = folder / "wall_clock.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, WALL_CLOCK, "-ldl"], check=True)
    return library
