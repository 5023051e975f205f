"""A host's part of a run, started by ssh: node processes here, their talk and their rows over one pair of lines.

```text
 orchestrator ◄─ ssh: JSON lines ─► agent ◄─ JSON lines ─► tcpsbed node …
                                      └── rings of rows ──┘
```
Every message has an `op`. In: `hello`, `clock`, `files`, `launch`, `to` (a line for a node), `rings`, `beat`. Out: answers
of the same names, `from` (a line of a node; `null` at its end), `rows`, `beat` twice a second. Where the orchestrator
is silent or gone, everything here ends.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import queue
import sys
import tarfile
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.worlds.process import Process
from tcpsbed.worlds.rows import RingDrain

BEAT_S = 0.5
"""Time between two signs of life."""
ORPHAN_S = 10.0
"""Silence after which the orchestrator is taken for dead."""
DRAIN_S = 0.05
"""Time between two looks at the rings."""


class Agent:
    """What runs on this host, until the orchestrator lets it go."""

    def __init__(self, memory: Path) -> None:
        self.memory, self.root = memory, memory / "files"
        self.processes: dict[str, Process] = {}
        self.drains: dict[str, RingDrain] = {}
        self.out = threading.Lock()
        self.heard = time.monotonic()

    def say(self, op: str, **content: Any) -> None:
        """Sends a message; one that nobody takes any more is noticed by the end of input."""
        line = json.dumps({"op": op} | content)
        with self.out:
            print(line, flush=True)

    def serve(self) -> None:
        """Answers until the input ends or keeps silent."""
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(lines,), daemon=True).start()
        beaten = 0.0
        while time.monotonic() - self.heard < ORPHAN_S:
            now = time.monotonic()
            if now - beaten > BEAT_S:
                beaten = now
                self.say("beat")
            self._drain()
            try:
                line = lines.get(timeout=DRAIN_S)
            except queue.Empty:
                continue
            if line is None:
                return
            self.heard = time.monotonic()
            message = json.loads(line)
            getattr(self, f"_{message.pop('op')}")(**message)

    def end(self) -> None:
        """Ends all processes; what they recorded goes out first."""
        for process in self.processes.values():
            process.end()
        self._drain()

    def _drain(self) -> None:
        for ring, drain in self.drains.items():
            if rows := drain.drain():
                self.say("rows", ring=ring, rows=base64.b64encode(rows).decode("ascii"))

    def _beat(self) -> None:
        """A sign of life needs no answer."""

    def _hello(self) -> None:
        self.say("hello", version=_tcps.version(), python=platform.python_version(), memory=str(self.memory))

    def _clock(self, number: int) -> None:
        self.say("clock", number=number, monotonic_ns=_tcps.monotonic_ns())

    def _files(self, tar: str) -> None:
        """Unpacks files below a folder of this run; a hash over what lies there then says whether they are whole."""
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(tar))) as packed:
            packed.extractall(self.root, filter="data")
        self.say("files", root=str(self.root), sha256=digest(self.root))

    def _launch(self, name: str) -> None:
        process = Process(name, self.memory / name)
        self.processes[name] = process
        threading.Thread(target=self._forward, args=(process,), daemon=True).start()

    def _forward(self, process: Process) -> None:
        while (answer := process.answers.get()) is not None:
            self.say("from", name=process.name, line=answer)
        self.say("from", name=process.name, line=None, words=process.last_words())

    def _to(self, name: str, line: dict[str, Any]) -> None:
        self.processes[name].tell(**line)

    def _rings(self, rings: list[str]) -> None:
        for ring in rings:
            self.drains[ring] = RingDrain([Path(ring)], self.memory)

    def _lost(self) -> None:
        self._drain()
        self.say("lost", rows=sum(drain.lost() for drain in self.drains.values()))


def digest(root: Path) -> str:
    """A hash over the names and contents of all files below a folder."""
    found = hashlib.sha256()
    for path in sorted(place for place in root.rglob("*") if place.is_file()):
        content = path.read_bytes()
        found.update(f"{path.relative_to(root)}\n{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def _read(lines: queue.Queue[str | None]) -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)


def main() -> int:
    """Serves one run."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with ExitStack() as stack:
        agent = Agent(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tcpsbed-", dir=place))))
        stack.callback(agent.end)
        try:
            agent.serve()
        except BrokenPipeError:
            return 1
    return 0
