"""The best place for an edge component: one scenario with its predictor at several places, compared.

```text
error(t) = what stands at the entry of the next component at t - what was meant at t
         = what is held from the samples that came there       - what is held from the samples as they were made
```
Rows of the echo points say when a sample was at the edge and when the first output made of it came to the next component:
they are joined by the numbers of samples, so that nothing is added to what is measured.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.errors import ConfigError, DataError, WorldError
from tcpsbed.lab.control.edge import Edge, find, moved
from tcpsbed.nearest import close_match
from tcpsbed.runs import session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WITHOUT, HOST, BEFORE = "without", "at its host", "one hop before"
LEARNING_MS = 500.0
"""Time at the beginning in which nothing counts."""
SENT, DELIVERED, ENTER, EXIT, RENUMBERED = (
    1 + KINDS.index(kind) for kind in ("sent", "delivered", "enter", "exit", "renumbered")
)


@dataclass(frozen=True)
class Course:
    """Values over time: times in ms, shape (n,), and values, shape (n, m)."""

    t_ms: NDArray[np.float64]
    values: NDArray[np.float64]

    def held(self, at_ms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The newest values at given times, shape (times, m); NaN before the first."""
        import numpy as np

        places = np.searchsorted(self.t_ms, at_ms, side="right") - 1
        if not len(self.t_ms):
            return np.full((len(at_ms), 1), np.nan)
        known: NDArray[np.float64] = self.values[np.maximum(places, 0)]
        return np.where((places < 0)[:, None], np.nan, known)


@dataclass(frozen=True)
class Placed:
    """What a place is like.

    Attributes
    ----------
    place, node : str
        What it is called, and its node or router; none without the hook.
    rms, worst : float
        Length of the error, in the unit of the values; not a number where nothing came.
    age_ms, age_max_ms : float
        Age of the newest sample that the flow's receiver has, over time.
    delay_ms, delay_p99_ms : float
        From the making of a sample to the first output made of it at the entry of the next component, median and 99th
        percentile; of samples of which none came nothing is known.
    own_ms : float
        Of that between entry and exit of the edge, the mean.
    packets_per_s : float
        Packets that the last mile was given.
    disturbed : tuple of str
        What disturbed the run.
    came : Course
        What came to the next component.
    """

    place: str
    node: str | None
    rms: float
    worst: float
    age_ms: float
    age_max_ms: float
    delay_ms: float
    delay_p99_ms: float
    own_ms: float
    packets_per_s: float
    disturbed: tuple[str, ...]
    came: Course

    def to_json(self) -> dict[str, Any]:
        """Its numbers, without the received values."""
        return {key: value for key, value in vars(self).items() if key != "came"}


@dataclass(frozen=True)
class Comparison:
    """The edge, what was meant over time, the places, the scenario without the hook first, and the values that count."""

    edge: Edge
    meant: Course
    places: list[Placed]
    chosen: tuple[int, ...]

    @property
    def best(self) -> Placed | None:
        """The place with the smallest error; none where nothing came anywhere."""
        known = [one for one in self.places if math.isfinite(one.rms)]
        return min(known, key=lambda one: one.rms, default=None)


@dataclass(frozen=True)
class _Run:
    summary: dict[str, Any]
    meant: Course
    came: Course
    way_ms: NDArray[np.float64]
    own_ms: NDArray[np.float64]


# [Polachan 2022] the same scenario with the edge at each place
def compare(
    file: Path,
    sets: Sequence[str] = (),
    *,
    hook: str | None = None,
    nodes: Sequence[str] = (),
    chosen: Sequence[int] = (),
    world: str = "virtual",
    progress: Callable[[float], object] = lambda _: None,
) -> Comparison:
    """Runs a scenario without its edge predictor, and with it at several places.

    Parameters
    ----------
    file
        The scenario.
    sets
        Overrides.
    hook
        The `predict` hook; absent: the only one at an edge component.
    nodes
        Nodes and routers where the edge is to stand; empty: its host, one hop before it, and where it is.
    chosen
        Numbers of the values that count; empty: all.
    world
        Where it runs.
    progress
        Called with the share done.

    Raises
    ------
    ConfigError
        If there is no edge component with a predictor, no last mile, no such node, or no such value.
    WorldError
        If a run fails.
    """
    scenario = scenarios.load(file, sets)
    if scenario.duration_ns / 1e6 < 2 * LEARNING_MS:
        found = f"found {scenario.duration_ns / 1e9:g} s"
        raise scenario.error(
            ("duration",), found, f"{2 * LEARNING_MS / 1e3:g} s or more: the first half second is skipped"
        )
    edge = find(scenario, hook)
    places = _places(edge, nodes)
    runs: list[_Run] = []
    for number, place in enumerate(places):

        def share(done: float, before: int = number) -> None:
            progress((before + done) / len(places))

        runs.append(_run(moved(file, sets, edge, place), edge, world, share))
        columns = runs[0].meant.values.shape[1]
        if chosen and max(chosen) >= columns:
            raise ConfigError(f"found {max(chosen)}", key="--values", allowed=f"0 to {columns - 1}")
    begun = [run.came.t_ms[0] for run in runs if len(run.came.t_ms)]
    from_ms = max(LEARNING_MS, *begun, 0.0)
    placed = [_placed(edge, place, run, from_ms, chosen) for place, run in zip(places, runs, strict=True)]
    return Comparison(edge, runs[0].meant, placed, tuple(chosen) or tuple(range(columns)))


