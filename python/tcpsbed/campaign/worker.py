"""Runs cells, each in a process of its own, so that a crash affects no other cell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tcpsbed import results
from tcpsbed.campaign.grid import Cell
from tcpsbed.processes import OURS, talking

LINES_KEPT = 5
"""Lines of a failed cell's standard error that are told."""


@dataclass(frozen=True)
class Job:
    """A cell to run: its name, and all overrides of the scenario."""

    key: str
    cell: Cell
    settings: tuple[str, ...]


@dataclass
class Crew:
    """Runs jobs on several cores at once.

    Parameters
    ----------
    file : Path
        The scenario.
    world : str
        A name that the registry of worlds knows.
    out : Path
        The sweep's folder; results go to its `cells`, messages of failed cells to `failed`.
    width : int
        Processes at a time.
    check : callable
        Hears of each cell that has run, before its result is kept; what it raises ends the work.
    """

    file: Path
    world: str
    out: Path
    width: int
    check: Callable[[Job], None]
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False

    def result(self, key: str) -> Path:
        """Where the result of a cell is kept."""
        return self.out / "cells" / f"{key}.json"

    def run(self, jobs: Sequence[Job], done: Callable[[Job, str | None], None]) -> None:
        """Runs all jobs; `done` is called as each ends, with the message of a failed one."""
        for name in ("cells", "failed", "work"):
            (self.out / name).mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(self.width) as pool:
            try:
                waiting = {pool.submit(self._one, job): job for job in jobs}
                for future in as_completed(waiting):
                    done(waiting[future], future.result())
            except BaseException:
                self._stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._clear_up()

    def _clear_up(self) -> None:
        """Removes what cells left that were killed, and the folders that are empty."""
        work = self.out / "work"
        for left in work.iterdir():
            results.discard(left)
        for folder in (work, self.out / "failed"):
            with suppress(OSError):
                folder.rmdir()

    def _one(self, job: Job) -> str | None:
        """Runs a cell and keeps its summary; the message if it failed."""
        work = self.out / "work" / f"{job.key}-{os.getpid()}"
        command = [*OURS, "run", str(self.file), "--world", self.world]
        command += ["--yes", "--json", "--no-report", "--no-samples", "--out", str(work)]
        for setting in job.settings:
            command += ["--set", setting]
        status, text, said = self._watch(command)
        results.discard(work)
        self.check(job)
        failure = self.out / "failed" / f"{job.key}.txt"
        try:
            if status != 0 or not text.strip():
                raise ValueError(f"its process ended with exit status {status} and no message")
            summary = json.loads(text)
        except ValueError as error:
            message = "\n".join(said.strip().splitlines()[-LINES_KEPT:]) or str(error)
            results.write_whole(failure, f"{' '.join(job.settings)}\n{message}\n")
            return message
        failure.unlink(missing_ok=True)
        kept = {
            "values": job.cell.values,
            "seed": job.cell.seed,
            "settings": job.settings,
            "summary": summary,
        }
        results.write_whole(self.result(job.key), json.dumps(kept))
        return None

    def _watch(self, command: list[str]) -> tuple[int, str, str]:
        with self.lock:
            if self.ended:
                return 130, "", "stopped"
            child = talking(command, stdin=subprocess.DEVNULL)
            self.running.add(child)
        try:
            text, said = child.communicate()
        finally:
            with self.lock:
                self.running.discard(child)
        return child.returncode, text, said

    def _stop(self) -> None:
        """Ends all processes that run, with the nodes that they started."""
        with self.lock:
            self.ended = True
            for child in self.running:
                try:
                    os.killpg(child.pid, signal.SIGTERM)
                except ProcessLookupError:
                    continue
