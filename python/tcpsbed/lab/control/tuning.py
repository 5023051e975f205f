"""Gains for a network, tuned with the batch engine, and the index of the shortest rise time that follows from them.

```text
Kp / c in [0, 0.4],  Ki theta / c in [0.05, 1.5]   ─► batch ─► good in 95 % of runs? ─► shortest rise time, or
                                                                                        steepest change with the RTT
```
The loop after the step is linear and its gain is K / c: another c with gains in proportion answers the same, in
percent of the step, as long as the controller's integral, which goes to c, is not at its bound. So gains are searched
relative to c. What h itself changes by grows with the step, 1 - 1/c: the most sensitive c is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

from tcpsbed import linear
from tcpsbed.lab.control.batch import Bench, Cell
from tcpsbed.lab.control.loci import LASTING, margins
from tcpsbed.lab.control.response import Disturbance, Step, dip
from tcpsbed.lab.control.theory import LoopModel, response
from tcpsbed.lab.control.verdict import Limits

MOST_KP = 0.4
"""Largest Kp / c: a proportional kick on a plant without memory meets the 90 % level by itself."""
MOST_KP_SLOW = 2.0
"""Largest Kp / c where the plant has a memory."""
SHARE = 0.95
"""Share of the runs that must be good."""
TIGHT = Limits(overshoot=5.0, undershoot=5.0)
"""What a good run keeps for the rise-time index."""
REFERENCE_MS = 1.0
"""Rise time of index 0."""

MOST_C = 8.0
"""Largest c: the controller's integral goes to c, a fifth beyond it while h overshoots, and is bounded by 10."""

RUNS = 0.7
"""Share of the progress that runs have; margins have the rest."""
FACTORS = 69
"""Factors of a linear controller that are tried first: each 12 % below the one before, from the gain margin on."""
UNBOUNDED = 50.0
"""The largest factor where theory knows none."""

NO_DIP = 1e-6
"""Share of a step up to which a fall is rounding."""

Goal = Literal["rise", "sensitivity"]


@dataclass(frozen=True)
class Network:
    """The network and plant to tune for: round trip and period in ms, loss as in the plan of a link, plant as in a
    plan. Of a linear controller, as in a plan, the gain is tuned.
    """

    rtt_ms: float
    period_ms: float = 1.0
    loss: dict[str, Any] | None = None
    phases: bool = True
    plant: dict[str, Any] | None = None
    controller: dict[str, Any] | None = None
    disturbance: Disturbance = "gain"

    @property
    def theta_ms(self) -> float:
        """Delay around the loop with its sampling, and the longest time constant of its plant."""
        return self.rtt_ms + self.period_ms + self._slowest_ms

    @cached_property
    def _slowest_ms(self) -> float:
        import numpy as np

        if self.plant is None:
            return 0.0
        stays = np.abs(np.linalg.eigvals(linear.sampled(self.plant, self._period_ns, controls=False).a))
        return float((-self.period_ms / np.log(stays[(stays > 0) & (stays < 1 - 1e-9)])).max(initial=0.0))

    @property
    def most_kp(self) -> float:
        """Largest Kp / c that is tried."""
        return MOST_KP if self.plant is None else MOST_KP_SLOW

    def cell(self, kp: float, ki_per_ms: float) -> Cell:
        """The batch engine's cell with these gains; a controller is multiplied by `kp`."""
        half, law = self.rtt_ms / 2, self.times(kp)
        return Cell(
            self.period_ms, half, half, kp, ki_per_ms, loss=self.loss, phases=self.phases, controller=law
        )

    def loop(self, tuned: Tuned, by: float) -> LoopModel:
        """The model of the loop with these gains, of which theory tells the margins."""
        law = None if tuned.factor is None else self.times(tuned.factor)
        gains = (tuned.kp, tuned.ki_per_ms) if law is None else (0.0, 0.0)
        return LoopModel(*gains, self.period_ms, self.rtt_ms, by, self.plant, law)

    def times(self, factor: float) -> dict[str, Any] | None:
        """The controller from tick to tick, multiplied by a factor; none if there is none."""
        return None if self._law is None else linear.multiplied(self._law, factor, self._period_ns)

    @cached_property
    def _law(self) -> dict[str, Any] | None:
        return None if self.controller is None else linear.ticking(self.controller, self._period_ns)

    @property
    def _period_ns(self) -> int:
        return round(self.period_ms * 1e6)


@dataclass(frozen=True)
class Least:
    """The least margins of a loop by theory, without loss: the gain margin, a factor, and the delay margin in ms."""

    gain: float = 1.0
    delay_ms: float = 0.0

    def __bool__(self) -> bool:
        return self != Least()

    def kept(self, network: Network, tuned: Tuned, by: float) -> bool:
        """Whether the loop with these gains is stable, and has them."""
        found = margins(network.loop(tuned, by))
        # A loop that every delay leaves stable has no crossing, and no delay margin.
        has = not self or (found.gain >= self.gain and not found.delay_ms < self.delay_ms)
        return found.stable and has


