"""A node process, or one that speaks the emulator's part: JSON lines on its standard input and output."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed._tcps import FORKED
from tcpsbed.errors import WorldError
from tcpsbed.processes import OURS
from tcpsbed.worlds import memory

NODE = (*OURS, "node")
"""What a node runs on this computer, in this environment."""


class Talk(ABC):
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
        self.also: dict[str, Any] = {}
        """What the first message says besides: of a process that stands between nodes, what only its world knows."""

    @abstractmethod
    def tell(self, **message: Any) -> None:
        """Sends a line; a node that is dead is noticed by its silence."""

    @abstractmethod
    def last_words(self) -> str:
        """What is known of its end, once it has ended."""

    @abstractmethod
    def end(self) -> None:
        """Lets the process go, and sees that it goes; a second time does nothing."""

    def hear(self, op: str, seconds: float) -> dict[str, Any]:
        """Waits for a line.

        Raises
        ------
        WorldError
            If the node fails, dies or keeps silent.
        """
        try:
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            raise WorldError(
                f'node {self.name}: no word for {seconds:g} s while waiting for "{op}"'
            ) from None
        if answer is None:
            raise WorldError(f"node {self.name} died {self.last_words()}")
        if answer["op"] != op:
            raise WorldError(f"node {self.name}: {answer.get('error', answer)}")
        return answer


def heard(line: str) -> dict[str, Any] | None:
    """A message of the control protocol; `None` if the line is something else that somebody printed."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "op" in message else None


SILENT = "no word: killed, or code of the scenario in it called _exit() or closed files that it did not open"


class Process(Talk):
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
        self.child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.words: list[str] = []
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

    def tell(self, **message: Any) -> None:
        """Sends a line; a node that is dead is noticed by its silence."""
        assert self.child.stdin is not None
        if "plan" in message:
            message["plan"] = memory.placed(message["plan"], self.ring.parent)
        with suppress(BrokenPipeError, ValueError):
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()

    def last_words(self) -> str:
        """Its exit status and the last line that it wrote."""
        self.child.wait(5)
        said = "".join(self.words).strip().splitlines()
        return f"(status {self.child.returncode}): {said[-1] if said else SILENT}"

    def end(self) -> None:
        """Lets the process go, and sees that it goes; a second time does nothing."""
        if self.child.stdin is not None:
            with suppress(BrokenPipeError):
                self.child.stdin.close()
        try:
            self.child.wait(2)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
