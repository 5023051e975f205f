#!/usr/bin/env python3
"""A long run on sockets: whether memory, open files and clocks stay flat, and no record is lost.

    tools/soak.py 60          minutes; the scenario is quickstart.toml: four flows, 1 kHz, pictures and sound

Prints a line for each process: what it held in the last four fifths of the time, and how fast that grew, with a 95 %
interval. Ends with status 1 if something grows for certain, or is lost. Less than ten minutes say nothing of growth.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scipy import stats

from tcpsbed.processes import OURS

ROOT = Path(__file__).resolve().parents[1]
EVERY_S = 2.0
SETTLED = 0.2
"""Share of the time that is not looked at: buffers and caches fill in it."""
MOST_MB_H, MOST_FILES_H = 1.0, 1.0
"""A process that grows faster than this for certain is not flat."""


def called(process: psutil.Process) -> str:
    """What a process of the run does."""
    words = process.cmdline()
    after = [word for word in words if not word.startswith("-")][2:4]
    return " ".join(after) if "tcpsbed" in words else process.name()


def watched(run: psutil.Process) -> dict[tuple[int, str], list[tuple[float, float, float]]]:
    """Of each process, until the run ends: hours since the begin, MB that only it holds, open files."""
    found: dict[tuple[int, str], list[tuple[float, float, float]]] = defaultdict(list)
    begun = time.monotonic()
    while run.is_running() and run.status() != psutil.STATUS_ZOMBIE:
        hours = (time.monotonic() - begun) / 3600
        for one in [run, *run.children(recursive=True)]:
            try:
                found[one.pid, called(one)].append((hours, one.memory_full_info().uss / 1e6, one.num_fds()))
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        time.sleep(EVERY_S)
    return found


def growth(at: Any, values: Any) -> tuple[float, float]:
    """Slope and half of its 95 % interval; values that are near each other in time depend on each other: one a minute."""
    every = max(1, round(60 / EVERY_S)) if len(at) > 600 else 1
    at, values = at[::every], values[::every]
    if len(at) < 3 or np.ptp(values) == 0:
        return 0.0, 0.0
    line = stats.linregress(at, values)
    return line.slope, line.stderr * stats.t.ppf(0.975, len(at) - 2)


def main(minutes: float) -> int:
    with tempfile.TemporaryDirectory(prefix="tcpsbed-soak-") as folder:
        out = Path(folder) / "run"
        words = [
            "run",
            str(ROOT / "scenarios/quickstart.toml"),
            "--world",
            "real",
            "--duration",
            f"{minutes} min",
        ]
        words += [
            "--set",
            'measure.sync="1 s"',
            "--no-samples",
            "--no-report",
            "--yes",
            "--quiet",
            "--out",
            str(out),
        ]
        command = subprocess.Popen([*OURS, *words])
        found = watched(psutil.Process(command.pid))
        if command.wait() != 0:
            return 1
        summary = json.loads((out / "summary.json").read_text())
    wrong = []
    print(f"{'process':40} {'MB':>8} {'MB/h':>16} {'files':>6} {'files/h':>14}")
    for (pid, name), seen in found.items():
        kept = np.array([one for one in seen if one[0] >= SETTLED * seen[-1][0]])
        if len(kept) < 3 or seen[-1][0] < 0.5 * minutes / 60:
            continue  # a helper that has ended
        (memory, memory_pm), (files, files_pm) = (growth(kept[:, 0], kept[:, n]) for n in (1, 2))
        print(
            f"{f'{pid} {name}'[:40]:40} {kept[-1, 1]:8.1f} {memory:8.2f} ± {memory_pm:5.2f}"
            f" {kept[-1, 2]:6.0f} {files:6.2f} ± {files_pm:5.2f}"
        )
        if minutes >= 10 and (memory - memory_pm > MOST_MB_H or files - files_pm > MOST_FILES_H):
            wrong.append(f"{name} grows")
    lost = sum(node.get("ring_overflows") or 0 for node in summary["nodes"])
    fates = {name: (flow["sent"], flow["delivered"], flow["lost"]) for name, flow in summary["flows"].items()}
    print(f"records: {summary['records']['rows']} rows, {lost} lost")
    print("flows, sent, delivered, lost in the full queue of the scenario:", fates)
    for clock in summary["clocks"]:
        said = f"{clock['drift_ppm']:.3f} ppm, error at most {clock['true_error_max_ms']:.3f} ms"
        print(f"clock of {clock['node']} against {clock['reference']}: {said}")
        if abs(clock["drift_ppm"]) * minutes * 60e-3 > 2 * clock["true_error_max_ms"]:
            wrong.append(f"the clock of {clock['node']} drifts")
    print(*summary["disturbances"], sep="\n")
    if lost:
        wrong.append(f"{lost} records are lost")
    for told in wrong:
        print(told, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