ANY = Least()
"""Whatever the margins of a stable loop are."""


@dataclass(frozen=True)
class Tuned:
    """The best gains found, the mean rise time with them, the change of the overshoot with the round trip, the step, the
    mean error in the end, in percent of the step, and the mean settling time, not a number where no run settles.

    Of a linear controller only a factor was found; `kp` and `ki_per_ms` are then not numbers.
    """

    kp: float
    ki_per_ms: float
    rise_ms: float
    overshoot: float
    per_ms: float
    c: float = 2.0
    factor: float | None = None
    error: float = 0.0
    settling_ms: float = math.nan
    undershoot: float = 0.0
    stopped_by: tuple[str, ...] = ()
    """Limits that faster gains exceed: of the mean response with the next faster ones, or `margin` or `stability` by theory;
    only where the shortest rise time is wanted.
    """
    dip: float = 0.0
    """The deepest fall before h first crosses the target, in percent of the step, without loss; no limit counts it."""
    dip_ms: float = 0.0
    """From the step to the lowest value of that fall; 0 without one."""
    without_dip: Tuned | None = None
    """Where the dip exceeds the limit of undershoot: the best of the gains that were tried whose dip does not."""

    @property
    def lasting(self) -> bool:
        """Whether an error stays for ever."""
        return abs(self.error) > 100 * LASTING

    @property
    def growth(self) -> float:
        """How much higher h goes for each ms of round trip, in percent of what is asked for."""
        return self.per_ms * (1 - 1 / self.c)

    @property
    def index(self) -> float:
        """Rise-time index: 0 is as fast as a rise in 1 ms, -1 ten times slower."""
        return index(self.rise_ms)


# log10(t_ref / t*), the testbed's own definition; not the QoC of arXiv:1910.08743
def index(rise_ms: float) -> float:
    """Rise-time index of a shortest mean rise time.

    Examples
    --------
    >>> index(100.0)
    -2.0
    """
    return math.log10(REFERENCE_MS / rise_ms)


# grid of (Kp, Ki) subject to overshoot and undershoot in 95 % of runs, Kp s <= 0.4
def tune(
    network: Network,
    *,
    goal: Goal = "rise",
    limits: Limits = TIGHT,
    least: Least = ANY,
    c: float = 2.0,
    runs: int = 200,
    seed: int = 1,
    progress: Callable[[float], object] | None = None,
) -> Tuned | None:
    """The gains that serve a goal within limits, of those that are stable without loss by theory; none if no gains are.

    Parameters
    ----------
    network
        What lies between.
    goal
        `rise`: the shortest mean rise time. `sensitivity`: the steepest growth of the mean overshoot when the round trip
        grows by a tenth, or by a period if that is more.
    limits
        What a good run keeps; 95 % of runs must be good.
    least
        The least margins of the loop.
    c
        The step.
    runs
        Runs of each pair of gains.
    seed
        Of every random number.
    progress
        Called with the share done.
    """
    step = _step(network, c)
    axes = 1 if network.plant is None else (linear.shape(network.plant) or (1, 1))[0]
    bench = Bench(step, runs, _duration(network), seed, limits, axes=tuple(range(axes)))
    by = step.divisor
    tell = progress or (lambda _share: None)
    if network.controller is not None:
        most_factor = _most_factor(network, by)
        coarse = [(most_factor / 1.12**i, 0.0) for i in range(FACTORS)]
    else:
        coarse = _grid(
            [network.most_kp / 8 * i for i in range(9)], [0.05 * 1.12**i for i in range(31)], network, by
        )
    best_of = partial(_best, bench, network, c, goal, least)
    found = best_of(coarse, lambda share: tell(share / 2))
    if found is None:
        return None
    if found.factor is not None:
        fine = [(found.factor * 1.015**i, 0.0) for i in range(-7, 9)]  # to beyond the next of the coarse ones
    else:
        most = network.most_kp
        kps = [max(0.0, min(most, found.kp / by + most / 32 * i)) for i in range(-3, 4)]
        kis = [found.ki_per_ms * 1.03**i for i in range(-4, 5)]
        fine = sorted({(kp * by, ki) for kp in kps for ki in kis})
    closer = best_of(fine, lambda share: tell(0.5 + share / 2))
    if closer is None or closer.dip <= limits.undershoot:
        return closer
    others = (closer.without_dip, found if found.dip <= limits.undershoot else found.without_dip)
    return replace(closer, without_dip=best([one for one in others if one is not None], goal))


