"""Base of operators' devices: a parser without I/O, a reading thread, a hook that outputs the newest state.

```text
device or recording ──► Line (thread) ──► Reports.take(bytes) ──► newest state ──► Device (hook of a flow)
        gone ──────────────────────────► Reports.rest()               no sample ◄── gone
```
Without its device the hook fails and outputs no samples; the far side reacts as to any loss of commands (docs/safety.md).
A device that returns is used again.
"""

from __future__ import annotations

import os
import select
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError

Floats = NDArray[np.float64]

AGAIN_S = 0.5
"""Time between attempts to open a missing device."""
LOOK_S = 0.2
"""Longest wait for a report before the thread checks whether it should stop."""
MOST_BYTES = 4096
"""Most bytes read at once."""
ARRIVES_NS = 2_000_000_000
"""Time for a device to appear before a run reports it as missing."""


class Reports(Protocol):
    """Parser of a device's bytes."""

    refused: int
    """Malformed reports."""

    def take(self, content: bytes) -> None:
        """Takes a report, or the received part of a stream of them; never raises."""
        ...

    def rest(self) -> None:
        """The device is gone: releases buttons and axes."""
        ...


Recorded = Callable[[Path], Iterator[tuple[float, bytes]]]
"""Reads a recording: seconds since its beginning, and reports."""


class Line:
    """Reads a device, or a recording at its original pace, in a thread.

    Parameters
    ----------
    path
        A device, a pipe or a recording (any regular file).
    reports
        Parser of the received bytes.
    recorded
        Reader of recordings.

    Raises
    ------
    HookError
        If the path does not exist, or cannot be read.
    """

    def __init__(self, path: Path, reports: Reports, recorded: Recorded) -> None:
        self.path, self.reports, self.recorded = path, reports, recorded
        self.present = False
        self.at_ns = 0
        """Arrival of the newest report, on CLOCK_MONOTONIC."""
        self._thread: threading.Thread | None = None
        try:
            self.is_recording = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:
            raise HookError(
                f"{path}: {error.strerror}", allowed="a device that is plugged in, or a recording of one"
            ) from None
        if not os.access(path, os.R_OK):
            raise HookError(f"{path}: may not be read", allowed="a udev rule or a group that lets you")
        if self.is_recording and next(recorded(path), None) is None:
            raise HookError(f"{path}: found no report", allowed="a recording of the device")

    def start(self) -> None:
        """Starts reading; a second call does nothing."""
        if self._thread is None:
            self.present = True
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        if self.is_recording:
            try:
                self._replay()
            finally:
                self._lose()
            return
        while True:
            try:
                self._read()
            except OSError:  # unplugged, or not there yet
                self._lose()
            time.sleep(AGAIN_S)

    def _lose(self) -> None:
        self.present = False
        self.reports.rest()

    def _replay(self) -> None:
        begun = time.monotonic()
        for at_s, report in self.recorded(self.path):
            time.sleep(max(begun + at_s - time.monotonic(), 0.0))
            self._take(report)

    def _read(self) -> None:
        """Reads until the device is gone."""
        line = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            self.present = True
            while True:
                if select.select([line], [], [], LOOK_S)[0]:
                    content = os.read(line, MOST_BYTES)
                    if not content:
                        raise OSError("at its end")
                    self._take(content)
        finally:
            os.close(line)

    def _take(self, content: bytes) -> None:
        self.reports.take(content)
        self.at_ns = time.monotonic_ns()


class Device(ABC):
    """A device as a `kinematics` hook at the operator: the newest state, then how many reports were refused."""

    _due_ns: int | None = None
    """When the device must be there; none before the first sample."""

    @abstractmethod
    def _start(self) -> None:
        """Begins to read; called before each sample."""

    @abstractmethod
    def _gone(self) -> str | None:
        """What is gone, or none."""

    @abstractmethod
    def _state(self, t_ns: int) -> list[float]:
        """The newest state."""

    @abstractmethod
    def _refused(self) -> int:
        """Malformed reports."""

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """The newest state.

        Raises
        ------
        HookError
            While the device is gone, so that the sample ends here and the report says why.
        """
        self._start()
        gone = self._gone()
        if self._due_ns is None:
            self._due_ns = t_ns + ARRIVES_NS
        if gone is not None and t_ns < self._due_ns:
            return 0
        self._due_ns = t_ns
        if gone is not None:
            raise HookError(f"{gone} is gone ({self._refused()} reports refused)")
        values = [*self._state(t_ns), float(self._refused())]
        y[: len(values)] = values
        return len(values)


def when_s(t_ns: int, at_ns: int) -> float:
    """A time on CLOCK_MONOTONIC in seconds of the run, whose time is now `t_ns`; 0 for never."""
    return (t_ns - (time.monotonic_ns() - at_ns)) / 1e9 if at_ns else 0.0
