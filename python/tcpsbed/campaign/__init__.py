"""Campaigns: combinations of values times seeds, on all cores or a cluster, resumed after a kill, with intervals.

```text
 FILE.toml ─► design ─┐                  ┌─ forks of a warm process
 --over    ─► grid ───┼─► cells ─► runs ─┼─ workers of a cluster    ─► OUT/cells/KEY.json ─► sweep.parquet, sweep.html
 run --seeds ─────────┘                  └─ a process each (real)      RUN/seeds/cells ─► across_seeds in summary.json
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import ConfigError
from tcpsbed.inputs import out_of, path
from tcpsbed.runs import refuse_number
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.campaign.outcome import Outcome


def run(
    campaign: Path | str | Mapping[str, Any],
    *,
    out: Path | str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: bool | Callable[[float], object] = False,
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
    progress : bool or callable
        Whether a bar is drawn on standard error; or a function that hears of the share of cells done, from 0 to 1.

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
    refuse_other("campaign", campaign, (str, Path, Mapping), plan)
    refuse_other("cluster", cluster, (str, type(None)), address)
    refuse_other(
        "progress", progress, (bool, Callable, type(None)), "True, False, or a function of the share"
    )
    survey = file.load(campaign if isinstance(campaign, Mapping) else path(campaign, "campaign"), out_of(out))
    with ExitStack() as stack:
        if callable(progress):
            outcome.check(survey)
        else:
            with Progress("checking", quiet=not progress) as checked:
                outcome.check(survey, checked)
        there = None
        if cluster is not None:
            from tcpsbed.campaign.cluster import places

            there = places(cluster, survey)
            stack.callback(there.close)
        bar = (
            progress if callable(progress) else stack.enter_context(Progress("campaign", quiet=not progress))
        )
        return outcome.carried_out(
            survey, lambda done, number, *_: bar(done / number), jobs, there, [survey.file]
        )


def refuse_other(key: str, given: object, types: tuple[Any, ...], allowed: str) -> None:
    """Raises `ConfigError` if a value from Python is of another type."""
    if not isinstance(given, types):
        raise ConfigError(f"found {type(given).__name__}", key=key, allowed=allowed)
