"""The process of a node or of the emulator: JSON lines on its standard input and output."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tcpsbed._tcps import FORKED
from tcpsbed.errors import WorldError, of_run
from tcpsbed.inputs import LIBRARY
from tcpsbed.processes import OURS, talking
from tcpsbed.scenarios.model.scenario import texts
from tcpsbed.worlds import memory

NODE = (*OURS, "node")
"""What a node runs on this computer, in this environment."""
TAKEN_S = 5.0
"""Longest time that a node may take to read what it is told."""
LOOK_S = 0.1
"""Polling interval of whether somebody still waits for a process to read."""


class ControlChannel(ABC):
    """Two lines of talk with a node process, wherever it runs.

    Parameters
    ----------
    name
        The node, or what stands between nodes.
    ring
        Name of its rings of rows in shared memory.
    """

    def __init__(self, name: str, ring: Path) -> None:
        self.name, self.ring = name, ring
        self.answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.report: list[dict[str, Any]] | None = None
        self.refused: list[str] = []
        """What it said of events that it did not take."""
        self.also: dict[str, Any] = {}
        """What the first message says besides: of a process that stands between nodes, what only its world knows."""

    @abstractmethod
    def send(self, **message: Any) -> None:
        """Sends a line; a node that is dead is noticed by its silence."""

    @abstractmethod
    def last_output(self) -> str:
        """What is known of its end, once it has ended."""

    @abstractmethod
    def end(self) -> None:
        """Lets the process go, and sees that it goes; a second time does nothing."""

    def answered(self) -> bool:
        """Whether an answer has arrived; answers to events are skipped, and refusals are kept."""
        while not self.answers.empty():
            said = self.answers.queue[0]
            if said is None or said["op"] not in ("event", "refused"):
                return True
            self.answers.get()
            self.refused += [f"node {self.name}: {said['error']}"] if "error" in said else []
        return False

    def receive(self, op: str, seconds: float) -> dict[str, Any]:
        """Waits for a line.

        Raises
        ------
        WorldError
            If the node dies or keeps silent.
        TcpsbedError
            If it fails, of the kind that it tells.
        """
        try:
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            raise WorldError(
                f'node {self.name}: no answer for {seconds:g} s while waiting for "{op}"'
            ) from None
        if answer is None:
            raise WorldError(f"node {self.name} died {self.last_output()}")
        if answer["op"] != op:
            parts = {part: answer.get(part) for part in ("allowed", "errno", "fault")}
            raise of_run(answer.get("kind", ""), f"node {self.name}: {answer.get('error', answer)}", **parts)
        return answer


def heard(line: str) -> dict[str, Any] | None:
    """A message of the control protocol; `None` if the line is something else that somebody printed."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "op" in message else None


SILENT = "no message: {} in it called _exit() or closed files that it did not open"
KILLED = "no message: somebody ended it, or the system for want of memory"
CRASHED = "no message: {} in it crashed"
_BY_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def libraries(plan: Mapping[str, Any], node: int | None) -> list[str]:
    """The names of the user's shared libraries that a node loads, or, without a node, the network."""
    if node is None:
        parts: list[Any] = [plan["network"]]
    else:
        here = [c for c in plan["components"] if c["node"] == node]
        steps = [visit for flow in plan["flows"] for visit in flow["path"]]
        parts = here + [visit for visit in steps if plan["components"][visit["component"]]["node"] == node]
    files = {Path(text.rpartition(":")[0] or text).name for text in texts(parts) if text.startswith("/")}
    return sorted(name for name in files if LIBRARY.fullmatch(name))


class Pipe:
    """The standard input of a process, which may have stopped to read it: nobody waits for it in vain.

    Parameters
    ----------
    pipe
        As `subprocess` made it; nobody else writes to it.
    """

    def __init__(self, pipe: IO[str] | None) -> None:
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._pipe, self._lock, self._torn = pipe, threading.Lock(), False

    def say(self, message: dict[str, Any], waits: Callable[[], bool]) -> None:
        """Writes a message, as long as somebody `waits` for it to be taken; after half of one no other is written."""
        line = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            rest = line
            while rest and not self._torn and not self._pipe.closed:
                try:
                    rest = rest[os.write(self._pipe.fileno(), rest) :]
                except BlockingIOError:
                    if not waits():
                        self._torn = len(rest) < len(line)
                        return
                    select.select([], [self._pipe], [], LOOK_S)
                except OSError:  # it is gone, which is noticed by its silence
                    return

    def beat(self) -> None:
        """Writes a sign of life; where there is no room, or another message is being written, none is needed."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._torn and not self._pipe.closed:
                    with suppress(OSError):
                        os.write(self._pipe.fileno(), b'{"op": "beat"}\n')
            finally:
                self._lock.release()

    def close(self) -> None:
        """Closes the process's input when nobody waits any more; a second call does nothing."""
        with self._lock, suppress(OSError):
            self._pipe.close()


class Process(ControlChannel):
    """A process on this computer.

    Parameters
    ----------
    name, ring
        As of every talk.
    command
        What is started: a program that speaks the control protocol (`crates/tcps-run/src/real/control`), here or,
        through a program such as `nsenter` or `docker exec -i`, elsewhere on this computer.
    """

    def __init__(self, name: str, ring: Path, command: Sequence[str] = NODE) -> None:
        super().__init__(name, ring)
        self.child = talking(command)
        self.pipe = Pipe(self.child.stdin)
        self.words: list[str] = []
        self.libraries: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._overhear, daemon=True).start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            message = heard(line)
            if message is None:
                self.words.append(line)
            else:
                self.answers.put(message)
        self.answers.put(None)

    def _overhear(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            if FORKED in line and line not in self.words:  # of a node that goes on: nobody would ever read it
                sys.stderr.write(line)
            self.words.append(line)

    def send(self, **message: Any) -> None:
        """Sends a line; a node that is dead is noticed by its silence."""
        if "plan" in message:
            self.libraries = libraries(message["plan"], message["node"])
            message["plan"] = memory.placed(message["plan"], self.ring.parent)
        limit = time.monotonic() + TAKEN_S
        self.pipe.say(message, lambda: time.monotonic() < limit)

    def last_output(self) -> str:
        """Its exit status, or the signal that ended it, and the last line that it wrote."""
        self.child.wait(5)
        said = "".join(self.words).strip().splitlines()
        status = self.child.returncode
        code = " or ".join(self.libraries) or "code of the scenario"
        if status >= 0:
            return f"(status {status}): {said[-1] if said else SILENT.format(code)}"
        name = next((one.name for one in signal.Signals if one == -status), f"signal {-status}")
        silent = KILLED if -status in _BY_OTHERS else CRASHED.format(code)
        return f"by {name}: {said[-1] if said else silent}"

    def end(self) -> None:
        """Lets the process go, and sees that it goes; a second time does nothing."""
        self.pipe.close()
        try:
            self.child.wait(2)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
