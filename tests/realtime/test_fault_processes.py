"""Faults of processes: each of a run, of a campaign and of a cluster is killed, stopped and hung up (docs/faults.md)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import fault_page
import pytest
from fault_page import left_in, told
from real_run import BOXED, NETWORK, chain, children, gone, rows, started

pytestmark = [pytest.mark.slow, pytest.mark.beside]

FAULTS = {"kill -9": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP, "SIGHUP": signal.SIGHUP}
AGAIN = "kill -9, then the same command again"
STOPPED_S = 3.0
ENDS, GOES_ON = "60 s", "6 s"
"""Length of a run that a fault ends, and of one that goes on."""
NOTICED_S = 10.0
"""Longest time until a command ends whose run cannot go on."""
COMMAND = "the command"
SLIDER = """
class Slider:
    own_process = True

    def step(self, t_ns, command, sense):
        sense[0], sense[1] = 0.0, 0.3
        return 2
"""
WITH_ROBOT = chain("{duration}").replace(
    'tactile-teleoperator = "ss"\n[flows.kinematic]\nsample = "64 B"\n[flows.haptic]\nsample = "64 B"',
    """tactile-teleoperator = { node = "ss", robot = { run = "./slider.py:Slider", senses = 2 } }
[flows.kinematic]
sample = "64 B"
codec = "f64"
[flows.haptic]
source = "robot"
sample = "16 B"
codec = "f64\"""",
)
OVER_NS3 = BOXED.replace("3 s", "{duration}")


@dataclass(frozen=True)
class Setting:
    """A run on the machine's clock: its scenario, how many of its processes record, and more words of its command."""

    text: str
    recording: int
    words: tuple[str, ...] = ()


CHAIN = Setting(chain("{duration}", more=NETWORK), 4)
PLACES: dict[str, tuple[Setting, str]] = {
    "operator's node": (CHAIN, "node0"),
    "server's node": (CHAIN, "node1"),
    "robot's node": (CHAIN, "node2"),
    "emulator": (CHAIN, "emulator"),
    COMMAND: (CHAIN, ""),
    "robot in a process of its own": (Setting(WITH_ROBOT, 3), "tcpsbed.robots"),
    "studio": (Setting(CHAIN.text, 4, ("--studio",)), "tcpsbed.studio"),
    "ns-3 in real time": (Setting(OVER_NS3, 2, ("--world", "ns3")), "tcpsbed-ns3"),
}
"""Where a process is, and its name: of what it records in, or in its command line."""


def family(pid: int) -> list[int]:
    """A process and all that it has started, and these."""
    return [pid, *(later for child in children(pid) for later in family(child))]


def named(pid: int, name: str) -> int:
    """The first process of a family with a name in its command line."""
    for member in family(pid):
        with suppress(OSError):
            if name in Path(f"/proc/{member}/cmdline").read_bytes().decode():
                return member
    raise AssertionError(f"no process is {name}")


def struck(victim: int, fault: str) -> None:
    """Does it to a process; one that is stopped goes on after `STOPPED_S`."""
    os.kill(victim, FAULTS.get(fault, signal.SIGKILL))
    if fault == "SIGSTOP":
        time.sleep(STOPPED_S)
        with suppress(ProcessLookupError):  # it was ended meanwhile
            os.kill(victim, signal.SIGCONT)


def marked(place: str) -> object:
    """A place as a parameter of a test."""
    return pytest.param(place, marks=pytest.mark.needs("ns3") if "ns-3" in place else ())


def around(folder: Path) -> dict[str, str]:
    """The environment of a command, with a folder of its own for what is temporary."""
    (folder / "tmp").mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(folder / "tmp")}


def temporary(folder: Path) -> list[str]:
    """What is left in that folder, but for locks."""
    found = [file.relative_to(folder / "tmp") for file in (folder / "tmp").rglob("*") if file.is_file()]
    return sorted({f"{file.parts[0]} in the temporary folder" for file in found if file.suffix != ".lock"})


