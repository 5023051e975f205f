"""A sweep from Python: a campaign of which every value meets every other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import campaign
from tcpsbed.runs.given import given

if TYPE_CHECKING:
    from tcpsbed.api.run import Progress
    from tcpsbed.campaign.outcome import Outcome
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides


def sweep(
    scenario: Scenario | Path | str,
    over: Mapping[str, str | Sequence[Any]],
    *,
    seeds: int = 10,
    duration: str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    world: str = "virtual",
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | str | None = None,
    progress: Progress = False,
) -> Outcome:
    """Runs a grid of values and seeds on all cores, or what is missing of it.

    For factors that belong together or are drawn, for several worlds, a baseline, labels, and intervals that decide on the
    number of seeds there is `tcpsbed.campaign.run`, of which this is the simplest case.

    Parameters
    ----------
    scenario : Scenario, Path or str
        As of `tcpsbed.run`.
    over : mapping
        Keys with their values: a list, or a range such as `"1..2 Mbit/s step 0.5"`.
    seeds : int
        Seeds of every combination, counted from the scenario's.
    jobs : int, optional
        Cells at a time; absent: as many as there are cores, one on the machine's clock.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`; needs the extra `cluster`.
    out : Path or str, optional
        Folder of results; absent: one below `runs/` that the same call finds again. Finished cells are not run again.
    duration, set, seed, world, progress
        As of `tcpsbed.run`.

    Returns
    -------
    Outcome
        A row for every cell and flow; `print` shows the tables, `.to_pandas()` has them all.

    Raises
    ------
    TcpsbedError
        If anything in it is wrong: before anything runs, with all that is.

    Examples
    --------
    >>> import tcpsbed
    >>> rates = {"links.l1.rate": ["1 Mbit/s", "1.5 Mbit/s"]}
    >>> print(tcpsbed.sweep("quickstart.toml", rates, seeds=5))  # doctest: +SKIP
    """
    allowed = 'a mapping of keys and values, such as {"links.l1.rate": ["1 Mbit/s", "2 Mbit/s"]}'
    campaign.refuse_other("over", over, (Mapping,), allowed)
    with given(scenario, set=set, duration=duration, seed=seed) as asked:
        settings = [*map(str, asked.settings), *[f"seed={asked.scenario.seed}"] * (seed is not None)]
        plan = {
            "name": "sweep",
            "scenario": str(asked.file.resolve()),
            "set": settings,
            "world": [world],
            "seeds": seeds,
            "grid": dict(over),
        }
        found = out or asked.folder("sweep", [repr(over), world])
        return campaign.run(plan, out=found, jobs=jobs, cluster=cluster, progress=progress)
