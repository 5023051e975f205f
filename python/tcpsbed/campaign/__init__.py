"""Campaigns: combinations of values times seeds, on all cores or a cluster, resumed after a kill, with intervals.

```text
 FILE.toml ─► design ─┐                  ┌─ forks of a warm process
 --over    ─► grid ───┼─► cells ─► runs ─┼─ workers of a cluster    ─► OUT/cells/KEY.json ─► sweep.parquet, sweep.html
 run --seeds ─────────┘                  └─ a process each (real)      RUN/seeds/cells ─► across_seeds in summary.json
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import ConfigError
from tcpsbed.inputs import out_of, path
from tcpsbed.runs import refuse_number

if TYPE_CHECKING:
    from tcpsbed.campaign.outcome import Outcome


def run(
    campaign: Path | str | Mapping[str, Any],
    *,
    out: Path | str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Runs a campaign, or what is missing of it.

    Parameters
    ----------
    campaign : Path, str or mapping
        Its file, or a mapping of the same keys (`tcpsbed docs campaign`), with paths relative to the working folder.
    out : Path or str, optional
        Folder of results; absent: a folder below `runs/` that the same call finds again.
    jobs : int, optional
        Cells at a time; absent: as many as there are cores, one on the machine's clock.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`; needs the extra `cluster`.
    progress : callable, optional
        Called with the share of cells that are done, from 0 to 1.

    Returns
    -------
    Outcome
        Rows, failures and folder; `str()` of it is the table.

    Raises
    ------
    TcpsbedError
        If anything in the campaign is wrong: before anything runs, with all that is.

    Examples
    --------
    >>> from tcpsbed import campaign
    >>> plan = {"scenario": "quickstart.toml", "grid": {"links.l1.rate": "1..2 Mbit/s step 0.5"}}
    >>> print(campaign.run(plan, out="runs/rates"))  # doctest: +SKIP
    """
    from tcpsbed.campaign import file, outcome

    refuse_number("jobs", jobs)
    plan = 'the path of its file, such as "transports.toml", or a mapping of the same keys'
    address = 'the address of a scheduler, such as "tcp://host:8786", or "local:4"'
    _refuse_other("campaign", campaign, (str, Path, Mapping), plan)
    _refuse_other("cluster", cluster, (str, type(None)), address)
    survey = file.load(campaign if isinstance(campaign, Mapping) else path(campaign, "campaign"), out_of(out))
    outcome.check(survey)

    def told(done: int, number: int, _job: object, _failure: str | None) -> None:
        if progress is not None:
            progress(done / number)

    if cluster is None:
        return outcome.carried_out(survey, told, jobs, inputs=[survey.file])
    from tcpsbed.campaign.cluster import places

    there = places(cluster, survey)
    try:
        return outcome.carried_out(survey, told, jobs, there, [survey.file])
    finally:
        there.close()


def _refuse_other(key: str, given: object, types: tuple[type, ...], allowed: str) -> None:
    if not isinstance(given, types):
        raise ConfigError(f"found {type(given).__name__}", key=key, allowed=allowed)
