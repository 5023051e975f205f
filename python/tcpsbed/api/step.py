"""The step experiment from Python: step responses of a loop over the network. [Polachan 2022]"""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import __version__, executors, shipped
from tcpsbed.analysis.frame import Frame, field
from tcpsbed.api.run import Progress, told
from tcpsbed.errors import ConfigError, counted, one_line
from tcpsbed.inputs import out_of
from tcpsbed.lab.control import systems, table
from tcpsbed.lab.control.loop import chosen
from tcpsbed.lab.control.setting import factors_of, gains_of, link_of, loops_of
from tcpsbed.lab.control.verdict import Reliability, reliability
from tcpsbed.nearest import close_match
from tcpsbed.runs import refuse_number
from tcpsbed.runs.given import given

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpsbed.lab.control.experiment import Experiment
    from tcpsbed.lab.control.systems import System
    from tcpsbed.lab.control.verdict import Limits
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

KIND = "step"
"""Kind of result that it leaves."""
Values = str | Sequence[str] | None
"""Several values: a list of texts, one text with commas, or none."""


@dataclass(frozen=True)
class StepResponses(Frame):
    """Step responses of the loops of a scenario, in one setting or several; `print` shows a table, `.to_pandas()` has
    a row for each run.

    Attributes
    ----------
    scenario, world, limits
        What ran in the first setting, where, and what a good run keeps.
    settings
        Each setting, such as `RTT 10 ms, loss 30%` (empty where there is one), with its runs: `curves` with `t_ms`, `h` and
        the figures of the `response`, such as `rise_ms`.
    folder
        With scenario.toml, step.json, step.html, and curves.parquet, from which `tcpsbed.load` reads it.
    """

    scenario: Scenario
    world: str
    limits: Limits
    settings: tuple[tuple[str, Experiment], ...]
    folder: Path

    def __iter__(self) -> Iterator[str]:
        """The names of the settings."""
        return (name for name, _ in self.settings)

    def __getitem__(self, name: str) -> Experiment:
        """The runs of a setting, such as `found["RTT 10 ms"]`.

        Raises
        ------
        KeyError
            If there is no such setting; the message has their names.
        """
        for known, one in self.settings:
            if known == name:
                return one
        raise KeyError(f'found "{name}"; allowed: {close_match(name, [known for known, _ in self.settings])}')

    def reliability(self, name: str = "") -> Reliability:
        """The share of good runs of a setting, with its 95 % interval."""
        return reliability(self[name].responses, self.limits)

    @property
    def figures(self) -> dict[str, Any]:
        """The content of `step.json`: statistics of all figures, by setting, and every run."""
        head = {"scenario": self.scenario.name, "world": self.world, "seed": self.scenario.seed}
        entries = [table.entry(*one, self.limits) for one in self.settings]
        found: dict[str, Any] = table.plain(head | {"limits": asdict(self.limits), "settings": entries})
        return found

    @property
    def caption(self) -> str:
        """What ran, in a line."""
        ran, seed = counted(len(self.settings[0][1].curves), "run"), self.scenario.seed
        return f"{self.scenario.name} · {self.world} · {ran} · seed {seed} · tcpsbed {__version__}"

    def to_arrow(self) -> pa.Table:
        """A row for each run of each setting: seed, figures of its response (null: it has none), whether good, disturbed."""
        import pyarrow

        units = {name: column.unit for name, column in table.FIGURES.items()}
        columns = {name: name if name.endswith("_ms") else f"{name}_percent" for name in units}
        number, truth = pyarrow.float64(), pyarrow.bool_()
        fields = [field("setting", pyarrow.string()), field("seed", pyarrow.int64())]
        fields += [field(columns[name], number, unit) for name, unit in units.items()]
        fields += [field("good", truth), field("disturbed", truth)]
        rows = [
            {"setting": name, "seed": self.scenario.seed + number}
            | {columns[key]: table.plain(value) for key, value in vars(curve.response).items()}
            | {"good": self.limits.good(curve.response), "disturbed": bool(curve.disturbed)}
            for name, one in self.settings
            for number, curve in enumerate(one.curves)
        ]
        return pyarrow.Table.from_pylist(rows, pyarrow.schema(fields))

    def draw(self, file: Path | str) -> Path:
        """Draws the curves into a file, such as `step.svg`; needs matplotlib.

        Raises
        ------
        ConfigError, DataError
            If the file may not be overwritten, or matplotlib is not installed.
        """
        from tcpsbed.lab.control import figure

        return figure.responses(self.settings, self.limits, self.caption, Path(file))

    def __str__(self) -> str:
        return f"{self.caption}\n\n{table.text(self.settings, self.limits)}"


