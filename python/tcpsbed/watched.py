"""A process that is watched by another: however it ends, that is told, and so is the end of all that it has started.

```text
Watched ◄── how it ended, who was left ── watcher ── fork ──► main() of a module ──► its heirs
        ── end it now ──────────────────►    ▲ └── what is left of them is ended
                 standard error, handed on ──┘
```
The watcher is the parent of every orphan among the heirs (`PR_SET_CHILD_SUBREAPER`), so none escapes it by a session of its
own or a second fork. Only Linux has that.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tcpsbed.processes import GRACE_S, PYTHON

HEIRS_S = 0.5
"""Time for heirs to end by themselves after the process."""
_KILL_S = 2.0
"""Longest time that ending them takes."""
_LAST_BYTES = 200
"""How much of the last line on standard error is kept."""
_NAMED = 5
"""How many heirs are named."""
_PDEATHSIG, _SUBREAPER = 1, 36
_NOW = b"k"


@dataclass(frozen=True)
class End:
    """How a watched process ended."""

    status: int | None = None
    """Exit status, or a signal as a negative number; none: it did not end in time, and was ended."""
    last: str = ""
    """The last line that it or its heirs wrote to standard error before."""
    heirs: list[str] = field(default_factory=list)
    """What it had started and was ended, or lives on: sentences without a subject."""
    lost: bool = False
    """Whether nobody knows: the watcher was ended before it said how."""

    def __str__(self) -> str:
        if self.lost:
            return "the end of its watcher"
        if self.status is None:
            return "SIGKILL"
        if self.status >= 0:
            return f"exit status {self.status}"
        known = {one.value: one.name for one in signal.Signals}
        name = known.get(-self.status, f"signal {-self.status}")
        told = -self.status == signal.SIGABRT and self.last
        return f"{name} (last line on standard error: {self.last})" if told else name


class Watched:
    """`main(*words)` of a module in a process of its own, whose standard output goes to standard error.

    Parameters
    ----------
    module, words
        The module and what its `main` is given.
    keeps
        File descriptors that the process keeps.
    """

    def __init__(self, module: str, *words: str, keeps: tuple[int, ...]) -> None:
        self._word, theirs = socket.socketpair()
        self._heard = b""
        with theirs:
            own = theirs.fileno()
            self._watcher = subprocess.Popen(
                [*PYTHON, "-m", "tcpsbed.watched", str(own), ",".join(map(str, keeps)), module, *words],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(*keeps, own),
                start_new_session=True,
            )

    def kill(self) -> None:
        """Has the process ended now, and all that it has started; does not wait for that."""
        with suppress(OSError):
            self._word.sendall(_NOW)

    def how(self, wait_s: float) -> End | None:
        """How the process ended, as soon as it has; none: it has not within so many seconds."""
        return self._told(1, wait_s)

    def over(self, wait_s: float) -> End:
        """Waits so many seconds for the end of the process, and a bounded time for that of its heirs."""
        found = self.how(wait_s)
        if found is None:
            self.kill()
        last = self._told(2, GRACE_S)
        self._word.close()
        try:
            self._watcher.wait(0 if last is None else 1)
        except subprocess.TimeoutExpired:
            self._watcher.kill()  # the process dies with it
            self._watcher.wait()
        end = found or End()
        return End(end.status, end.last, last.heirs if last else [], end.lost)

    def _told(self, lines: int, wait_s: float) -> End | None:
        """The last of so many lines of the watcher."""
        until = time.monotonic() + wait_s
        while self._heard.count(b"\n") < lines:
            self._word.settimeout(max(until - time.monotonic(), 1e-3))
            try:
                more = self._word.recv(4096)
            except OSError:
                return None
            if not more:
                return End(heirs=["its watcher was ended: what it had started may live on"], lost=True)
            self._heard += more
        return End(**json.loads(self._heard.split(b"\n")[lines - 1]))


class _Watcher:
    """The process between."""

    def __init__(self, word: socket.socket, child: int, errors: int) -> None:
        self._word, self._child, self._errors, self._last = word, child, errors, b""
        self._ends_at = float("inf")
        self._wakes, self._rings = os.pipe()
        for end in (self._wakes, self._rings, errors):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._rings, warn_on_full_buffer=False)

    def watch(self) -> None:
        """Until the process has ended, and its heirs have."""
        status = self._reap()
        while status is None:
            left = self._ends_at - time.monotonic()
            if left <= 0:
                os.kill(self._child, signal.SIGKILL)
                left = self._ends_at = float("inf")
            self._wait(left)
            status = self._reap()
        self._hand_on()
        last = self._last.decode(errors="replace").strip().splitlines()
        self._say(status=status, last=last[-1] if last else "")
        until = time.monotonic() + HEIRS_S
        while (left := until - time.monotonic()) > 0 and self._ends_at > 0 and _heirs():
            self._wait(min(left, 0.05))
            self._reap()
        self._say(heirs=self._end_heirs())

    def _wait(self, seconds: float) -> None:
        """Waits for something to do, and does what needs no decision."""
        every = [self._wakes, self._errors, self._word.fileno()]
        sources = [number for number in every if number >= 0]
        ready = select.select(sources, [], [], None if seconds == float("inf") else seconds)[0]
        if self._wakes in ready:
            with suppress(BlockingIOError):
                os.read(self._wakes, 4096)
        if self._errors in ready:
            self._hand_on()
        if self._word.fileno() in ready:
            try:
                asked = self._word.recv(1)
            except OSError:
                asked = b""
            if asked == _NOW:
                self._ends_at = 0.0
            else:  # the node is gone
                self._ends_at = min(self._ends_at, time.monotonic() + GRACE_S)
                self._word.close()

    def _hand_on(self) -> None:
        """Hands on what is on standard error, until nobody can write there any more."""
        if self._errors < 0:
            return
        with suppress(BlockingIOError):
            while data := os.read(self._errors, 1 << 16):
                self._last = (self._last + data)[-_LAST_BYTES:]
                with suppress(OSError):
                    while data:
                        data = data[os.write(2, data) :]
            os.close(self._errors)
            self._errors = -1

    def _reap(self) -> int | None:
        """Buries who has ended; the status of the process, if it is among them."""
        found = None
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._child:
                    found = os.waitstatus_to_exitcode(ended[1])
        return found

    def _end_heirs(self) -> list[str]:
        """Ends what is left of what the process started, in sentences without a subject."""
        until, seen = time.monotonic() + _KILL_S, dict[int, str]()
        while (left := _heirs()) and time.monotonic() < until:
            seen |= left
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            self._hand_on()
            time.sleep(0.002)
        self._reap()
        told = [
            f"its child {pid} ({name}) {'could not be ended' if pid in left else 'was ended'}"
            for pid, name in sorted(seen.items(), key=lambda one: one[0] not in left)
        ]
        more = len(told) - _NAMED
        return told[:_NAMED] + ([f"it left {more} more children"] if more > 0 else [])

    def _say(self, **words: Any) -> None:
        with suppress(OSError):
            self._word.sendall(json.dumps(words).encode() + b"\n")


def _heirs() -> dict[int, str]:
    """Processes below this one that have not ended, with their names."""
    below: dict[int, list[tuple[int, str, bool]]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            head, _, rest = place.read_text(errors="replace").rpartition(") ")
            state, above = rest.split()[:2]
            number, name = head.split(" (", 1)
            below.setdefault(int(above), []).append((int(number), name, state not in "ZX"))
    found, look = dict[int, str](), [os.getpid()]
    while look:
        for pid, name, alive in below.pop(look.pop(), ()):
            look.append(pid)
            if alive:
                found[pid] = name
    return found


def _begin(word: socket.socket, keeps: list[int], module: str, words: list[str]) -> None:
    """Forks the process, and watches it."""
    control = ctypes.CDLL(None, use_errno=True).prctl
    control(_SUBREAPER, 1, 0, 0, 0)
    watcher, (errors, theirs) = os.getpid(), os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        for number in keeps:
            os.close(number)  # or its other end would not see the process close it
        _Watcher(word, child, errors).watch()
        return
    word.close()
    os.setsid()
    control(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != watcher:
        os._exit(1)
    os.close(errors)
    for number in (1, 2):
        os.dup2(theirs, number)
    os.close(theirs)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    import_module(module).main(*words)


def main() -> None:
    """The watcher, by the line to who started it, what the process keeps, its module, and the words for that."""
    number, keeps, module, *words = sys.argv[1:]
    _begin(socket.socket(fileno=int(number)), [int(one) for one in keeps.split(",")], module, words)


if __name__ == "__main__":
    main()
