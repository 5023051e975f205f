"""Faults of the machine and of the network in a run: what is said, counted and left behind (docs/faults.md)."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import fault_page
import pytest
from again import in_time
from fault_page import left_in, row, told
from real_run import NETWORK, chain, summary, wall_clock_library

WORLDS = ("virtual", "real")
LASTING = chain("60 s", more=NETWORK)
SHORT = chain("3 s", more=NETWORK)
UNDER_WAY = 60
"""Most samples of a flow of 1 kHz that are in the network of 10 ms when a run ends."""


@contextmanager
def small(folder: Path, options: str) -> Iterator[Path]:
    """A small disk in memory."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def tcpsbed(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tcpsbed", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=150, check=False, **more
    )


def limited(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


LIMITS = {
    ("no shared memory", "virtual"): limited(resource.RLIMIT_FSIZE, 1 << 20),
    ("no shared memory", "real"): limited(resource.RLIMIT_FSIZE, 1 << 20),
    ("no file descriptors", "virtual"): limited(resource.RLIMIT_NOFILE, 7),
    ("no file descriptors", "real"): limited(resource.RLIMIT_NOFILE, 7),
    ("no memory", "virtual"): limited(resource.RLIMIT_AS, 200 << 20),
    ("no memory", "real"): limited(resource.RLIMIT_AS, 375 << 20),
}
"""Of memory what a run finds too little of before its first row."""
MEMORY = "what memory was needed for: in the words of tcpsbed (2), or in those of a library (1)"


@pytest.mark.slow
@pytest.mark.beside
@pytest.mark.parametrize(("fault", "world"), LIMITS)
def test_a_limit_of_the_machine(tmp_path: Path, fault: str, world: str) -> None:
    (tmp_path / "scenario.toml").write_text(LASTING)
    words = ("run", "scenario.toml", "--world", world, "--out", "out", "-q", "--duration", "20 s")
    done = tcpsbed(tmp_path, *words, preexec_fn=LIMITS[fault, world])
    status, says, left = str(done.returncode), told(done.stderr) or "nothing", left_in(tmp_path)
    if (fault, world) == ("no memory", "real"):  # which library asks for too much, and when, is the machine's
        assert status in ("1", "2") and "memory" in says.lower(), says
        assert status == "1" or says.startswith("tcpsbed: "), says
        assert left in ("nothing", "out.unfinished-*") and not (tmp_path / "out").exists()
        status, says, left = "2 or 1", MEMORY, "at most the unfinished folder"
    row("machine", f"{fault}, {world}", status, says, left)


DISKS = {"disk full": "size=6M", "read-only disk": "size=6M,ro"}


@pytest.mark.slow
@pytest.mark.beside
@pytest.mark.needs("root")
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("fault", DISKS)
def test_a_disk(tmp_path: Path, fault: str, world: str) -> None:
    (tmp_path / "scenario.toml").write_text(LASTING)
    with small(tmp_path / "disk", DISKS[fault]):
        words = ("run", "scenario.toml", "--world", world, "--out", "disk/out", "-q", "--yes")
        done = tcpsbed(tmp_path, *words)
        left = left_in(tmp_path / "disk")
    row("machine", f"{fault}, {world}", str(done.returncode), told(done.stderr) or "nothing", left)


PORT_TAKEN = "port taken, studio"


@pytest.mark.slow
@pytest.mark.beside
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (tmp_path / "scenario.toml").write_text(SHORT)
        done = tcpsbed(tmp_path, "studio", "scenario.toml", "--no-browser", "--port", port)
    row("machine", PORT_TAKEN, str(done.returncode), told(done.stderr), left_in(tmp_path))


SURROUNDINGS = {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8"}


@pytest.mark.slow
@pytest.mark.beside
def test_surroundings_change_no_record(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SHORT)
    hashes = set()
    for name, value in ((None, ""), *SURROUNDINGS.items()):
        words = ("run", "scenario.toml", "--world", "virtual", "--out", f"out-{name}", "-q")
        done = tcpsbed(tmp_path, *words, env=os.environ | ({name: value} if name else {}))
        assert (done.returncode, done.stderr) == (0, "")
        hashes.add(json.loads((tmp_path / f"out-{name}" / "result.json").read_text())["records_sha256"])
        assert len(hashes) == 1, name
        if name:
            row("machine", f"{name}={value}, virtual", "0", "nothing; the same records", "nothing")


STEPS_S = (3, -3)


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_step_of_the_wall_clock(tmp_path: Path, step_s: int) -> None:
    """A library before those of all processes answers for the kernel's clock and stamps: the machine's is left alone."""
    (tmp_path / "scenario.toml").write_text(SHORT)
    stepping = {"LD_PRELOAD": str(wall_clock_library(tmp_path)), "WALL_CLOCK_STEP": f"{step_s} 1"}
    words = ("run", "scenario.toml", "--world", "real", "--out", "out")
    done = tcpsbed(tmp_path, *words, env=os.environ | stepping)
    found = summary(tmp_path / "out")
    assert all(node["clock_steps"] == 1 for node in found["nodes"])
    said = {text.partition(" saw ")[2] for text in found["disturbances"] if "clock" in text}
    assert all(f"DISTURBED: {text}" in done.stdout for text in found["disturbances"] if "clock" in text)
    for flow in found["flows"].values():
        assert flow["delivered"] + flow["in_flight"] == flow["sent"] > 2000
        with in_time(found["disturbances"]):
            assert flow["delay_ms"]["max"] < 1000, "the step is in no delay"
    assert not told(done.stderr) and said == {"1 step of the wall clock"}
    says = f"the run is DISTURBED: each node saw {said.pop()}"
    row("machine", f"clock step of {step_s:+d} s, real", str(done.returncode), says, left_in(tmp_path))


FAULTY = {
    "link flap": """
[[events]]
at = "1 s"
link = "access"
up = false
[[events]]
at = "1.3 s"
link = "access"
up = true
""",
    "cut in one direction": '[[events]]\nat = "1 s"\nlink = "access.forward"\nup = false\n',
    "50 % loss": '[links.access]\nloss = "50 %"\n',
    "duplicates": '[links.access]\nduplicate = "20 %"\n',
    "damage": '[links.access]\ncorrupt = "20 %"\n',
    "reordering": '[links.access]\njitter = { kind = "exponential", mean = "2 ms", reorder = true }\n',
}


@pytest.mark.parametrize(
    "world", [pytest.param("virtual", marks=[pytest.mark.slow, pytest.mark.beside]), "real"]
)
@pytest.mark.parametrize("fault", FAULTY)
def test_a_network(tmp_path: Path, fault: str, world: str) -> None:
    more = FAULTY[fault]
    text = SHORT.replace("[links.access]\n", more) if more.startswith("[links") else SHORT + more
    (tmp_path / "scenario.toml").write_text(text)
    done = tcpsbed(tmp_path, "run", "scenario.toml", "--world", world, "--out", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert not told(done.stderr)
    counted = set()
    for flow in summary(tmp_path / "out")["flows"].values():
        dropped = {name.partition(" ")[2] or name: count for name, count in flow["drops"].items() if count}
        others = {"duplicates_dropped", "reordered"}
        counted |= {*dropped, *(name.replace("_", " ") for name in others if flow[name])}
        apart = flow["sent"] - flow["delivered"] - sum(dropped.values())
        assert 0 <= apart <= UNDER_WAY, f"{apart} samples are neither delivered nor named as lost"
    row("network", fault, world, ", ".join(sorted(counted)) or "nothing")


@pytest.mark.beside
def test_the_page_has_the_rows_of_these_tests_and_no_others() -> None:
    machine = {f"{fault}, {world}" for fault, world in (*LIMITS, *product(DISKS, WORLDS))}
    machine |= {PORT_TAKEN, *(f"{name}={value}, virtual" for name, value in SURROUNDINGS.items())}
    machine |= {f"clock step of {step_s:+d} s, real" for step_s in STEPS_S}
    assert fault_page.names("machine") == {(fault,) for fault in machine}
    assert fault_page.names("network") == set(product(FAULTY, WORLDS))
