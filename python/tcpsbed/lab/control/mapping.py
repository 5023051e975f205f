"""What is asked of a stability map in the texts of its options, checked and computed. [Polachan 2022]

```text
Asked ─► grid, bench ─► map ─► cells at its boundary, run with packets
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpsbed import linear
from tcpsbed.errors import ConfigError, Refused, one_line
from tcpsbed.lab.control import identified, stability, values, verification
from tcpsbed.lab.control.batch import Bench
from tcpsbed.lab.control.loop import chosen, controllers
from tcpsbed.lab.control.setting import factors_of, gains_of, link_of, loop_of, refuse_gains
from tcpsbed.lab.control.stability import Grid

if TYPE_CHECKING:
    from tcpsbed.lab.control.loop import Loop
    from tcpsbed.scenarios import Scenario

MAPPED = 0.5
"""Share of the progress after which the map is computed, if it is verified."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a map, as `tcpsbed.map` has it."""

    rtt: str
    loss: str
    cells: str
    runs: int
    bursts: float
    jitter: str | None
    gain: str | None
    factor: float | str | None
    period: str | None
    overshoot: float
    rise: float | None
    reliability: str | None
    loop: str | None
    axis: int | None
    on_command: bool
    aligned: bool
    verify: int
    verify_runs: int

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """Of the arguments of a function that names them alike: its `locals()`."""
        return cls(**{one.name: given[one.name] for one in fields(cls)})

    @property
    def replaced(self) -> str:
        """A comment in front of the scenario of a map: what was not taken from it, beside delay and loss."""
        every = {"--gain": self.gain, "--period": self.period, "--jitter": self.jitter}
        given = [f"{option} {one!r}" for option, one in every.items() if one]
        return f"# Mapped with {one_line(', '.join(given))}.\n" * bool(given)


class Mapped(NamedTuple):
    """The map of a scenario, which has the gains that were asked; the share of runs that must be good, the linear model in
    place of a plant that is code, and the cells at the boundary that were compared with packets.
    """

    scenario: Scenario
    map: stability.StabilityMap
    share: float | None
    linearised: identified.Linearised | None
    points: tuple[verification.Point, ...]


def computed(
    scenario: Scenario, asked: Asked, progress: Callable[[float], object], executor: Executor | None
) -> Mapped:
    """Computes the map of a scenario; raises `ConfigError` if it has no such loop, or a value cannot be."""
    for text in _one(asked.factor):
        scenario = scenario.changed(factors_of(scenario, text))
    share = _share(asked.reliability, asked.rise)
    loop = loop_of(scenario, asked.loop)
    jumps = tuple(number - 1 for number in chosen(loop, asked.axis))
    if asked.on_command and loop.axes > 1:
        raise ConfigError("found it", key="--on-command", allowed="a loop with one axis")
    if asked.on_command and asked.jitter and loop.step.plant:
        allowed = "one of them, where the plant has a memory"
        raise ConfigError("found it with --jitter", key="--on-command", allowed=allowed)
    grid = _grid(loop, asked, scenario.duration_ns)
    for key, given in (("--on-command", asked.on_command), ("--period", asked.period)):
        if asked.verify and given:
            allowed = "one of them: scenarios do not have it"
            raise ConfigError(f"found it with {key}", key="--verify", allowed=allowed)
    link = link_of(scenario, None) if asked.verify else ""
    if asked.verify or controllers(scenario.hooks):
        scenario = scenario.changed(gains_of(scenario, asked.gain))
    loop, linearised = identified.with_linear(loop, grid.period_ms)
    _refuse_period(loop, grid)
    bench = Bench(
        loop.step,
        asked.runs,
        scenario.duration_ns / 1e6,
        scenario.seed,
        values.limits(math.inf if asked.rise is None else asked.rise, asked.overshoot),
        "commands" if asked.on_command else "ticks",
        jumps,
    )
    part = MAPPED if asked.verify else 1.0
    found = stability.compute(grid, bench, lambda done: progress(part * done), executor)
    rest = lambda done: progress(part + (1 - part) * done)  # noqa: E731
    sizes = asked.verify, asked.verify_runs
    points = verification.verified(scenario, link, found, share, *sizes, rest, executor)
    return Mapped(scenario, found, share, linearised, tuple(points))


