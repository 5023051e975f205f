"""Libraries of a virtual run share the command's process; a second process reports if one ends it silently.

```text
command ─┬─ goes on in a process of its own ── hooks in C ── marks its own end ─► status
         └─ waits, hands requests to end on ◄── no mark: one line, status 1
```
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from tcpsbed.cli.failures import FAILED
from tcpsbed.errors import printable
from tcpsbed.inputs import LIBRARY
from tcpsbed.interrupts import ENDING
from tcpsbed.processes import how_ended

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

_TOLD = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
"""Signals of which the process itself tells (`crates/tcps-run/src/crash.rs`), and dies."""
_mark: mmap.mmap | None = None
"""Shared with the process that waits: whether this one has come to its end, and said what was to be said."""
_errors: tuple[int, int] | None = None


def apart(scenario: Scenario) -> None:
    """Continues in a process of its own if a scenario names libraries; the first process waits for it."""
    global _mark, _errors
    libraries = [file for file in scenario.files if LIBRARY.fullmatch(file.name)]
    if not libraries or _mark is not None:
        return
    from tcpsbed import _tcps

    _mark, _errors = mmap.mmap(-1, 1), _file_of(2)
    _tcps.mark_ends(ctypes.addressof(ctypes.c_char.from_buffer(_mark)))
    sys.stdout.flush()
    _mark[0] = 1  # a fork that cannot begin says so itself
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy: they know of forks
        child = os.fork()
    if child:
        _wait(child, libraries, _mark)
    _mark[0] = 0


def ended() -> None:
    """Notes that this process ends regularly, and that its messages were read."""
    if _mark is not None and _file_of(2) == _errors:
        _mark[0] = 1


def _file_of(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _wait(child: int, libraries: Sequence[Path], mark: mmap.mmap) -> NoReturn:
    def hand_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    os.setpgid(child, child)  # a terminal's Ctrl-C comes here, and is handed on once
    for number in (*ENDING, signal.SIGCONT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hand_on)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0 and -code in _TOLD:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if not mark[0]:
        names = " or ".join(path.name for path in libraries)
        told = (
            f"the command ended early, {how_ended(code)} and without a message: {names}, which ran in its process, "
            "called _exit(), or closed files that it did not open. What this command measured is lost, an earlier result is "
            "kept; allowed: a hook that returns a negative number where it fails"
        )
        os.write(2, f"tcpsbed: {printable(told)}\n".encode())
        code = FAILED
    os._exit(code if code >= 0 else FAILED)
