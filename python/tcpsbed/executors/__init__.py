"""Executors (`concurrent.futures`) of work in simulated time: threads of this process, or workers of a cluster.

```text
 map, step, reproduce ─► calls ─► each ─► executor ─┬─ threads
 cells of a campaign  ─────────────────► executor ─┴─ workers of Dask      results in the order of the calls
```
A call for a cluster carries what it needs, a scenario with its files as a `Parcel`, and returns its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from tcpsbed.clocks import SIMULATED, VIRTUAL
from tcpsbed.errors import ConfigError
from tcpsbed.executors.parcel import Parcel

__all__ = ["Parcel", "Threads", "each", "opened", "threads"]

T = TypeVar("T")


@contextmanager
def opened(jobs: int | None, cluster: str | None, world: str = VIRTUAL) -> Iterator[Executor | None]:
    """The executor that was asked for, until the work ends; none if nothing was asked for.

    Parameters
    ----------
    jobs
        Calls at a time, on threads of this process.
    cluster
        The address of a scheduler of Dask, or `local:N`; goes before `jobs`.
    world
        Where the work runs.

    Raises
    ------
    ConfigError, WorldError
        If the world is on the machine's clock, the address is none, nobody answers there, or a worker has another build.
    """
    for key, given in (("--jobs", jobs), ("--cluster", cluster)):
        if given is not None and world not in SIMULATED:
            found = f"found it with the world {world}, in which runs follow one another"
            raise ConfigError(found, key=key, allowed=f"a world in simulated time: {', '.join(SIMULATED)}")
    if cluster is None:
        if jobs is None:
            yield None
            return
        with threads(jobs) as pool:
            yield pool
        return
    if world != VIRTUAL:  # workers are compared by their builds, of which other programs are no part
        raise ConfigError(f"found it with the world {world}", key="--cluster", allowed=f"the world {VIRTUAL}")
    from tcpsbed.executors.cluster import connected

    with connected(cluster) as workers:
        yield workers


class Threads(ThreadPoolExecutor):
    """Threads of this process."""

    over = False
    """Whether nobody waits for results any more."""

    def go_on(self, _share: float = 0.0) -> None:
        """Raises `CancelledError` in a call whose result nobody waits for."""
        if self.over:
            raise CancelledError


@contextmanager
def threads(number: int) -> Iterator[Threads]:
    """Threads of this process; at the end what waits is dropped, and what runs ends by itself, at its next `go_on`."""
    pool = Threads(number)
    try:
        yield pool
    finally:
        pool.over = True
        pool.shutdown(wait=True, cancel_futures=True)


def each(
    executor: Executor | None,
    calls: Sequence[Callable[[], T]],
    told: Callable[[int, int, T], object] = lambda _done, _number, _result: None,
) -> list[T]:
    """What calls return, in their order. Where one fails, its error is raised, and the executor drops the others at its end.

    Parameters
    ----------
    executor
        Runs them; absent: one after the other, in this thread.
    calls
        Without arguments; for a cluster such as can be pickled.
    told
        Hears of each as it ends: how many have, its number, and what it returned; in the thread of the caller.
    """
    found: dict[int, T] = {}

    def note(number: int, result: T) -> None:
        found[number] = result
        told(len(found), number, result)

    if executor is None:
        for number, call in enumerate(calls):
            note(number, call())
    else:
        waiting = {executor.submit(call): number for number, call in enumerate(calls)}
        for future in as_completed(waiting):
            note(
                waiting.pop(future), future.result()
            )  # a worker keeps its result as long as the future is known
    return [found[number] for number in range(len(calls))]
