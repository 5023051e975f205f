"""Cells on a cluster of Dask. Inputs go to the workers as bytes, summaries come back as values: no disk is shared.

```text
 campaign ─► compare builds ─► inputs, with hashes ─► every worker, also one that comes later
          ─► cells ─► workers, each beside a warm process ─► summaries
          ─► a tenth of them again, on other workers ─► the same records?
```
A cell on the machine's clock goes to a worker with the resource `clock`, of which each machine has one.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tcpsbed import scenarios
from tcpsbed.analysis.facts import PROMISES
from tcpsbed.campaign import grid
from tcpsbed.campaign.survey import Survey, build
from tcpsbed.campaign.warm import Warm
from tcpsbed.campaign.worker import Answer, Job, records_of, run_warm, words_of
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError, WorldError, counted
from tcpsbed.scenarios.model.scenario import texts

try:
    import distributed
except ImportError:
    found, remedy = "needs the package distributed", "pip install 'tcpsbed[cluster]', or without --cluster"
    raise ConfigError(found, key="--cluster", allowed=remedy) from None

CLOCK = "clock"
"""The resource of a worker that may run cells on the machine's clock."""
PATIENCE_S = 10.0
"""Time for a scheduler to answer, and for its first worker to be there."""
ONE_IN = 10
"""One of so many cells in virtual time is run on a second worker, too."""
EXAMPLE = "tcp://host:8786, where dask scheduler runs, or local:4 for four workers on this machine"
_LOCAL = re.compile(r"local:([1-9][0-9]{0,3})")
_REMOTE = re.compile(r"(tcp|tls|ws|wss)://[^\s/]+:[0-9]+/?")
MOST_INPUT_BYTES = 1 << 30
"""Most bytes of scenario and files together."""


@dataclass(frozen=True)
class Inputs:
    """What cells read: files relative to a common folder, with their hashes."""

    scenario: str
    files: dict[str, tuple[str, bytes]]

    @property
    def digest(self) -> str:
        """The hash of all of it."""
        told = "".join(f"{name} {sha}\n" for name, (sha, _) in sorted(self.files.items()))
        return hashlib.sha256(told.encode()).hexdigest()[:20]

    def write(self, folder: Path) -> None:
        """Writes the files into a folder, and reads their hashes again from there."""
        for name, (sha, content) in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if hashlib.sha256(file.read_bytes()).hexdigest() != sha:
                raise OSError(f"{name}: found other bytes than were sent")


def inputs_of(survey: Survey) -> Inputs:
    """The files of all combinations of a campaign.

    Raises
    ------
    ConfigError
        If one is named by an absolute path, which means nothing on another machine, or if they are too large.
    """
    files = {survey.file.resolve()}
    for cell in survey.cells(survey.seeds[:1]):
        try:
            read = scenarios.load(survey.file, [*survey.settings, *grid.overrides(survey.axes, cell)])
        except ConfigError:
            continue  # the cell says so itself
        for text in texts(read.document):
            if text.startswith(("/", "~/")):
                found = f'found "{text}", an absolute path: workers have other files'
                allowed = "a path relative to the scenario"
                raise ConfigError(found, file=survey.file, key="--cluster", allowed=allowed)
        files |= {file.resolve() for file in read.files}
        files |= {file.resolve() for file in survey.begun[cell.values]}
    root = Path(os.path.commonpath([file.parent for file in files]))
    size = sum(file.stat().st_size for file in files)
    if size > MOST_INPUT_BYTES:
        found, allowed = f"found {size / 1e9:.1f} GB of inputs", "at most 1 GB, or without --cluster"
        raise ConfigError(found, key="--cluster", allowed=allowed)
    content = {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(files)}
    hashed = {name: (hashlib.sha256(read).hexdigest(), read) for name, read in content.items()}
    return Inputs(survey.file.resolve().relative_to(root).as_posix(), hashed)


class Station(distributed.WorkerPlugin):  # type: ignore[misc]
    """A campaign's inputs and warm process at a worker."""

    def __init__(self, inputs: Inputs, name: str, built: str) -> None:
        self.inputs, self.name, self.built = inputs, name, built

    def setup(self, worker: Any) -> None:
        """Writes the inputs into the folder of the worker."""
        self.lock, self.warm = threading.Lock(), Warm()
        self.wrong = _difference(self.built)
        self.folder = Path(tempfile.mkdtemp(prefix="tcpsbed-", dir=worker.local_directory))
        self.address = str(worker.address)
        try:
            self.inputs.write(self.folder / "inputs")
        except OSError as error:
            self.wrong = f"cannot keep the inputs: {error}"

    def teardown(self, worker: Any) -> None:
        """Ends its cells and removes the inputs."""
        self.warm.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, job: Job) -> Answer:
        """Runs a cell."""
        if self.wrong:
            return Answer(1, "", f"worker {self.address}: {self.wrong}", self.address)
        home = self.folder / "inputs"
        work = self.folder / "work" / f"{job.key}-{os.urandom(4).hex()}"
        work.parent.mkdir(exist_ok=True)
        answer = run_warm(self.warm, words_of(home / self.inputs.scenario, job, work), work)
        return Answer(answer.status, answer.text, answer.said.replace(f"{home}/", ""), self.address)


