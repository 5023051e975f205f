"""The stability map of a control loop from Python. [Polachan 2022]"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tcpsbed import executors, palette, shipped
from tcpsbed.api.run import Progress, told
from tcpsbed.errors import ConfigError
from tcpsbed.inputs import out_of
from tcpsbed.lab.control import mapping, systems, theory
from tcpsbed.lab.control.loci import AxesMargins
from tcpsbed.lab.control.stability import StabilityMap
from tcpsbed.runs import refuse_number
from tcpsbed.runs.given import given

if TYPE_CHECKING:
    from tcpsbed.lab.control.identified import Linearised
    from tcpsbed.lab.control.systems import System
    from tcpsbed.lab.control.theory import Margins
    from tcpsbed.lab.control.verification import Point
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

MOST_NAMED = 8
"""Losses that are named one by one where they are left out."""
KIND = "map"
"""Kind of result that it leaves."""


@dataclass(frozen=True, repr=False)
class LoopMap:
    """How much delay and loss a control loop tolerates; `print` says it in words.

    Attributes
    ----------
    name
        Of the scenario.
    map
        The map: `grid.rtt_ms`, `grid.loss`, `mean["overshoot"]` (shape: losses, round trips), `good`.
    reliability
        Share of runs that must be good; absent: the mean overshoot must keep its limit.
    folder
        With scenario.toml, map.json and map.html; absent: none was asked for.
    linearised
        The linear model in place of a plant that is code: its order, and how far it is off.
    points
        With `verify`: cells at the boundary with the answers of the map and of runs with packets, and whether they agree.
    """

    name: str
    map: StabilityMap
    reliability: float | None = None
    folder: Path | None = None
    linearised: Linearised | None = None
    points: tuple[Point, ...] = ()

    def longest_rtt_ms(self, loss: float) -> float:
        """The longest round trip that the loop tolerates at the loss of the grid that is nearest to this share.

        Infinite if every round trip of the grid is tolerated, not a number if none is. It is interpolated between those of
        the grid: with few cells it may be far off.

        Raises
        ------
        ConfigError
            If it is outside of the grid.
        """
        least, most = min(self.map.grid.loss), max(self.map.grid.loss)
        if not isinstance(loss, int | float) or not least <= loss <= most:
            allowed = f"a share from {least:g} to {most:g}, such as {most:g} for {100 * most:g} %"
            raise ConfigError(f"found {loss!r}", key="loss", allowed=allowed)
        row = min(range(len(self.map.grid.loss)), key=lambda row: abs(self.map.grid.loss[row] - loss))
        return self.map.longest_rtt_ms(row, self.reliability)

    @cached_property
    def sentences(self) -> list[str]:
        """What the map means at up to nine of its losses, and at those where it was compared with packets, with what came
        out; the last one names the losses that are left out.
        """
        compared = {self.map.grid.loss.index(point.loss): point.verdict for point in self.points}
        rows = sorted({*self.map.told, *compared})
        said = {row: self.map.sentence(row, self.reliability) for row in rows}
        told = [f"{one}; {compared[row]}" if row in compared else one for row, one in said.items()]
        return [*told, *self._left_out(rows)]

    def _left_out(self, rows: Sequence[int]) -> list[str]:
        """A sentence about the losses of which there is none."""
        left = [f"{100 * loss:.3g}" for row, loss in enumerate(self.map.grid.loss) if row not in rows]
        if not left:
            return []
        named = ", ".join(left if len(left) <= MOST_NAMED else [*left[:2], "…", left[-1]])
        where = "" if self.folder is None else "; map.json has them"
        return [f"left out here: {len(left)} of {len(self.map.grid.loss)} losses ({named} %){where}"]

    @cached_property
    def margins(self) -> Margins:
        """Gain, phase and delay margin of the loop at the shortest round trip of the grid, without loss and jitter."""
        return self.map.margins(self.map.grid.rtt_ms[0])

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `map.json`."""
        from tcpsbed.lab.control import table

        tables = {key: of.tolist() for key, of in (*self.map.mean.items(), ("good", self.map.good))}
        asked = {"grid": asdict(self.map.grid), "bench": asdict(self.map.bench)}
        margins: dict[str, Any] = {"reliability": self.reliability, "margins": asdict(self.margins)}
        if self.linearised is not None:
            margins |= {"linearised": {"order": self.linearised.order, "off": self.linearised.off}}
        if self.points:
            margins |= {"verified": [point.figures for point in self.points]}
        found: dict[str, Any] = table.plain(asked | {"sentences": self.sentences} | margins | tables)
        return found

    def draw(self, file: Path | str) -> Path:
        """Draws the map into a file, such as `map.svg`; needs matplotlib.

        Raises
        ------
        ConfigError, DataError
            If the file may not be overwritten, or matplotlib is not installed.
        """
        from tcpsbed.lab.control import figure

        caption = "\n".join([f"{self.name} · {self.sentences[0]}", *self.remarks])
        return figure.stability(self.map, self.points, caption, Path(file))

    def _repr_png_(self) -> bytes | None:
        """The map in a notebook; without matplotlib there is none."""
        if not palette.drawable():
            return None
        with TemporaryDirectory() as folder:
            return self.draw(Path(folder) / "map.png").read_bytes()

    def __str__(self) -> str:
        from tcpsbed.lab.control import verification

        lines = [*self.sentences, *self.remarks]
        lines += ["", verification.text(self.points)] if self.points else []
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def remarks(self) -> list[str]:
        """Its margins, and what was computed in place of a plant that is code."""
        grid, given = self.map.grid, self.map.bench.step.left
        rtt_ms = grid.rtt_ms[0]
        tick = f" (a tick of {grid.period_ms:g} ms)" if rtt_ms < grid.period_ms else ""
        text = f"theory at an RTT of {rtt_ms:g} ms{tick} without loss{given}: {self.margins}"
        if self.margins.stable and math.isfinite(self.margins.delay_ms):
            least_ms = max(rtt_ms, grid.period_ms)  # a loop has a tick of delay at least
            worst = max(grid.loss)
            limit_ms = least_ms + self.margins.delay_ms
            text += f"; unstable from an RTT of about {limit_ms:.1f} ms on"
            if worst > 0 and grid.burst == 1:
                late_ms = theory.delay_of_drops_ms(worst, grid.period_ms)
                from_ms = limit_ms - late_ms
                when = f"from about {from_ms:.1f} ms on" if from_ms > grid.period_ms else "at every RTT"
                text += f", with {100 * worst:.3g} % loss each way {when}"
        each = self.margins.one_at_a_time if isinstance(self.margins, AxesMargins) else ()
        alone = [f"  axis {n} alone: {one}" for n, one in enumerate(each, 1)]
        return [text, *alone, *([str(self.linearised)] if self.linearised is not None else [])]


