"""A hook in a process of its own: an accident in it ends that process, and the run goes on.

```text
node's loop ── number, time, index, x, other ──► process: hook(...), limits on time and memory
            ◄── number, values written, or why ─     ▲
            ◄── how it ended ─────────────────── its watcher (`watched`), which ends what it leaves behind
```
The first failure of any kind (a signal, an exception, no memory, no answer in time, stray bytes) ends the process. Every
call from then on fails with that cause, so the samples end at the hook and a supervisor behind it holds.
"""

from __future__ import annotations

import gc
import json
import operator
import resource
import secrets
import socket
import struct
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcpsbed.errors import HookError, TcpsbedError, needs_linux, one_line
from tcpsbed.inputs import LIBRARY
from tcpsbed.library import LibraryHook
from tcpsbed.processes import cores
from tcpsbed.watched import End, Watched

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64] | NDArray[np.uint8]

READY_S = 50.0
"""Longest time to load a hook."""
END_S = 1.0
"""Time for a process to end by itself after the last call."""
_CPU_S = 2
"""Time beyond the limit of a call after which the system ends the process where all cores were busy with it, whatever became
of its node.
"""
_CALL = struct.Struct("<qqqdqqqqqqHHH")
"""Number of the call, time in ns, index, allowed bit/s (negative: not said), entries of x (-1: none), bytes of an entry of
x, entries of `other`, room in y, bytes of an entry of y; for hooks in C when the sample was made in ns, its flow, whether an
echo command rides on it, and the samples that are merged."""
_ANSWER = struct.Struct("<qqq")
"""Number of the call; what the hook returned, or `_FAILED`; bytes that follow: what it wrote, or why it failed."""
_FAILED = -1
_MOST_WHY = 4096
"""Most bytes of why it failed."""
_STRAY = "stray bytes on its socket"


class _StrayError(Exception):
    """Bytes on the line that do not answer this call."""


