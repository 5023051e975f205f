"""The batch engine of the step experiment: a whole stability map, and one core against numpy over the runs of a cell."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from measure import Result, Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TITLE = "Step experiment in bulk: the batch engine against numpy"
TICKS, DELAY, T0 = 2000, 10, 200
KP, KI, LOSS = 0.2, 0.09, 0.3


def by_numpy(runs: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Overshoot and rise time of all runs of a cell at once, one array operation after the other."""
    import numpy as np

    random = np.random.default_rng(1)
    integral, h_rx, k_rx, most = (np.ones(runs) for _ in range(4))
    answers, arrives = np.ones((DELAY, runs)), np.ones((DELAY, runs), bool)
    there, back = random.random((2, TICKS, runs)) >= LOSS
    rise = np.full(runs, TICKS)
    for n in range(TICKS):
        slot = n % DELAY
        h_rx = np.where(arrives[slot], answers[slot], h_rx)
        error = 1 - h_rx
        integral = np.clip(integral + KI * error, -10, 10)
        k_rx = np.where(there[n], KP * error + integral, k_rx)
        h = k_rx if n < T0 else 0.5 * k_rx
        if n >= T0:
            np.maximum(most, h, out=most)
            rise = np.where((rise == TICKS) & (h >= 0.95), n, rise)
        answers[slot], arrives[slot] = h, there[n] & back[n]
    return 200 * (most - 1), rise - T0


def by_engine(runs: int, cells: int, executor: Executor | None = None) -> list[dict[str, dict[str, float]]]:
    """The same cell, as often as asked for; with an executor, each portion on one core."""
    from tcpsbed.lab.control.batch import Bench, Cell

    cell = Cell(1.0, 0.0, DELAY, KP, KI, loss={"kind": "random", "p": LOSS})
    return Bench(runs=runs, duration_ms=TICKS, answers="commands").run([cell] * cells, executor=executor)


def ns_a_tick(work: object, runs: int, times: int) -> float:
    """Median processor time of calls, in nanoseconds for each tick of each run."""
    spent = []
    for _ in range(times):
        begin = time.process_time()
        work()  # type: ignore[operator]
        spent.append(time.process_time() - begin)
    return statistics.median(spent) / (runs * TICKS) * 1e9


def measure(quick: bool) -> Result:
    """One core side by side at 200 and 5000 runs, then the map on all cores."""
    rows: list[Row] = []
    raw: dict[str, Any] = {}
    one = ThreadPoolExecutor(1)
    for runs in (200, 5000):
        cells = max(1, 5000 // runs)
        engine = ns_a_tick(lambda r=runs, c=cells: by_engine(r, c, one), runs * cells, 3 if quick else 9)
        numpy = ns_a_tick(lambda r=runs: by_numpy(r), runs, 3)
        ratio = numpy / engine
        bar, holds = ("8 times", ratio >= 8) if runs == 200 else ("", None)
        told = f"{ratio:.1f} times"
        rows.append(
            Row(f"{runs} runs, a core", f"{engine:.2f} ns a tick", f"numpy {numpy:.1f} ns", told, bar, holds)
        )
        raw[str(runs)] = {"engine_ns": engine, "numpy_ns": numpy}
    begin = time.monotonic()
    by_engine(200, 250 if quick else 2500)
    seconds = (time.monotonic() - begin) * (10 if quick else 1)
    what = "map of 50 x 50 cells, 200 runs of 2 s at 1 kHz, all cores"
    rows.append(Row(what, f"{seconds:.1f} s", "", "", "10 s", seconds <= 10))
    raw["map_s"] = seconds
    mine, theirs = by_engine(20_000, 1)[0]["overshoot"]["mean"], float(by_numpy(5000)[0].mean())
    rows.append(Row("mean overshoot of that cell", f"{mine:.2f} %", f"numpy {theirs:.2f} %", "", "", None))
    return Result("step_batch", TITLE, rows, raw)
