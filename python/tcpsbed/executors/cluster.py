"""Workers of Dask as an executor: connected, with the same build, and refused in one message where that cannot be.

```text
 address ─► connect ─► compare builds ─► executor ─► calls with all that they need ─► results, without a shared disk
 local:N ─► N processes of this machine, which end with the connection
```
"""

from __future__ import annotations

import ast
import logging
import os
import re
import socket
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from tcpsbed.errors import ConfigError, TcpsbedError, WorldError, counted, one_line
from tcpsbed.executors.build import build
from tcpsbed.interrupts import deferred
from tcpsbed.processes import cores

try:
    import distributed
except ImportError:
    found, remedy = "needs the package distributed", "pip install 'tcpsbed[cluster]', or without --cluster"
    raise ConfigError(found, key="--cluster", allowed=remedy) from None

T = TypeVar("T")
Plugin: Any = distributed.WorkerPlugin
KilledWorker: Any = distributed.KilledWorker
get_worker = distributed.get_worker
CLOCK = "clock"
"""The resource of a worker that may run cells on the machine's clock."""
SILENT = logging.CRITICAL + 1
"""Level of what the library says itself: nothing, as a scheduler that is ended calls that critical."""
PATIENCE_S = 10.0
"""Time for a scheduler to answer, and for its first worker to be there."""
EXAMPLE = "tcp://host:8786, where dask scheduler runs, or local:4 for four workers on this machine"
_LOCAL = re.compile(r"local:([1-9][0-9]{0,3})")
_REMOTE = re.compile(r"(tcp|tls|ws|wss)://[^\s/]+:[0-9]+/?")


def refuse_address(address: object) -> None:
    """Raises `ConfigError` if an address is none, or its workers would repeat the call of a script."""
    if not isinstance(address, str):
        raise ConfigError(f"found {type(address).__name__}", key="cluster", allowed=EXAMPLE)
    if not _LOCAL.fullmatch(address) and not _REMOTE.fullmatch(address):
        raise ConfigError(f'found "{address}"', key="--cluster", allowed=EXAMPLE)
    if _LOCAL.fullmatch(address):
        refuse_unguarded()


@contextmanager
def connected(address: str) -> Iterator[Executor]:
    """Workers as an executor, until the work ends.

    Raises
    ------
    ConfigError, WorldError
        If the address is none, or nobody answers there; if builds differ; if the workers, or the connection, are lost.
    """
    refuse_address(address)
    connection = Connection(address)
    connection.open()
    try:
        yield Workers(connection.client)
    except KilledWorker:
        found = f"{address}: every worker that tried a part of the work ended"
        allowed = "workers with more memory, or without --cluster"
        raise WorldError(found, key="--cluster", allowed=allowed) from None
    except (CancelledError, distributed.comm.CommClosedError):
        allowed = "the command again, once the scheduler answers"
        raise WorldError(f"{address}: the connection was lost", key="--cluster", allowed=allowed) from None
    finally:
        connection.close()


class Workers(Executor):
    """Workers that are connected. An error that is raised at one of them names it."""

    def __init__(self, client: Any) -> None:
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Has a worker call a function; it and its arguments must be such as cloudpickle takes."""
        found: Future[T] = self._executor.submit(_there, build(), partial(fn, *args, **kwargs))
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No further calls."""
        self._executor.shutdown(wait=wait and not cancel_futures)


def _there(built: str, call: Callable[[], T]) -> T:
    """Calls at a worker, which may have come after the others were compared."""
    try:
        if wrong := difference(built):
            raise WorldError(wrong)
        return call()
    except TcpsbedError as error:
        raise error.retold(f"worker {get_worker().address}: {error}") from None


