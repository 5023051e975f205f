"""Runs of a loop with several axes side by side, from its difference equations: what the batch engine does for one axis.

```text
tick n     controller   e = 1 - h of the newest packet      k(n) = 1 + C e      leaves at n T, all axes in one packet
           far side     k of the newest packet              y = 1 + G (k - 1)   h = y, on the axis of the step as it jumps
```
Packets are lost and delayed as in a link: each run has random numbers of its own, the same in every cell. A lane is a run of
a cell. What several axes answer to a step of each is put together: the largest of each figure, good where every axis is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps, linear
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.response import Response, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.batch import Bench, Cell

    Real = NDArray[np.float64]
    Places = NDArray[np.int64]
    Newest = Callable[[int], Places]
    Seen = Callable[[Real], Real]

FIGURES = ("rise_ms", "overshoot", "undershoot", "settling_ms", "error")
BAND, LAST, TOUCH = 0.05, 0.1, 1e-12
"""As of the batch engine (`observer.rs`): band of settling, end over which the error is averaged, what counts as reached."""
MEMORY = 1.5e8
"""Bytes of the values that a group of lanes keeps, about."""
MOST_LANES = 2048


def run(bench: Bench, cells: Sequence[Cell], *, keep: bool) -> list[dict[str, Any]]:
    """The figures of cells, as `Bench.run` gives them, of a loop whose plant has several axes."""
    every = [list(_responses(bench, cells, axis)) for axis in bench.axes]
    return [_figures(bench, of, keep=keep) for of in zip(*every, strict=True)]


def _figures(bench: Bench, every: Sequence[Sequence[Response]], *, keep: bool) -> dict[str, Any]:
    """Those of a cell, from the responses of all runs to a step of each axis."""
    together = list(zip(*every, strict=True))
    largest = [worst(of) for of in together]
    told: dict[str, Any] = {"good": sum(all(map(bench.limits.good, of)) for of in together)}
    told |= {name: _spread([getattr(one, name) for one in largest]) for name in FIGURES}
    told["runs"] = [{name: _finite(value) for name, value in vars(one).items()} for one in largest * keep]
    return told


def worst(every: Sequence[Response]) -> Response:
    """Of the responses of several axes the largest of each figure; none of what one of them does not have."""

    def largest(name: str) -> float:
        values = [float(getattr(one, name)) for one in every]
        return math.nan if any(map(math.isnan, values)) else max(values, key=abs)

    return every[0] if len(every) == 1 else Response(*map(largest, FIGURES))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _spread(every: Sequence[float]) -> dict[str, float | int | None]:
    """Number, mean and standard deviation of the finite values."""
    import numpy as np

    values = [value for value in every if math.isfinite(value)]
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"n": len(values), "mean": float(np.mean(values)) if values else None, "sd": sd}


def _responses(bench: Bench, cells: Sequence[Cell], axis: int) -> Iterator[list[Response]]:
    """The responses of the axis in every run of each cell."""
    step = replace(bench.step, axis=axis)
    for same in _alike(cells):
        lanes = [(cell, run) for cell in same for run in range(bench.runs)]
        most = _most(bench, same[0])
        found: list[Response] = []
        for first in range(0, len(lanes), most):
            some = _Lanes(bench, lanes[first : first + most])
            found += _observed(some.times_ms, some.answers(step)[:, axis], step)
        yield from (found[first : first + bench.runs] for first in range(0, len(found), bench.runs))


def _alike(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Cells, in their order, as far as they have the same equations and ticks."""

    def equations(cell: Cell) -> tuple[object, ...]:
        law = {key: value for key, value in (cell.controller or {}).items() if key not in ("c", "d")}
        drawn = cell.loss is not None or cell.jitter is not None
        return cell.period_ms, cell.phases, drawn, json.dumps(law)

    for _, same in groupby(cells, key=equations):
        yield list(same)


def _most(bench: Bench, cell: Cell) -> int:
    """How many lanes are computed at the same time."""
    assert bench.step.plant is not None
    ticks = math.ceil(bench.duration_ms / cell.period_ms)
    drawn = cell.loss is not None or cell.jitter is not None
    values = sum(linear.shape(bench.step.plant) or (1, 1)) + (10 if drawn else 2)
    return max(16, min(MOST_LANES, int(MEMORY / (8 * ticks * values))))