def best(found: Sequence[Tuned], goal: Goal) -> Tuned | None:
    """The gains that serve a goal best; none of none."""
    return next(iter(ranked(found, goal)), None)


def ranked(found: Sequence[Tuned], goal: Goal) -> list[Tuned]:
    """Gains by how they serve a goal, the best first: the shortest rise time, or the steepest growth of h itself; those
    with which an error stays come after all others.
    """
    return sorted(found, key=lambda one: (one.lasting, one.rise_ms if goal == "rise" else -one.growth))


def _grid(
    kps: Sequence[float], gs: Sequence[float], network: Network, by: float
) -> list[tuple[float, float]]:
    return [(kp * by, g * by / network.theta_ms) for kp in kps for g in gs]


def _most_factor(network: Network, by: float) -> float:
    """The factor of the controller at which the loop becomes unstable without loss."""
    known = margins(
        LoopModel(0.0, 0.0, network.period_ms, network.rtt_ms, by, network.plant, network.controller)
    )
    return known.gain if 0 < known.gain < math.inf else UNBOUNDED


def _step(network: Network, c: float) -> Step:
    return Step(c, math.ceil(2 * network.theta_ms), network.plant, network.disturbance)


def _duration(network: Network) -> float:
    return math.ceil(2 * network.theta_ms) + max(60 * network.theta_ms, 60 * network.period_ms)


def _best(
    bench: Bench,
    network: Network,
    c: float,
    goal: Goal,
    least: Least,
    gains: Sequence[tuple[float, float]],
    progress: Callable[[float], object],
) -> Tuned | None:
    """The best of these gains."""
    more = max(0.1 * network.rtt_ms, network.period_ms)
    here = bench.run(
        [network.cell(*pair) for pair in gains], progress=lambda share: progress(RUNS * share / 2)
    )
    farther = replace(network, rtt_ms=network.rtt_ms + more)
    there = bench.run(
        [farther.cell(*pair) for pair in gains], progress=lambda share: progress(RUNS * (1 + share) / 2)
    )
    candidates = [
        Tuned(
            kp if network.controller is None else math.nan,
            ki if network.controller is None else math.nan,
            near["rise_ms"]["mean"],
            near["overshoot"]["mean"],
            (far["overshoot"]["mean"] - near["overshoot"]["mean"]) / more,
            c,
            None if network.controller is None else kp,
            near["error"]["mean"],
            math.nan if near["settling_ms"]["mean"] is None else near["settling_ms"]["mean"],
            near["undershoot"]["mean"],
        )
        for (kp, ki), near, far in zip(gains, here, there, strict=True)
        if near["good"] >= SHARE * bench.runs
    ]
    # Margins take long where the plant has states: the best gains are asked first.
    order = ranked(candidates, goal)
    for done, one in enumerate(order):
        progress(RUNS + (1 - RUNS) * done / len(order))
        if least.kept(network, one, bench.step.divisor):
            stopped = _stopped_by(one, here, bench) if not done else ("margin" if least else "stability",)
            found, most = _dipping(one, network, bench), bench.limits.undershoot
            slower = (_dipping(other, network, bench) for other in order[done + 1 :] if found.dip > most)
            kept = (t for t in slower if t.dip <= most and least.kept(network, t, bench.step.divisor))
            return replace(found, stopped_by=stopped if goal == "rise" else (), without_dip=next(kept, None))
    return None


def _dipping(one: Tuned, network: Network, bench: Bench) -> Tuned:
    """Gains with their dip until the response has settled; of several axes the deepest."""
    most_ms = bench.duration_ms - bench.step.t0_ms
    lasts_ms = most_ms if math.isnan(one.settling_ms) else min(one.settling_ms, most_ms)
    loop = network.loop(one, bench.step.divisor)
    ticks = math.ceil(lasts_ms / network.period_ms) + 1
    every = [dip(response(replace(loop, axis=axis), ticks)) for axis in bench.axes]
    fall, tick = max((of for of in every if of[0] > NO_DIP), default=(0.0, 0))
    return replace(one, dip=100 * fall, dip_ms=tick * network.period_ms)


def _stopped_by(one: Tuned, here: Sequence[Mapping[str, Any]], bench: Bench) -> tuple[str, ...]:
    """The limits that the mean response with the next faster gains exceeds: those of the longest rise time below that of
    the best.
    """
    faster = [
        found
        for found in here
        if found["rise_ms"]["mean"] is not None
        and found["rise_ms"]["mean"] < one.rise_ms
        and found["good"] < SHARE * bench.runs
    ]
    if not faster:
        return ()
    near = max(faster, key=lambda found: found["rise_ms"]["mean"])
    return tuple(key for key in ("overshoot", "undershoot") if near[key]["mean"] > getattr(bench.limits, key))
