"""Searches from Python: where a condition begins to hold, and which values are best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from tcpsbed import inputs
from tcpsbed.api.run import Progress, told
from tcpsbed.campaign import sequential
from tcpsbed.campaign.search import asked, searching
from tcpsbed.campaign.search.boundary import Boundary
from tcpsbed.campaign.search.contour import BoundaryCurve
from tcpsbed.campaign.search.optimum import Optimum, optuna
from tcpsbed.campaign.search.searching import Search
from tcpsbed.errors import ConfigError
from tcpsbed.runs import MOST_SEEDS
from tcpsbed.runs.given import given
from tcpsbed.views.metric import named

if TYPE_CHECKING:
    from tcpsbed.campaign.survey import Survey, Told
    from tcpsbed.campaign.worker import Job
    from tcpsbed.runs.given import Given
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

SEEDS = 20
"""Most seeds at a point, where none are named."""
FEW = 5
"""Seeds of a point of an optimum, where none are named."""
TRIALS = 60
MOST_TRIALS = 10_000
LATE = '"haptic.delay_ms.p99 > 30"'
"""A condition, for messages."""


class Options(TypedDict, total=False):
    """What all searches take: see `search`."""

    seeds: int | None
    duration: str | None
    set: Overrides
    seed: int | None
    world: str
    jobs: int | None
    cluster: str | None
    out: Path | str | None
    progress: Progress


class Best(Options, total=False):
    """What a search for the best values takes, too."""

    limits: str | Sequence[str]
    trials: int


@overload
def search(
    scenario: Scenario | Path | str, over: str, *, until: str, **more: Unpack[Options]
) -> Boundary: ...
@overload
def search(
    scenario: Scenario | Path | str, over: tuple[str, str], *, until: str, **more: Unpack[Options]
) -> BoundaryCurve: ...
@overload
def search(
    scenario: Scenario | Path | str, over: Sequence[str], *, until: str, **more: Unpack[Options]
) -> Boundary | BoundaryCurve: ...
@overload
def search(
    scenario: Scenario | Path | str, over: str | Sequence[str], *, minimise: str, **more: Unpack[Best]
) -> Optimum: ...
@overload
def search(
    scenario: Scenario | Path | str, over: str | Sequence[str], *, maximise: str, **more: Unpack[Best]
) -> Optimum: ...
def search(
    scenario: Scenario | Path | str,
    over: str | Sequence[str],
    *,
    until: str | None = None,
    minimise: str | None = None,
    maximise: str | None = None,
    limits: str | Sequence[str] = (),
    trials: int = TRIALS,
    seeds: int | None = None,
    duration: str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    world: str = "virtual",
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | str | None = None,
    progress: Progress = False,
) -> Boundary | BoundaryCurve | Optimum:
    """Finds where a condition begins to hold, or which values are best.

    Parameters
    ----------
    scenario : Scenario, Path or str
        As of `tcpsbed.run`.
    over : str or sequence of str
        Factors: `"links.l1.delay=0..200 ms"`, with ` step 5` for values of your own. With `until` one (a `Boundary`) or
        two (a `BoundaryCurve`); otherwise any number, also of alternatives: `"channels.session.transport=udp,dpm"`.
    until : str, optional
        The condition: `"haptic.delay_ms.p99 > 30"`.
    minimise, maximise : str, optional
        Instead of it, a metric whose mean over seeds is to be small, or large; needs the extra `search`.
    limits : str or sequence of str
        What the means must keep meanwhile: `"haptic.loss < 1 %"`.
    trials : int
        Points of an optimum.
    seeds : int, optional
        The most at a point, at least 6; absent: 20. Of an optimum those of each point; absent: 5.
    duration, set, seed, world
        As of `tcpsbed.run`.
    jobs : int, optional
        Cells at a time; absent: as many as there are cores, one on the machine's clock.
    cluster : str, optional
        A scheduler of Dask, such as `tcp://host:8786`, or `local:4`; needs the extra `cluster`.
    out : Path or str, optional
        Folder of results; absent: one below `runs/` that the same call finds again. Finished cells are not run again.
    progress : bool or callable
        As of `tcpsbed.run`.

    Returns
    -------
    Boundary, BoundaryCurve or Optimum
        What was found; `print` shows it.

    Raises
    ------
    TcpsbedError
        If anything that was asked for cannot be, before anything runs; if a run fails.

    Examples
    --------
    >>> import tcpsbed
    >>> delay, late = "links.l1.delay=0..50 ms", "haptic.delay_ms.p99 > 30"
    >>> found = tcpsbed.search("quickstart.toml", delay, until=late)  # doctest: +SKIP
    >>> found.value, found.interval  # doctest: +SKIP
    """
    overs, kept = (
        inputs.texts(over, "over", '"links.l1.delay=0..200 ms"'),
        inputs.texts(limits, "limits", LATE),
    )
    for key, text in (("until", until), ("minimise", minimise), ("maximise", maximise)):
        inputs.texts(() if text is None else text, key, LATE)
    with (
        given(scenario, set=set, duration=duration, seed=seed) as asked_,
        told(progress, f"{asked_.scenario.name}, {world}") as share,
    ):

        def heard(done: int, number: int, job: Job, failure: str | None) -> None:
            share(min(done / number, 1.0))

        return perform(
            asked_,
            overs,
            (until, minimise, maximise),
            limits=kept,
            trials=trials,
            seeds=seeds,
            world=world,
            jobs=jobs,
            cluster=cluster,
            out=None if out is None else Path(out),
            told=heard,
        )


def perform(
    given_: Given,
    over: Sequence[str],
    goal: tuple[str | None, str | None, str | None],
    *,
    limits: Sequence[str],
    trials: int,
    seeds: int | None,
    world: str,
    jobs: int | None,
    cluster: str | None,
    out: Path | None,
    told: Told,
    agreed: Callable[[Search, int], None] = lambda *_: None,
) -> Boundary | BoundaryCurve | Optimum:
    """Searches; `goal` is `until`, `minimise` and `maximise`, the rest is as of `search`.

    `agreed` is asked with the search and about how many runs it takes, before anything runs.
    """
    from tcpsbed import worlds

    worlds.require(world)
    until, minimise, maximise = goal
    if sum(one is not None for one in goal) != 1:
        allowed = "one of --until 'haptic.delay_ms.p99 > 30', --minimise METRIC and --maximise METRIC"
        raise ConfigError("found none of them, or several", key="--until", allowed=allowed)
    best = until is None
    most = _whole(
        "--seeds", seeds if seeds is not None else (FEW if best else SEEDS), 1 if best else sequential.FEWEST
    )
    factors = asked.varied(over) if best else asked.gridded(over)
    names = ("--until", "--minimise", "--maximise")
    told_ = [("--over", one) for one in over]
    told_ += [(name, one) for name, one in zip(names, goal, strict=True) if one is not None]
    told_ += [("--limit", one) for one in limits] + [("--trials", str(trials))] * best
    asked_ = [word for pair in told_ for word in pair]
    words = ["search", *asked_, "--seeds", str(most), *(w for one in given_.settings for w in ("--set", one))]
    scenario = given_.scenario
    made = Search(
        given_.file, given_.settings, world, scenario.name, scenario.duration_ns, scenario.seed, most,
        out or given_.folder("search", [*asked_, world]), factors, (*words, "--world", world), tuple(scenario.files),
    )  # fmt: skip
    with _connected(cluster) as connect:
        if until is not None:
            if limits:
                raise ConfigError("found it with --until", key="--limit", allowed="--minimise or --maximise")
            condition = asked.condition(until, "--until")
            asked.refuse_flows(scenario, [("--until", condition.metric)])
            agreed(made, made.expected)
            return searching.boundary(made, condition, told, jobs, connect)
        optuna()
        way = "--maximise" if minimise is None else "--minimise"
        metric = named(minimise or maximise or "", way)
        kept = [asked.condition(text, "--limit") for text in limits]
        asked.refuse_flows(scenario, [(way, metric), *(("--limit", one.metric) for one in kept)])
        trials = _whole("--trials", trials, 1, MOST_TRIALS)
        agreed(made, (trials + 1) * most)
        return searching.optimum(
            made, metric, kept, told, jobs, connect, minimise=minimise is not None, trials=trials
        )


def _whole(key: str, found: Any, least: int, most: int = MOST_SEEDS) -> int:
    if type(found) is int and least <= found <= most:
        return found
    few = ": fewer seeds decide nothing" if key == "--seeds" and least > 1 else ""
    allowed = f"a whole number from {least} to {most}{few}"
    raise ConfigError(f"found {found!r}", key=key, allowed=allowed)


@contextmanager
def _connected(cluster: str | None) -> Iterator[searching.Cluster | None]:
    """What connects to a cluster, which is left at the end."""
    if cluster is None:
        yield None
        return
    from tcpsbed.campaign.cluster import places

    opened: list[Any] = []

    def connect(survey: Survey) -> Callable[[Sequence[Job]], Any]:
        opened.append(places(cluster, survey))
        return opened[-1]  # type: ignore[no-any-return]

    try:
        yield connect
    finally:
        for one in opened:
            one.close()