def _run(name: str, job: Job) -> Answer:
    """Runs a cell at the worker that this is called in."""
    station: Station = distributed.get_worker().plugins[name]
    return station.run(job)


def _difference(built: str) -> str:
    """What differs between this build of tcpsbed and another; empty: nothing."""
    mine = build()
    return "" if mine == built else f"found {_shown(mine)}, and here {_shown(built)}"


def _shown(built: str) -> str:
    version, _, digest = built.partition(" ")
    return f"tcpsbed {version}, build {digest[:8]}"


def _told() -> tuple[str, str]:
    """The machine and the build of a worker."""
    return socket.gethostname(), build()


@dataclass
class Places:
    """Places of a campaign on one cluster, one after the other.

    Attributes
    ----------
    remarks
        What came of cells that ran on two workers.
    """

    address: str
    inputs: Inputs
    client: Any = None
    local: Any = None
    remarks: list[str] = field(default_factory=list)

    def __call__(self, jobs: Sequence[Job]) -> Cluster:
        """A place for these jobs, which are all in simulated time or all not."""
        if self.client is None:
            self.open()
        clocked = any(job.world not in SIMULATED for job in jobs)
        return Cluster(self, self._clocked() if clocked else {})

    @property
    def name(self) -> str:
        """That of the plug-in of the workers."""
        return f"tcpsbed-{self.inputs.digest}-{os.getpid()}"

    def open(self) -> None:
        """Connects, compares the builds of the workers, and sends the inputs.

        Raises
        ------
        WorldError
            If nobody answers, if there is no worker, or if one has another build.
        """
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        target: Any = self.address
        if here := _LOCAL.fullmatch(self.address):
            self.local = target = _local(int(here[1]))
        try:
            self.client = distributed.Client(target, timeout=PATIENCE_S)
            self.client.wait_for_workers(1, timeout=PATIENCE_S)
        except (OSError, ValueError) as error:
            what = "no worker came" if self.client is not None else f"nobody answers ({error or 'no answer'})"
            self.close()
            allowed = f"{EXAMPLE}; a worker joins by: dask worker {self.address} --nthreads 1"
            raise WorldError(
                f"{self.address}: {what} within {PATIENCE_S:g} s", key="--cluster", allowed=allowed
            ) from None
        try:
            self._refuse_others()
            self.client.register_plugin(Station(self.inputs, self.name, build()), name=self.name)
        except BaseException:
            self.close()
            raise

    def _refuse_others(self) -> None:
        found = self.client.run(_told, on_error="return")
        wrong = {}
        for worker, told in found.items():
            if isinstance(told, BaseException):
                wrong[worker] = f"cannot run tcpsbed ({type(told).__name__}: {told})"
            elif told[1] != build():
                wrong[worker] = f"has {_shown(told[1])}"
        if wrong:
            some = "; ".join(f"{worker} {what}" for worker, what in list(wrong.items())[:3])
            told = f"found {counted(len(wrong), 'worker')} of {len(found)} with another build: {some}"
            allowed = f"{_shown(build())} with the same versions of Python and packages on every worker"
            raise WorldError(told, key="--cluster", allowed=allowed)

    def _clocked(self) -> dict[str, float]:
        """The resource that a cell on the machine's clock needs."""
        machines = {worker: told[0] for worker, told in self.client.run(_told).items()}
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        having = [worker for worker in machines if known[worker]["resources"].get(CLOCK)]
        if not having:
            allowed = f'on one worker of each machine: dask worker {self.address} --nthreads 1 --resources "{CLOCK}=1"'
            raise WorldError(f"found no worker with the resource {CLOCK}", key="--cluster", allowed=allowed)
        host, count = Counter(machines[worker] for worker in having).most_common(1)[0]
        if count > 1:
            found = (
                f"found {count} workers with the resource {CLOCK} on {host}: cells would disturb each other"
            )
            raise WorldError(found, key="--cluster", allowed="one on each machine")
        return {CLOCK: 1}

    def close(self) -> None:
        """Ends what runs at the workers, and the connection."""
        client, self.client = self.client, None
        if client is not None:
            with suppress(Exception):  # the cluster may be gone already
                client.unregister_worker_plugin(self.name)
            client.close(timeout=PATIENCE_S)
        local, self.local = self.local, None
        if local is not None:
            local.close()


