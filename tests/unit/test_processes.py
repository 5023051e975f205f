"""Processes that the program starts: the working folder gives them no module, and code of the user's leaves none behind."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_run import gone

from tcpsbed.errors import WorldError
from tcpsbed.processes import GRACE_S
from tcpsbed.worlds.process import Process

SCENARIO = """
duration = "50 ms"
[components]
ms-com = "a"
ss-com = "b"
[flows.kinematic]
[hooks]
kinematics = { at = "ss-com", run = "./mine.py:Twice" }
[measure]
sync = "20 ms"
"""
MINE = """
from helper import FACTOR
from random import random


class Twice:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = FACTOR * x + 0 * random()
        return len(x)
"""
NAMES = (
    "random",
    "json",
    "typing",
    "subprocess",
    "signal",
    "numpy",
    "tcpsbed",
    "runpy",
    "secrets",
    "statistics",
)
"""Modules that a folder of the user's may hold files of."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with such files, which tell if they are imported, and a scenario elsewhere."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for name in NAMES:
        for place in ("here", "there"):
            (tmp_path / place / f"{name}.py").write_text(f'raise SystemExit("hijacked by {name}")\n')
    (tmp_path / "there/s.toml").write_text(SCENARIO)
    (tmp_path / "there/mine.py").write_text(MINE)
    (tmp_path / "there/helper.py").write_text("FACTOR = 2\n")
    return tmp_path


def run(folder: Path, *words: str, python: tuple[str, ...] = ("-P",)) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, "-m", "tcpsbed", *words]
    return subprocess.run(command, cwd=folder / "here", capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "../there/s.toml", "-q", "--out", "../out"),
        ("run", "../there/s.toml", "-q", "--out", "../out", "--world", "real"),
        ("sweep", "../there/s.toml", "-q", "--out", "../out", "--over", "name=a,b", "--seeds", "1"),
    ],
    ids=["virtual", "real", "sweep"],
)
def test_files_in_the_working_folder_take_no_modules_place(folder: Path, words: tuple[str, ...]) -> None:
    """As from the command `tcpsbed`; code beside the scenario is found, with the modules that it imports."""
    done = run(folder, *words)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_python_m_tcpsbed_goes_without_the_working_folder(folder: Path) -> None:
    for name in ("typing", "runpy", "tcpsbed"):  # before the first line of ours
        (folder / f"here/{name}.py").unlink()
    done = run(folder, "run", "../there/s.toml", "-q", "--out", "../out", python=())
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_python_is_started_in_one_way() -> None:
    """By `processes`, or isolated."""
    root = Path(__file__).parents[2] / "python/tcpsbed"
    named = {
        str(file.relative_to(root)): line.strip()
        for file in root.rglob("*.py")
        for line in file.read_text().splitlines()
        if re.search(r"sys\.executable|SYSTEM_PYTHON,|\bpython3?\b.* -m tcpsbed agent", line)
        and not re.search('"-I"| -P ', line)
    }
    assert named == {"processes.py": 'PYTHON = (sys.executable, "-P")'}


def test_whatever_a_process_writes_is_read(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 fill no pipe, and hide neither its messages nor its end."""
    noise = "[os.write(n, b'20 \\xb0C' * 20 + b'\\n') for n in (1, 2) for _ in range(2000)]"
    code = f'import os, sys; {noise}; print(\'{{"op": "ready"}}\', flush=True); sys.exit(1)'
    talk = Process("a", tmp_path / "ring", [sys.executable, "-c", code])
    assert talk.receive("ready", 10) == {"op": "ready"}
    with pytest.raises(WorldError, match=r"node a died \(status 1\): 20 \ufffdC"):
        talk.receive("done", 10)
    talk.end()


def test_every_text_of_another_process_may_be_no_text() -> None:
    root = Path(__file__).parents[2] / "python/tcpsbed"
    strict = [
        f"{file.relative_to(root)}: {call}"
        for file in root.rglob("*.py")
        for call in re.findall(r"[^,(]*text=True,?[^,)]*", file.read_text())
        if 'errors="replace"' not in call
    ]
    assert strict == []


FORKS = """
import multiprocessing, os, sys, time
from tcpsbed.processes import heirs_end

def deeper():
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
    time.sleep(60)

heirs_end()
multiprocessing.get_context("fork").Process(target=deeper).start()
print("there", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_forked_processes_end_after_one_that_is_killed() -> None:
    child = subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None and child.stdout.readline() == b"there\n"
    time.sleep(0.5)
    first = of_session(child.pid)
    assert len(first) == 3
    child.kill()
    child.wait()
    killed = time.monotonic()
    assert len(of_session(child.pid)) == 2
    assert gone([pid for pid in first if pid != child.pid], 3 * GRACE_S)
    assert time.monotonic() - killed > 0.5 * GRACE_S, "they had time"


ORPHAN = """
import os, sys, time
from tcpsbed import processes

processes.GRACE_S = 0.6
own = os.getpid()

def orphaned():
    while os.getppid() == own:
        time.sleep(0.01)

os.register_at_fork(after_in_child=orphaned)
processes.heirs_end()
if os.fork() == 0:
    time.sleep(60)
os._exit(0)
"""


def test_a_process_whose_parent_ended_during_the_fork_ends() -> None:
    child = subprocess.Popen([sys.executable, "-c", ORPHAN], start_new_session=True)
    assert child.wait() == 0
    assert gone(of_session(child.pid), 5.0)


NO_ROOM = """
import os, resource, sys
from pathlib import Path
from types import SimpleNamespace
from tcpsbed import _tcps
from tcpsbed.cli.apart import apart
from tcpsbed.processes import heirs_end

heirs_end()
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (1 << 20),) * 2)
"""
FORKED = {
    "of the user": "if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))",
    "beside a library": "apart(SimpleNamespace(files=[Path('libmine.so')]))",
}


@pytest.mark.parametrize("fork", FORKED)
def test_a_fork_without_room_for_its_watch_ends_with_one_line(fork: str) -> None:
    code = f"{NO_ROOM}{FORKED[fork]}\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "tcpsbed: found no room for a thread (can't start new thread); allowed: a higher limit"
    )
    assert "ulimit -v unlimited -u unlimited" in line


BEHIND = """
import os, sys
from contextlib import ExitStack
from tcpsbed.proxy import netns

os.register_at_fork(after_in_child=lambda: os.write(1, b"a thread, "))
with ExitStack() as stack:
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    netns._start([sys.executable, "-c", code], None, stack).wait()
"""


def test_the_process_in_namespaces_needs_no_watch_and_heeds_ctrl_c() -> None:
    done = subprocess.run([sys.executable, "-c", BEHIND], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("module", ["tcpsbed.robots.host", "tcpsbed.robots.camera"])
def test_a_process_of_a_robot_whose_node_ended_before_it_looked_ends(module: str) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as node:
        pass
    command = [sys.executable, "-m", module, str(node.pid), "3", "4"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.wait(10 * GRACE_S) == -9
        finally:
            child.kill()


def of_session(leader: int) -> list[int]:
    """Processes that a process or its heirs have started."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == leader and words[0] != "Z":
            found.append(int(place.parent.name))
    return found
