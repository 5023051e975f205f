"""A run under further seeds: they are computed beside it, and their means go into its summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tcpsbed.campaign import seeds
from tcpsbed.campaign.survey import Survey
from tcpsbed.campaign.worker import width_of

if TYPE_CHECKING:
    from tcpsbed.campaign.worker import Job
    from tcpsbed.results import Place
    from tcpsbed.runs.given import Given

SEEDS = "seeds"
"""Folder of further seeds in a run's folder."""


def further(given: Given, number: int, world: str, place: Place) -> Survey:
    """The runs under the seeds after the scenario's, `number` seeds in all; made before the first run, whose input they
    must find as it was.
    """
    first = given.scenario.seed
    others = tuple(range(first + 1, first + number))
    survey = Survey(given.file, (), others, given.settings, world, place.path / SEEDS)
    _ = survey.begun
    return survey


def spread(
    survey: Survey, place: Place, jobs: int | None, told: Callable[[int, int, Job, str | None], None]
) -> dict[str, str]:
    """Runs the other seeds and adds their results to the summary of the first.

    Parameters
    ----------
    survey
        From `further`.
    place
        Of the first run, which has ended.
    jobs
        Runs at a time; `None`: all cores, and one on the machine's clock.
    told
        Hears of (done, all, job, failure) as runs end.

    Returns
    -------
    dict
        Messages of the runs that failed.
    """
    from tcpsbed.analysis.summary import add_across_seeds
    from tcpsbed.runs.session import summary_of

    if not survey.seeds:
        return {}
    width = jobs or width_of(survey.world)
    try:
        across, failures = seeds.spread(survey, summary_of(place.path), width, told)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the run under the first seed is in {place.shown}") from None
    add_across_seeds(place.path, across)
    return failures
