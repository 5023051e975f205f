"""A hook in C, called from Python: in the process of its own that `isolate = true` gives it."""

from __future__ import annotations

import atexit
import ctypes
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.errors import HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64] | NDArray[np.uint8]

EMIT, NOTHING = 0, 1


class In(ctypes.Structure):
    """`tcps_in` of `tcps_hook.h`."""

    _fields_ = (
        ("now_ns", ctypes.c_int64),
        ("origin_ns", ctypes.c_int64),
        ("index", ctypes.c_uint32),
        ("flow", ctypes.c_uint16),
        ("present", ctypes.c_uint16),
        ("n", ctypes.c_uint32),
        ("n_bytes", ctypes.c_uint32),
        ("n_other", ctypes.c_uint32),
        ("tagged", ctypes.c_uint16),
        ("merging", ctypes.c_uint16),
        ("x", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("other", ctypes.c_void_p),
        ("allowed_bps", ctypes.c_double),
    )


class Out(ctypes.Structure):
    """`tcps_out` of `tcps_hook.h`."""

    _fields_ = (
        ("n", ctypes.c_uint32),
        ("cap", ctypes.c_uint32),
        ("n_bytes", ctypes.c_uint32),
        ("cap_bytes", ctypes.c_uint32),
        ("y", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
    )


class LibraryHook:
    """A function of a shared library with its state, called as a hook in Python is.

    Parameters
    ----------
    path, symbol
        The library, and the function in it.
    params
        What its `_init` is given, as JSON.
    interval_ns
        Of a predictor: the time between the samples that it is given.

    Raises
    ------
    HookError
        If the library has no such function, cannot be loaded, or refuses its parameters.
    """

    def __init__(self, path: str, symbol: str, params: dict[str, Any], interval_ns: int | None) -> None:
        if interval_ns is not None:
            params = {"interval_ns": interval_ns} | params
        try:
            self._library = ctypes.CDLL(path)
            self._call = self._library[symbol]
        except (OSError, AttributeError) as error:
            raise HookError(f"hook {path}:{symbol} cannot be loaded: {error}") from None
        self._call.argtypes = (ctypes.c_void_p, ctypes.POINTER(In), ctypes.POINTER(Out))
        self._state = None
        if init := getattr(self._library, f"{symbol}_init", None):
            init.argtypes, init.restype = (ctypes.c_char_p,), ctypes.c_void_p
            self._state = init(json.dumps(params).encode())
            if self._state is None:
                raise HookError(f"hook {path}:{symbol}: {symbol}_init refused its parameters {params}")
        free = getattr(self._library, f"{symbol}_free", None)
        if free and self._state is not None:
            free.argtypes, free.restype = (ctypes.c_void_p,), None
            atexit.register(free, self._state)
        self._in, self._out = In(), Out()

    def on_allowance(self, bps: float | None) -> None:
        """Keeps the allowance for the next call."""
        self._in.allowed_bps = -1.0 if bps is None else bps

    def on_sample(self, origin_ns: int, flow: int, tagged: int, merging: int) -> None:
        """Keeps what else the next call is told of its sample."""
        given = self._in
        given.origin_ns, given.flow, given.tagged, given.merging = origin_ns, flow, tagged, merging

    def __call__(self, t_ns: int, index: int, x: Array | None, other: Array, y: Array) -> int:
        """One call; how many values, or bytes, it wrote into y.

        Raises
        ------
        HookError
            If it returned an error, or says that it wrote more than there is room for.
        """
        given, out = self._in, self._out
        given.now_ns, given.index, given.present = t_ns, index, x is not None
        given.n, given.x = _lent(x, np.float64)
        given.n_bytes, given.bytes = _lent(x, np.uint8)
        given.n_other, given.other = _lent(other, np.float64)
        out.n, out.n_bytes = 0, 0
        room, out.y = _lent(y, np.float64)
        room_bytes, out.bytes = _lent(y, np.uint8)
        out.cap, out.cap_bytes = room, room_bytes
        said = self._call(self._state, given, out)
        if said == NOTHING:
            return 0
        if said != EMIT:
            raise HookError(f"returned {said}")
        written: int = out.n + out.n_bytes
        if out.n > room or out.n_bytes > room_bytes:
            of_other = out.n_bytes if room else out.n
            raise HookError(
                f"gave {'bytes' if room else 'values'} where {'values' if room else 'bytes'} are expected"
                if of_other
                else "wrote more than there is room for"
            )
        if written == 0:  # as in the node: the sample goes on as it is
            if x is None or x.dtype != y.dtype or len(x) > len(y):
                raise HookError("emitted a sample and wrote nothing into it")
            y[: len(x)] = x
            written = len(x)
        return written


def _lent(array: Array | None, kind: type) -> tuple[int, int | None]:
    """Entries and address of an array of this kind; otherwise none."""
    if array is None or array.dtype != kind:
        return 0, None
    return len(array), array.ctypes.data
