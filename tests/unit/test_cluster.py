"""Cells on Dask: the same table as on this machine, inputs without a shared disk, workers that die or are others."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from command import tcpsbed
from test_campaign import OWN, PLAN, planned, table

from tcpsbed import campaign
from tcpsbed.campaign import file, grid, outcome, worker
from tcpsbed.errors import ConfigError, TcpsbedError, WorldError
from tcpsbed.processes import OURS

distributed = pytest.importorskip("distributed")
cluster = pytest.importorskip("tcpsbed.campaign.cluster")
workers = pytest.importorskip("tcpsbed.executors.cluster")
Answer = cluster.Answer

QUICK = {
    "scenario": str(Path(__file__).resolve().parents[2] / "scenarios/quickstart.toml"),
    "set": ['duration="0.8 s"'],
    "seeds": 2,
    "grid": {"links.l1.rate": ["4 Mbit/s", "6 Mbit/s"]},
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with two workers."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as made,
    ):
        yield made.scheduler_address


def test_the_table_is_that_of_this_machine(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "ONE_IN", 1)
    survey = file.load(QUICK, Path("there"))
    places = cluster.places(address, survey)
    found = outcome.carried_out(survey, lambda *_: None, cluster=places)
    here = campaign.run(QUICK, out="here")
    assert not found.failures and found.rows == here.rows
    assert Path("there/sweep.parquet").read_bytes() == Path("here/sweep.parquet").read_bytes()
    assert places.remarks == ["4 cells ran on two workers, with the same records."]


def test_workers_keep_nothing(address: str) -> None:
    with distributed.Client(address) as client:
        kept = client.run(lambda dask_worker: [f.name for f in Path(dask_worker.local_directory).iterdir()])
        plugins = client.run(lambda dask_worker: [name for name in dask_worker.plugins if "tcpsbed" in name])
    assert not any(name.startswith("tcpsbed") for names in kept.values() for name in names), kept
    assert not any(plugins.values())


def test_records_that_differ_are_a_failure_of_the_cell() -> None:
    def answer(hashed: str, status: int = 0, where: str = "") -> Any:
        return Answer(status, json.dumps({"records_sha256": hashed}), "", f"tcp://{where or hashed}:1")

    place = object.__new__(cluster.Cluster)
    place.same = place.alone = 0
    assert place.agreed(answer("a"), answer("a", where="c")).status == 0
    assert place.agreed(answer("a"), answer("b", 1)) == answer("a"), "the second could not be run"
    assert place.agreed(answer("a"), answer("b", where="a")) == answer("a"), "the other worker died"
    differs = place.agreed(answer("a"), answer("b"))
    assert differs.status != 0 and "tcp://a:1 a, tcp://b:1 b" in differs.said
    assert (place.same, place.alone) == (1, 2)
    place.places, place.executor = SimpleNamespace(remarks=[], close=lambda: None), ThreadPoolExecutor()
    place.stop()
    assert place.places.remarks == [
        "1 cell ran on two workers, with the same records.",
        "2 cells could not be run on a second worker: there was none.",
    ]


def test_a_worker_keeps_each_run_of_a_cell_apart_and_ends_without_its_folder(tmp_path: Path) -> None:
    """The scheduler may give it the same cell again before the first has ended; Dask may have removed the folder."""
    told, outs = list[tuple[str, dict[str, str]]](), list[Path]()

    class Runs:
        def run(self, words: Any, out: Path, err: Path) -> int:
            folder = Path(words[words.index("--out") + 1])
            folder.mkdir()  # no other has it
            (folder / "summary.json").write_text(Path(words[1]).read_text())
            outs.append(folder)
            if len(outs) < 2:
                assert station.run(job).status == 0
            err.write_text(f"{words[1]}: found 0")
            return 0

        def close(self) -> None: ...

    station = cluster.Station(cluster.inputs_of(file.load(QUICK, tmp_path / "out")), "name", workers.build())
    dask = SimpleNamespace(
        local_directory=str(tmp_path), address="tcp://a:1", log_event=lambda *event: told.append(event)
    )
    job = worker.Job("k", grid.Cell((), 1), ("seed=1",), "virtual")
    station.setup(dask)
    station.warm = Runs()
    answer = station.run(job)
    scenario = Path(QUICK["scenario"])  # type: ignore[arg-type]
    assert answer == Answer(0, scenario.read_text(), f"{scenario.name}: found 0", "tcp://a:1")
    assert len(set(outs)) == 2
    assert [event for _, event in told] == [
        {key: "k", "worker": "tcp://a:1"} for key in ("begun", "begun", "ended", "ended")
    ]
    station.teardown(dask)
    station.teardown(dask)
    assert not list(tmp_path.iterdir())


def own(folder: Path, hook: str) -> dict[str, Any]:
    """A campaign of code of its own, with a module beside it."""
    (folder / "own").mkdir()
    (folder / "own/helper.py").write_text("GAIN = 1.0\n")
    (folder / "own/hold.py").write_text(hook)
    (folder / "own/own.toml").write_text(OWN.replace("[links.l1]\n", ""))
    return {"scenario": "own/own.toml", "seeds": 1, "grid": {"flows.kinematic.rate": ["100 Hz", "200 Hz"]}}


HOOK = """import os
from pathlib import Path
from helper import GAIN

