"""Cells on a cluster of Dask. Inputs go to the workers as bytes, summaries come back as values: no disk is shared.

```text
 campaign ─► compare builds ─► inputs, with hashes ─► every worker, also one that comes later
          ─► cells ─► workers, each beside a warm process ─► summaries
          ─► a tenth of them again, on other workers ─► the same records?
```
A cell on the machine's clock goes to a worker with the resource `clock`, of which each machine has one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tcpsbed import scenarios
from tcpsbed.analysis.facts import PROMISES
from tcpsbed.campaign import grid
from tcpsbed.campaign.survey import Survey
from tcpsbed.campaign.warm import Warm
from tcpsbed.campaign.worker import Answer, Job, Watch, records_of, run_warm, words_of
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError, counted
from tcpsbed.executors.build import build
from tcpsbed.executors.cluster import Connection, KilledWorker, Plugin, difference, get_worker, refuse_address
from tcpsbed.scenarios.model.scenario import texts

ONE_IN = 10
"""One of so many cells in virtual time is run on a second worker, too."""
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


class Station(Plugin):  # type: ignore[misc]
    """A campaign's inputs and warm process at a worker."""

    def __init__(self, inputs: Inputs, name: str, built: str) -> None:
        self.inputs, self.name, self.built = inputs, name, built

    def setup(self, worker: Any) -> None:
        """Writes the inputs into the folder of the worker."""
        self.lock, self.warm = threading.Lock(), Warm()
        self.wrong = difference(self.built)
        self.folder = Path(tempfile.mkdtemp(prefix="tcpsbed-", dir=worker.local_directory))
        self.worker, self.address = worker, str(worker.address)
        try:
            self.inputs.write(self.folder / "inputs")
        except OSError as error:
            self.wrong = f"cannot keep the inputs: {error}"

    def teardown(self, worker: Any) -> None:
        """Ends its cells and removes the inputs."""
        self.warm.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, job: Job) -> Answer:
        """Runs a cell, and tells the campaign when it begins and ends."""
        if self.wrong:
            return Answer(1, "", f"worker {self.address}: {self.wrong}", self.address)
        self.worker.log_event(self.name, {"begun": job.key, "worker": self.address})
        try:
            return self._answer(job)
        finally:
            self.worker.log_event(self.name, {"ended": job.key, "worker": self.address})

    def _answer(self, job: Job) -> Answer:
        home = self.folder / "inputs"
        work = self.folder / "work" / f"{job.key}-{os.urandom(4).hex()}"
        work.parent.mkdir(exist_ok=True)
        answer = run_warm(self.warm, words_of(home / self.inputs.scenario, job, work), work)
        return Answer(answer.status, answer.text, answer.said.replace(f"{home}/", ""), self.address)


def _run(name: str, job: Job) -> Answer:
    """Runs a cell at the worker that this is called in."""
    station: Station = get_worker().plugins[name]
    return station.run(job)


@dataclass(kw_only=True)
class Places(Connection):
    """Places of a campaign on one cluster, one after the other.

    Attributes
    ----------
    remarks
        What came of cells that ran on two workers.
    """

    inputs: Inputs
    remarks: list[str] = field(default_factory=list)

    def __call__(self, jobs: Sequence[Job]) -> Cluster:
        """A place for these jobs, which are all in simulated time or all not."""
        if self.client is None:
            self.open()
        clocked = any(job.world not in SIMULATED for job in jobs)
        return Cluster(self, self.clocked() if clocked else {})

    @property
    def name(self) -> str:
        """That of the plug-in of the workers."""
        return f"tcpsbed-{self.inputs.digest}-{os.getpid()}"

    def _open(self) -> None:
        """Connects, compares the builds of the workers, and sends the inputs."""
        super()._open()
        self.client.register_plugin(Station(self.inputs, self.name, build()), name=self.name)

    def close(self) -> None:
        """Ends what runs at the workers, and the connection."""
        if self.client is not None:
            with suppress(Exception):  # the cluster may be gone already
                self.client.unregister_worker_plugin(self.name)
        super().close()


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
        self.watch, self.called = Watch(), dict[str, Job]()
        places.client.subscribe_topic(places.name, self._hear)

    def call(self, job: Job) -> Callable[[], Answer]:
        """Runs the job at a worker."""
        self.called[job.key] = job
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

    def lost(self, job: Job, error: BaseException) -> Answer:
        """A failed cell: of a worker that ended with it, as did the others that tried it, or of the connection."""
        self.watch.end(job)
        killed = isinstance(error, KilledWorker)
        what = "every worker that tried it ended" if killed else f"{type(error).__name__}: {error}"
        return Answer(1, "", f"tcpsbed: {what}")

    def slow(self) -> list[str]:
        """Names cells and the workers that run them."""
        return [f"{said}; worker {where} runs it; Ctrl-C ends it" for _, where, said in self.watch.slow()]

    def _hear(self, event: tuple[float, dict[str, str]]) -> None:
        """What a worker tells, in the thread of the connection."""
        _, told = event
        key, where = told.get("begun") or told["ended"], told["worker"]
        if key not in self.called:  # of a campaign that ran before
            return
        if "begun" in told:
            self.watch.begin(self.called[key], where)
        else:
            self.watch.end(self.called[key])

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


def places(address: str, survey: Survey) -> Places:
    """The places of a campaign on the cluster at an address; connected, and with the inputs sent.

    Raises
    ------
    ConfigError, WorldError
        If the address is none, or nobody answers there; if builds differ; if an input cannot be sent.
    """
    refuse_address(address)
    made = Places(address=address, inputs=inputs_of(survey))
    made.open()
    return made
