"""One run from scenario to summary, as the command line and Python start it.

```text
scenario ─► worlds.run ─► folder with records ─► analysis ─► summary.json, series.json
```
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import results
from tcpsbed.clocks import SIMULATED
from tcpsbed.interrupts import interrupts
from tcpsbed.results import Place
from tcpsbed.runs.samples import Samples, load_libraries

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario
    from tcpsbed.worlds import Steering

Progress = Callable[[float], object]
Live = Callable[[bytes, float, str], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its folder, and whether the user stopped it."""

    folder: Path
    stopped: bool


@contextmanager
def place(scenario: Scenario, out: Path | None, suffix: str = "", kind: str = results.RUN) -> Iterator[Place]:
    """The folder of a result of a scenario while it is written; see `named_place`."""
    with named_place(f"{scenario.name}{suffix}", out, scenario.files, kind) as made:
        yield made


@contextmanager
def named_place(
    name: str, out: Path | None, inputs: Iterable[Path], kind: str = results.RUN
) -> Iterator[Place]:
    """The folder of a result while it is written: `out`, or a new one under `runs/` (see `results.writing`)."""
    if out is None:
        results.tend_all(results.RUNS)
    with results.writing(results.fresh(name) if out is None else out, kind, inputs=inputs) as made:
        yield made


def execute(
    scenario: Scenario,
    *,
    world: str,
    out: Path | None,
    progress: Progress | None = None,
    live: Live | None = None,
    samples: bool = True,
    steering: Steering | None = None,
) -> Outcome:
    """Runs a loaded scenario into a folder and summarises it.

    Parameters
    ----------
    scenario, world, out
        What runs, in which world, and its folder (`None`: a new one under `runs/`).
    progress, live, samples, steering
        As of `record`.
    """
    with place(scenario, out) as made:
        stopped = record(
            scenario, made, world=world, progress=progress, live=live, samples=samples, steering=steering
        )
    return Outcome(made.shown, stopped)


def record(
    scenario: Scenario,
    made: Place,
    *,
    world: str,
    progress: Progress | None = None,
    live: Live | None = None,
    samples: bool = True,
    steering: Steering | None = None,
) -> bool:
    """Runs a loaded scenario into a place and summarises it; a request to end keeps what was recorded until then.

    Parameters
    ----------
    scenario, world
        What runs, in which world.
    made
        From `place`; what an earlier run has left in it goes when this one has come to its end, and stays if it fails.
    progress, live
        Called with the share done; with new rows and the run time in seconds.
    samples
        Whether `samples.parquet` is written: beside a simulation, or beside the analysis.
    steering
        Events that are asked for while it runs; in virtual time its pace, too.

    Returns
    -------
    bool
        Whether the user stopped it.
    """
    from tcpsbed import worlds

    simulated = world in SIMULATED
    if samples and not simulated:  # a simulation loads them beside it
        load_libraries()
    with (
        made.anew() as path,
        interrupts(say=simulated) as stop,
        Samples(path) if samples else nullcontext() as written,
    ):

        def tell(share: float) -> bool:
            if progress is not None:
                progress(share)
            return not stop.asked

        worlds.record(
            scenario,
            world=world,
            out=path,
            home=made.target,
            progress=tell,
            live=live,
            steering=steering,
            begin=written.follow if written and simulated else None,
        )
        _glance(path)
        _analyse(path, scenario, written)
    made.keep = True
    return stop.asked


def sum_up(folder: Path, scenario: Scenario) -> None:
    """Adds what the machine can do, summary and samples to what a run left."""
    _glance(folder)
    analyse(folder, scenario)


def _glance(folder: Path) -> None:
    """What the machine can do, beside what it did; another system than Linux is not examined."""
    if sys.platform != "linux":
        return
    from tcpsbed import doctor

    (folder / "doctor.json").write_text(json.dumps(doctor.glance(), indent=1), encoding="utf-8")


def analyse(folder: Path, scenario: Scenario | None = None) -> None:
    """Adds summary and samples to what a run left."""
    from tcpsbed import scenarios

    with Samples(folder) as written:
        _analyse(folder, scenario or scenarios.load(folder / "scenario.toml"), written)


def _analyse(folder: Path, scenario: Scenario, written: Samples | None) -> None:
    """Summary and samples at the same time, for both read the same rows; then the user's metrics."""
    from tcpsbed import analysis

    if written:
        written.complete()
    analysis.summarise(folder, scenario)
    if written:
        written.wait()
    if scenario.measure.metrics:
        from tcpsbed.analysis.summary import add_own
        from tcpsbed.runs import own

        add_own(folder, *own.measured(folder, scenario))


def summary_of(folder: Path) -> dict[str, Any]:
    """The content of a run's summary.json."""
    from tcpsbed import documents

    return documents.read(folder / "summary.json")
