"""Runs cells on an executor, so that a crash affects no other cell, and keeps their summaries.

```text
jobs ─► place.executor (`concurrent.futures`) ─► place.call(job)() ─► Answer ─► OUT/cells/KEY.json
          Here: threads beside a warm process             or failed/KEY.txt
          Cluster: Dask's workers
```
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from tcpsbed import results
from tcpsbed.campaign.grid import Cell
from tcpsbed.campaign.warm import Warm
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ROOM, printable
from tcpsbed.processes import OURS, cores, how_ended, talking

SUMMARY = "summary.json"
"""What a cell leaves: what its code prints is none of it."""
LINES_KEPT = 5
"""Lines of a failed cell's standard error that are told."""

SLOW_S, SLOW_TIMES = 30.0, 10.0
"""A cell is slow after so many seconds, and so many times as many as others take."""
LOOK_S = 5.0
"""Polling interval of slow cells."""
FULL_BYTES = 1 << 20
"""A disk with less room is full: a cell could not even say so."""


@dataclass(frozen=True)
class Job:
    """A cell to run: its name, all overrides of the scenario, and its world."""

    key: str
    cell: Cell
    settings: tuple[str, ...]
    world: str


@dataclass(frozen=True)
class Answer:
    """How a cell ended: exit status, the text of its summary, standard error; and the worker, of a cluster."""

    status: int
    text: str
    said: str
    where: str = ""


def width_of(world: str) -> int:
    """Runs at a time: all cores in simulated time, one on the machine's clock."""
    return cores() if world in SIMULATED else 1


class Place(Protocol):
    """Where cells run."""

    @property
    def executor(self) -> Executor:
        """Runs what `call` returns."""

    def call(self, job: Job) -> Callable[[], Answer]:
        """What the executor is given for a job."""

    def second(self, job: Job, answer: Answer) -> Future[Answer] | None:
        """The same cell elsewhere, where that is to be compared."""

    def agreed(self, first: Answer, second: Answer) -> Answer:
        """The answer of both."""

    def lost(self, job: Job, error: BaseException) -> Answer:
        """What a failure of the executor means for a cell; raises it where it is no cell's."""

    def slow(self) -> list[str]:
        """What is said of cells that take far longer than others; each is named again when it has taken twice as long."""

    def stop(self) -> None:
        """Ends what runs, without results."""


def words_of(file: Path, job: Job, out: Path) -> list[str]:
    """The command line of a cell, without `tcpsbed`."""
    words = ["run", str(file), "--world", job.world, "--yes", "--quiet", "--no-report", "--no-samples"]
    return [*words, "--out", str(out), *(word for setting in job.settings for word in ("--set", setting))]


def run_warm(warm: Warm, words: Sequence[str], work: Path) -> Answer:
    """Runs a cell in a fork of the warm process; `work` is its folder, which goes."""
    err = work.with_name(f"{work.name}.err")
    try:
        status = warm.run(words, Path(os.devnull), err)
        text, said = _read(work / SUMMARY), _read(err)
        if status != 0 and not said and shutil.disk_usage(work.parent).free < FULL_BYTES:
            said = f"tcpsbed: {work.parent}: no space left; allowed: {ROOM}"
        return Answer(status, text, said)
    finally:
        results.discard(work)
        err.unlink(missing_ok=True)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def records_of(answer: Answer) -> str:
    """The hash of the records of a cell."""
    return str(json.loads(answer.text).get("records_sha256", ""))


@dataclass
class Watch:
    """Cells that run, and where; which of them take far longer than others."""

    begun: dict[Job, tuple[str, float, float]] = field(default_factory=dict)
    """Where and when they began, and after how long they are named."""
    took: list[float] = field(default_factory=list)
    """How long cells took."""

    def begin(self, job: Job, where: str = "") -> None:
        """A cell begins somewhere."""
        self.begun[job] = where, time.monotonic(), SLOW_S

    def end(self, job: Job) -> None:
        """It has ended."""
        if job in self.begun:
            _, begun, _ = self.begun.pop(job)
            self.took.append(time.monotonic() - begun)

    def slow(self) -> list[tuple[Job, str, str]]:
        """Cells that take long, where they run, and what is said of them; each again when it has taken twice as long."""
        now, found = time.monotonic(), []
        usual = statistics.median(took) if (took := list(self.took)) else 0.0
        for job, (where, begun, patience) in list(self.begun.items()):
            if now - begun < max(patience, SLOW_TIMES * usual):
                continue
            self.begun[job] = where, begun, 2 * (now - begun)
            others = f" (others: {usual:.1f} s)" if usual else ""
            found.append((job, where, f"{' '.join(job.settings)} has run for {now - begun:.0f} s{others}"))
        return found