def map(
    scenario: Scenario | Path | str | None = None,
    *,
    plant: System | None = None,
    controller: System | None = None,
    disturbance: str | None = None,
    rtt: str = "0 ms..50 ms",
    loss: str = "0..60%",
    cells: str = "50x50",
    runs: int = 200,
    bursts: float = 1.0,
    jitter: str | None = None,
    gain: str | None = None,
    factor: float | str | None = None,
    period: str | None = None,
    overshoot: float = 20.0,
    rise: float | None = None,
    reliability: str | None = None,
    loop: str | None = None,
    axis: int | None = None,
    on_command: bool = False,
    aligned: bool = False,
    verify: int = 0,
    verify_runs: int = 20,
    out: Path | str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    duration: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = False,
) -> LoopMap:
    """Computes how much delay and loss a control loop tolerates, from hundreds of runs in every cell of a grid.

    Parameters
    ----------
    scenario : Scenario, Path or str
        One with a control loop, as `tcpsbed init --from step` writes; absent: that one.
    plant, controller : object, optional
        In place of the scenario's: transfer functions, matrices, objects of python-control or scipy.signal, or code, as
        `tcpsbed.lab.control.systems` lists them. A plant that is code is computed with its linear model.
    disturbance : str, optional
        `gain`: after the step the loop has a c-th of its gain. `output`: it has all of it.
    rtt, loss, cells : str
        Round trips and losses each way, from and to, and the number of cells of the grid. One loss, such as `10%`, gives
        a row.
    runs : int
        Runs in each cell.
    bursts : float
        Mean length of a loss burst, in packets.
    jitter : str, optional
        Mean extra delay, exponential.
    gain, period : str, optional
        Other gains (`"0.2:0.09"`, Ki per ms) and another period than the scenario's.
    factor : float or str, optional
        What multiplies the linear controller, such as `best.factor` of `tcpsbed.tune`.
    overshoot, rise : float
        What a good run keeps: overshoot in percent of the step, rise time in ms (with `reliability`).
    reliability : str, optional
        Share of runs that must be good, such as `"95%"`; absent: the mean overshoot counts.
    loop : str, optional
        The loop by its robot; absent: the only one.
    axis : int, optional
        Of a loop with several axes the one that jumps, from 1 on; absent: each of them, one after the other, and a run is as
        good as the worst of them.
    on_command : bool
        Whether the far side answers each command on arrival, not at its own ticks.
    aligned : bool
        Whether both sides tick together, unlike two computers.
    verify, verify_runs : int
        At how many cells at the boundary the scenario is run with packets, too, and how often.
    out : Path or str, optional
        Folder for scenario.toml, map.json and map.html; absent: none is written.
    jobs : int, optional
        Cores to use; absent: all.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`; needs the extra `cluster`.
    set, seed, duration, progress
        As of `tcpsbed.run`.

    Returns
    -------
    LoopMap
        The map.

    Raises
    ------
    TcpsbedError
        If the scenario has no loop, or a value cannot be.

    Examples
    --------
    >>> import tcpsbed
    >>> found = tcpsbed.map("step.toml", rtt="0 ms..60 ms")  # doctest: +SKIP
    >>> found.longest_rtt_ms(loss=0.1)  # doctest: +SKIP
    """
    asked = mapping.Asked.of(locals())
    counts = {"runs": runs, "verify": verify or None, "verify_runs": verify_runs, "jobs": jobs}
    for key, number in counts.items():
        refuse_number(key, number)
    file = shipped.find("step") if scenario is None else scenario
    with (
        given(file, set=set, seed=seed, duration=duration) as source,
        executors.opened(jobs, cluster) as executor,
        told(progress, f"{source.scenario.name}, {runs} runs per cell") as share,
    ):
        made = systems.own if scenario is None else partial(systems.applied, loop=loop)
        own = made(source.scenario, plant, controller, disturbance)
        return computed(own, asked, out_of(out), share, executor)


