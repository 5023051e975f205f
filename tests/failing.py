"""Hooks that fail after 300 samples, each in its own way, and one that only talks."""

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


class Prints:
    def __init__(self):
        print(7)

    def __call__(self, t_ns, index, x, other, y):
        print(index, flush=True)
        y[: len(x)] = x
        return len(x)