def _local(number: int) -> Any:
    """Workers of this machine. The first has the resource for the machine's clock, also where it is started again."""
    made = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
        resources={CLOCK: 1},
    )
    options = made.new_spec["options"]
    made.new_spec["options"] = {key: value for key, value in options.items() if key != "resources"}
    made.scale(number)
    made.wait_for_workers(number, timeout=PATIENCE_S)
    return made


class Cluster:
    """Workers of a cluster as a place for cells.

    Parameters
    ----------
    places
        The connection.
    resources
        What a cell needs.
    """

    def __init__(self, places: Places, resources: dict[str, float]) -> None:
        self.places = places
        more = {"resources": resources} if resources else {}
        self.executor: Executor = places.client.get_executor(pure=False, **more)
        self.same = self.alone = 0

    def call(self, job: Job) -> Callable[[], Answer]:
        """Runs the job at a worker."""
        return partial(_run, self.places.name, job)

    def second(self, job: Job, answer: Answer) -> Future[Answer] | None:
        """The cell on another worker, for a tenth of those whose records are promised to be the same anywhere."""
        if job.world not in SIMULATED or int(job.key[:8], 16) % ONE_IN or answer.status != 0:
            return None
        if f'"{PROMISES["anywhere"]}"' not in answer.text:
            return None
        others = [worker for worker in self.places.client.nthreads() if worker != answer.where]
        if not others:
            self.alone += 1
            return None
        # Without a worker that is still there, the scheduler takes any: a cell bound to one that died would wait for ever.
        executor = self.places.client.get_executor(pure=False, workers=others, allow_other_workers=True)
        found: Future[Answer] = executor.submit(self.call(job))
        return found

    def agreed(self, first: Answer, second: Answer) -> Answer:
        """The answer of two workers: a failure where their records differ."""
        if second.status != 0 or second.where == first.where:
            self.alone += 1
            return first
        hashes = [records_of(answer) for answer in (first, second)]
        if hashes[0] == hashes[1]:
            self.same += 1
            return first
        said = f"two workers give different records: {first.where} {hashes[0]}, {second.where} {hashes[1]}"
        return Answer(1, "", said)

    def lost(self, error: BaseException) -> Answer:
        """A failed cell: of a worker that ended with it, as did the others that tried it, or of the connection."""
        killed = isinstance(error, distributed.KilledWorker)
        what = "every worker that tried it ended" if killed else f"{type(error).__name__}: {error}"
        return Answer(1, "", f"tcpsbed: {what}")

    def slow(self) -> list[str]:
        """Nothing: workers do not tell when they began a cell."""
        return []

    def stop(self) -> None:
        """Ends what runs."""
        with suppress(Exception):  # the scheduler may be gone
            self.executor.shutdown(wait=False)
        if self.same:
            self.places.remarks.append(
                f"{counted(self.same, 'cell')} ran on two workers, with the same records."
            )
        if self.alone:
            told = "could not be run on a second worker: there was none"
            self.places.remarks.append(f"{counted(self.alone, 'cell')} {told}.")
        self.places.close()


def refuse_unguarded() -> None:
    """Raises `ConfigError` where a script calls at its top level: workers of this machine import it, and would call, too."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)):
        frame = frame.f_back
    if frame is None or file is None or not Path(file).is_file() or (spec and spec.name.endswith("__main__")):
        return
    for node in ast.parse(Path(file).read_bytes()).body:
        here = node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        if here and isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return
    allowed = 'the call below if __name__ == "__main__": (workers of local:N import the script)'
    found = "found a call that every worker would make, too"
    raise ConfigError(found, file=file, line=frame.f_lineno, key="cluster", allowed=allowed)


def places(address: str, survey: Survey) -> Places:
    """The places of a campaign on the cluster at an address; connected, and with the inputs sent.

    Raises
    ------
    ConfigError, WorldError
        If the address is none, or nobody answers there; if builds differ; if an input cannot be sent.
    """
    if not _LOCAL.fullmatch(address) and not _REMOTE.fullmatch(address):
        raise ConfigError(f'found "{address}"', key="--cluster", allowed=EXAMPLE)
    if _LOCAL.fullmatch(address):
        refuse_unguarded()
    made = Places(address, inputs_of(survey))
    made.open()
    return made
