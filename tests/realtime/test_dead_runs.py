"""A run whose process is killed, or whose disk gets full: the former result is whole, and what was recorded is read."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from real_run import NETWORK, Started, chain, children, gone, rows, started, summary

from tcpsbed.worlds import memory

pytestmark = pytest.mark.beside
SLOW = pytest.mark.slow

TEXT = chain("60 s", more=NETWORK)
NODES = 4
VIRTUAL = """
name = "long"
duration = "20 s"
[components]
tactile-operator = "ms"
tactile-teleoperator = "ss"
[flows.kinematic]
[flows.haptic]
"""


def tcpsbed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, to its end."""
    command = [sys.executable, "-m", "tcpsbed", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def left_in_memory() -> set[Path]:
    """Folders of dead processes in shared memory."""
    found = set()
    for left in memory.home().glob("tcpsbed-*-*"):
        with memory._taken(left) as dead:
            found |= {left} if dead else set()
    return found


def named(folder: Path) -> list[str]:
    """What is in a folder, without scenarios and locks."""
    return sorted(f.name for f in folder.iterdir() if f.suffix != ".toml" and not f.name.endswith("-lock"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario and its finished result `out`."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "first.toml").write_text(VIRTUAL)
    assert tcpsbed(folder, "run", "first.toml", "--duration", "1 s", "--out", "out", "-q").returncode == 0
    return folder


@pytest.fixture
def before(finished: Path, tmp_path: Path) -> bytes:
    """The summary of a result `out` that is there already."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return (tmp_path / "out/summary.json").read_bytes()


def kill_at(run: Started, seconds: float) -> int:
    """Kills a real run this long after its first rows; the rows that its nodes had published by then."""
    time.sleep(seconds)
    published = sum(run.published(node) for node in run.rings)
    run.command.kill()
    run.command.wait(10)
    assert gone(list(run.nodes.values())), "a node outlives its command"
    return published


def test_the_users_files_in_a_killed_run_stay(tmp_path: Path) -> None:
    """Also a capture that another program has saved there, beside those of the run."""
    with started(tmp_path, TEXT, NODES) as run:
        kill_at(run, 0.5)
    (left,) = tmp_path.glob("out.unfinished-*")
    captures = sorted(left.glob("*.pcapng"))
    shutil.copy(captures[0], left / "eth0.pcapng")
    (left / "notes.txt").write_text("mine")
    before = {name: (left / name).read_bytes() for name in ("eth0.pcapng", "notes.txt")}
    made = recovered(tmp_path)
    assert {name: (made / name).read_bytes() for name in before} == before
    assert (made / "packets.pcapng").stat().st_size > 1000 and not list(made.glob("node*"))
    done = tcpsbed(tmp_path, "run", "scenario.toml", "--duration", "1 s", "--out", "out", "-q")
    assert done.returncode == 2 and "holds eth0.pcapng, which is not a result of tcpsbed" in done.stderr
    assert {name: (made / name).read_bytes() for name in before} == before


def recovered(folder: Path) -> Path:
    """What `tcpsbed report` makes of the only unfinished run in a folder."""
    (left,) = folder.glob("out.unfinished-*")
    done = tcpsbed(folder, "report", left.name)
    assert done.returncode == 0, done.stderr
    assert " rows, " in done.stderr and f" as {Path(done.stdout.strip()).parent}" in done.stderr
    return folder / Path(done.stdout.strip()).parent


@pytest.mark.parametrize(
    "after_s", [pytest.param(0.0, marks=SLOW), pytest.param(0.07, marks=SLOW), 0.31, 1.13]
)
def test_a_killed_real_run_is_recovered_and_the_former_one_stays(
    tmp_path: Path, before: bytes, after_s: float
) -> None:
    with started(tmp_path, TEXT, NODES) as run:
        published = kill_at(run, after_s)
    assert (tmp_path / "out/summary.json").read_bytes() == before
    made = recovered(tmp_path)
    assert made.name == "out-recovered" and named(tmp_path) == ["out", "out-recovered"]
    found = summary(made)
    assert found["world"] == "real" and "the process that ran it died" in found["errors"][0]
    assert len(rows(made)) >= published, "rows of the rings are lost"
    assert not list(made.glob("*.rows")) and not left_in_memory()
    assert "DISTURBED" in tcpsbed(tmp_path, "show", made.name).stdout


def test_a_killed_first_run_is_recovered_into_its_own_folder(tmp_path: Path) -> None:
    with started(tmp_path, TEXT, NODES) as run:
        kill_at(run, 0.3)
    assert recovered(tmp_path).name == "out" and named(tmp_path) == ["out"]
    assert tcpsbed(tmp_path, "show", "out").returncode == 0


def test_the_next_start_says_what_can_be_recovered_and_sweeps_shared_memory(tmp_path: Path) -> None:
    with started(tmp_path, TEXT, NODES) as run:
        published = kill_at(run, 0.5)
    (left,) = tmp_path.glob("out.unfinished-*")
    done = tcpsbed(tmp_path, "run", "scenario.toml", "--duration", "1 s", "--out", "out", "-q")
    assert done.returncode == 0 and f"recover it with: tcpsbed report {left}" in done.stderr
    assert not left_in_memory() and left.is_dir()
    assert len(rows(recovered(tmp_path))) >= published, "the sweep lost rows"


@pytest.mark.parametrize(
    "kill", [pytest.param(kill, marks=() if kill in (1, 4, 7) else SLOW) for kill in range(10)]
)
def test_a_killed_virtual_run_leaves_the_former_one_and_something_readable_or_nothing(
    tmp_path: Path, before: bytes, kill: int
) -> None:
    command = [sys.executable, "-m", "tcpsbed", "run", "first.toml", "--out", "out", "-q"]
    child = subprocess.Popen(command, cwd=tmp_path)
    while not list(tmp_path.glob("out.unfinished-*")):
        time.sleep(0.005)
    time.sleep(0.037 * kill**2)
    child.kill()
    child.wait()
    if not list(tmp_path.glob("out.unfinished-*")):  # it was faster
        return
    assert (tmp_path / "out/summary.json").read_bytes() == before
    (left,) = tmp_path.glob("out.unfinished-*")
    done = tcpsbed(tmp_path, "report", left.name)
    if done.returncode == 0:
        assert named(tmp_path) == ["out", "out-recovered"]
        assert summary(tmp_path / "out-recovered")["flows"]
    else:
        assert "Traceback" not in done.stderr and "tcpsbed: " in done.stderr
        tcpsbed(tmp_path, "run", "first.toml", "--duration", "1 s", "--out", "out", "-q")
        assert named(tmp_path) == ["out"]


@pytest.mark.parametrize("number", ["SIGHUP", "SIGXCPU", pytest.param("SIGQUIT", marks=SLOW)])
def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(tmp_path: Path, number: str) -> None:
    with started(tmp_path, TEXT, NODES) as run:
        time.sleep(0.5)
        for _ in range(1 if number == "SIGQUIT" else 2):  # a terminal and a limit say it more than once
            run.command.send_signal(signal.Signals[number])
        status, _, errors = run.finish()
    assert status == 130 and "stopped early; what was recorded until then is in out" in errors
    assert summary(tmp_path / "out")["errors"] == [] and len(rows(tmp_path / "out")) > 100
    assert gone(list(run.nodes.values())) and children(run.command.pid) == []


@contextmanager
def small(folder: Path, size: str) -> Iterator[Path]:
    """A small disk in memory at a folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.needs("root")
def test_a_disk_that_gets_full_is_named_and_the_run_stays_readable(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(chain("30 s", more=NETWORK) + 'records = "events"\npcapng = "off"\n')
    with small(tmp_path / "disk", "11M") as disk:
        done = tcpsbed(tmp_path, "run", "long.toml", "--world", "real", "--out", "disk/out", "-q")
        assert done.returncode == 1, done.stderr
        assert ".rows: No space left on device: the run ended there" in done.stderr
        found = summary(disk / "out")
        assert found["records"]["rows"] > 1000 and found["ran_s"] < 29
        assert len(rows(disk / "out")) == found["records"]["rows"]
        assert not list(disk.glob("**/*.rows")) and named(disk) == ["out"]


@pytest.mark.needs("root")
def test_rows_for_which_the_disk_has_no_room_stay_in_memory_until_it_has(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text(VIRTUAL)
    with small(tmp_path / "disk", "20M") as disk, started(disk, TEXT, NODES) as run:
        time.sleep(0.5)
        run.command.send_signal(signal.SIGSTOP)
        (left,) = disk.glob("out.unfinished-*")
        (left / "reserve.part").unlink()
        with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while filler.write(bytes(1 << 16)):
                pass
        published = kill_at(run, 0.3)
        done = tcpsbed(tmp_path, "run", "first.toml", "--duration", "1 s", "--out", "out", "-q")
        assert done.returncode == 0 and "rows of a dead run stay there" in done.stderr, done.stderr
        assert left_in_memory()
        (disk / "filler").unlink()
        assert len(rows(recovered(disk))) >= published and not left_in_memory()


@pytest.mark.needs("root")
def test_a_disk_without_room_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(TEXT)
    with small(tmp_path / "disk", "4M") as disk:
        done = tcpsbed(tmp_path, "run", "long.toml", "--world", "real", "--out", "disk/out", "-q")
        assert done.returncode == 2 and "no room for a run" in done.stderr
        assert named(disk) == []


def test_shared_memory_without_room_is_told_and_no_bus_error(tmp_path: Path) -> None:
    """A limit of the size of files stands for a small /dev/shm."""
    (tmp_path / "long.toml").write_text(TEXT)
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "run", "long.toml", "--world", "real", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        check=False,
    )
    assert done.returncode == 2 and "no room for" in done.stderr and "Traceback" not in done.stderr
    assert named(tmp_path) == []


# -- names in shared memory ------------------------------------------------------------------------------------


def test_a_check_touches_nothing_that_a_robot_publishes(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    root = Path(__file__).resolve().parents[2] / "scenarios"
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    own = (tmp_path / "console-arm.toml").read_text().replace("memory:arm", str(tmp_path / "live"))
    (tmp_path / "fixed.toml").write_text(own)
    (tmp_path / "live").write_bytes(b"the state of a robot that runs")
    before = (set(memory.home().iterdir()), set(tmp_path.rglob("*")), (tmp_path / "live").stat())
    for name in ("fixed", "headset"):
        done = tcpsbed(tmp_path, "check", f"{name}.toml")
        assert done.returncode == 0, done.stderr
    assert {*memory.home().iterdir()} - before[0] <= {*memory.home().glob("tcpsbed-*")}
    assert set(tmp_path.rglob("*")) == before[1]
    assert (tmp_path / "live").stat() == before[2]


def test_no_shipped_scenario_has_a_fixed_name_in_shared_memory() -> None:
    for file in sorted((Path(__file__).resolve().parents[2] / "scenarios").glob("*.toml")):
        assert "/dev/shm" not in file.read_text(), file


def test_names_in_shared_memory_are_those_of_the_run() -> None:
    plan = {"robot": {"params": {"publish": "memory:arm"}}, "rows": [1.0, 2.0], "path": "/x"}
    with memory.folder() as one, memory.folder() as other:
        assert memory.placed(plan, one)["robot"]["params"]["publish"] == f"{one}/arm"
        assert one != other and str(os.getpid()) in one.name
        assert json.dumps(memory.placed(plan, one)) != json.dumps(memory.placed(plan, other))
    assert not one.exists() and not other.exists()
