"""The end of a command's process: its outputs, and threads that could keep it alive."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tcpsbed.cli import apart
from tcpsbed.cli.failures import FAILED, OUTPUT, guarded, refuse_broken
from tcpsbed.errors import printable
from tcpsbed.interrupts import ENDING, as_interrupts
from tcpsbed.processes import GRACE_S


class _Output(io.FileIO):
    """Standard output, which names itself where it takes nothing."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), OUTPUT) from None


class _Errors(io.FileIO):
    """Standard error that drops what cannot be written; the exit status remains."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_outputs() -> None:
    """Holds the three usual descriptors, so that no file takes the place of one that is closed, and names what fails.

    A terminal that cannot show a character shows a question mark. A standard error that takes nothing fails nothing.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free; to one for reading nothing can be written.
            os.open(os.devnull, flags)
            os.set_inheritable(number, True)
    before: Any = sys.stdout
    if before is None or isinstance(before, io.TextIOWrapper):
        lines = before is not None and (before.line_buffering or before.write_through)
        encoding = "utf-8" if before is None else before.encoding
        raw = io.BufferedWriter(_Output(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(raw, encoding, "replace", line_buffering=lines)
    before = sys.stderr
    if before is None or isinstance(before, io.TextIOWrapper):
        encoding = "utf-8" if before is None else before.encoding
        told = io.BufferedWriter(_Errors(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(told, encoding, "replace", line_buffering=True)


def run(command: Callable[[], None]) -> None:
    """Runs a command from its outputs to its end."""
    try:
        _run(guarded(command))
    except Exception as error:
        refuse_broken(error)
        raise


def _run(command: Callable[[], None]) -> None:
    open_outputs()
    as_interrupts()
    try:
        command()
    except SystemExit as end:
        ended(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except BaseException:
        ended(FAILED)
        raise
    ended(0)


def ended(status: int) -> None:
    """Writes what is still to be written, and sees that the process ends whatever code of the user's has started.

    Raises
    ------
    SystemExit
        If standard output takes nothing: with the status of that where the command's was 0.
    """
    apart.ended()
    if _threads() or _processes():
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        # Idle threads of executors end when the interpreter asks them to: the wait is beside it, not before.
        threading.Thread(target=_end, args=(status,), daemon=True).start()
    if sys.stdout is not None and not sys.stdout.closed:
        try:
            guarded(sys.stdout.flush)()
        except SystemExit as end:
            sys.exit(status or end.code)


def _threads() -> list[str]:
    ours = (threading.main_thread(), threading.current_thread())
    return [f"thread {one.name}" for one in threading.enumerate() if not one.daemon and one not in ours]


def _children() -> list[Any]:
    made = sys.modules.get("multiprocessing.process")
    return made.active_children() if made else []


def _processes() -> list[str]:
    return [f"process {one.name}" for one in _children() if not one.daemon]


def _end(status: int) -> None:
    time.sleep(GRACE_S)
    if left := _threads() + _processes():
        said = f"{', '.join(left)}: still running {GRACE_S:g} s after the end, and so stopped; allowed: daemon = True"
        print(f"tcpsbed: {printable(said)}", file=sys.stderr, flush=True)
        for one in _children():
            with suppress(OSError):
                one.kill()
        os._exit(status)
