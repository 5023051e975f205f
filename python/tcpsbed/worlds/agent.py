"""A host's part of a run, started by ssh: node processes, with their messages and rows over one pair of pipes.

```text
 orchestrator ◄─ ssh: JSON lines ─► agent ◄─ JSON lines ─► tcpsbed node …
                                      └── rings of rows ──┘
```
Every message has an `op`. In: `hello`, `clock`, `file` (a piece of one), `files` (that was all), `launch`, `to` (a line for
a node), `rings`, `simulator` (ns-3's), `beat`. Out: answers of the same names, `from` (a line of a node; `null` at its end),
`rows`, `capture` (a piece of one), `beat` twice a second with how long nodes have not run. Where the orchestrator is silent
or gone, everything here ends.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from tcpsbed import _tcps
from tcpsbed.errors import WorldError
from tcpsbed.worlds import memory, ns3_program
from tcpsbed.worlds.process import Process
from tcpsbed.worlds.rows import RingDrain

BEAT_S = 0.5
"""Time between two signs of life."""
ORPHAN_S = 10.0
"""Silence after which the orchestrator is taken for dead."""
DRAIN_S = 0.05
"""Polling interval of the rings."""
PIECE = 1 << 17
"""Bytes of a file in one message, so that none keeps the line for long."""


class Agent:
    """What runs on this host, until the orchestrator lets it go."""

    def __init__(self, memory: Path) -> None:
        self.memory, self.root = memory, memory / "files"
        self.processes: dict[str, Process] = {}
        self.drains: dict[str, RingDrain] = {}
        self.captures: dict[str, int] = {}
        """How much of each has been sent."""
        self.silent_s: dict[str, float] = {}
        """How long the loops of each process have not run."""
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
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        threading.Thread(target=self._live, daemon=True).start()
        while time.monotonic() - self.heard < ORPHAN_S:
            self._drain()
            try:
                line = lines.get(timeout=DRAIN_S)
            except queue.Empty:
                continue
            if line is None:
                return
            message = json.loads(line)
            getattr(self, f"_{message.pop('op')}")(**message)

    def _read(self, lines: queue.Queue[str | None]) -> None:
        for line in sys.stdin:
            self.heard = time.monotonic()
            lines.put(line)
        lines.put(None)

    def _live(self) -> None:
        """Sends signs of life, whatever a node that takes no line does to the other thread."""
        with suppress(BrokenPipeError):
            while True:
                self.say("beat", silent_s=self.silent_s)
                time.sleep(BEAT_S)

    def end(self) -> None:
        """Ends all processes; what they recorded goes out first."""
        for process in self.processes.values():
            process.end()
        self._drain()

    def _drain(self) -> None:
        for ring, drain in self.drains.items():
            if rows := drain.drain():
                self.say("rows", ring=ring, rows=base64.b64encode(rows).decode("ascii"))
        silent = [one for drain in self.drains.values() for one in drain.silent_s().items()]
        self.silent_s = {name: max(s for other, s in silent if other == name) for name, _ in silent}
        for capture in self.captures:
            with Path(capture).open("rb") as file:
                file.seek(self.captures[capture])
                while piece := file.read(PIECE):
                    self.captures[capture] += len(piece)
                    self.say("capture", capture=capture, piece=base64.b64encode(piece).decode("ascii"))

    def _beat(self) -> None:
        """A sign of life needs no answer."""

    def _hello(self) -> None:
        self.say("hello", version=_tcps.version(), python=platform.python_version(), memory=str(self.memory))

    def _clock(self, number: int) -> None:
        self.say("clock", number=number, monotonic_ns=_tcps.monotonic_ns())

    def _file(self, path: str, piece: str) -> None:
        """Appends a piece to a file below a folder of this run."""
        name = PurePosixPath(path)
        if name.is_absolute() or ".." in name.parts:
            raise WorldError(f'found the file "{path}"', allowed="a path below the folder of the run")
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        with (self.root / name).open("ab") as file:
            file.write(base64.b64decode(piece))

    def _files(self) -> None:
        """Answers with a hash over all received files, to check them."""
        found = {str(path.relative_to(self.root)): path for path in self.root.rglob("*") if path.is_file()}
        self.say("files", root=str(self.root), sha256=digest(found))

    def _launch(self, name: str) -> None:
        process = Process(name, self.memory / name)
        self.processes[name] = process
        threading.Thread(target=self._forward, args=(process,), daemon=True).start()

    def _forward(self, process: Process) -> None:
        while (answer := process.answers.get()) is not None:
            self.say("from", name=process.name, line=answer)
        self.say("from", name=process.name, line=None, words=process.last_output())

    def _to(self, name: str, line: dict[str, Any]) -> None:
        self.processes[name].send(**line)

    def _rings(self, rings: list[str], captures: list[str]) -> None:
        for ring in rings:
            self.drains[ring] = RingDrain([Path(ring)], self.memory)
        self.captures = dict.fromkeys(captures, 0)

    def _simulator(self) -> None:
        """Answers with the place of ns-3's program, or the reason why it is missing."""
        try:
            self.say("simulator", program=str(ns3_program.built()))
        except WorldError as error:
            self.say("simulator", program=None, why=str(error))

    def _lost(self) -> None:
        self._drain()
        self.say("lost", rows=sum(drain.lost() for drain in self.drains.values()))


def digest(files: Mapping[str, Path]) -> str:
    """A hash over the names and contents of files."""
    found = hashlib.sha256()
    for name in sorted(files):
        content = files[name].read_bytes()
        found.update(f"{name}\n{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def main() -> int:
    """Serves one run."""
    with ExitStack() as stack:
        agent = Agent(stack.enter_context(memory.folder()))
        stack.callback(agent.end)
        try:
            agent.serve()
        except BrokenPipeError:
            return 1
    return 0
