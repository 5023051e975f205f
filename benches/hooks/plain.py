"""Hooks of the benchmarks: a plain Python class, and a function for numba."""

from __future__ import annotations

from typing import Any


class Copy:
    """Hands a sample on as it is."""

    def __call__(self, t_ns: int, index: int, x: Any, other: Any, y: Any) -> int:
        """Write the values and say how many."""
        n = len(x)
        y[:n] = x
        return n


class Say:
    """Says that it wrote six values: the call alone, without numpy's copy."""

    def __call__(self, t_ns: int, index: int, x: Any, other: Any, y: Any) -> int:
        """Write nothing."""
        return 6


def copy(t_ns, index, x, other, state, y):  # type: ignore[no-untyped-def]
    """Do the same, compiled."""
    for i in range(len(x)):
        y[i] = x[i]
    return len(x)
