"""Requests to stop: Ctrl-C and equivalent signals.

```text
Ctrl-C 1   the run ends in good order, what it recorded is kept
Ctrl-C 2   Python code of the user's is interrupted where it is; the run ends as with the first
Ctrl-C 3   the process ends: for code that catches everything, or that is not Python
```
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
"""Requests to end: Ctrl-C, `kill`, a terminal that is closed, Ctrl-\\, a limit of processor time."""
REPEATED = (signal.SIGHUP, signal.SIGXCPU)
"""Those that come more than once for one reason."""

STOPPING = (
    b"tcpsbed: the run ends when the code that runs now returns, and what it recorded is then summed up; "
    b"Ctrl-C again interrupts either, a third ends the command\n"
)


_came: set[int] = set()


def ends() -> bool:
    """Whether the command was asked to end by another way than Ctrl-C: then nothing is left to show to anybody."""
    return not _came <= {signal.SIGINT}


@dataclass
class _Stop:
    """Whether the user asked for the end. No `Event`: a second signal in the middle of its `set` would wait for itself."""

    asked: bool = False


@contextmanager
def interrupts(*, say: bool = False) -> Iterator[_Stop]:
    """Turns the first request to end into a flag; the second does what it usually does, the third ends the process.

    What is ignored from the start stays so: SIGHUP under `nohup`, SIGINT in the background of a script. A closed terminal
    sends SIGHUP more than once, and a limit of processor time SIGXCPU: the second asks for nothing new.

    Parameters
    ----------
    say
        Whether the first Ctrl-C is answered on standard error: for work that calls code which may not return.
    """
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: FrameType | None) -> None:
        stop.asked = True
        _came.add(number)
        restore()
        if number in REPEATED:
            signal.signal(number, signal.SIG_IGN)
        if say and number == signal.SIGINT:
            with suppress(OSError):
                os.write(2, STOPPING)  # no lock, unlike print

    for number in before:
        signal.signal(number, note)
    try:
        with _third_ends():
            yield stop
    finally:
        restore()


@contextmanager
def deferred() -> Iterator[None]:
    """Lets the first request to end wait until the work within is done: for libraries that it would leave in disorder.

    Threads and processes that are started meanwhile do not hear Ctrl-C.
    """
    with interrupts() as stop:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if stop.asked:
                raise KeyboardInterrupt


def as_interrupts() -> None:
    """Lets every request to end do what Ctrl-C does, so that a command clears up whatever asks for its end."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _third_ends() -> Iterator[None]:
    """Within it, the third Ctrl-C or request to end is the last; only for the main thread.

    Python writes each signal to a pipe as it comes; a native thread reads there, which waits for no interpreter.
    """
    from tcpsbed import _tcps

    heard, written = os.pipe()
    os.set_blocking(written, False)
    _tcps.end_at_third(heard)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(written)
