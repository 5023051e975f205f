"""Commands of this program in forks of one process that has imported it: none waits for an interpreter, none sees another.

```text
 Warm.run ── words ──► warm process ── fork ──► a command, with files as its outputs
          ◄─ status ──  (no code of a user's, one thread)
```
When the asking process ends, however it does, the warm one sees the end of its input and ends what still runs.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tcpsbed.processes import GRACE_S, OURS, talking

LOOK_S = 0.2
"""Time for a command to write its stack."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_OURS = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
"""Where files are that are no user's."""
WORD = "warm"
"""The first word of the warm process, which `tcpsbed.__main__` knows."""
IMPORTED = (
    "numpy",
    "typer._adapters",
    "tcpsbed.datasets.formats",
    "tcpsbed.datasets.recordings",
    "tcpsbed.scenarios.compile",
    "tcpsbed.worlds.registry",
    "tcpsbed.worlds.virtual",
    "tcpsbed.runs.session",
    "tcpsbed.runs.forecast",
    "tcpsbed.doctor",
    "tcpsbed.analysis",
    "tcpsbed.analysis.summary",
    "tcpsbed.views.folder",
    "tcpsbed.cli.app",
    "tcpsbed.cli.run",
    "tcpsbed.cli.live",
    "tcpsbed.campaign.survey",
)
"""What a run imports; what fails to be imported here fails in the command that needs it, with its message."""


@dataclass
class _Process:
    """One warm process and the commands that it runs, by number."""

    started: subprocess.Popen[str]
    waiting: dict[int, Future[int]] = field(default_factory=dict)
    files: dict[Path, int] = field(default_factory=dict)
    """Commands by the files of their standard errors."""
    over: bool = False

    def ask(self, line: dict[str, Any]) -> None:
        """Sends it a line."""
        assert self.started.stdin is not None
        with suppress(OSError):  # it has just ended: `Warm._listen` says so
            self.started.stdin.write(f"{json.dumps(line)}\n")
            self.started.stdin.flush()


@dataclass
class Warm:
    """Runs commands in forks of a warm process, which starts when it is first needed. Threads may share it."""

    process: _Process | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: int = 0
    closed: bool = False

    def run(self, words: Sequence[str], out: Path, err: Path) -> int:
        """Runs a command and waits for it.

        Parameters
        ----------
        words
            As of the command line, without `tcpsbed`.
        out, err
            New files for its standard output and its standard error.

        Returns
        -------
        int
            Its exit status; negative: the number of the signal that ended it.
        """
        ended: Future[int] = Future()
        with self.lock:
            if self.closed:
                return -signal.SIGTERM
            process = self._alive()
            self.asked += 1
            process.waiting[self.asked], process.files[err] = ended, self.asked
            process.ask({"number": self.asked, "words": list(words), "files": [str(out), str(err)]})
        try:
            return ended.result()
        finally:
            process.files.pop(err, None)

    def place_of(self, err: Path) -> str:
        """Where a command is in code of a user's, such as `hold.py:12, in step`; empty if it is not, or nobody knows.

        Parameters
        ----------
        err
            The file of its standard error, which gets the stack of its threads.
        """
        with self.lock:
            process = self.process
            if process is None or process.over or err not in process.files:
                return ""
            size = err.stat().st_size if err.is_file() else 0
            process.ask({"look": process.files[err]})
        time.sleep(LOOK_S)
        with suppress(OSError):
            said = err.read_bytes()[size:].decode(errors="replace")
            for file, line, function in _FRAME.findall(said):
                if not file.startswith(_OURS) and Path(file).is_file():
                    return f"{Path(file).name}:{line}, in {function}"
        return ""

    def close(self) -> None:
        """Ends the process and all commands that it runs, and waits for that."""
        with self.lock:
            self.closed, process = True, self.process
        if process is not None and process.started.stdin is not None:
            with suppress(OSError):
                process.started.stdin.close()
            process.started.wait()

    def _alive(self) -> _Process:
        if self.process is None or self.process.over:
            started = talking([*OURS, WORD], stderr=None)
            self.process = _Process(started)
            threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        return self.process

    def _listen(self, process: _Process) -> None:
        assert process.started.stdout is not None
        for line in process.started.stdout:
            told = json.loads(line)
            with self.lock:
                ended = process.waiting.pop(told["number"])
            ended.set_result(told["status"])
        status = process.started.wait()
        with self.lock:
            process.over = True
        for one in process.waiting.values():
            one.set_result(status or -signal.SIGTERM)


def serve() -> None:
    """Runs commands until the input ends. Returns in a fork, whose `sys.argv` and outputs are those of a command."""
    for name in IMPORTED:
        with suppress(Exception):
            import_module(name)
    faulthandler.register(signal.SIGUSR1, file=2)  # of a command its own standard error
    gc.collect()
    gc.freeze()
    told = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    rest = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            _tell_ended(running, told)
        if 0 not in ready:
            continue
        read = os.read(0, 1 << 16)
        if not read:
            _end_all(running)
            os._exit(0)
        *lines, rest = (rest + read).split(b"\n")
        for asked in map(json.loads, lines):
            if "look" in asked:
                _look(running, asked["look"])
                continue
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (told, woken, wake):
                    os.close(one)
                _become(asked)
                return
            running[child] = asked["number"]


def _become(asked: dict[str, Any]) -> None:
    """Makes a fork what a process would be that was started with these words."""
    os.setsid()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.devnull, os.O_RDONLY), *((file, flags) for file in asked["files"])]
    for number, (file, how) in enumerate(files):
        opened = os.open(file, how, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv[1:] = asked["words"]
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()  # as in a process of its own: `random` of Python does so by itself


def _look(running: dict[int, int], number: int) -> None:
    """Has a command write the stack of its threads into its standard error."""
    for child, one in running.items():
        if one == number:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGUSR1)


def _tell_ended(running: dict[int, int], told: int) -> None:
    for child in list(running):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            line = {"number": running.pop(child), "status": os.waitstatus_to_exitcode(status)}
            with suppress(OSError):  # nobody listens any more: the input ends, too
                os.write(told, f"{json.dumps(line)}\n".encode())


def _end_all(running: dict[int, int]) -> None:
    """Ends commands with the processes that they started: asks them first."""
    until = time.monotonic() + GRACE_S
    for number in (signal.SIGTERM, signal.SIGKILL):
        for child in running:
            try:
                os.killpg(child, number)
            except ProcessLookupError:  # it is about to get a group of its own
                os.kill(child, number)
        while running and (time.monotonic() < until or number == signal.SIGKILL):
            for child in list(running):
                if os.waitpid(child, os.WNOHANG)[0]:
                    del running[child]
            time.sleep(0.01)