def step(
    scenario: Scenario | Path | str | None = None,
    *,
    plant: System | None = None,
    controller: System | None = None,
    disturbance: str | None = None,
    runs: int = 20,
    rtt: Values = (),
    loss: Values = (),
    gain: Values = (),
    factor: Values | float | Sequence[float] = (),
    link: str | None = None,
    rise: float = math.inf,
    overshoot: float = 20.0,
    undershoot: float = math.inf,
    phases: bool = False,
    offsets: bool = False,
    axis: int | None = None,
    world: str = "virtual",
    out: Path | str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    duration: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = False,
) -> StepResponses:
    """Measures step responses of a control loop over the network.

    Parameters
    ----------
    scenario : Scenario, Path or str
        One that has a component with `robot = "step"`, as `tcpsbed init --from step` writes; absent: that one.
    plant, controller : object, optional
        In place of the scenario's: transfer functions, matrices, objects of python-control or scipy.signal, or code, as
        `tcpsbed.lab.control.systems` lists them.
    disturbance : str, optional
        `gain`: after the step the loop has a c-th of its gain. `output`: it has all of it.
    runs : int
        Runs of each setting, each with a seed of its own.
    rtt, loss, gain : str or sequence of str, optional
        Round trips (`"5 ms,10 ms"`), losses each way (`["0", "30 %"]`), gains Kp:Ki per ms (`"0.2:0.09"`) in place of the
        scenario's; of several values every combination runs.
    factor : float, sequence of float or str, optional
        Factors that multiply the linear controller, such as `best.factor` of `tcpsbed.tune`.
    link : str, optional
        The link to change; absent: the only one.
    rise, overshoot, undershoot : float
        What a good run keeps, in ms and in percent of the step.
    phases : bool
        Whether the tick phases of both sides are drawn at random.
    offsets : bool
        Whether time and value offset of h as the controller sees it are found, by time warping.
    axis : int, optional
        Of a loop with several axes the one that jumps, from 1 on; absent: each of them, one after the other.
    jobs : int, optional
        Runs at a time, in simulated time; absent: one. Runs with code of your own follow one another in any case.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`; needs the extra `cluster`.
    world, out, set, seed, duration, progress
        As of `tcpsbed.run`.

    Returns
    -------
    StepResponses
        Curves and figures of each setting.

    Raises
    ------
    TcpsbedError
        If the scenario has no loop, or a value cannot be.

    Examples
    --------
    >>> import tcpsbed
    >>> found = tcpsbed.step("step.toml", rtt=["5 ms", "20 ms"])  # doctest: +SKIP
    >>> found.reliability("RTT 20 ms").share  # doctest: +SKIP
    >>> own = tcpsbed.step(plant=([1], [0.05, 1]), controller=([0.5, 10], [1, 0]))  # doctest: +SKIP
    >>> own[""].margins.delay_ms  # doctest: +SKIP
    """
    from tcpsbed import worlds

    worlds.require(world)
    refuse_number("runs", runs)
    refuse_number("jobs", jobs)
    with (
        given(
            shipped.find("step") if scenario is None else scenario, set=set, duration=duration, seed=seed
        ) as asked,
        executors.opened(jobs, cluster, world) as executor,
        told(progress, f"{asked.scenario.name}, {world}") as share,
    ):
        return measured(
            (systems.own if scenario is None else systems.applied)(
                asked.scenario, plant, controller, disturbance
            ),
            runs=runs,
            values=(rtt, loss, gain, factor),
            link=link,
            limits=(rise, overshoot, undershoot),
            phases=phases,
            offsets=offsets,
            axis=axis,
            world=world,
            out=out_of(out),
            progress=share,
            executor=executor,
        )