@dataclass
class Connection:
    """A connection to workers."""

    address: str
    client: Any = None
    local: Any = None

    def open(self) -> None:
        """Connects, and compares the builds of the workers.

        Raises
        ------
        WorldError
            If nobody answers, if there is no worker, or if one has another build.
        """
        try:
            _begin_tracker()
            with deferred():  # Dask waits for ever for workers whose start was broken off
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        logging.getLogger("distributed").setLevel(SILENT)
        target: Any = self.address
        try:
            if here := _LOCAL.fullmatch(self.address):
                self.local = target = local(int(here[1]))
            self.client = distributed.Client(target, timeout=PATIENCE_S)
            self.client.wait_for_workers(1, timeout=PATIENCE_S)
        except (OSError, ValueError, TypeError) as error:  # the last: TLS without its files
            why = one_line(str(error)) or "no answer"
            what = "no worker came" if self.client is not None else f"nobody answers ({why})"
            allowed = f"{EXAMPLE}; a worker joins by: dask worker {self.address} --nthreads 1"
            raise WorldError(
                f"{self.address}: {what} within {PATIENCE_S:g} s", key="--cluster", allowed=allowed
            ) from None
        self._refuse_others()

    def _refuse_others(self) -> None:
        found = self.client.run(told, on_error="return")
        wrong = {}
        for worker, said in found.items():
            if isinstance(said, BaseException):
                wrong[worker] = f"cannot run tcpsbed ({type(said).__name__}: {said})"
            elif said[1] != build():
                wrong[worker] = f"has {shown(said[1])}"
        if wrong:
            some = "; ".join(f"{worker} {what}" for worker, what in list(wrong.items())[:3])
            amiss = f"found {counted(len(wrong), 'worker')} of {len(found)} with another build: {some}"
            allowed = f"{shown(build())} with the same versions of Python and packages on every worker"
            raise WorldError(amiss, key="--cluster", allowed=allowed)

    def clocked(self) -> dict[str, float]:
        """The resource that a cell on the machine's clock needs."""
        machines = {worker: said[0] for worker, said in self.client.run(told).items()}
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        having = [worker for worker in machines if known[worker]["resources"].get(CLOCK)]
        if not having:
            allowed = f'on one worker of each machine: dask worker {self.address} --nthreads 1 --resources "{CLOCK}=1"'
            raise WorldError(f"found no worker with the resource {CLOCK}", key="--cluster", allowed=allowed)
        host, count = Counter(machines[worker] for worker in having).most_common(1)[0]
        if count > 1:
            found = (
                f"found {count} workers with the resource {CLOCK} on {host}: cells would disturb each other"
            )
            raise WorldError(found, key="--cluster", allowed="one on each machine")
        return {CLOCK: 1}

    def close(self) -> None:
        """Ends what waits, workers of this machine, and the connection."""
        client, self.client = self.client, None
        if client is not None:
            client.close(timeout=PATIENCE_S)
        local, self.local = self.local, None
        if local is not None:
            local.close()


def _begin_tracker() -> None:
    """Begins Python's tracker of semaphores: later it would let Ctrl-C through in the thread that first needs it.

    It clears up after a command that was killed, too, and would warn of that.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def difference(built: str) -> str:
    """What differs between this build of tcpsbed and another; empty: nothing."""
    mine = build()
    return "" if mine == built else f"found {shown(mine)}, and here {shown(built)}"


def shown(built: str) -> str:
    """A build in a message."""
    version, _, digest = built.partition(" ")
    return f"tcpsbed {version}, build {digest[:8]}"


def told() -> tuple[str, str]:
    """The machine and the build of a worker."""
    return socket.gethostname(), build()


def local(number: int) -> Any:
    """Workers of this machine. The first has the resource for the machine's clock, also where it is started again."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # another cluster has the port of a page that nobody looks at
        made = distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=SILENT,
            resources={CLOCK: 1},
        )
    options = made.new_spec["options"]
    made.new_spec["options"] = {key: value for key, value in options.items() if key != "resources"}
    try:
        made.scale(number)
        made.wait_for_workers(number, timeout=PATIENCE_S + 2 * number / cores())  # as they start
    except BaseException:
        made.close()
        raise
    return made


def refuse_unguarded() -> None:
    """Raises `ConfigError` where a script calls at its top level: workers of this machine import it, and would call, too."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)):
        frame = frame.f_back
    if frame is None or file is None or not Path(file).is_file() or (spec and spec.name.endswith("__main__")):
        return
    for node in ast.parse(Path(file).read_bytes()).body:
        here = node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        if here and isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return
    allowed = 'the call below if __name__ == "__main__": (workers of local:N import the script)'
    found = "found a call that every worker would make, too"
    raise ConfigError(found, file=file, line=frame.f_lineno, key="cluster", allowed=allowed)
