"""A node process, or one that speaks the emulator's part: JSON lines on its standard input and output."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcpsbed.errors import WorldError

NODE = (sys.executable, "-m", "tcpsbed", "node")
"""What a node runs on this computer, in this environment."""


class Process:
    """A process and its two lines of talk.

    Parameters
    ----------
    name
        The node, or what stands between nodes.
    ring
        Name of its rings of rows in shared memory.
    command
        What is started: a program that speaks the control protocol (`crates/tcps-run/src/real/control.rs`), here or,
        through a program such as `nsenter`, `docker exec -i` or `ssh`, elsewhere.
    """

    def __init__(self, name: str, ring: Path, command: Sequence[str] = NODE) -> None:
        self.name, self.ring = name, ring
        self.answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.report: list[dict[str, Any]] | None = None
        self.child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.words: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._overhear, daemon=True).start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            try:
                self.take(json.loads(line))
            except ValueError:
                self.words.append(line)
        self.answers.put(None)

    def _overhear(self) -> None:
        assert self.child.stderr is not None
        self.words.extend(self.child.stderr)

    def take(self, answer: dict[str, Any]) -> None:
        """Keeps a line that came, until somebody wants to hear it."""
        self.answers.put(answer)

    def tell(self, **message: Any) -> None:
        """Sends a line; a node that is dead is noticed by its silence."""
        assert self.child.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()

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
            self.child.wait(5)
            said = "".join(self.words).strip().splitlines()
            raise WorldError(
                f"node {self.name} died (status {self.child.returncode}): {said[-1] if said else 'no word'}"
            )
        if answer["op"] != op:
            raise WorldError(f"node {self.name}: {answer.get('error', answer)}")
        return answer

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