@dataclass
class Here:
    """Here, on this machine: cells in simulated time are forks of a warm process, others processes of their own.

    Parameters
    ----------
    file : Path
        The scenario.
    work : Path
        Where cells have their folders while they run.
    width : int
        Cells at a time.
    """

    file: Path
    work: Path
    width: int
    executor: ThreadPoolExecutor = field(init=False)
    warm: Warm = field(default_factory=Warm)
    cold: set[subprocess.Popen[str]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    watch: Watch = field(default_factory=Watch)
    stopped: bool = False

    def __post_init__(self) -> None:
        self.executor = ThreadPoolExecutor(self.width)

    def call(self, job: Job) -> Callable[[], Answer]:
        """Runs the job in one of the threads."""
        return partial(self._run, job)

    def second(self, job: Job, answer: Answer) -> None:
        """Nothing: there is no other machine."""

    def agreed(self, first: Answer, second: Answer) -> Answer:
        """The first."""
        return first

    def lost(self, job: Job, error: BaseException) -> Answer:
        """Raises it: this machine cannot go on."""
        raise error

    def slow(self) -> list[str]:
        """Names cells and the code that they are in."""
        found = []
        for job, _, said in self.watch.slow():
            folder = self.work / f"{job.key}-{os.getpid()}"
            place = self.warm.place_of(folder.with_name(f"{folder.name}.err"))
            found.append(f"{said}{f'; it is at {place}' if place else ''}; Ctrl-C ends it")
        return found

    def _run(self, job: Job) -> Answer:
        self.watch.begin(job)
        try:
            return self._answer(job)
        finally:
            self.watch.end(job)

    def _answer(self, job: Job) -> Answer:
        self.work.mkdir(parents=True, exist_ok=True)
        folder = self.work / f"{job.key}-{os.getpid()}"
        words = words_of(self.file, job, folder)
        if job.world in SIMULATED:
            return run_warm(self.warm, words, folder)
        with self.lock:
            if self.stopped:
                return Answer(130, "", "stopped")
            child = talking([*OURS, *words], stdin=subprocess.DEVNULL)
            self.cold.add(child)
        try:
            _, said = child.communicate()
            text = _read(folder / SUMMARY)
        finally:
            results.discard(folder)
            with self.lock:
                self.cold.discard(child)
        return Answer(child.returncode, text, said)

    def stop(self) -> None:
        """Ends all processes that run, with the nodes that they started."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        with self.lock:
            self.stopped = True
            for child in self.cold:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGTERM)
        self.warm.close()
        self.executor.shutdown(wait=True)


@dataclass
class Crew:
    """Runs jobs and keeps what comes out.

    Parameters
    ----------
    place : Place
        Where they run.
    out : Path
        The sweep's folder; results go to its `cells`, messages of failed cells to `failed`.
    check : callable
        Hears of each cell that has run, before its result is kept; what it raises ends the work.
    """

    place: Place
    out: Path
    check: Callable[[Job], None]

    @contextmanager
    def at_work(self, *, stops: bool = True) -> Iterator[Crew]:
        """Ends what runs, and clears up, at the end of the work; without `stops` the place stays open."""
        for name in ("cells", "failed", "work"):
            (self.out / name).mkdir(parents=True, exist_ok=True)
        try:
            yield self
        finally:
            if stops:
                self.place.stop()
            self._clear_up()

    def warm_up(self, jobs: Sequence[Job]) -> None:
        """Runs jobs, one after the other, and discards what comes out, failures too: a cell says so itself."""
        for job in jobs:
            with suppress(Exception):
                self.place.executor.submit(self.place.call(job)).result()

    def run(self, jobs: Sequence[Job], done: Callable[[Job, str | None], None]) -> None:
        """Runs all jobs; `done` is called as each ends, with the message of a failed one."""
        ended: SimpleQueue[Future[Answer]] = SimpleQueue()
        asked: dict[Future[Answer], tuple[Job, Answer | None]] = {}

        def ask(future: Future[Answer], job: Job, first: Answer | None = None) -> None:
            asked[future] = job, first
            future.add_done_callback(ended.put)

        for job in jobs:
            ask(self.place.executor.submit(self.place.call(job)), job)
        looked = time.monotonic()
        while asked:
            if time.monotonic() - looked >= LOOK_S:
                for line in self.place.slow():
                    print(f"\ntcpsbed: {printable(line)}", file=sys.stderr)
                looked = time.monotonic()
            try:
                future = ended.get(timeout=LOOK_S)
            except Empty:
                continue
            job, first = asked.pop(future)
            try:
                answer = future.result()
            except (Exception, CancelledError) as error:
                answer = self.place.lost(job, error)
            if first is not None:
                answer = self.place.agreed(first, answer)
            elif again := self.place.second(job, answer):
                ask(again, job, answer)
                continue
            self.check(job)
            done(job, self._keep(job, answer))

    def _clear_up(self) -> None:
        """Removes what cells left that were killed, and the folders that are empty."""
        work = self.out / "work"
        for left in (
            left for name in (f"{results.CELL}-*", f".{results.CELL}-*") for left in work.glob(name)
        ):
            with suppress(FileNotFoundError):  # a cell of a killed campaign is ending by itself
                results.discard(left) if left.is_dir() else left.unlink()
        for folder in (work, self.out / "failed"):
            with suppress(OSError):
                folder.rmdir()

    def _keep(self, job: Job, answer: Answer) -> str | None:
        """Keeps the summary of a cell; the message if it failed."""
        failure = self.out / "failed" / f"{job.key}.txt"
        try:
            if answer.status != 0 or not answer.text.strip():
                raise ValueError(f"its process ended {how_ended(answer.status)} and without a message")
            summary = json.loads(answer.text)
        except ValueError as error:
            message = "\n".join(answer.said.strip().splitlines()[-LINES_KEPT:]) or str(error)
            results.write_whole(failure, f"{' '.join(job.settings)}\n{message}\n")
            return message
        failure.unlink(missing_ok=True)
        kept = {
            "values": job.cell.values,
            "seed": job.cell.seed,
            "settings": job.settings,
            "summary": summary,
        }
        results.write_whole(self.out / "cells" / f"{job.key}.json", json.dumps(kept))
        return None