def computed(
    scenario: Scenario,
    asked: mapping.Asked,
    out: Path | None,
    progress: Callable[[float], object],
    executor: Executor | None,
) -> LoopMap:
    """Computes the map of a scenario, and keeps it in a folder if there is to be one."""
    from tcpsbed import scenarios
    from tcpsbed.api import map_page
    from tcpsbed.runs import session

    with nullcontext() if out is None else session.place(scenario, out, kind=KIND) as place:
        done = mapping.computed(scenario, asked, progress, executor)
        shown = None if place is None else place.shown
        found = LoopMap(scenario.name, done.map, done.share, shown, done.linearised, done.points)
        if place is not None:
            dumped = f"{asked.replaced}{scenarios.dump(done.scenario)}"
            (place.path / "scenario.toml").write_text(dumped, encoding="utf-8")
            (place.path / "map.json").write_text(f"{json.dumps(found.figures)}\n", encoding="utf-8")
            (place.path / "map.html").write_text(map_page.render(found), encoding="utf-8")
    return found


def opened(folder: Path) -> LoopMap:
    """The map that a folder holds.

    Raises
    ------
    TcpsbedError
        If it holds none.
    """
    from tcpsbed import scenarios
    from tcpsbed.lab.control import kept
    from tcpsbed.lab.control.identified import Linearised

    found, told_, points = kept.read_map(folder / "map.json")
    linear = told_.get("linearised")
    model = (
        None if linear is None else Linearised(found.bench.step.plant or {}, linear["order"], linear["off"])
    )
    name = scenarios.load(folder / "scenario.toml").name
    return LoopMap(name, found, told_.get("reliability"), folder, model, tuple(points))