def _one(factor: object) -> list[str]:
    """The factor of a map, or none."""
    found = values.several(values.texts(factor), "--factor", "1.2")
    if len(found) > 1:
        raise ConfigError(f'found "{",".join(found)}"', key="--factor", allowed="one factor, such as 1.2")
    return found


def _share(reliability: str | None, rise: float | None) -> float | None:
    """The share of runs that must be good; a limit of the rise time has an effect only with such a share."""
    if rise is not None and reliability is None:
        allowed = f"both, such as --rise {rise:g} --reliability 95% (a rise time of {rise:g} ms or less in 95 % of the runs)"
        raise ConfigError(f"found {rise:g} without --reliability", key="--rise", allowed=allowed)
    return values.share(reliability, "--reliability") if reliability else None


def _grid(loop: Loop, asked: Asked, most_ns: int) -> Grid:
    """The cells; a period and delays last `most_ns` or less: what takes longer than a run shows no answer in it."""
    columns, rows = _size(asked.cells, one=isinstance(asked.loss, str) and ".." not in asked.loss)
    reader = partial(values.duration_ns, most_ns=most_ns)
    if asked.gain or loop.law is None:
        refuse_gains(loop.axes)
    if asked.gain and loop.law is not None:
        allowed = "one of them: a controller of one's own has its gains in --controller"
        raise ConfigError("found it with a controller that is no pi", key="--gain", allowed=allowed)
    law = None if asked.gain else loop.law
    kp, ki = values.gains(asked.gain, "--gain") if asked.gain else (0.0, 0.0) if law else _known_gains(loop)
    return Grid(
        [ns / 1e6 for ns in values.span(asked.rtt, columns, reader, "--rtt")],
        values.span(asked.loss, rows, values.share, "--loss"),
        values.positive_ns(asked.period, "--period", most_ns) / 1e6 if asked.period else loop.period_ms,
        kp,
        ki,
        asked.bursts,
        reader(asked.jitter, "--jitter") / 1e6 if asked.jitter else 0.0,
        phases=not asked.aligned,
        controller=law,
    )


def _refuse_period(loop: Loop, grid: Grid) -> None:
    """Refuses a period that is no multiple of a sample time; the scenario's own is one."""
    for system, controls in ((loop.step.plant, False), (grid.controller, True)):
        try:
            if system is not None:
                linear.sampled(system, round(grid.period_ms * 1e6), controls=controls)
        except Refused as fault:
            allowed = "a period from tick to tick of which plant and controller can be computed, such as the scenario's"
            found = f"found {grid.period_ms:g} ms, with {fault.key or 'it'} = {fault.found}"
            raise ConfigError(found, key="--period", allowed=allowed) from None


def _known_gains(loop: Loop) -> tuple[float, float]:
    if loop.kp is None or loop.ki_per_ms is None:
        allowed = (
            'Kp and Ki per ms, such as "0.2:0.09", or in the scenario a hook with run = "pi" or "compensator"'
        )
        raise ConfigError('found no hook with run = "pi"', key="--gain", allowed=allowed)
    return loop.kp, loop.ki_per_ms


def _size(text: str, *, one: bool) -> tuple[int, int]:
    """Round trips and losses of a grid; of `one` loss there is a single row, whatever the number of losses."""
    given = values.given(text, "--cells", '"50x50", round trips x losses')
    columns, _, rows = given.partition("x") if "x" in given or not one else (given, "", "2")
    sizes = [int(part) if part.isascii() and part.isdigit() else 0 for part in (columns, rows)]
    if not 2 <= sizes[0] <= 1000 or not (1 if one else 2) <= sizes[1] <= 1000:
        hint = "; for one loss give one, such as --loss 10%" if sizes[1] == 1 else ""
        allowed = f'2 to 1000 in each dimension, such as "50x50"{hint}'
        raise ConfigError(f'found "{text}"', key="--cells", allowed=allowed)
    return sizes[0], 1 if one else sizes[1]