with open("{folder}/ran.txt", "a") as file:
    file.write(f"{{__file__}}\\n")


class Hold:
    def __call__(self, now, origin, x, other, y):
        {act}
        return 0
"""


def test_code_and_what_it_imports_travel(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = own(tmp_path, HOOK.format(folder=tmp_path, act="GAIN"))
    survey = file.load(plan, Path("out"))
    found = outcome.carried_out(survey, lambda *_: None, cluster=cluster.places(address, survey))
    assert not found.failures and len(found.rows) == 2
    ran = (tmp_path / "ran.txt").read_text().splitlines()
    assert ran and all("/inputs/" in name and str(tmp_path) not in name for name in ran), ran


KILL = """stat = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        try: Path("%s").touch(exist_ok=%s)
        except FileExistsError: return 0
        os.kill(int(stat[1]), 9)"""


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_cell_only(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook kills the worker: once, and the cell is run again; always, and it is told."""
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "killed"
    once = HOOK.replace("{act}", KILL % (mark, "False")).replace("{folder}", str(tmp_path))
    plan = own(tmp_path, once.replace("{{__file__}}", "{__file__}"))
    survey = file.load(plan, Path("once"))
    found = outcome.carried_out(survey, lambda *_: None, cluster=cluster.places(address, survey))
    assert mark.exists() and not found.failures and len(found.rows) == 2
    (tmp_path / "own/hold.py").write_text(
        (tmp_path / "own/hold.py").read_text().replace("exist_ok=False", "exist_ok=True")
    )
    plan["grid"] = {"hooks.hold.run": ["./hold.py:Hold", "zoh"]}
    survey = file.load(plan, Path("always"))
    found = outcome.carried_out(survey, lambda *_: None, cluster=cluster.places(address, survey))
    assert list(found.failures.values()) == ["tcpsbed: every worker that tried it ended"]
    assert len(found.rows) == 1, "the other cell is there"


SLOW = """end = time.monotonic() + 20
        while not Path("{go}").exists() and time.monotonic() < end: time.sleep(0.01)"""


@pytest.mark.slow
def test_a_slow_cell_is_named_with_its_worker(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hook goes on once that was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "SLOW_S", 1.0)
    monkeypatch.setattr(worker, "LOOK_S", 0.2)
    heard, slow = [], cluster.Cluster.slow

    def told(place: Any) -> list[str]:
        heard.extend(said := slow(place))
        if said:
            (tmp_path / "go").touch()
        return list(said)

    monkeypatch.setattr(cluster.Cluster, "slow", told)
    act = SLOW.format(go=tmp_path / "go")
    plan = own(
        tmp_path, HOOK.format(folder=tmp_path, act=act).replace("import os\n", "import os\nimport time\n")
    )
    plan["grid"] = {"hooks.hold.run": ["./hold.py:Hold", "zoh"]}
    survey = file.load(plan, Path("out"))
    found = outcome.carried_out(survey, lambda *_: None, cluster=cluster.places(address, survey))
    assert not found.failures and (tmp_path / "go").exists()
    assert re.fullmatch(
        r"hooks\.hold\.run=\S+ seed=1 has run for \d+ s( \(others: \S+ s\))?; worker tcp://\S+:\d+ runs it; Ctrl-C ends it",
        heard[0],
    ), heard
    assert heard[0] in capsys.readouterr().err


