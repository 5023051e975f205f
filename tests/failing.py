"""Hooks that fail after 300 samples, each in its own way, and one that only talks."""

import ctypes
import os
import struct
import sys
import threading

AFTER = 300


class Nan:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x if index < AFTER else float("nan")
        return len(x)


class Raises:
    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            raise RuntimeError("the model has left its domain")
        y[: len(x)] = x
        return len(x)


class Stop(BaseException):
    """What few handlers expect."""


class Stops:
    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            raise Stop("it is enough")
        y[: len(x)] = x
        return len(x)


class TooMuch:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x
        return len(x) if index < AFTER else 10_000


class Blocks:
    def __init__(self, seconds=None):
        self.seconds = seconds

    def __call__(self, t_ns, index, x, other, y):
        if index == AFTER:
            threading.Event().wait(self.seconds)
        y[: len(x)] = x
        return len(x)


class Aborts:
    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            os.abort()
        y[: len(x)] = x
        return len(x)


class Faults:
    """Reads address 0 in C."""

    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            ctypes.string_at(0)
        y[: len(x)] = x
        return len(x)


class Hogs:
    """Keeps 10 MB a sample."""

    def __init__(self):
        self.kept = []

    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            self.kept.append(bytearray(10_000_000))
        y[: len(x)] = x
        return len(x)


class Spins:
    """Never returns, and has started a process that does not end either."""

    def __call__(self, t_ns, index, x, other, y):
        if index >= AFTER:
            if os.fork() == 0:
                threading.Event().wait()
            while True:
                pass
        y[: len(x)] = x
        return len(x)


class Strays:
    """Writes to the socket of its process, as wild code in C may, once."""

    def __call__(self, t_ns, index, x, other, y):
        if index == AFTER:
            os.write(int(sys.argv[-1]), struct.pack("<qq", 3, -5))
        y[: len(x)] = x
        return len(x)


class Prints:
    def __init__(self):
        print(7)

    def __call__(self, t_ns, index, x, other, y):
        print(index, flush=True)
        y[: len(x)] = x
        return len(x)
