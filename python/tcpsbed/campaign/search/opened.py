"""Results of searches read from their folders: what was measured comes from `search.json`, and is searched again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign import design
from tcpsbed.campaign.filling import DESCRIPTION
from tcpsbed.campaign.search import asked
from tcpsbed.campaign.search.asked import Factor
from tcpsbed.campaign.search.bisection import bisected
from tcpsbed.campaign.search.boundary import Boundary
from tcpsbed.campaign.search.contour import BoundaryCurve
from tcpsbed.campaign.search.curve import traced
from tcpsbed.campaign.search.found import Context
from tcpsbed.campaign.search.optimum import Optimum, Trial
from tcpsbed.campaign.search.votes import GLANCE, Answers, Batch, Votes, answered
from tcpsbed.errors import DataError

KEPT = ("scenario", "world", "duration_s", "words", "seed", "seeds", "runs", "disturbed", "factors", "points")


def opened(folder: Path) -> Boundary | BoundaryCurve | Optimum:
    """The result of the search in a folder.

    Raises
    ------
    DataError
        If it has not ended, or if its file is not what a search writes.
    """
    file, described = folder / "search.json", folder / DESCRIPTION
    if not file.is_file() or "ended" not in documents.read(
        described, ("cells",)
    ):  # or an earlier search has left it
        raise DataError(
            "holds a search that has not ended", file=folder, allowed="the same command continues it"
        )
    told = documents.read(file, KEPT)
    with documents.trusted(folder):
        context = Context(
            told["scenario"],
            told["world"],
            round(told["duration_s"] * 1e9),
            told["seed"],
            told["seeds"],
            folder,
            told["runs"],
            told["disturbed"],
            tuple(told["words"]),
        )
        return _optimum(told, context) if "metric" in told else _boundary(told, context)


def _boundary(told: Mapping[str, Any], context: Context) -> Boundary | BoundaryCurve:
    factors = asked.gridded([f"{one['key']}={one['over']}" for one in told["factors"]])
    condition = design.condition(told["condition"])
    known = {
        tuple(index): Votes(tuple(values), tuple(map(condition.holds, values)), unchanged)
        for index, values, unchanged in told["votes"]
    }

    def votes(batch: Batch) -> Answers:
        return {
            index: _under(known[index], GLANCE) if batch.glance else known[index] for index in batch.points
        }

    sizes = [one.cells for one in factors]
    if len(sizes) == 1:
        return Boundary(context, factors, condition, answered(bisected(sizes[0]), votes))
    return BoundaryCurve(context, factors, condition, answered(traced(*sizes), votes))


def _under(votes: Votes, seeds: int) -> Votes:
    return replace(votes, values=votes.values[:seeds], holding=votes.holding[:seeds])


def _optimum(told: Mapping[str, Any], context: Context) -> Optimum:
    return Optimum(
        context,
        tuple(_varied(one) for one in told["factors"]),
        design.metric(told["metric"]),
        told["minimise"],
        tuple(map(design.condition, told["limits"])),
        tuple(map(_trial, told["points"])),
        None if told["found"] is None else _trial(told["found"]),
        None if told["fresh"] is None else _trial(told["fresh"]),
        told["unchanged"],
    )


def _varied(told: Mapping[str, Any]) -> Factor:
    return (
        asked.factor(f"{told['key']}={told['over']}")
        if told["over"]
        else Factor(told["key"], values=tuple(told["values"]))
    )


def _trial(told: Mapping[str, Any]) -> Trial:
    mean, *limited = (Interval(*one) for one in ((told["n"], told["mean"], told["ci95"]), *told["limited"]))
    return Trial(tuple(told["values"]), mean, tuple(limited), told["kept"])