@contextmanager
def command(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command of this program in a folder, with all that it starts; they end in any case."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tcpsbed", *words],
        cwd=folder,
        env=around(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        if started.poll() is None:
            for pid in family(started.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        started.communicate()


def tcpsbed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of this program in a folder, to its end."""
    line = [sys.executable, "-m", "tcpsbed", *words]
    return subprocess.run(
        line, cwd=folder, env=around(folder), capture_output=True, text=True, timeout=120, check=False
    )


def row(fault: str, place: str, status: int, says: str, kept: str, left: str) -> None:
    """The row of a process."""
    fault_page.row("processes", fault, place, str(status), says or "nothing", kept, left)


def recovered(folder: Path) -> tuple[str, Path]:
    """What `tcpsbed report` makes of the only unfinished run in a folder: what it says, and its result."""
    (unfinished,) = folder.glob("out.unfinished-*")
    done = tcpsbed(folder, "report", unfinished.name)
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("out.unfinished-*"))
    return told(done.stderr), folder / Path(done.stdout.strip()).parent


@pytest.mark.parametrize("place", [marked(place) for place in PLACES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_of_a_run(tmp_path: Path, fault: str, place: str) -> None:
    setting, name = PLACES[place]
    (tmp_path / "slider.py").write_text(SLIDER)
    ends = fault != "SIGSTOP" and place != "studio"
    text = setting.text.replace("{duration}", ENDS if ends else GOES_ON)
    with started(tmp_path, text, setting.recording, *setting.words) as run:
        while run.run_time_s("node0") < 0.8:
            time.sleep(0.01)
        victim = run.nodes.get(name) or named(run.command.pid, name)
        all_of_it = family(run.command.pid)
        published = sum(run.published(node) for node in run.rings)
        struck(victim, fault)
        begun = time.monotonic()
        status, output, errors = run.finish()
        took_s = time.monotonic() - begun
        left = [] if gone(all_of_it) else ["processes"]
        left += [ring.name for ring in run.rings.values() if ring.parent.exists() and place != COMMAND]
    said, out, left_behind = told(errors), run.out, left_in(tmp_path, *left)
    if status == -signal.SIGKILL:
        said, out = recovered(tmp_path)
        said = f"the next command says `tcpsbed report`, which says: {said}"
        assert not [ring for ring in run.rings.values() if ring.parent.exists()]
        assert left_behind == "out.unfinished-*", left_behind
        left_behind = "the unfinished folder, until `report`"
    elif status != 0:
        assert took_s < NOTICED_S, f"it took {took_s:.0f} s"
    elif place != "studio":
        assert not said and "DISTURBED" in output
        said = "the run is DISTURBED"
    found = len(rows(out))
    row(fault, place, status, said, "kept" if found >= published else "lost", left_behind)
    assert found >= published, f"{published - found} rows are lost"


KILLED_ONCE = (COMMAND, "robot's node")


@pytest.mark.parametrize("place", KILLED_ONCE)
def test_the_same_command_after_a_kill(tmp_path: Path, place: str) -> None:
    setting, name = PLACES[place]
    with started(tmp_path, setting.text.replace("{duration}", GOES_ON), setting.recording) as run:
        while run.run_time_s("node0") < 0.8:
            time.sleep(0.01)
        published = sum(run.published(node) for node in run.rings)
        struck(run.nodes.get(name) or run.command.pid, AGAIN)
        run.finish()
    again = tcpsbed(tmp_path, "run", "scenario.toml", "--world", "real", "--out", "out", "--quiet")
    assert len(rows(run.out)) > 2 * published, "that of the second run is whole"
    left, kept = left_in(tmp_path), "replaced by the whole result"
    if left != "nothing":
        kept, left = "kept", "the unfinished folder of the first, until `report`"
        assert len(rows(recovered(tmp_path)[1])) >= published
    row(AGAIN, place, again.returncode, told(again.stderr), kept, left)


QUICK = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
CELLS = 12
SCRATCH = "dask-scratch-space in the temporary folder"
CAMPAIGN = f"""
scenario = "{QUICK}"
set = ["duration=2 s"]
seeds = {CELLS // 2}
[grid]
links.l1.rate = ["4 Mbit/s", "6 Mbit/s"]
"""
RUN = ("run", "scenario.toml", "--yes", "--quiet", "--out", "out", "--world")
CELLS_OF = ("campaign", "campaign.toml", "--quiet", "--out", "out")
SIMULATED: dict[str, tuple[tuple[str, ...], str]] = {
    "the command, in virtual time": ((*RUN, "virtual"), ""),
    "ns-3 in virtual time": ((*RUN, "ns3-virtual"), "tcpsbed-ns3"),
    "the command, over ns-3 in virtual time": ((*RUN, "ns3-virtual"), ""),
    "the command of a campaign": ((*CELLS_OF, "--jobs", "1"), ""),
    "a campaign's process that starts cells": ((*CELLS_OF, "--jobs", "1"), "\0warm\0"),
    "the command of a campaign on `local:2`": ((*CELLS_OF, "--cluster", "local:2"), ""),
    "a worker of the cluster `local:2`": ((*CELLS_OF, "--cluster", "local:2"), "multiprocessing.spawn"),
}
"""Words of the command, and what has failed: a name in a command line, of the first process that has it."""


def recorded(folder: Path) -> int:
    """What has been recorded so far: rows of a run, or cells of a campaign."""
    if (folder / "out" / "cells").is_dir():
        return len(list((folder / "out" / "cells").glob("*.json")))
    return sum(file.stat().st_size // 32 for file in folder.glob("out*/records.bin"))


@pytest.mark.parametrize("place", [marked(place) for place in SIMULATED])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_of_a_command_in_simulated_time(tmp_path: Path, fault: str, place: str) -> None:
    words, name = SIMULATED[place]
    (tmp_path / "scenario.toml").write_text(
        BOXED.replace("3 s", "300 s" if "ns-3" in place else "2000 s").replace("200 Hz", "1 kHz")
    )
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    with command(tmp_path, *words) as run:
        until = time.monotonic() + 60
        while recorded(tmp_path) < 2 or ("--jobs" in words and not unfinished_cells(tmp_path)):
            assert run.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        all_of_it, before = family(run.pid), recorded(tmp_path)
        struck(named(run.pid, name), fault)
        begun = time.monotonic()
        said = told(run.communicate(timeout=120)[1])
        took_s, status = time.monotonic() - begun, run.returncode
        left = left_in(tmp_path, *([] if gone(all_of_it) else ["processes"]), *left_by_cells(tmp_path))
    if status == -signal.SIGKILL:
        said, left = after_a_kill(tmp_path, words, left)
    elif status != 0:
        assert took_s < NOTICED_S, f"it took {took_s:.0f} s"
    elif words[0] == "campaign":
        assert recorded(tmp_path) == CELLS
    kept = "kept" if recorded(tmp_path) >= before else "lost"
    if not (tmp_path / "out").exists():
        kept = "no result: the same command computes it"
    row(fault, place, status, said, kept, left)
    assert kept != "lost"


def unfinished_cells(folder: Path) -> list[str]:
    """The folder of cells that run, or ran, in a campaign."""
    work = folder / "out" / "work"
    return ["the folder of cells that were running"] if work.is_dir() and any(work.iterdir()) else []


def left_by_cells(folder: Path) -> list[str]:
    """What a campaign has left beside its results."""
    return unfinished_cells(folder) + temporary(folder)


def after_a_kill(folder: Path, words: tuple[str, ...], left: str) -> tuple[str, str]:
    """What a killed command says and leaves, as the next one finds it."""
    if words[0] == "run":
        said, _ = recovered(folder)
        assert left == "out.unfinished-*", left
        return (
            f"the next command says `tcpsbed report`, which says: {said}",
            "the unfinished folder, until `report`",
        )
    done = tcpsbed(folder, *words)
    assert (done.returncode, done.stderr, recorded(folder)) == (0, "", CELLS)
    assert not left_by_cells(folder), left_by_cells(folder)
    if "--cluster" in words:  # a worker may find the time to remove its own
        assert left in ("nothing", SCRATCH)
        left = "at most folders of workers in the temporary folder"
    return "nothing; the same command again runs the missing cells", f"{left}, until then"


def test_the_page_has_the_rows_of_these_tests_and_no_others() -> None:
    tried = {(fault, place) for fault in FAULTS for place in (*PLACES, *SIMULATED)}
    tried |= {(AGAIN, place) for place in KILLED_ONCE}
    assert fault_page.names("processes") == tried
