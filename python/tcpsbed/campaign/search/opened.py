"""Results of searches read from their folders: what was measured comes from `search.json`, and is searched again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tcpsbed import documents
from tcpsbed.analysis.stats import Interval
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
from tcpsbed.documents import Maybe, shaped
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.views.metric import named

CONTEXT = {
    **dict.fromkeys(("scenario", "world"), str),
    **dict.fromkeys(("seed", "seeds", "runs", "disturbed"), int),
    "duration_s": float,
    "words": [str],
    "factors": [{"key": str, "over": str, "values": [str]}],
}
BOUNDARY = {"condition": str, "votes": [([int], [float], bool)]}
TRIAL = {
    "values": [str],
    "n": int,
    "mean": float,
    "ci95": float | None,
    "limited": [(int, float, float | None)],
    "kept": bool,
}
OPTIMUM = {
    "metric": str,
    "minimise": bool,
    "limits": [str],
    "points": [TRIAL],
    "found": Maybe(TRIAL),
    "fresh": Maybe(TRIAL),
    "unchanged": bool,
}
"""The content of `search.json`: of all searches, of a boundary, of an optimum."""


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
    told = documents.read(file, CONTEXT)
    shaped(told, CONTEXT | (OPTIMUM if "metric" in told else BOUNDARY), file)
    with documents.trusted(file), _of(file):
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
        return _optimum(told, context) if "metric" in told else _boundary(told, context, file)


@contextmanager
def _of(file: Path) -> Iterator[None]:
    """Names the file where a text in it is not what an option takes."""
    try:
        yield
    except ConfigError as error:
        raise DataError(error.found, file=file, key=error.key, allowed=documents.REMEDY) from None


def _boundary(told: Mapping[str, Any], context: Context, file: Path) -> Boundary | BoundaryCurve:
    factors = asked.gridded([f"{one['key']}={one['over']}" for one in told["factors"]])
    condition = asked.condition(told["condition"], "condition")
    known = {
        tuple(index): Votes(tuple(values), tuple(map(condition.holds, values)), unchanged)
        for index, values, unchanged in told["votes"]
        if values
    }

    def votes(batch: Batch) -> Answers:
        if missing := [index for index in batch.points if index not in known]:
            raise DataError(f"has no {list(missing[0])}", file=file, key="votes", allowed=documents.REMEDY)
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
    factors = tuple(_varied(one) for one in told["factors"])
    limits = tuple(asked.condition(one, "limits") for one in told["limits"])
    first, fresh = (
        None if told[key] is None else _trial(told[key], factors, len(limits)) for key in ("found", "fresh")
    )
    return Optimum(
        context,
        factors,
        named(told["metric"], "metric"),
        told["minimise"],
        limits,
        tuple(_trial(one, factors, len(limits)) for one in told["points"]),
        first,
        fresh,
        told["unchanged"],
    )


def _varied(told: Mapping[str, Any]) -> Factor:
    return (
        asked.factor(f"{told['key']}={told['over']}")
        if told["over"]
        else Factor(told["key"], values=tuple(told["values"]))
    )


def _trial(told: Mapping[str, Any], factors: Sequence[Factor], limits: int) -> Trial:
    for factor, value in zip(factors, told["values"], strict=True):
        factor.number(value)
    if len(told["limited"]) != limits:
        raise ConfigError("found one for another number of limits", key="limited")
    mean, *limited = (Interval(*one) for one in ((told["n"], told["mean"], told["ci95"]), *told["limited"]))
    return Trial(tuple(told["values"]), mean, tuple(limited), told["kept"])
