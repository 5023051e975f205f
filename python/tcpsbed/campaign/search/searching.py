"""A search carried out: checked, run batch by batch, and its table, numbers and page written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tcpsbed import documents, results, scenarios
from tcpsbed.campaign import grid, outcome
from tcpsbed.campaign.design import Condition, Design
from tcpsbed.campaign.grid import Axis
from tcpsbed.campaign.search import page
from tcpsbed.campaign.search.asked import Factor
from tcpsbed.campaign.search.bisection import bisected
from tcpsbed.campaign.search.boundary import Boundary
from tcpsbed.campaign.search.contour import BoundaryCurve
from tcpsbed.campaign.search.curve import traced
from tcpsbed.campaign.search.found import Context
from tcpsbed.campaign.search.ground import Ground, Values
from tcpsbed.campaign.search.optimum import Optimum, optimised
from tcpsbed.campaign.search.votes import GLANCE, Answers, Batch, Index, Votes, answered
from tcpsbed.campaign.survey import Survey, Told, write_parquet
from tcpsbed.campaign.worker import Job, Place
from tcpsbed.errors import ConfigError
from tcpsbed.results import growing
from tcpsbed.scenarios.origin import Option
from tcpsbed.views.metric import Metric

KIND = "search"
EACH = 8
"""Runs of a tested point in a forecast: most points need six seeds, those at the boundary more."""
WIDENED = ("--seeds", "--trials")
"""Options of which another value asks the same; so does another range of a factor."""
Cluster = Callable[[Survey], Callable[[Sequence[Job]], Place]]
"""Connects to a cluster, for a survey of what will run there."""


@dataclass(frozen=True)
class Search:
    """What a search runs, and where.

    Attributes
    ----------
    file, settings, world
        The scenario, overrides of every cell, and the world.
    name, duration_ns
        Of the scenario.
    first_seed, seeds
        The first seed, and the most at a point.
    out
        Folder of results.
    factors
        What is varied.
    words
        The command line, without the scenario.
    inputs
        Files that are read, which must not be in the folder.
    """

    file: Path
    settings: tuple[str, ...]
    world: str
    name: str
    duration_ns: int
    first_seed: int
    seeds: int
    out: Path
    factors: tuple[Factor, ...]
    words: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()

    def survey(self, rule: Condition | None, metrics: Sequence[Metric], seeds: int) -> Survey:
        """The campaign that its cells belong to."""
        axes = tuple(
            Axis(one.key, one.values if one.numbers or not one.between else ()) for one in self.factors
        )
        seen = tuple(range(self.first_seed, self.first_seed + seeds))
        made = Design(until=rule, metrics=tuple(dict.fromkeys(metrics)))
        return Survey(self.file, axes, seen, self.settings, self.world, self.out, made)

    def corners(self) -> list[Values]:
        """Points that are checked before anything runs: each value beside the first of the others, and the last together."""
        ends = [_ends(one) for one in self.factors]
        first, last = (tuple(values[n] for values in ends) for n in (0, -1))
        alone = [(*first[:n], value, *first[n + 1 :]) for n, values in enumerate(ends) for value in values]
        return list(dict.fromkeys([first, *alone, last]))

    @property
    def expected(self) -> int:
        """About how many runs a boundary takes."""
        if len(self.factors) == 1:
            return EACH * (4 + self.factors[0].cells.bit_length())
        return 25 * GLANCE + EACH * 2 * sum(one.cells for one in self.factors)


def _ends(one: Factor) -> tuple[str, ...]:
    """The least value, another, and the greatest; alternatives all."""
    if one.between is None:
        return one.values if len(one.values) > 1 else one.values * 2
    inside = one.values[1] if one.values else one.between.at(0.37)
    return one.between.text(one.between.least), inside, one.between.text(one.between.most)


def boundary(
    search: Search, condition: Condition, told: Told, jobs: int | None = None, cluster: Cluster | None = None
) -> Boundary | BoundaryCurve:
    """Finds where a condition turns: a value of one factor, or a curve over two.

    Parameters
    ----------
    search, condition
        What is varied, and what is asked.
    told
        Hears of (done, expected, job, failure) as cells end.
    jobs, cluster
        Cells at a time; connects to a cluster.

    Raises
    ------
    TcpsbedError
        If a point cannot run, before anything does; if a cell fails.
    KeyboardInterrupt
        If it was stopped: says how to go on.
    """
    survey = search.survey(condition, [condition.metric], search.seeds)
    with _working(search, survey, told, jobs, cluster) as ground:
        ground.expected = search.expected

        def votes(batch: Batch) -> Answers:
            places = {_values(search.factors, index): index for index in batch.points}
            found = ground.measure(list(places), GLANCE if batch.glance else search.seeds)
            numbers = {values: runs.numbers(condition.metric) for values, runs in found.items()}
            return {
                index: Votes(
                    numbers[values], tuple(map(condition.holds, numbers[values])), found[values].unchanged
                )
                for values, index in places.items()
            }

        sizes = [one.cells for one in search.factors]
        made: Boundary | BoundaryCurve
        if len(sizes) == 1:
            line = answered(bisected(sizes[0]), votes)
            made = Boundary(_context(search, ground), search.factors, condition, line)
        else:
            curve = answered(traced(*sizes), votes)
            made = BoundaryCurve(_context(search, ground), search.factors, condition, curve)
        _write(search, ground, made)
    return made


def optimum(
    search: Search,
    metric: Metric,
    limits: Sequence[Condition],
    told: Told,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    *,
    minimise: bool,
    trials: int,
) -> Optimum:
    """Finds the values with the least, or greatest, mean of a metric; parameters, errors as of `boundary`.

    `search.seeds` choose; as many further ones measure what was chosen.
    """
    metrics = [metric, *(limit.metric for limit in limits)]
    survey = search.survey(None, metrics, 2 * search.seeds)
    with _working(search, survey, told, jobs, cluster) as ground:
        ground.expected = (trials + 1) * search.seeds
        found = optimised(
            ground, search.factors, metric, limits, minimise=minimise, trials=trials, seeds=search.seeds
        )
        done, best, fresh, same = found
        context = _context(search, ground)
        made = Optimum(
            context, search.factors, metric, minimise, tuple(limits), tuple(done), best, fresh, same
        )
        _write(search, ground, made)
    return made


@contextmanager
def _working(
    search: Search, survey: Survey, told: Told, jobs: int | None, cluster: Cluster | None
) -> Iterator[Ground]:
    """Where a search runs, until it has ended: checked, and with the folder held."""
    corners = replace(survey, design=replace(survey.design, points=tuple(search.corners())))
    first = grid.overrides(survey.axes, corners.cells()[0])
    # a wrong key is one message, not one of each corner
    scenarios.load(survey.file, [*survey.settings, *map(_of_factor, first)])
    outcome.check(corners)
    with growing(search.out, KIND, inputs=search.inputs):
        _refuse_another(search)
        ground = Ground(survey, told, jobs, None if cluster is None else cluster(corners))
        try:
            yield ground
        except KeyboardInterrupt:
            kept = len(list((search.out / "cells").glob("[!.]*.json")))
            raise KeyboardInterrupt(
                f"stopped; {kept} finished cells are in {search.out}; the same command continues from there"
            ) from None
        finally:
            ground.close()


def _refuse_another(search: Search) -> None:
    """Raises ConfigError if the folder holds the answer to another question, which would be replaced."""
    file = search.out / "search.json"
    if not file.is_file():
        return
    with documents.trusted(search.out):
        held = documents.read(file, ("words", "scenario", "duration_s", "seed"))
        before = _question(held["words"], held["scenario"], held["duration_s"], held["seed"])
    now = _question(search.words, search.name, search.duration_ns / 1e9, search.first_seed)
    if before != now:
        lost = [f"with {one}" for one in before if one not in now]
        new = [f"without {one}" for one in now if one not in before]
        allowed = f"a folder of its own, such as --out {search.out}-2"
        raise ConfigError(
            f"found the result of a search {(lost + new)[0]} in {search.out}", key="--out", allowed=allowed
        )


def _question(words: Sequence[str], name: str, duration_s: float, seed: int) -> dict[str, None]:
    """What a search asks, without how many values and seeds it takes, in the words of a message."""
    pairs = [(key, value) for key, value in zip(words[1::2], words[2::2], strict=True) if key not in WIDENED]
    asked = [f"{key} {value.partition('=')[0] if key == '--over' else value}" for key, value in pairs]
    return dict.fromkeys([*asked, f"scenario {name}", f"runs of {duration_s:g} s", f"first seed {seed}"])


def _of_factor(text: str) -> Option:
    """An override as the option of a factor, for messages."""
    found = Option(text)
    found.typed = f"--over {text.partition('=')[0]}"
    return found


def _values(factors: Sequence[Factor], index: Index) -> Values:
    return tuple(factor.values[number] for factor, number in zip(factors, index, strict=True))


def _context(search: Search, ground: Ground) -> Context:
    return Context(
        search.name,
        search.world,
        search.duration_ns,
        search.first_seed,
        search.seeds,
        search.out,
        ground.runs,
        ground.disturbed,
        search.words,
    )


def _write(search: Search, ground: Ground, found: Boundary | BoundaryCurve | Optimum) -> None:
    ground.describe(ended=True)
    write_parquet(ground.rows(), search.out / "sweep.parquet")
    results.write_whole(search.out / "search.json", f"{json.dumps(found.figures, indent=1)}\n")
    results.write_whole(search.out / "search.html", page.render(found))
