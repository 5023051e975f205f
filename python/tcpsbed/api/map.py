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

from tcpsbed import executors, linear, palette, shipped
from tcpsbed.api.run import Progress, told
from tcpsbed.errors import ConfigError, Refused, one_line
from tcpsbed.inputs import out_of
from tcpsbed.lab.control import systems, theory
from tcpsbed.lab.control.loci import AxesMargins
from tcpsbed.lab.control.loop import chosen, controllers
from tcpsbed.lab.control.setting import factors_of, gains_of, link_of, refuse_gains
from tcpsbed.lab.control.stability import StabilityMap
from tcpsbed.nearest import close_match
from tcpsbed.runs import refuse_number
from tcpsbed.runs.given import given

if TYPE_CHECKING:
    from tcpsbed.lab.control.identified import Linearised
    from tcpsbed.lab.control.loop import Loop
    from tcpsbed.lab.control.stability import Grid
    from tcpsbed.lab.control.systems import System
    from tcpsbed.lab.control.theory import Margins
    from tcpsbed.lab.control.verification import Point
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

MOST_TOLD = 9
"""Losses of a map that are all told in sentences; of more it is five."""
MOST_NAMED = 8
"""Losses that are named one by one where they are left out."""
KIND = "map"
"""Kind of result that it leaves."""
MAPPED = 0.5
"""Share of the progress after which the map is computed, if it is verified."""


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
        rows = sorted({*_rows(self.map), *compared})
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
    for key, number in (
        ("runs", runs),
        ("verify", verify or None),
        ("verify_runs", verify_runs),
        ("jobs", jobs),
    ):
        refuse_number(key, number)
    with (
        given(
            shipped.find("step") if scenario is None else scenario, set=set, seed=seed, duration=duration
        ) as asked,
        executors.opened(jobs, cluster) as executor,
        told(progress, f"{asked.scenario.name}, {runs} runs per cell") as share,
    ):
        return computed(
            systems.own(asked.scenario, plant, controller, disturbance)
            if scenario is None
            else systems.applied(asked.scenario, plant, controller, disturbance, loop),
            spans=(rtt, loss, cells),
            other=(gain, period, jitter),
            factor=factor,
            runs=runs,
            bursts=bursts,
            limits=(overshoot, rise, reliability),
            which=loop,
            axis=axis,
            on_command=on_command,
            aligned=aligned,
            verify=(verify, verify_runs),
            out=out_of(out),
            progress=share,
            executor=executor,
        )


def computed(
    scenario: Scenario,
    *,
    spans: tuple[str, str, str],
    other: tuple[str | None, str | None, str | None],
    factor: float | str | None,
    runs: int,
    bursts: float,
    limits: tuple[float, float | None, str | None],
    which: str | None,
    axis: int | None,
    on_command: bool,
    aligned: bool,
    verify: tuple[int, int],
    out: Path | None,
    progress: Callable[[float], object],
    executor: Executor | None = None,
) -> LoopMap:
    """Computes the map of a scenario; `spans` are `rtt`, `loss` and `cells`, `other` are `gain`, `period` and `jitter`,
    `limits` are `overshoot`, `rise` and `reliability`, `verify` are the number of cells and runs, the rest is as of `map`.
    """
    from tcpsbed import scenarios
    from tcpsbed.lab.control import identified, stability, values, verification
    from tcpsbed.lab.control.batch import Bench
    from tcpsbed.runs import session

    for text in _one(factor):
        scenario = scenario.changed(factors_of(scenario, text))
    overshoot, rise, reliability = limits
    share = _share(reliability, rise)
    loop = loop_of(scenario, which)
    jumps = tuple(number - 1 for number in chosen(loop, axis))
    if on_command and loop.axes > 1:
        raise ConfigError("found it", key="--on-command", allowed="a loop with one axis")
    if on_command and other[2] and loop.step.plant:
        allowed = "one of them, where the plant has a memory"
        raise ConfigError("found it with --jitter", key="--on-command", allowed=allowed)
    most_ns = scenario.duration_ns  # what takes longer than a run shows no answer in it
    grid = _grid(loop, spans, other, bursts, most_ns, aligned=aligned)
    link = _verifiable(scenario, other, on_command=on_command) if verify[0] else ""
    if verify[0] or controllers(scenario.hooks):
        scenario = scenario.changed(gains_of(scenario, other[0]))
    loop, linear = identified.with_linear(loop, grid.period_ms)
    _refuse_period(loop, grid)
    bench = Bench(
        loop.step,
        runs,
        scenario.duration_ns / 1e6,
        scenario.seed,
        values.limits(math.inf if rise is None else rise, overshoot),
        "commands" if on_command else "ticks",
        jumps,
    )
    with nullcontext() if out is None else session.place(scenario, out, kind=KIND) as place:
        shown = None if place is None else place.shown
        part = MAPPED if verify[0] else 1.0
        mapped = stability.compute(grid, bench, lambda done: progress(part * done), executor)
        points = verification.verified(
            scenario, link, mapped, share, *verify, lambda done: progress(part + (1 - part) * done), executor
        )
        found = LoopMap(scenario.name, mapped, share, shown, linear, tuple(points))
        if place is not None:
            dumped = f"{_replaced(other)}{scenarios.dump(scenario)}"
            (place.path / "scenario.toml").write_text(dumped, encoding="utf-8")
            (place.path / "map.json").write_text(f"{json.dumps(found.figures)}\n", encoding="utf-8")
            (place.path / "map.html").write_text(_page(found), encoding="utf-8")
    return found