class Isolated:
    """What a node's loop calls in place of the hook.

    Parameters
    ----------
    module, name, params, interval_ns
        The hook's class and its parameters, as `hooks.make_hook` takes them, or a library and a function in it.
    time_ns
        Longest time of a call, on the machine's clock.
    memory_bytes
        Address space that the process may map beyond that of Python and numpy.

    Raises
    ------
    HookError
        If the hook cannot be made.
    """

    def __init__(
        self,
        module: str,
        name: str,
        params: dict[str, Any],
        interval_ns: int | None,
        *,
        time_ns: int,
        memory_bytes: int,
    ) -> None:
        needs_linux("isolate")
        self._limit_s, self._memory_bytes = time_ns / 1e9, memory_bytes
        self._ended, self._allowed_bps, self._deadline = "", -1.0, 0.0
        self._works = False
        self._sample = (0, 0, 0, 1)
        self._call = secrets.randbits(62)  # a number that no stray bytes are likely to have
        self._line, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = Watched("tcpsbed.isolated", str(number), keeps=(number,))
        self._close = weakref.finalize(self, _close, self._line, self._process)
        asked = {"module": module, "name": name, "params": params, "interval_ns": interval_ns}
        more = {"time_ns": time_ns, "memory_bytes": memory_bytes, "call": self._call}
        text = json.dumps(asked | more).encode()
        self._deadline = time.monotonic() + READY_S
        try:
            self._send(struct.pack("<q", len(text)), text)
            takes, why = self._answer(3, 0)
        except TimeoutError:
            self._close()
            raise HookError(f"hook {module}:{name} is not loaded after {READY_S:g} s") from None
        except OSError:
            raise HookError(
                f"hook {module}:{name}: {self._reaped()} ended its process while it was loaded"
            ) from None
        except _StrayError:
            self._close()
            raise HookError(f"hook {module}:{name}: {_STRAY}") from None
        if takes == _FAILED:
            self._close()
            found, _, allowed = why.decode(errors="replace").partition("; allowed: ")
            raise HookError(found, allowed=allowed)
        self.takes_allowance, self.takes_sample = bool(takes & 1), bool(takes & 2)

    def on_allowance(self, bps: float | None) -> None:
        """Keeps the allowance for the next call."""
        self._allowed_bps = -1.0 if bps is None else bps

    def on_sample(self, origin_ns: int, flow: int, tagged: int, merging: int) -> None:
        """Keeps what a hook in C is told of the sample of the next call."""
        self._sample = (origin_ns, flow, tagged, merging)

    def __call__(self, t_ns: int, index: int, x: Array | None, other: Array, y: Array) -> int:
        """One call of the hook, as `docs/hooks.md` has it."""
        if self._ended:
            raise HookError(self._ended)
        n, each = (-1, 0) if x is None else (len(x), x.itemsize)
        self._call += 1
        sizes = n, each, len(other), len(y), y.itemsize
        head = _CALL.pack(self._call, t_ns, index, self._allowed_bps, *sizes, *self._sample)
        self._deadline = time.monotonic() + self._limit_s
        self._works = True
        try:
            self._send(head, b"" if x is None else x, other)
            written, data = self._answer(len(y), y.itemsize)
        except TimeoutError:
            self._end(f"no answer within {self._limit_s * 1e3:g} ms", t_ns)
        except OSError:
            self._end(self._reaped(), t_ns)
        except _StrayError:
            self._end(_STRAY, t_ns)
        if written == _FAILED:
            self._end(data.decode(errors="replace"), t_ns)
        self._works = False
        y.data.cast("B")[: len(data)] = data
        return written

    def end(self) -> list[str]:
        """Ends the process after the last call; what was wrong with that, and who was left of what it had started."""
        if self._works:  # it is in a call that nobody waits for any more, or met with an accident
            self._process.kill()
        found: End | None = self._close()
        if found is None:
            return []
        wrong: list[str] = []
        if found.status is None and not found.lost and not self._works:
            wrong.append(f"its process was still running {END_S:g} s after its last call, and was ended")
        elif found.status and not self._works:
            wrong.append(f"{found} ended its process after its last call")
        return wrong + found.heirs

    def _end(self, why: str, t_ns: int) -> NoReturn:
        """Ends the process at an accident."""
        self._process.kill()
        self._line.close()
        self._ended = f"{why} ended its process at {t_ns / 1e9:.3f} s; each sample since then is dropped"
        raise HookError(self._ended)

    def _reaped(self) -> str:
        """What ended the process, which has closed its line."""
        found = self._process.how(END_S)
        self._process.kill()
        return str(found or End())

    def _send(self, *parts: Any) -> None:
        self._line.settimeout(self._left())
        self._line.sendall(b"".join(parts))

    def _answer(self, room: int, each: int) -> tuple[int, bytearray]:
        """What the process said to this call, and the bytes behind it: as many values of `each` bytes, or why it failed."""
        call, said, size = _ANSWER.unpack(self._read(_ANSWER.size))
        fits = 0 <= size <= _MOST_WHY if said == _FAILED else 0 <= said <= room and size == said * each
        if call != self._call or not fits:
            raise _StrayError
        return said, self._read(size)

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            self._line.settimeout(self._left())
            got = self._line.recv_into(view)
            if not got:
                raise ConnectionResetError
            view = view[got:]
        return data

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _close(line: socket.socket, process: Watched) -> End:
    """Lets a process end by itself, for `END_S`, and ends what it has started."""
    line.close()
    return process.over(END_S)


def _taken(line: socket.socket, size: int) -> bytearray:
    """So many bytes from the node; the process ends where it is gone."""
    data = bytearray(size)
    try:
        got = line.recv_into(data, size, socket.MSG_WAITALL) if size else 0
    except OSError:
        sys.exit(1)
    if got < size:
        sys.exit()
    return data


def _say(line: socket.socket, call: int, said: int, data: Any) -> None:
    with memoryview(data) as view:
        try:
            line.sendall(b"".join((_ANSWER.pack(call, said, view.nbytes), view)))
        except OSError:  # the node is gone, or the hook has closed the line
            sys.exit(1)