def test_a_cell_that_was_begun_anew_or_has_ended_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the death of its worker: it counts from the second beginning, and at the second place."""
    now = [0.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    job = worker.Job("k", grid.Cell((), 1), ("seed=1",), "virtual")
    watch = worker.Watch()
    watch.begin(job, "tcp://a:1")
    now[0] = 25.0
    watch.begin(job, "tcp://b:1")
    now[0] = 50.0
    assert watch.slow() == []
    now[0] = 60.0
    assert watch.slow() == [(job, "tcp://b:1", "seed=1 has run for 35 s")]
    assert watch.slow() == [], "again when it has taken twice as long"
    watch.end(job)
    now[0] = 999.0
    assert watch.slow() == [] and watch.took == [35.0]


def test_a_worker_of_another_build_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    survey = file.load(QUICK, Path("out"))
    monkeypatch.setattr(workers, "build", lambda: "0.0.9 0123456789")
    with pytest.raises(WorldError) as told:
        cluster.places(address, survey)
    assert re.search(
        r"found (\d workers?) of \d with another build: tcp://\S+ has tcpsbed 0\.1\.0, build \w{8}",
        str(told.value),
    )
    assert "allowed: tcpsbed 0.0.9, build 01234567" in str(told.value) and not Path("out").exists()


def test_a_world_on_the_clock_needs_a_worker_that_has_it(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    survey = file.load({**QUICK, "world": "real"}, Path("out"))
    places = cluster.places(address, survey)
    try:
        with pytest.raises(WorldError, match=r'no worker with the resource clock; .*--resources "clock=1"'):
            outcome.carried_out(survey, lambda *_: None, cluster=places)
    finally:
        places.close()


def test_nobody_at_the_address_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "PATIENCE_S", 0.5)
    survey = file.load(QUICK, Path("out"))
    with pytest.raises(WorldError, match=r"--cluster: tcp://127\.0\.0\.1:1: nobody answers .*local:4"):
        cluster.places("tcp://127.0.0.1:1", survey)


@pytest.mark.parametrize(
    "wrong", ["head", "local", "local:0", "local:99999", "tcp://head", "http://head:8786"]
)
def test_an_address_that_is_none_is_refused(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f'--cluster: found "{wrong}"; allowed: tcp://host:8786'):
        cluster.places(wrong, file.load(QUICK, Path("out")))


def test_a_file_by_an_absolute_path_does_not_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = own(tmp_path, HOOK.format(folder=tmp_path, act="GAIN"))
    plan["grid"] = {"hooks.hold.run": [f"{tmp_path}/own/hold.py:Hold", "zoh"]}
    with pytest.raises(TcpsbedError, match=r"absolute path.*allowed: a path relative to the scenario"):
        cluster.places("tcp://127.0.0.1:1", file.load(plan, Path("out")))


def test_inputs_that_are_too_large_to_send_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "MOST_INPUT_BYTES", 100)
    with pytest.raises(ConfigError) as told:
        cluster.inputs_of(file.load(QUICK, tmp_path / "out"))
    assert str(told.value) == (
        "--cluster: found 0.0 GB of inputs; allowed: at most 1 GB, or without --cluster"
    )


def test_a_worker_of_this_machine_that_is_started_again_keeps_the_clock() -> None:
    local = workers.local(2)
    try:
        with distributed.Client(local) as client:

            def having() -> dict[str, Any]:
                known = client.scheduler_info(n_workers=-1)["workers"]
                return {one["id"]: name for name, one in known.items() if one["resources"].get("clock")}

            assert list(having()) == [0] and len(client.nthreads()) == 2
            before = client.run(os.getpid, workers=[having()[0]])
            client.submit(os._exit, 1, workers=[having()[0]])
            until = time.monotonic() + 60
            after = before
            while after.values() == before.values():
                assert time.monotonic() < until
                time.sleep(0.1)
                with suppress(KeyError, OSError):  # it is not there yet, or any more
                    after = client.run(os.getpid, workers=[having()[0]])
            assert list(having()) == [0]
    finally:
        local.close()


SCRIPT = """from tcpsbed import campaign
plan = {{"scenario": "quickstart.toml", "grid": {{"links.l1.rate": ["4 Mbit/s", "6 Mbit/s"]}}, "seeds": 1}}
{call}
"""


def test_a_script_without_the_guard_is_refused_with_one_message(tmp_path: Path) -> None:
    """Its workers would import it, and so call it again."""
    shutil.copy(Path(QUICK["scenario"]), tmp_path)  # type: ignore[arg-type]
    script = tmp_path / "mine.py"
    call = 'campaign.run(plan, out="out", cluster="local:2")'
    paths = os.pathsep.join([str(Path(campaign.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    script.write_text(SCRIPT.format(call=call))
    words = [sys.executable, "mine.py"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and 'allowed: the call below if __name__ == "__main__":' in last, done.stderr
    assert f"{script}:3: cluster: found a call that every worker would make, too" in last
    assert "bootstrapping" not in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_workers_of_this_machine_run_all_worlds(tmp_path: Path) -> None:
    """With the stand-ins: on the clock, one worker has the resource."""
    plan = planned(tmp_path, 'world = ["virtual", "real"]\n' + PLAN)
    done = tcpsbed(tmp_path, "campaign", str(plan), "--out", "out", "--cluster", "local:2")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert len(table(tmp_path / "out")) == 96


PAGE = (Path(__file__).resolve().parents[2] / "docs/campaign.md").read_text()
"""Its commands for Slurm and Kubernetes are run as processes of this machine."""


def block(heading: str, language: str) -> str:
    """The first block in a language below a heading of the page."""
    found = re.search(rf"### {heading}\n.*?```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def slurm() -> str:
    """The job's script, on one node."""
    return f'srun() {{ "$@"; }}\n{block("Slurm", "sh")}'


