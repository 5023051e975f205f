"""One executor interface: `map`, `step` and `reproduce` give the same on threads and on workers of Dask."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import tcpsbed

import tcpsbed as api
from tcpsbed import executors, keyfile, scenarios, shipped
from tcpsbed.errors import ConfigError, HookError, Refused, TcpsbedError, WorldError
from tcpsbed.executors import parcel
from tcpsbed.processes import OURS

STEP: dict[str, Any] = {
    "runs": 5,
    "rtt": "5 ms,20 ms",
    "loss": "0,30%",
    "phases": True,
    "offsets": True,
    "duration": "400 ms",
}
MAP: dict[str, Any] = {"cells": "20x8", "runs": 5, "verify": 2, "verify_runs": 3}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with two workers."""
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as made,
    ):
        yield made.scheduler_address


@pytest.fixture(params=["threads", "cluster"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where work runs: what is given to a function."""
    return {"jobs": 3} if request.param == "threads" else {"cluster": request.getfixturevalue("address")}


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the shipped loop."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.toml").write_text(shipped.find("step").read_text())
    return tmp_path / "step.toml"


def test_step_is_the_same_everywhere(loop: Path, where: dict[str, Any]) -> None:
    here, there = (api.step(loop, **STEP, **more) for more in ({}, where))
    assert json.dumps(here.figures) == json.dumps(there.figures)
    for name in here:
        for one, other in zip(here[name].curves, there[name].curves, strict=True):
            assert np.array_equal(one.axes, other.axes) and np.array_equal(one.t_ms, other.t_ms)
        assert here[name].seen == there[name].seen and here[name].margins == there[name].margins
    kept = [(one.folder / "curves.parquet").read_bytes() for one in (here, there)]
    assert kept[0] == kept[1] and len(here.settings) == 4


def test_map_is_the_same_everywhere(loop: Path, where: dict[str, Any]) -> None:
    told: list[float] = []
    here = api.map(loop, **MAP)
    there = api.map(loop, **MAP, **where, progress=told.append, out="kept")
    assert json.dumps(here.figures) == json.dumps(there.figures) and len(here.points) == 2
    assert told == sorted(told) and told[-1] == 1.0 and len(told) > 4, told


@pytest.mark.slow
def test_reproduce_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    here = api.reproduce("abdullah2023", short=True, out="here")
    there = api.reproduce("abdullah2023", short=True, out="there", tell=told.append, **where)
    assert [row.to_json() for row in here.rows] == [row.to_json() for row in there.rows]
    assert sum(row.ours is not None for row in here.rows) > 9


def test_cases_on_a_cluster_run_there_and_tell_here(address: str) -> None:
    """What a case learns of its inputs comes back: a row that only repeats one of them is no evidence."""
    from tcpsbed.lab.reproduce.study import Study

    told: list[str] = []
    with executors.opened(None, address) as executor:
        study = Study("dpm-q", None, tell=told.append, executor=executor)

        def run(seconds: float) -> tuple[int, float]:
            settings = [f'duration="{seconds} s"']
            return os.getpid(), study.run("quickstart", settings, lambda run: float(run.summary["ran_s"]))

        found = study.each([0.75, 1.5], run)
    assert os.getpid() not in {pid for pid, _ in found.values()}
    assert [round(ran, 2) for _, ran in found.values()] == list(found) == [0.75, 1.5]
    assert {(0.75, "s"), (1.5, "s")} <= study.inputs.keys()
    assert len(told) == 2 and all(" took " in line for line in told)


def test_a_failure_drops_what_waits() -> None:
    ran: list[int] = []

    def call(number: int) -> None:
        ran.append(number)
        if number == 1:
            raise ValueError("one")
        time.sleep(0.05)

    with executors.threads(1) as pool, pytest.raises(ValueError, match="one"):
        executors.each(pool, [lambda n=n: call(n) for n in range(9)])
    assert ran[:2] == [0, 1] and len(ran) < 5


def test_a_call_that_nobody_waits_for_ends_at_its_next_step() -> None:
    begun, ended = threading.Event(), threading.Event()

    def long(go_on: Callable[[], None]) -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.01)
                go_on()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt), executors.threads(1) as pool:
        pool.submit(long, pool.go_on)
        assert begun.wait(30)
        raise KeyboardInterrupt
    assert ended.is_set()


def test_runs_beside_each_other_leave_the_process_as_it_was(loop: Path) -> None:
    before = [getattr(os, name) for name in ("_exit", "execv", "execve")]
    api.step(loop, runs=16, duration="1.2 s", jobs=4)
    assert [getattr(os, name) for name in ("_exit", "execv", "execve")] == before


@pytest.mark.parametrize(
    "found, told",
    [
        (
            'channels.session={flows = ["kinematic"], security = {kind = "aead", key_file = "lab.key"}}',
            "found the key file",
        ),
        ('components.tactile-teleoperator.robot.params.plant="~/plant.py:Plant"', "~/plant.py:Plant"),
    ],
)
def test_what_has_to_stay_here_does_not_travel(loop: Path, found: str, told: str) -> None:
    keyfile.make(loop.parent / "lab.key")
    scenario = scenarios.load(loop, [found])
    with pytest.raises(ConfigError, match=re.escape(told)):
        pickle.dumps(executors.Parcel(scenario))


def test_a_folder_whose_name_goes_on_is_not_moved() -> None:
    text = 'a = "/home/u/lab/x.csv"\nb = "/home/u/lab2/x.csv"\nc = "/hand"\n'
    assert parcel._moved(text, ["/home/u/lab", "/"], "/t") == text.replace("/home/u/lab/", "/t/home/u/lab/")


def test_results_are_in_the_order_of_the_calls() -> None:
    heard: list[tuple[int, int, int]] = []

    def call(number: int) -> int:
        time.sleep(0.05 * (number == 0))
        return number

    calls = [lambda n=n: call(n) for n in range(4)]
    with executors.threads(4) as pool:
        assert executors.each(pool, calls, lambda *told: heard.append(told)) == [0, 1, 2, 3]
    assert [done for done, _, _ in heard] == [1, 2, 3, 4] and heard[-1][1:] == (0, 0)
    assert executors.each(None, calls) == [0, 1, 2, 3]


PLANT = """import os
from pathlib import Path
from helper import SPEED
from tcpsbed import Plant

if "inner" not in __file__:
    with open("{folder}/ran.txt", "a") as file:
        file.write(__file__ + "\\n")


class Mine(Plant):
    def matrices(self):
        {act}
        return [[-SPEED]], [SPEED], [1.0], 0.0
"""


def own(loop: Path, act: str = "pass") -> str:
    """A plant of code with a module beside it."""
    (loop.parent / "mine").mkdir()
    (loop.parent / "mine/helper.py").write_text("SPEED = 40.0\n")
    (loop.parent / "mine/mine.py").write_text(PLANT.format(folder=loop.parent, act=act))
    return "./mine/mine.py:Mine"


def test_code_travels_with_what_it_imports(loop: Path, address: str) -> None:
    """No disk is shared: a worker reads its own copy, below a folder that goes."""
    plant = own(loop)
    asked: dict[str, Any] = {"plant": plant, "runs": 3, "duration": "400 ms"}
    here, there = (api.step(loop, **asked, cluster=cluster) for cluster in (None, address))
    assert json.dumps(here.figures) == json.dumps(there.figures)
    read = {Path(line) for line in (loop.parent / "ran.txt").read_text().splitlines()}
    sent = {file for file in read if "tcpsbed-parcel-" in str(file)}
    assert sent and not any(file.exists() for file in sent), read


def test_code_of_the_users_runs_one_after_the_other_in_this_process(
    loop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs share a module."""
    from tcpsbed.lab.control import experiment

    seen: list[Executor | None] = []
    each = executors.each

    def seeing(executor: Executor | None, *more: Any) -> list[Any]:
        seen.append(executor)
        return each(executor, *more)

    monkeypatch.setattr(executors, "each", seeing)
    (loop.parent / "hook.py").write_text(
        "class Hold:\n def __call__(self, now, origin, x, other, y):\n  y[0] = x[0]\n  return 1\n"
    )
    plain = scenarios.load(loop, ['duration="250 ms"'])
    asked = experiment.Asked(4)
    with executors.threads(2) as pool:
        experiment.every([plain], asked, executor=pool)
        assert seen == [pool]
        api.step(loop, plant="./hook.py:Hold", runs=2, duration="250 ms", jobs=2)
        assert seen == [pool]


def test_an_error_at_a_worker_names_it_and_the_file_of_the_sender(loop: Path, address: str) -> None:
    fails = 'assert "tcpsbed-parcel-" not in __file__, "only there"'
    with pytest.raises(TcpsbedError, match=r"worker tcp://\S+: .*only there") as told:
        api.step(loop, plant=own(loop, fails), runs=2, duration="250 ms", cluster=address)
    assert f"{loop.parent}/mine/mine.py" in str(told.value) or "mine.py" in str(told.value)
    assert "tcpsbed-parcel-" not in str(told.value) and not list(loop.parent.glob("runs/*"))


def test_a_worker_that_always_ends_is_one_message(loop: Path, address: str) -> None:
    ends = 'os.kill(os.getpid(), 9) if "tcpsbed-parcel-" in __file__ else None'
    with pytest.raises(
        WorldError, match=r"--cluster: tcp://\S+: every worker that tried a part of the work ended"
    ):
        api.step(loop, plant=own(loop, ends), runs=1, duration="250 ms", cluster=address)
    assert not list(loop.parent.glob("runs/*"))


def test_a_parcel_has_all_its_paths_below_one_folder(loop: Path) -> None:
    text = loop.read_text()
    plant = own(loop).replace("./", f"{loop.parent}/")
    loop.write_text(text)
    scenario = scenarios.load(loop).changed({"components.tactile-teleoperator.robot.params.plant": plant})
    sent = pickle.loads(pickle.dumps(executors.Parcel(scenario)))
    with sent.opened() as there:
        home = there.folder
        files = [file for file in there.files if file.name != "scenario.toml"]
        assert files and all("tcpsbed-parcel-" in str(file) for file in files)
        assert {file.name for file in home.rglob("mine/*")} == {"mine.py", "helper.py"}
        with pytest.raises(HookError, match=f"^{loop.parent}/mine/mine.py: broken$"), sent.opened() as again:
            raise HookError(f"{again.folder}/mine/mine.py: broken")
    assert not home.exists()


def test_an_error_keeps_its_kind_where_it_is_told_again() -> None:
    assert type(WorldError("a").retold("b")) is WorldError
    again = Refused("a", "key", "1", "2").retold("b")
    assert type(again) is ConfigError and str(again) == "b"


@pytest.mark.parametrize("asked", [{"jobs": 2}, {"cluster": "local:2"}])
def test_what_is_on_the_clock_is_not_run_beside_itself(loop: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"--(jobs|cluster): found it with the world real.*virtual"):
        api.step(loop, world="real", runs=1, **asked)
    with pytest.raises(ConfigError, match=r"found it with the world mininet"):
        api.reproduce("almouhamed-mininet", **asked)


@pytest.mark.parametrize("command", ["map", "step", "reproduce"])
def test_an_address_that_is_none_is_one_message(loop: Path, command: str) -> None:
    pytest.importorskip("distributed")
    words = ["dpm-q"] if command == "reproduce" else [str(loop)]
    done = tcpsbed(loop.parent, command, *words, "--cluster", "head")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert '--cluster: found "head"; allowed: tcp://host:8786' in done.stderr
    assert not list(loop.parent.glob("r*")), "nothing is left"


def test_an_address_of_another_type_and_one_where_nobody_answers_are_one_message(
    loop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    from tcpsbed.executors import cluster

    with pytest.raises(ConfigError, match="cluster: found int; allowed: tcp://host:8786"):
        api.map(loop, cluster=3)  # type: ignore[arg-type]
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.5)
    with pytest.raises(WorldError, match=r"--cluster: tcp://127\.0\.0\.1:1: nobody answers .*local:4"):
        api.step(loop, cluster="tcp://127.0.0.1:1", out="out")
    assert not (loop.parent / "out").exists()


def test_a_worker_of_another_build_is_refused(
    loop: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpsbed.executors import cluster

    monkeypatch.setattr(cluster, "build", lambda: "0.0.9 0123456789")
    with pytest.raises(WorldError, match=r"workers? of \d with another build: tcp://\S+ has tcpsbed"):
        api.map(loop, cluster=address)
    with pytest.raises(WorldError, match=r"worker tcp://\S+: found tcpsbed 0\.1.*here tcpsbed 0\.0\.9"):
        monkeypatch.setattr(cluster.Connection, "_refuse_others", lambda _: None)  # one that came later
        api.map(loop, cluster=address)


def of_session(session: int) -> list[str]:
    """The command lines of what runs in a session."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            parts = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name.isdigit() and int(parts[3]) == session and parts[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    "number, workers",
    [
        (signal.SIGINT, 1),
        *(
            pytest.param(number, workers, marks=pytest.mark.slow)
            for number, workers in (
                (signal.SIGINT, 0),
                (signal.SIGINT, 2),
                (signal.SIGKILL, 1),
                (signal.SIGKILL, 2),
            )
        ),
    ],
)
def test_no_worker_of_this_machine_outlives_the_command(
    loop: Path, number: signal.Signals, workers: int
) -> None:
    """Ended while none of them is there yet, while they start, or while they work."""
    pytest.importorskip("distributed")
    words = [*OURS, "map", "step.toml", "--cells", "400x400", "--runs", "500", "--cluster", "local:2"]
    started = subprocess.Popen(
        [*words, "--out", "out"], cwd=loop.parent, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while sum("spawn_main" in line for line in of_session(started.pid)) < workers:
        assert started.poll() is None and time.monotonic() < until
        time.sleep(0.1)
    time.sleep(2.0 if workers == 2 else 1.0)  # the work has begun; Python has started
    (os.killpg if number == signal.SIGINT else os.kill)(started.pid, number)
    _, said = started.communicate(timeout=60)
    assert started.returncode == (130 if number == signal.SIGINT else -number), said
    assert "Traceback" not in said
    until = time.monotonic() + 30
    while of_session(started.pid):
        assert time.monotonic() < until, of_session(started.pid)
        time.sleep(0.1)
    assert not (loop.parent / "out").exists()