class _Lanes:
    """Some runs of some cells: which packet is the newest at each tick of either side."""

    def __init__(self, bench: Bench, lanes: Sequence[tuple[Cell, int]]) -> None:
        import numpy as np

        self._cells = [cell for cell, _ in lanes]
        first = self._cells[0]
        self._period_ns = round(first.period_ms * 1e6)
        self._ticks = ticks = -(-round(bench.duration_ms * 1e6) // self._period_ns)
        runs = sorted({run for _, run in lanes})
        self._run = np.searchsorted(runs, [run for _, run in lanes])
        leaves = np.arange(ticks, dtype=np.int64)[:, None] * self._period_ns
        phases = [
            _tcps.step_phase(bench.seed, run, self._period_ns, "") if first.phases else 0 for run in runs
        ]
        phase = np.array(phases, dtype=np.int64)[self._run]
        self._far_ns = leaves + phase
        self.times_ms: Real = self._far_ns.astype(np.float64) * 1e-6
        draws = [np.random.Generator(np.random.Philox(key=[bench.seed, run])) for run in runs]
        there, back = (
            np.array([round(ms * 1e6) for ms in of])
            for of in ([cell.there_ms for cell in self._cells], [cell.back_ms for cell in self._cells])
        )
        drawn = first.loss is not None or first.jitter is not None
        none, newest = np.zeros_like(phase), partial(self._newest, draws) if drawn else self._always
        self._commanded = newest(leaves, there, phase, 0)
        self._returned = newest(self._far_ns, back, none, 1)

    def _always(self, leaves: Places, delay_ns: Places, phase: Places, late: int) -> Newest:
        """The number of the newest packet at a tick where none is lost and all take the same time; -1 before the first."""
        import numpy as np

        ticks = np.maximum(-((phase - delay_ns - leaves[0]) // self._period_ns), late)
        return lambda tick: np.maximum(tick - ticks, -1)

    def _newest(
        self,
        draws: Sequence[np.random.Generator],
        leaves: Places,
        delay_ns: Places,
        phase: Places,
        late: int,
    ) -> Newest:
        """The number of the newest packet at a tick of the side where they arrive, -1 before the first."""
        import numpy as np

        ticks, lanes = len(leaves), len(self._cells)
        kept = ~self._lost(ticks, draws)
        at = np.broadcast_to(leaves + delay_ns, (ticks, lanes)) + self._extra_ns(ticks, draws)
        at = np.maximum.accumulate(np.where(kept, at, 0), axis=0)  # none overtakes another
        number = np.arange(ticks)[:, None]
        arrives = np.maximum(-((phase - at) // self._period_ns), number + late)
        found = np.full((ticks, lanes), -1)
        n, lane = np.nonzero(kept & (arrives < ticks))
        found[arrives[n, lane], lane] = n  # of several in a tick the last
        newest: Places = np.maximum.accumulate(found, axis=0)
        return newest.__getitem__

    def _lost(self, ticks: int, draws: Sequence[np.random.Generator]) -> NDArray[np.bool_]:
        """Which packets are lost: each by itself, or in Gilbert's bursts."""
        import numpy as np

        own, turn = (np.array([one.random(ticks) for one in draws]).T[:, self._run] for _ in range(2))
        shares = np.array([_gilbert(cell.loss) for cell in self._cells]).T
        if not shares[:2].any():
            single: NDArray[np.bool_] = own < shares[2]
            return single
        p, r, in_good, in_bad = shares
        bad, lost = np.zeros(own.shape[1], dtype=bool), np.zeros_like(own, dtype=bool)
        for tick in range(ticks):
            lost[tick] = own[tick] < np.where(bad, in_bad, in_good)
            bad = bad ^ (turn[tick] < np.where(bad, r, p))
        return lost

    def _extra_ns(self, ticks: int, draws: Sequence[np.random.Generator]) -> Places:
        """Delay of each packet beyond that of the link."""
        import numpy as np

        means = np.array([_mean_ns(cell.jitter) for cell in self._cells])
        if not means.any():
            return np.zeros((1, len(means)), dtype=np.int64)
        found = np.array([one.standard_exponential(ticks) for one in draws]).T[:, self._run] * means
        extra: Places = found.astype(np.int64)
        return extra

    def answers(self, step: Step) -> Real:
        """What the axes answer at each tick, shape (ticks, outputs, lanes)."""
        import numpy as np

        assert step.plant is not None
        plant = linear.sampled(step.plant, self._period_ns, controls=False)
        law, seen_c, seen_d = self._laws()
        ticks, lanes = self._ticks, len(self._cells)
        (outputs, inputs), here = plant.shape, np.arange(lanes)
        h, k = np.ones((ticks, outputs, lanes)), np.ones((ticks, inputs, lanes))
        x, z = np.zeros((len(plant.a), lanes)), np.zeros((len(law.a), lanes))
        e, axis = np.zeros((outputs, lanes)), step.axis
        scale, shift = (1 / step.c, 0.0) if step.disturbance == "gain" else (1.0, 1 / step.c - 1)
        first, t0_ns = self._far_ns[0], round(step.t0_ms * 1e6)
        with np.errstate(over="ignore", invalid="ignore"):
            for tick in range(ticks):
                if tick:
                    z = law.a @ z + law.b @ e
                newest = self._returned(tick)
                e = np.where(newest < 0, 0.0, 1.0 - h[newest, :, here].T)
                k[tick] = 1.0 + seen_c(z) + seen_d(e)
                newest = self._commanded(tick)
                u = np.where(newest < 0, 0.0, k[newest, :, here].T - 1.0)
                h[tick] = 1.0 + plant.c @ x + plant.d @ u
                jumped = first + tick * self._period_ns >= t0_ns
                h[tick, axis] = np.where(jumped, scale * h[tick, axis] + shift, h[tick, axis])
                x = plant.a @ x + plant.b @ u
        return h

    def _laws(self) -> tuple[linear.Sampled, Seen, Seen]:
        """A and B of the controller of all lanes, and what C and D of each lane make of state and input."""
        import numpy as np

        every = [cell.controller for cell in self._cells]
        names = [json.dumps(one) for one in every]
        found = {
            name: linear.sampled(one, self._period_ns, controls=True)
            for name, one in dict(zip(names, every, strict=True)).items()
            if one is not None
        }
        first = next(iter(found.values()))
        if len(found) == 1:
            return first, first.c.__matmul__, first.d.__matmul__
        c, d = (np.array([part[name] for name in names]) for part in (
            {name: one.c for name, one in found.items()}, {name: one.d for name, one in found.items()}
        ))  # fmt: skip
        return first, partial(np.einsum, "lij,jl->il", c), partial(np.einsum, "lij,jl->il", d)


def _gilbert(loss: Mapping[str, Any] | None) -> tuple[float, float, float, float]:
    """Of Gilbert's model p and r, and the shares that are lost in either state; single losses have no p."""
    if loss is None:
        return 0.0, 0.0, 0.0, 0.0
    if loss["kind"] == "random":
        return 0.0, 0.0, loss["p"], 0.0
    if loss["kind"] != "gilbert-elliott":
        raise ConfigError(f"found {loss['kind']}", key="loss", allowed="random or gilbert-elliott")
    return loss["p"], loss["r"], loss["loss_good"], loss["loss_bad"]


def _mean_ns(jitter: Mapping[str, Any] | None) -> float:
    """The mean of exponential jitter."""
    if jitter is not None and jitter["kind"] != "exponential":
        raise ConfigError(f"found {jitter['kind']}", key="jitter", allowed="exponential")
    return 0.0 if jitter is None else float(jitter["mean_ns"])


def _observed(t_ms: Real, h: Real, step: Step) -> list[Response]:
    """The responses of lanes, shape (ticks, lanes), by the definitions of `characterise`."""
    import numpy as np

    after = t_ms >= step.t0_ms
    rise, band = 1 - 0.1 * step.height - TOUCH, BAND * step.height
    lanes = np.arange(h.shape[1])

    def first(where: NDArray[np.bool_]) -> Real:
        found: Real = np.where(where.any(0), t_ms[where.argmax(0), lanes] - step.t0_ms, math.nan)
        return found

    with np.errstate(invalid="ignore", over="ignore"):
        risen = first(after & (h >= rise))
        most = np.fmax.reduce(np.where(after, h, 1.0), axis=0)
        crossed = np.maximum.accumulate(after & (h >= 1.0), axis=0)
        least = np.fmin.reduce(np.where(crossed, h, 1.0), axis=0)
        outside = after & ~(np.abs(h - 1) <= band)
        settled = first(after & ~np.maximum.accumulate(outside[::-1], axis=0)[::-1])
        last = t_ms >= step.t0_ms + (1 - LAST) * (t_ms[-1] - step.t0_ms)
        settled = np.where((outside & last).any(0), math.nan, settled)
        error = np.where(last, h - 1, 0.0).sum(0) / last.sum(0)
    percent = 100 / step.height
    overshoot, undershoot = percent * (np.fmax(most, 1.0) - 1), percent * (1 - np.fmin(least, 1.0))
    every = (risen, overshoot, undershoot, settled, percent * error)
    return [Response(*map(float, of)) for of in zip(*every, strict=True)]