def measured(
    first: Scenario,
    *,
    runs: int,
    values: tuple[Values, Values, Values, Values | float | Sequence[float]],
    link: str | None,
    limits: tuple[float, float, float],
    phases: bool,
    offsets: bool,
    axis: int | None,
    world: str,
    out: Path | None,
    progress: Callable[[float], object],
    duration_key: str = "duration",
    executor: Executor | None = None,
) -> StepResponses:
    """Runs every setting of a scenario; `values`: round trip, loss, gain and factor; the rest is as of `step`."""
    from tcpsbed import scenarios
    from tcpsbed.lab.control import experiment, kept
    from tcpsbed.lab.control import values as quantities
    from tcpsbed.runs import session

    good = quantities.limits(*limits)
    settings = list(_settings(first, *values, link, axis))
    scenario = first.changed(settings[0].sets)
    found: list[tuple[str, Experiment]] = []
    with session.place(first, out, "-step", KIND) as place:
        tried = [first.changed(setting.sets) for setting in settings]
        asked = experiment.Asked(runs, world, phases, offsets, duration_key)
        every = experiment.every(tried, asked, progress, executor)
        for setting, of in zip(settings, every, strict=True):
            found += _named(of, setting.name)
        done = StepResponses(scenario, world, good, tuple(found), place.shown)
        told_ = json.dumps(done.figures, indent=1)
        dumped = f"{_changes(settings)}{scenarios.dump(scenario)}"
        (place.path / "scenario.toml").write_text(dumped, encoding="utf-8")
        (place.path / "step.json").write_text(f"{told_}\n", encoding="utf-8")
        (place.path / "step.html").write_text(_page(done), encoding="utf-8")
        kept.write_curves(place.path / kept.CURVES, world, good, found)
    return done


def opened(folder: Path) -> StepResponses:
    """The step responses that a folder holds.

    Raises
    ------
    TcpsbedError
        If it holds none.
    """
    from tcpsbed import scenarios
    from tcpsbed.lab.control import kept

    world, limits, settings = kept.read_curves(folder / kept.CURVES)
    return StepResponses(scenarios.load(folder / "scenario.toml"), world, limits, tuple(settings), folder)


@dataclass(frozen=True)
class Setting:
    """One combination of values: what it is called, and its overrides."""

    name: str
    sets: tuple[str, ...]


def _changes(settings: Sequence[Setting]) -> str:
    """Comments in front of the first setting's scenario: what it is, and what makes the others of it."""
    first, *others = settings
    lines = [f"The scenario of the setting {first.name}."] * bool(first.name)
    lines += ["The other settings change it:"] * bool(others)
    lines += [f"  {one.name}: {shlex.join(w for s in one.sets for w in ('--set', s))}" for one in others]
    return "".join(f"# {one_line(line)}\n" for line in lines)