def _one(factor: object) -> list[str]:
    """The factor of a map, or none."""
    from tcpsbed.lab.control import values

    found = values.several(values.texts(factor), "--factor", "1.2")
    if len(found) > 1:
        raise ConfigError(f'found "{",".join(found)}"', key="--factor", allowed="one factor, such as 1.2")
    return found


def _replaced(other: tuple[str | None, str | None, str | None]) -> str:
    """A comment in front of the scenario of a map: what was not taken from it, beside delay and loss."""
    given = [
        f"{option} {one!r}"
        for option, one in zip(("--gain", "--period", "--jitter"), other, strict=True)
        if one
    ]
    return f"# Mapped with {one_line(', '.join(given))}.\n" * bool(given)


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


def _share(reliability: str | None, rise: float | None) -> float | None:
    """The share of runs that must be good; a limit of the rise time has an effect only with such a share."""
    from tcpsbed.lab.control import values

    if rise is not None and reliability is None:
        allowed = f"both, such as --rise {rise:g} --reliability 95% (a rise time of {rise:g} ms or less in 95 % of the runs)"
        raise ConfigError(f"found {rise:g} without --reliability", key="--rise", allowed=allowed)
    return values.share(reliability, "--reliability") if reliability else None


def _grid(
    loop: Loop,
    spans: tuple[str, str, str],
    other: tuple[str | None, str | None, str | None],
    bursts: float,
    most_ns: int,
    *,
    aligned: bool,
) -> Grid:
    """Spans are those of RTT and loss and the number of cells; other gains, another period, jitter."""
    from tcpsbed.lab.control import stability, values

    (rtt, loss, cells), (gain, period, jitter) = spans, other
    columns, rows = _size(cells, one=isinstance(loss, str) and ".." not in loss)
    reader = partial(values.duration_ns, most_ns=most_ns)
    if gain or loop.law is None:
        refuse_gains(loop.axes)
    if gain and loop.law is not None:
        allowed = "one of them: a controller of one's own has its gains in --controller"
        raise ConfigError("found it with a controller that is no pi", key="--gain", allowed=allowed)
    law = None if gain else loop.law
    kp, ki = values.gains(gain, "--gain") if gain else (0.0, 0.0) if law else _known_gains(loop)
    return stability.Grid(
        [ns / 1e6 for ns in values.span(rtt, columns, reader, "--rtt")],
        values.span(loss, rows, values.share, "--loss"),
        values.positive_ns(period, "--period", most_ns) / 1e6 if period else loop.period_ms,
        kp,
        ki,
        bursts,
        reader(jitter, "--jitter") / 1e6 if jitter else 0.0,
        phases=not aligned,
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


def _verifiable(
    scenario: Scenario, other: tuple[str | None, str | None, str | None], *, on_command: bool
) -> str:
    """The link to change in runs with packets; refuses what only the map computes."""
    for key, given_ in (("--on-command", on_command), ("--period", other[1])):
        if given_:
            raise ConfigError(
                f"found it with {key}", key="--verify", allowed="one of them: scenarios do not have it"
            )
    return link_of(scenario, None)


def loop_of(scenario: Any, which: str | None, key: str = "--loop") -> Loop:
    """The loop with this name, or the only one."""
    import tempfile

    from tcpsbed import scenarios
    from tcpsbed.lab.control.loop import loops, reached

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan = scenarios.compile_plan(scenario, Path(folder))
    found = {loop.name: loop for loop in loops(plan)}
    only = next(iter(found)) if which is None and len(found) == 1 else which
    loop = found.get(only or "")
    if loop is None:
        named = f'found "{which}"' if which else f"found {len(found)} loops"
        raise ConfigError(
            named, key=key, allowed=f"a component that closes a loop: {close_match(which or '', found)}"
        )
    reached(plan, [loop])
    return loop


def _known_gains(loop: Loop) -> tuple[float, float]:
    if loop.kp is None or loop.ki_per_ms is None:
        allowed = (
            'Kp and Ki per ms, such as "0.2:0.09", or in the scenario a hook with run = "pi" or "compensator"'
        )
        raise ConfigError('found no hook with run = "pi"', key="--gain", allowed=allowed)
    return loop.kp, loop.ki_per_ms


def _size(text: str, *, one: bool) -> tuple[int, int]:
    """Round trips and losses of a grid; of `one` loss there is a single row, whatever the number of losses."""
    from tcpsbed.lab.control import values

    given = values.given(text, "--cells", '"50x50", round trips x losses')
    columns, _, rows = given.partition("x") if "x" in given or not one else (given, "", "2")
    sizes = [int(part) if part.isascii() and part.isdigit() else 0 for part in (columns, rows)]
    if not 2 <= sizes[0] <= 1000 or not (1 if one else 2) <= sizes[1] <= 1000:
        hint = "; for one loss give one, such as --loss 10%" if sizes[1] == 1 else ""
        allowed = f'2 to 1000 in each dimension, such as "50x50"{hint}'
        raise ConfigError(f'found "{text}"', key="--cells", allowed=allowed)
    return sizes[0], 1 if one else sizes[1]


def _page(done: LoopMap) -> str:
    """`map.html`: the mean overshoot over the round trip, at some of the losses."""
    from tcpsbed import __version__
    from tcpsbed.lab.control import verification
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup
    from tcpsbed.views.charts import Chart, Sheet

    found, name, sentences = done.map, done.name, done.sentences
    sheet, grid = Sheet(), found.grid
    lines = {f"loss {100 * grid.loss[row]:.3g} %": found.mean["overshoot"][row] for row in _rows(found)}
    chart = Chart("Mean overshoot", grid.rtt_ms, "RTT (ms)", "overshoot (% of the step)", lines)
    body = [
        markup.section("overshoot", "Overshoot", sheet.place([chart])),
        markup.section("limits", "Where the limit is", markup.listing([*sentences, *done.remarks])),
    ]
    if done.points:
        compared = freeze.table(verification.laid(done.points)) + markup.note(verification.AGREE)
        body.append(markup.section("packets", "Compared with packets", compared))
    facts = [
        ("scenario", name),
        ("runs per cell", found.bench.runs),
        ("cells", f"{len(grid.rtt_ms)} x {len(grid.loss)}"),
        ("good", found.bench.limits),
        ("tcpsbed", __version__),
    ]
    return freeze.page(
        f"{name} map", [("", f"{sentences[0][:1].upper()}{sentences[0][1:]}.")], facts, body, sheet
    )


def _rows(found: StabilityMap) -> list[int]:
    """All of its losses, or five of many."""
    if len(found.grid.loss) <= MOST_TOLD:
        return list(range(len(found.grid.loss)))
    return sorted({round(share * (len(found.grid.loss) - 1)) for share in (0, 0.25, 0.5, 0.75, 1)})