def _fail(line: socket.socket, call: int, why: str) -> None:
    _say(line, call, _FAILED, why.encode()[:_MOST_WHY])


@contextmanager
def _capped_processor_time(time_ns: int) -> Iterator[None]:
    """Within it this process ends where it uses far more processor time than a call may take, on all cores."""
    before = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(time.process_time() + cores() * (time_ns / 1e9 + _CPU_S)) + 1
    soft = seconds if before[1] == resource.RLIM_INFINITY else min(seconds, before[1])
    resource.setrlimit(resource.RLIMIT_CPU, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


def _cap_memory(memory_bytes: int) -> None:
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + memory_bytes,) * 2)


def _serve(line: socket.socket, hook: Any, time_ns: int, memory_bytes: int) -> None:
    """Calls a hook for its node, until that is gone."""
    from tcpsbed.hooks import shielded, told

    y: Array = np.zeros(0)
    while True:
        call, t_ns, index, bps, *sizes = _CALL.unpack(_taken(line, _CALL.size))
        n, each, n_other, room, size, *sample = sizes
        x = None if n < 0 else np.frombuffer(_taken(line, n * each), np.float64 if each > 1 else np.uint8)
        other = np.frombuffer(_taken(line, 8 * n_other))
        if len(y) != room:
            y = np.zeros(room, np.float64 if size > 1 else np.uint8)
        try:
            with shielded("an isolated hook"), _capped_processor_time(time_ns):
                if hasattr(hook, "on_allowance"):
                    hook.on_allowance(bps if bps >= 0 else None)
                if isinstance(hook, LibraryHook):
                    hook.on_sample(*sample)
                said = hook(t_ns, index, x, other, y)
            written = _written(said, room)
        except MemoryError as error:
            gc.collect()
            _fail(line, call, f"out of memory (limit {memory_bytes / 1e6:g} MB), {told(error)},")
        except SystemExit:
            raise
        except BaseException as error:  # the user's hook may fail in any way
            _fail(line, call, f"{told(error)},")
        else:
            _say(line, call, written, y[:written])


def _written(said: Any, room: int) -> int:
    """How many values a call has written."""
    try:
        written = operator.index(said)
    except TypeError:
        allowed = "how many values it wrote into y, such as return len(x), or 0: the sample ends here"
        raise HookError(f"__call__() returned {said!r:.80}", allowed=allowed) from None
    if not 0 <= written <= room:
        raise HookError(f"it said that it wrote {written} of {room} values")
    return written


def _made(module: str, name: str, params: dict[str, Any], interval_ns: int | None) -> Any:
    from tcpsbed import hooks  # imported already, before memory was limited

    if LIBRARY.fullmatch(module):
        return LibraryHook(module, name, params, interval_ns)
    return hooks.make_hook(module, name, json.dumps(params), interval_ns)


def main(number: str) -> None:
    """The process of a hook, with the number of the line to its node."""
    import tcpsbed.hooks  # noqa: F401 before its memory is limited

    line = socket.socket(fileno=int(number))
    (size,) = struct.unpack("<q", _taken(line, 8))
    asked = json.loads(_taken(line, size))
    call = asked["call"]
    _cap_memory(asked["memory_bytes"])
    try:
        hook = _made(**{key: asked[key] for key in ("module", "name", "params", "interval_ns")})
    except TcpsbedError as error:
        _fail(line, call, one_line(str(error)))
        return
    except MemoryError:
        limit = f"isolate.memory = {asked['memory_bytes'] / 1e6:g} MB is too little to load it"
        _fail(line, call, f"hook {asked['module']}:{asked['name']}: {limit}")
        return
    _say(line, call, hasattr(hook, "on_allowance") + 2 * isinstance(hook, LibraryHook), b"")
    gc.collect()
    gc.freeze()
    _serve(line, hook, asked["time_ns"], asked["memory_bytes"])