def _page(done: StepResponses) -> str:
    """`step.html`: the table, and the median of each setting's curves with its extremes."""
    import numpy as np

    from tcpsbed.lab.control.figure import resampled
    from tcpsbed.studio import freeze
    from tcpsbed.views import markup
    from tcpsbed.views.charts import Chart, Sheet

    found, limits = done.settings, done.limits
    sheet, charts = Sheet(), []
    for name, one in found:
        t_ms, curves = resampled(one)
        lines = dict(
            zip(
                ("least", "greatest", "median"),
                np.percentile(curves, [0, 100, 50], axis=0).tolist(),
                strict=True,
            )
        )
        charts.append(
            Chart(name or "Step response", t_ms.tolist(), "time from the step (ms)", "h", lines, steps=True)
        )
    drawn = markup.section("curves", "Curves", sheet.place(charts))
    worst = min(found, key=lambda one: reliability(one[1].responses, limits).share)
    good = reliability(worst[1].responses, limits)
    opening = [
        ("much", f"{good.good} of {good.runs} runs are good"),
        ("", f" ({limits}){f' with {worst[0]}' * bool(worst[0])}."),
    ]
    kept = "scenario.toml is that of the first setting, and begins with the changes for the others"
    said = [*table.said(found, limits).splitlines(), *[kept] * (len(found) > 1)]
    notes = markup.note("; ".join(said))
    facts = [
        ("world", done.world),
        ("runs", len(found[0][1].curves)),
        ("seed", done.scenario.seed),
        ("tcpsbed", __version__),
    ]
    body = [freeze.table(table.laid(found, limits)), notes, drawn]
    return freeze.page(f"{done.scenario.name} step", opening, facts, body, sheet)


def _named(every: Sequence[Experiment], name: str) -> Iterator[tuple[str, Experiment]]:
    """The experiments of a setting, each with what it is called."""
    for one in every:
        yield (name if len(every) == 1 else f"{one.loop.name}, {name}".strip(", ")), one


def _settings(
    scenario: Scenario,
    rtt: Values,
    loss: Values,
    gain: Values,
    factor: Values | float | Sequence[float],
    link: str | None,
    axis: int | None,
) -> Iterator[Setting]:
    from tcpsbed.lab.control import values
    from tcpsbed.lab.control.values import several, texts

    trips = several(rtt, "--rtt", "5 ms", values.duration_ns)
    losses = several(loss, "--loss", "30 %", values.share)
    axes: list[list[tuple[str, list[str]]]] = [list(_jumps(scenario, axis))]
    if trips or losses:
        name = link_of(scenario, link)
        axes.append([(f"RTT {text}", [f"links.{name}.delay={_half(scenario, text)}"]) for text in trips])
        axes.append([(f"loss {text}", [f"links.{name}.loss={_share(text)}"]) for text in losses])
    axes.append(
        [
            (f"gain {text}", gains_of(scenario, text))
            for text in several(gain, "--gain", "0.2:0.09", values.gains)
        ]
    )
    factors = several(texts(factor), "--factor", "1.2", values.factor)
    axes.append([(f"factor {text}", factors_of(scenario, text)) for text in factors])
    for choice in itertools.product(*(axis for axis in axes if axis)):
        yield Setting(
            ", ".join(name for name, _ in choice), tuple(text for _, sets in choice for text in sets)
        )


def _jumps(scenario: Scenario, axis: int | None) -> Iterator[tuple[str, list[str]]]:
    """The axes that jump, of loops that have several."""
    found = [loop for loop in loops_of(scenario) if loop.axes > 1]
    if not found and axis not in (None, 1):
        raise ConfigError(
            f"found {axis!r}", key="--axis", allowed="1: the loops of this scenario have one axis"
        )
    if len(found) > 1:
        allowed = "one loop with several axes in a scenario"
        raise ConfigError(f"found {len(found)} loops with several axes", key="components", allowed=allowed)
    for loop in found:
        for number in chosen(loop, axis):
            yield f"axis {number}", [f"components.{loop.name}.robot.params.axis={number}"]


def _half(scenario: Scenario, text: str) -> str:
    """Half a round trip, for each direction; one that is longer than the run would show no answer."""
    from tcpsbed.lab.control import values

    return json.dumps(f"{values.duration_ns(text, '--rtt', scenario.duration_ns) // 2} ns")


def _share(text: str) -> str:
    """A share as an override has it, once it is known to be one."""
    from tcpsbed.lab.control import values

    return json.dumps(text) if values.share(text, "--loss") else "0"
