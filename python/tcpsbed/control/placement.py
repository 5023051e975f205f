"""Where an edge component should stand: one scenario with its predictor at several places, and what each buys.

```text
error(t) = what stands at the entry of the next component at t - what was meant at t
         = what is held from the samples that came there       - what is held from the samples as they were made
```
The way to that entry is measured by echo points, and with it what the edge itself takes of it.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import config, session
from tcpsbed.analysis import signals
from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.control.edge import Edge, find, moved
from tcpsbed.errors import ConfigError, DataError, WorldError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WITHOUT, HOST, BEFORE = "without", "at its host", "one hop before"
LEARNING_MS = 500.0
"""Time at the beginning in which nothing counts."""
SENT = 1 + KINDS.index("sent")


@dataclass(frozen=True)
class Course:
    """Values over time: moments in ms, shape (n,), and values, shape (n, m)."""

    t_ms: NDArray[np.float64]
    values: NDArray[np.float64]

    def held(self, at_ms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The newest values at moments, shape (moments, m); not a number before the first."""
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
        Way of an echo command to the entry of the next component, median and 99th percentile.
    own_ms : float
        Of that between entry and exit of the edge, the mean.
    packets_per_s : float
        Packets that the last mile was given.
    failures : int
        Calls of the hook that failed.
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
    failures: int
    disturbed: tuple[str, ...]
    came: Course

    def to_json(self) -> dict[str, Any]:
        """Its numbers, without what came."""
        return {key: value for key, value in vars(self).items() if key != "came"}


@dataclass(frozen=True)
class Comparison:
    """The edge, what was meant over time, and the places, the scenario without the hook first."""

    edge: Edge
    meant: Course
    places: list[Placed]

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


# [PROTOCOLS 6.3] the same scenario with the edge at each place
def compare(
    file: Path,
    sets: Sequence[str] = (),
    *,
    hook: str | None = None,
    nodes: Sequence[str] = (),
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
    world
        Where it runs.
    progress
        Called with the share done.

    Raises
    ------
    ConfigError
        If there is no edge component with a predictor, no last mile, or no such node.
    WorldError
        If a run fails.
    """
    scenario = config.load(file, sets)
    if scenario.duration_ns / 1e6 < 2 * LEARNING_MS:
        found = f"found {scenario.duration_ns / 1e9:g} s"
        raise scenario.error(("duration",), found, f"{2 * LEARNING_MS / 1e3:g} s or more: the first half second is left out")
    edge = find(scenario, hook)
    for node in nodes:
        if node not in (*edge.nodes, *edge.routers):
            raise ConfigError(f'found "{node}"', key="--places", allowed=", ".join(edge.nodes + edge.routers))
    chosen: list[str | None] = [None, *(nodes or dict.fromkeys((edge.host, edge.before, edge.node)))]
    runs: list[_Run] = []
    for number, node in enumerate(chosen):

        def share(done: float, before: int = number) -> None:
            progress((before + done) / len(chosen))

        runs.append(_run(moved(file, sets, edge, node), edge, world, share))
    begun = [run.came.t_ms[0] for run in runs if len(run.came.t_ms)]
    from_ms = max(LEARNING_MS, *begun, 0.0)
    placed = [_placed(edge, node, run, from_ms) for node, run in zip(chosen, runs, strict=True)]
    return Comparison(edge, runs[0].meant, placed)


def _run(scenario: config.Scenario, edge: Edge, world: str, progress: Callable[[float], None]) -> _Run:
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as name:
        folder = Path(name)
        outcome = session.execute(scenario, world=world, out=folder, progress=progress, samples=False)
        if outcome.stopped:
            raise KeyboardInterrupt("stopped; places are compared over whole runs")
        summary = session.summary_of(folder)
        if summary["errors"]:
            raise WorldError(str(summary["errors"][0]))
        return _Run(summary, _meant(folder, edge), _came(folder, edge))


def _meant(folder: Path, edge: Edge) -> Course:
    """What samples were to say, from the moments at which they were made."""
    import numpy as np

    found = signals.read(folder, edge.meant, edge.flow)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    flow = [one["name"] for one in plan["flows"]].index(edge.flow)
    rows = open_records(folder / "records.bin")
    sent = rows[(rows["kind"] == SENT) & (rows["flow"] == flow)]
    places = np.searchsorted(sent["index"], found.numbers)
    return Course(sent["time"][np.minimum(places, len(sent) - 1)] / 1e6, found.values)


def _came(folder: Path, edge: Edge) -> Course:
    """What samples said to the next component, from the moments at which they came; empty where none did."""
    import numpy as np

    try:
        found = signals.read(folder, edge.points[-1], edge.flow)
    except DataError:  # the run was told to record this point: no sample passed it
        return Course(np.empty(0), np.empty((0, 1)))
    return Course(found.t_ns / 1e6, found.values)


def _errors(run: _Run, from_ms: float, period_ms: float) -> NDArray[np.float64]:
    """Lengths of the errors at each period, shape (n,) with n of at least 1."""
    import numpy as np

    grid = np.arange(from_ms, max(run.meant.t_ms[-1], from_ms + period_ms), period_ms)
    wanted, stood = run.meant.held(grid), run.came.held(grid)
    columns = min(wanted.shape[1], stood.shape[1])
    lengths: NDArray[np.float64] = np.linalg.norm(stood[:, :columns] - wanted[:, :columns], axis=1)
    return lengths


def _placed(edge: Edge, node: str | None, run: _Run, from_ms: float) -> Placed:
    import numpy as np

    summary, error = run.summary, _errors(run, from_ms, edge.period_ms)
    echo = summary["echo"][edge.flow]
    way = next(p["forward_ms"] for p in echo["points"] if p["point"] == edge.points[-1])
    own = next((c["latency_ms"] for c in echo["components"] if c["name"] == edge.component), None)
    age = summary["flows"][edge.flow]["age_ms"]
    links = [link for link in summary["network"] if link["name"] in edge.last_mile]
    stages = [s for s in summary["stages"] if (s["component"], s["kind"]) == (edge.component, "predict")]
    return Placed(
        place=WITHOUT if node is None else {edge.host: HOST, edge.before: BEFORE}.get(node, "elsewhere"),
        node=node,
        rms=float(np.sqrt(np.mean(error**2))),
        worst=float(error.max()),
        age_ms=_number(age, "mean"),
        age_max_ms=_number(age, "max"),
        delay_ms=_number(way, "p50"),
        delay_p99_ms=_number(way, "p99"),
        own_ms=_number(own, "mean"),
        packets_per_s=sum(link["packets"] + link["dropped_packets"] for link in links) / summary["ran_s"],
        failures=sum(int(stage["failures"]) for stage in stages),
        disturbed=tuple(summary["disturbances"]),
        came=run.came,
    )


def _number(found: Mapping[str, Any] | None, key: str) -> float:
    value = None if found is None else found.get(key)
    return math.nan if value is None else float(value)