def kubernetes() -> str:
    """The commands of the containers, and what runs in the one that `kubectl exec` names."""
    manifests = list(yaml.safe_load_all(block("Kubernetes", "yaml")))
    commands = [
        shlex.join(container["command"]) + " &"
        for one in manifests
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    (asked,) = re.findall(r"exec deploy/tcpsbed-head -- (tcpsbed .*)", block("Kubernetes", "sh"))
    return "\n".join([*commands, asked]).replace("tcp://tcpsbed-head:", "tcp://127.0.0.1:")


@pytest.mark.slow
@pytest.mark.skipif(not Path(sys.executable).with_name("dask").is_file(), reason="needs dask beside Python")
@pytest.mark.parametrize("script", [slurm, kubernetes])
def test_the_commands_of_the_page_run(script: Any, tmp_path: Path) -> None:
    shutil.copy(QUICK["scenario"], tmp_path)
    plan = 'scenario = "quickstart.toml"\nset = ["duration=0.8 s"]\nseeds = 2\n[grid]\n'
    plan += 'links.l1.rate = ["4 Mbit/s", "6 Mbit/s"]\n'
    (tmp_path / "transports.toml").write_text(plan)
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    ours = f'tcpsbed() {{ {shlex.join(OURS)} "$@"; }}\n'  # also where the command is not installed
    text = ours + script().replace("8786", str(port)).replace("$(hostname)", "127.0.0.1")
    process = subprocess.Popen(
        ["bash", "-e"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "said").open("w"),
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{text.rstrip()} < /dev/null\n")
        process.stdin.close()
        assert process.wait(60) == 0, (tmp_path / "said").read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    (left,) = tmp_path.rglob("sweep.parquet")
    assert len({(row["links.l1.rate"], row["seed"]) for row in table(left.parent)}) == 4


def test_the_manifests_are_what_kubernetes_takes() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for one in yaml.safe_load_all(block("Kubernetes", "yaml")):
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
