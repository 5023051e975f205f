"""A scenario run from Python, under one seed or several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed.api.seeds import further, spread
from tcpsbed.errors import one_line
from tcpsbed.inputs import out_of
from tcpsbed.runs import refuse_number
from tcpsbed.runs.given import given
from tcpsbed.runs.run import Run

if TYPE_CHECKING:
    from tcpsbed.campaign.worker import Job
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

Progress = bool | Callable[[float], object]
"""Whether a bar is drawn on standard error; or a function that hears of the share done, 0 to 1."""


def run(
    scenario: Scenario | Path | str,
    *,
    duration: str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    seeds: int = 1,
    jobs: int | None = None,
    world: str = "virtual",
    out: Path | str | None = None,
    progress: Progress = False,
) -> Run:
    """Runs a scenario and opens its results.

    Parameters
    ----------
    scenario : Scenario, Path or str
        A scenario, the path of its file, or its TOML text (anything with a line break).
    duration : str, optional
        Replaces the scenario's, such as `3 s`.
    set : mapping or sequence of str
        Overrides, such as `{"traffic.cbr.rate": "310 kbit/s"}` or `['traffic.cbr.rate="310 kbit/s"']`.
    seed : int, optional
        Replaces the scenario's seed.
    seeds : int
        Seeds to run, counted from the scenario's, for 95 % intervals: `summary.across_seeds`. Everything else describes
        the first. If the second gives the same records, nothing is random, and the others are skipped.
    jobs : int, optional
        Runs at a time under further seeds; absent: all cores, and one on the machine's clock.
    world : str
        As for `--world`, such as `virtual` or `real`.
    out : Path or str, optional
        The run folder; absent: a new one under `runs/`.
    progress : bool or callable
        Whether a bar is drawn on standard error; or a function that hears of the share done, 0 to 1.

    Returns
    -------
    Run
        The finished run.

    Raises
    ------
    TcpsbedError
        If the scenario is invalid or the run fails.
    KeyboardInterrupt
        If the user stops it; the message names the folder with what was recorded.

    Warns
    -----
    RuntimeWarning
        If runs under further seeds fail; `summary.across_seeds.failed` lists them.

    Examples
    --------
    >>> import tcpsbed
    >>> run = tcpsbed.run("quickstart.toml", duration="3 s", seeds=10)  # doctest: +SKIP
    >>> run.flows["kinematic"].delay_ms.p99  # doctest: +SKIP
    """
    from tcpsbed import worlds
    from tcpsbed.runs import session

    worlds.check(world)
    refuse_number("seeds", seeds)
    refuse_number("jobs", jobs)
    failures: dict[str, str] = {}
    with (
        given(scenario, set=set, duration=duration, seed=seed) as asked,
        told(progress, f"{asked.scenario.name}, {world}") as share,
        session.place(asked.scenario, out_of(out)) as place,
    ):
        survey = further(asked, seeds, world, place)
        stopped = session.record(
            asked.scenario, place, world=world, progress=lambda done: share(done / seeds)
        )
        if not stopped:
            share(1 / seeds)

            def ended(done: int, number: int, job: Job, failure: str | None) -> None:
                share((1 + done / number * (seeds - 1)) / seeds)

            failures = spread(survey, place, jobs, ended)
    if stopped:
        raise KeyboardInterrupt(f"stopped; what was recorded is in {place.shown}")
    if failures:
        first = one_line(next(iter(failures.values())))
        warnings.warn(f"{len(failures)} of {seeds} seeds failed: {first}", RuntimeWarning, stacklevel=2)
    return Run(place.shown)


@contextmanager
def told(progress: Progress, label: str) -> Iterator[Callable[[float], object]]:
    """What hears of the share done: the function of a user, or a bar, which may be quiet."""
    from tcpsbed.runs.progress import Progress as Bar

    if callable(progress):
        yield progress
        return
    with Bar(label, quiet=not progress) as bar:
        yield bar
