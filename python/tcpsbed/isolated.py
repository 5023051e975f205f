"""A hook in a process of its own: an accident in it ends that process, and the run goes on.

```text
node's loop ── time, index, x, other ──► process: hook(...), limits on time and memory
            ◄── values written, or why ─
```
The first failure of any kind (a signal, an exception, no memory, no answer in time) ends the process. Every call from
then on fails with that cause, so the samples end at the hook and a supervisor behind it holds.
"""

from __future__ import annotations

import atexit
import gc
import json
import operator
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcpsbed.errors import HookError, TcpsbedError, needs_linux, one_line
from tcpsbed.inputs import LIBRARY
from tcpsbed.library import LibraryHook
from tcpsbed.processes import PYTHON, cores, end_with_parent, heirs_end

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64] | NDArray[np.uint8]

READY_S = 50.0
"""Longest time to load a hook."""
_END_S = 1.0
_CPU_S = 2
"""Time beyond the limit of a call after which the system ends the process where all cores were busy with it, whatever became
of its node.
"""
_CALL = struct.Struct("<qqdqqqqqqHHH")
"""Time in ns, index, allowed bit/s (negative: not said), entries of x (-1: none), bytes of an entry of x, entries of
`other`, room in y, bytes of an entry of y; for hooks in C when the sample was made in ns, its flow, whether an echo command
rides on it, and the samples that are merged."""
_ANSWER = struct.Struct("<qq")
"""What the hook returned, or `_FAILED`; bytes that follow: what it wrote, or why it failed."""
_FAILED = -1
_left: list[socket.socket] = []
"""The line to the node, in the process of the hook, once the node has left it."""


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
        self._sample = (0, 0, 0, 1)
        self._line, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [*PYTHON, "-m", "tcpsbed.isolated", str(os.getpid()), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._close = weakref.finalize(self, _close, self._line, self._child)
        asked = {"module": module, "name": name, "params": params, "interval_ns": interval_ns}
        limits = {"time_ns": time_ns, "memory_bytes": memory_bytes}
        text = json.dumps(asked | limits).encode()
        self._deadline = time.monotonic() + READY_S
        try:
            self._send(struct.pack("<q", len(text)), text)
            takes, why = self._answer()
        except TimeoutError:
            self._close()
            raise HookError(f"hook {module}:{name} is not loaded after {READY_S:g} s") from None
        except OSError:
            raise HookError(
                f"hook {module}:{name}: {self._reaped()} ended its process while it was loaded"
            ) from None
        if takes == _FAILED:
            self._close()
            found, _, allowed = why.decode().partition("; allowed: ")
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
        head = _CALL.pack(
            t_ns, index, self._allowed_bps, n, each, len(other), len(y), y.itemsize, *self._sample
        )
        self._deadline = time.monotonic() + self._limit_s
        try:
            self._send(head, b"" if x is None else x, other)
            written, data = self._answer()
        except TimeoutError:
            self._end(f"no answer within {self._limit_s * 1e3:g} ms", t_ns)
        except OSError:
            self._end(self._reaped(), t_ns)
        if written == _FAILED:
            self._end(data.decode(errors="replace"), t_ns)
        y.data.cast("B")[: len(data)] = data
        return written

    def _end(self, why: str, t_ns: int) -> NoReturn:
        """Ends the process at an accident."""
        self._kill()
        self._close()
        self._ended = f"{why} ended its process at {t_ns / 1e9:.3f} s; each sample since then is dropped"
        raise HookError(self._ended)

    def _reaped(self) -> str:
        """What ended the process, which has closed its line."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_END_S)
        self._kill()
        self._close()
        status = self._child.returncode
        if status is not None and status < 0:
            return signal.Signals(-status).name
        return f"exit status {status}"

    def _kill(self) -> None:
        """Ends the process and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _send(self, *parts: Any) -> None:
        self._line.settimeout(self._left())
        self._line.sendall(b"".join(parts))

    def _answer(self) -> tuple[int, bytearray]:
        said, size = _ANSWER.unpack(self._read(_ANSWER.size))
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


def _close(line: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """Lets a process end by itself, for `_END_S`, and ends what it has started."""
    line.close()
    until = time.monotonic() + _END_S
    while child.returncode is None and time.monotonic() < until:
        if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break  # it has ended, and its number is not free yet
        time.sleep(0.005)
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _taken(line: socket.socket, size: int) -> bytearray:
    """So many bytes from the node; the process ends where it is gone."""
    data = bytearray(size)
    try:
        got = line.recv_into(data, size, socket.MSG_WAITALL) if size else 0
    except OSError:
        sys.exit(1)
    if got < size:
        _left.append(line)
        sys.exit()
    return data


def _end_all() -> None:
    """Ends what the hook has started, where its node is gone; after all that the hook itself wants to be done at the end."""
    if _left:
        os.killpg(0, signal.SIGKILL)


def _say(line: socket.socket, said: int, data: Any) -> None:
    with memoryview(data) as view:
        try:
            line.sendall(b"".join((_ANSWER.pack(said, view.nbytes), view)))
        except OSError:  # the node is gone, or the hook has closed the line
            sys.exit(1)


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
        t_ns, index, bps, n, each, n_other, room, size, *sample = _CALL.unpack(_taken(line, _CALL.size))
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
            _say(line, _FAILED, f"out of memory (limit {memory_bytes / 1e6:g} MB), {told(error)},".encode())
        except (Exception, KeyboardInterrupt) as error:  # the user's hook may fail in any way
            _say(line, _FAILED, f"{told(error)},".encode())
        else:
            _say(line, written, y[:written])


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


def main() -> None:
    """The process of a hook: its node by the first argument, the line to it by the second."""
    import tcpsbed.hooks  # noqa: F401 before its memory is limited

    atexit.register(_end_all)
    end_with_parent(int(sys.argv[1]))
    heirs_end()
    line = socket.socket(fileno=int(sys.argv[2]))
    (size,) = struct.unpack("<q", _taken(line, 8))
    asked = json.loads(_taken(line, size))
    _cap_memory(asked["memory_bytes"])
    try:
        hook = _made(**{key: asked[key] for key in ("module", "name", "params", "interval_ns")})
    except TcpsbedError as error:
        _say(line, _FAILED, one_line(str(error)).encode())
        return
    except MemoryError:
        limit = f"isolate.memory = {asked['memory_bytes'] / 1e6:g} MB is too little to load it"
        _say(line, _FAILED, f"hook {asked['module']}:{asked['name']}: {limit}".encode())
        return
    _say(line, hasattr(hook, "on_allowance") + 2 * isinstance(hook, LibraryHook), b"")
    gc.collect()
    gc.freeze()
    _serve(line, hook, asked["time_ns"], asked["memory_bytes"])


if __name__ == "__main__":
    main()