def _places(edge: Edge, nodes: Sequence[str]) -> list[str | None]:
    """No place, and then the requested nodes, or one node for each group of equivalent ones."""
    there = (*edge.nodes, *edge.routers)
    for node in nodes:
        if node not in there:
            raise ConfigError(f'found "{node}"', key="--places", allowed=close_match(node, there))
    return [None, *(nodes or dict.fromkeys((edge.host, edge.before, edge.node)))]


def _run(scenario: scenarios.Scenario, edge: Edge, world: str, progress: Callable[[float], None]) -> _Run:
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as name:
        folder = Path(name)
        outcome = session.execute(scenario, world=world, out=folder, progress=progress, samples=False)
        if outcome.stopped:
            raise KeyboardInterrupt("stopped; only complete runs can be compared")
        summary = session.summary_of(folder)
        if summary["errors"]:
            raise WorldError(str(summary["errors"][0]))
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        flow = [one["name"] for one in plan["flows"]].index(edge.flow)
        rows = open_records(folder / "records.bin")
        mine = rows[rows["flow"] == flow]
        sent = _Times.of(mine[mine["kind"] == SENT])
        found = signals.read(folder, edge.meant, edge.flow)
        meant = Course(sent.at(found.numbers) / 1e6, found.values)
        return _Run(summary, meant, _came(folder, edge), *_spans(mine, plan, edge, sent))


@dataclass(frozen=True)
class _Times:
    """Times of samples at a point: their numbers, rising, and the first time in ns."""

    numbers: NDArray[np.int64]
    t_ns: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.void], numbers: NDArray[np.int64] | None = None) -> _Times:
        """The times of rows, which are in the order of time; `numbers` replaces the numbers of the rows."""
        import numpy as np

        found, first = np.unique(
            rows["index"].astype(np.int64) if numbers is None else numbers, return_index=True
        )
        return cls(found, rows["time"][first])

    def at(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """Times of samples in ns; NaN for missing ones."""
        import numpy as np

        if not len(self.numbers):
            return np.full(len(numbers), np.nan)
        places = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[places] == numbers, self.t_ns[places].astype(float), np.nan)


# [Polachan 2022] differences between echo points, here of the same sample
def _spans(
    rows: NDArray[np.void], plan: Mapping[str, Any], edge: Edge, sent: _Times
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How long samples took to the next component, and from entry to exit of the edge, in ms."""
    import numpy as np

    here, there = (
        [one["name"] for one in plan["components"]].index(name) for name in (edge.component, edge.next)
    )

    def at(point: int, *kinds: int) -> NDArray[np.void]:
        chosen: NDArray[np.void] = rows[np.isin(rows["kind"], kinds) & (rows["point"] == point)]
        return chosen

    came, made = at(2 * there, ENTER, DELIVERED), at(here, RENUMBERED)
    entered, left = _Times.of(at(2 * here, ENTER)), _Times.of(at(2 * here + 1, EXIT))
    if not len(made):  # without the hook, samples keep their numbers
        known, own = _Times.of(came), left.at(entered.numbers) - entered.t_ns
    else:
        order = np.argsort(made["index"], kind="stable")
        places = np.minimum(np.searchsorted(made["index"][order], came["index"]), len(made) - 1)
        known = _Times.of(came, made["value"][order][places])
        new = made[made["detail"] == 1]
        own = left.at(new["index"]) - entered.at(new["value"])
    way = known.t_ns - sent.at(known.numbers)
    return way[~np.isnan(way)] / 1e6, own[~np.isnan(own)] / 1e6


def _came(folder: Path, edge: Edge) -> Course:
    """Values received by the next component, with their arrival times; empty if none arrived."""
    import numpy as np

    try:
        found = signals.read(folder, edge.end, edge.flow)
    except DataError:  # the run was told to record this point: no sample passed it
        return Course(np.empty(0), np.empty((0, 1)))
    return Course(found.t_ns / 1e6, found.values)


def _errors(run: _Run, from_ms: float, period_ms: float, chosen: Sequence[int]) -> NDArray[np.float64]:
    """Lengths of the errors at each period, shape (n,) with n of at least 1; NaN where a value that counts is absent."""
    import numpy as np

    grid = np.arange(from_ms, max(run.meant.t_ms[-1], from_ms + period_ms), period_ms)
    wanted, stood = run.meant.held(grid), run.came.held(grid)
    columns = list(chosen or range(wanted.shape[1]))
    if max(columns) >= stood.shape[1]:
        return np.full(len(grid), np.nan)
    lengths: NDArray[np.float64] = np.linalg.norm(stood[:, columns] - wanted[:, columns], axis=1)
    return lengths


def _placed(edge: Edge, node: str | None, run: _Run, from_ms: float, chosen: Sequence[int]) -> Placed:
    import numpy as np

    summary, error = run.summary, _errors(run, from_ms, edge.period_ms, chosen)
    age = summary["flows"][edge.flow]["age_ms"] or {}
    links = [link for link in summary["network"] if link["name"] in edge.last_mile]
    median, late = np.percentile(run.way_ms, [50, 99]) if len(run.way_ms) else (math.nan, math.nan)
    return Placed(
        place=WITHOUT if node is None else {edge.host: HOST, edge.before: BEFORE}.get(node, "elsewhere"),
        node=node,
        rms=float(np.sqrt(np.mean(error**2))),
        worst=float(error.max()),
        age_ms=float(age.get("mean", math.nan)),
        age_max_ms=float(age.get("max", math.nan)),
        delay_ms=float(median),
        delay_p99_ms=float(late),
        own_ms=float(run.own_ms.mean()) if len(run.own_ms) else math.nan,
        packets_per_s=sum(link["packets"] + link["dropped_packets"] for link in links) / summary["ran_s"],
        disturbed=tuple(summary["disturbances"]),
        came=run.came,
    )
