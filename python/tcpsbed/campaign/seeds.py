"""A run under further seeds, for confidence intervals: the cells of a sweep without axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign.grid import Cell
from tcpsbed.campaign.results import COLUMNS, Group, groups, unchanged
from tcpsbed.campaign.survey import Survey
from tcpsbed.campaign.worker import Job


def spread(
    survey: Survey, first: Mapping[str, Any], width: int, told: Callable[[int, int, Job, str | None], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Runs the other seeds and joins them with the first.

    Parameters
    ----------
    survey : Survey
        Without axes; its seeds are those that are still to run.
    first : mapping
        The summary of the run under the first seed.
    width : int
        Runs at a time.
    told : callable
        Hears of (done, all, job, failure) as runs end.

    Returns
    -------
    across, failures : dict
        `across_seeds` of `summary.json`; and the messages of runs that failed.
    """
    failures = survey.run(width, told, str(first.get("records_sha256", "")))
    rows = [*survey.rows_of(Cell((), first["seed"]), first), *survey.rows()]
    done = list(dict.fromkeys(row["seed"] for row in rows))
    flows = {flow: _across(group) for flow, (group,) in groups(rows, ()).items()}
    failed = [job.cell.seed for job in survey.jobs() if job.key in failures]
    disturbed = list(dict.fromkeys(row["seed"] for row in rows if row["disturbed"]))
    same = unchanged({row["seed"]: row["records_sha256"] for row in rows}.values())
    told_ = {"seeds": done, "unchanged": same, "failed": failed, "disturbed": disturbed, "flows": flows}
    return told_, failures


def _across(group: Group) -> dict[str, Any]:
    """Means of a flow, under the names that it has in `flows`."""
    found: dict[str, Any] = {}
    for column in COLUMNS:
        *above, last = filter(None, (*column.path, column.statistic))
        place = found
        for key in above:
            place = place.setdefault(key, {})
        place[last] = _written(group.mean(column))
    return found


def _written(found: Interval | None) -> dict[str, Any] | None:
    """Mean over seeds with the half width of its 95 % interval."""
    return None if found is None else {"n": found.n, "mean": found.mean, "ci95": found.half}
