"""The step experiment: runs of a scenario that differ in their seed, and the responses of their loops.

```text
scenario ─► plan ─► seed 1, 2, .. (and tick phases) ─► world ─► h(t) at the far side ─► response
```
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps, executors, scenarios
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import open_records
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import WorldError
from tcpsbed.executors import Parcel
from tcpsbed.lab.control.identified import margins_of
from tcpsbed.lab.control.loop import Loop, loops, reached
from tcpsbed.lab.control.offsets import Offsets, offsets
from tcpsbed.lab.control.response import Response, characterise, coupling
from tcpsbed.scenarios.codes import is_ours

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.theory import Margins

Progress = Callable[[float], object]
PARTS = 8
"""Into about so many parts an executor divides the runs of a scenario."""
GRACE_NS = 1_000_000_000
"""A sample may be so late before it counts as lost."""
WARPED_MS = 500.0
"""Length of the signal whose offsets are found."""


@dataclass(frozen=True)
class Curve:
    """What one loop did in one run.

    Attributes
    ----------
    t_ms : numpy.ndarray
        Shape (n,), times in ms.
    axes : numpy.ndarray
        Shape (n, axes), what every axis answered at these times.
    response : Response
        The figures of the axis that jumped.
    disturbed : tuple of str
        What disturbed the run.
    axis : int
        The place of that axis.
    coupling : float
        How far the others leave 1 from the step on, in percent of the step.
    """

    t_ms: NDArray[np.float64]
    axes: NDArray[np.float64]
    response: Response
    disturbed: tuple[str, ...] = ()
    axis: int = 0
    coupling: float = 0.0

    @property
    def h(self) -> NDArray[np.float64]:
        """Shape (n,), h of the axis that jumped."""
        return self.axes[:, self.axis]


@dataclass(frozen=True)
class Experiment:
    """Runs of one setting.

    Attributes
    ----------
    loop : Loop
        The loop that they belong to.
    curves : list of Curve
        One a run.
    seen : Offsets, optional
        How far h as the controller sees it is from h, in the first run, if that was asked for.
    margins : Margins, optional
        Of the loop after the step, at the delay of its links, without loss; None where they are not known.
    """

    loop: Loop
    curves: list[Curve]
    seen: Offsets | None = None
    margins: Margins | None = None

    @property
    def responses(self) -> list[Response]:
        """The figures of all runs."""
        return [curve.response for curve in self.curves]

    @property
    def undisturbed(self) -> list[Response]:
        """The figures of the runs that nothing disturbed."""
        return [curve.response for curve in self.curves if not curve.disturbed]


@dataclass(frozen=True)
class Asked:
    """How step experiments are run.

    Attributes
    ----------
    runs
        How many of each scenario; run `i` has the scenario's seed plus `i`.
    world
        A name that the registry of worlds knows; on the machine's clock it is built anew for every run.
    phases
        Whether the far side's ticks are a moment behind those of the controller, uniform within a period, in each run
        another: two computers do not tick together.
    warped
        Whether the effective time and value offsets of what the controller sees are found, too.
    duration_key
        What gave the duration, for the message about one that is too short.
    """

    runs: int
    world: str = "virtual"
    phases: bool = False
    warped: bool = False
    duration_key: str = "duration"


def run(
    scenario: scenarios.Scenario,
    *,
    runs: int,
    world: str = "virtual",
    phases: bool = False,
    warped: bool = False,
) -> list[Experiment]:
    """The step experiments of one scenario, one for each loop; arguments are as of `Asked`, errors as of `every`."""
    [found] = every([scenario], Asked(runs, world, phases, warped))
    return found


def every(
    tried: Sequence[scenarios.Scenario],
    asked: Asked,
    progress: Progress = lambda _: None,
    executor: Executor | None = None,
) -> list[list[Experiment]]:
    """Runs step experiments.

    Parameters
    ----------
    tried
        Scenarios with a robot `step`.
    asked
        How they are run.
    progress
        Called with the share done.
    executor
        Runs parts of the runs, in simulated time. Absent, or threads where a scenario has code that is not built in: one
        run after the other, as runs share the module of such code.

    Returns
    -------
    list of list of Experiment
        For each scenario one for each loop.

    Raises
    ------
    ConfigError
        If no component has a step, or a run is over before it comes.
    """
    if executor is not None:
        plans = [_checked(scenario, asked) for scenario in tried]
        if isinstance(executor, executors.Threads) and not all(map(is_ours, plans)):
            executor = None
    if executor is None:
        parts = []
        for number, one in enumerate(tried):
            tell = partial(_told, progress, number, len(tried))
            parts.append([_part(Parcel(one), asked, range(asked.runs), tell)])
    else:
        size = max(1, asked.runs // PARTS)
        numbers = [range(first, min(first + size, asked.runs)) for first in range(0, asked.runs, size)]
        tells = (executor.go_on,) if isinstance(executor, executors.Threads) else ()
        calls = [partial(_part, Parcel(one), asked, some, *tells) for one in tried for some in numbers]
        done = executors.each(executor, calls, lambda ended, *_: progress(ended / len(calls)))
        parts = [done[first : first + len(numbers)] for first in range(0, len(done), len(numbers))]
    return [[_joined(of) for of in zip(*one, strict=True)] for one in parts]


def _told(progress: Progress, number: int, all_: int, done: float) -> None:
    """The share done of all, of which `number` are done and one in part."""
    progress((number + done) / all_)


def _joined(parts: Sequence[Experiment]) -> Experiment:
    """One experiment of parts of its runs."""
    curves = [curve for part in parts for curve in part.curves]
    return replace(parts[0], curves=curves, margins=margins_of(parts[0].loop))


def _part(parcel: Parcel, asked: Asked, numbers: range, tell: Progress = lambda _: None) -> list[Experiment]:
    """Some of the runs of a scenario: an experiment for each loop, without margins."""
    with parcel.opened() as scenario, tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan, found = _planned(scenario, asked, Path(folder))
        curves: list[list[Curve]] = [[] for _ in found]
        seen: list[Offsets | None] = [None for _ in found]
        for done, number in enumerate(numbers, 1):
            once = dict(plan) | {"seed": scenario.seed + number}
            if asked.phases:
                once = _apart(once, found, scenario.seed, number)
            rows, disturbed = _rows(once, Path(folder), asked.world, scenario)
            for loop, into in zip(found, curves, strict=True):
                into.append(_curve(rows, once, loop, disturbed))
            if asked.warped and number == 0:
                seen = [_seen(rows, once, loop, mine[0]) for loop, mine in zip(found, curves, strict=True)]
            tell(done / len(numbers))
    return [Experiment(*one) for one in zip(found, curves, seen, strict=True)]


def _planned(scenario: scenarios.Scenario, asked: Asked, folder: Path) -> tuple[dict[str, Any], list[Loop]]:
    """The plan, which records what is looked at, and its loops."""
    plan = scenarios.compile_plan(scenario, folder / "inputs")
    found = loops(plan)
    reached(plan, found, asked.duration_key)
    plan["signals"] = sorted({*plan["signals"], *_points(plan, found, warped=asked.warped)})
    return plan, found


def _checked(scenario: scenarios.Scenario, asked: Asked) -> dict[str, Any]:
    """The plan, before anything runs elsewhere."""
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        return _planned(scenario, asked, Path(folder))[0]


def _points(plan: Mapping[str, Any], found: Sequence[Loop], *, warped: bool) -> list[int]:
    names = [name for loop in found for name in (loop.point, *([loop.seen_point] if warped else []))]
    return [signals.number(plan, name) for name in names]


def _seen(rows: NDArray[np.void], plan: Mapping[str, Any], loop: Loop, true: Curve) -> Offsets:
    """How far h as it reaches the controller is from h, from shortly before the step on."""
    import numpy as np

    found = signals.of_rows(rows, plan, loop.seen_point, loop.back)
    begin = max(true.t_ms[0], loop.step.t0_ms - 20)
    grid = np.arange(begin, min(true.t_ms[-1], begin + WARPED_MS), loop.period_ms)

    def held(t_ms: NDArray[np.float64], h: NDArray[np.float64]) -> list[float]:
        places = np.searchsorted(t_ms, grid, side="right") - 1
        return [float(value) for value in np.where(places < 0, 1.0, h[np.maximum(places, 0)])]

    return offsets(
        held(true.t_ms, true.h), held(found.t_ns / 1e6, found.values[:, loop.step.axis]), loop.period_ms
    )


def _apart(plan: Mapping[str, Any], found: Sequence[Loop], seed: int, number: int) -> dict[str, Any]:
    """The plan of a run whose far sides tick, and send h, shortly behind the controllers.

    The moment of an only loop is that of the same run of a cell of `Bench`; each of several draws its own.
    """
    once = copy.deepcopy(dict(plan))
    for loop in found:
        name = loop.name if len(found) > 1 else ""
        for flow in (once["flows"][n] for n in loop.sent):
            flow["start_ns"] += _tcps.step_phase(seed, number, flow["period_ns"], name)
        robot = once["components"][loop.component]["robot"]
        robot["start_ns"] = once["flows"][loop.sent[0]]["start_ns"] % robot["period_ns"]
    return once


def _rows(
    plan: Mapping[str, Any], folder: Path, world: str, scenario: scenarios.Scenario
) -> tuple[NDArray[np.void], tuple[str, ...]]:
    """The rows of a run, and what disturbed it."""
    import numpy as np

    disturbed: tuple[str, ...] = ()
    if world not in SIMULATED:
        from tcpsbed.worlds import real

        crowded = scenario.real.crowded
        told = real.run(dict(plan), folder, progress=None, crowded=crowded, world=world, scenario=scenario)
        if told["errors"]:
            raise WorldError(str(told["errors"][0]))
        if told["interrupted"]:
            raise KeyboardInterrupt
        disturbed = _disturbed(plan, folder, told, world)
    else:
        from tcpsbed.worlds import virtual

        told = virtual.run(dict(plan), folder, progress=None, pcapng=False, world=world)
        if told["interrupted"]:  # a plant of the user's failed
            raise WorldError(str(told["errors"][-1]))
    return np.array(open_records(folder / "records.bin")), disturbed


def _disturbed(plan: Mapping[str, Any], folder: Path, told: Mapping[str, Any], world: str) -> tuple[str, ...]:
    """What disturbed a run on the machine's clock, in sentences."""
    from tcpsbed.analysis import disturbances, facts

    found = json.loads(_tcps.analyse(str(folder / "records.bin"), json.dumps(plan), 0, GRACE_NS))
    info = facts.scenario_info(plan, world=world, warmup_ns=0)
    return tuple(disturbances.disturbances(info, told, found))


def _curve(
    rows: NDArray[np.void], plan: Mapping[str, Any], loop: Loop, disturbed: tuple[str, ...] = ()
) -> Curve:
    found = signals.of_rows(rows, plan, loop.point)
    return curve_of(found.t_ns / 1e6, found.values[:, : loop.axes], loop, disturbed)


def curve_of(
    t_ms: NDArray[np.float64], axes: NDArray[np.float64], loop: Loop, disturbed: tuple[str, ...] = ()
) -> Curve:
    """The curve of values of all axes."""
    step = loop.step
    response = characterise(t_ms, axes[:, step.axis], step)
    return Curve(t_ms, axes, response, disturbed, step.axis, coupling(t_ms, axes, step))
