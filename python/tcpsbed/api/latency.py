"""Echo commands interleaved over points, until every mean has the target precision. [Polachan 2022]

```text
run ─► half-width of each mean ≤ confidence × mean? ─► yes: the result
 ▲                     │ no
 └── as many echoes as the widest mean needs, at most the cap
```
In virtual time a longer round begins with the very echoes of the shorter one. On the machine's clock a round adds to those
before it: as many echoes as there are already, so that the table narrows as one looks.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.latency import CHECK_EVERY, Confidence, LatencyTable
from tcpsbed.analysis.pooling import pooled
from tcpsbed.api.run import Progress, told
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.inputs import out_of
from tcpsbed.results import Place
from tcpsbed.runs.given import given
from tcpsbed.runs.run import Run

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides

ALL = "all"
"""Instead of a name: every flow."""
GRACE_S = 1.2
"""Time after the last command in which its echo may still come, and in which samples do not count as lost."""
MARGIN = 1.15
"""More echoes than the widest mean needs, so that one more round is usually the last."""
GROWTH = 4
"""A round is at most this many times as long as the one before: a rare late echo makes a short one ask for too many."""
ROUNDS = 20
"""Rounds at most; each aims at the number that the one before asked for."""


@dataclass(frozen=True)
class Latency:
    """Latencies of components and links by echo commands; `print` shows a table and how well it is known.

    Attributes
    ----------
    run
        The last round: `run.summary.echo`, `run.latency`.
    rule
        The precision that was asked for.
    reached
        Whether the mean of every point has it.
    most_s
        Longest total duration, in seconds.
    """

    run: Run
    rule: Confidence
    reached: bool
    most_s: float = math.inf

    @property
    def table(self) -> LatencyTable:
        """All latencies, in ms, with their 95 % intervals; `.to_pandas()`."""
        return self.run.latency

    @property
    def verdict(self) -> str:
        """How well the means are known."""
        return _verdict(self.run.summary, self.rule, self.reached, self.most_s)

    def __str__(self) -> str:
        from tcpsbed.views import paths, text
        from tcpsbed.views.echoes import COST

        found = self.run.summary
        largest = "".join(f"{line}\n" for line in paths.largest(found).values())
        return "\n".join([text.headline(self.run), text.echo(found), largest, self.verdict, COST])


@dataclass(frozen=True)
class Round:
    """A round of echo commands: echoes per point, its length, whether they are enough or how many are needed, and its
    summary, with the echoes of earlier rounds if they are pooled.
    """

    number: int
    echoes: int
    seconds: float
    enough: bool
    needed: int
    summary: Mapping[str, Any]
    pooled: bool


@dataclass(frozen=True)
class Asked:
    """What is measured: points, flows, period, precision, and the longest total duration in seconds."""

    points: Sequence[str] = ()
    flows: Sequence[str] = ()
    period: str = "10 ms"
    rule: Confidence = field(default_factory=Confidence)
    most_s: float = math.inf

    def of(self, scenario: Scenario) -> Scenario:
        """A scenario that asks for it; commands begin after the warm-up, which statistics leave out."""
        echo = {"points": split_points(self.points), "period": self.period, "drawn": True}
        echo |= {"start": f"{scenario.warmup_ns} ns"}
        flows = scenario.flows if ALL in self.flows else dict.fromkeys(self.flows)
        each = [_inline(echo | {"flow": flow}) for flow in flows] or [_inline(echo)]
        return scenario.changed([f"measure.echo=[{', '.join(each)}]"])


def latency(
    scenario: Scenario | Path | str,
    *,
    points: Sequence[str] = (),
    flow: str | Sequence[str] = (),
    period: str = "10 ms",
    confidence: float = 0.05,
    floor: int = 30,
    cap: int = 20_000,
    max_time: str | None = None,
    world: str = "virtual",
    out: Path | str | None = None,
    set: Overrides = (),
    seed: int | None = None,
    progress: Progress = False,
) -> Latency:
    """Measures latency component by component with echo commands, until every mean is known well enough.

    Parameters
    ----------
    scenario : Scenario, Path or str
        As of `tcpsbed.run`; its duration is not used.
    points : sequence of str
        Such as `["srv.entry", "srv.exit"]`; absent: all.
    flow : str or sequence of str, optional
        Flows whose samples carry the commands, or `"all"`; absent: `kinematic`, else the first forward flow.
    period : str
        Mean time between commands; `"0 ms"`: every sample.
    confidence : float
        Target half-width of the 95 % interval, as a share of the mean.
    floor, cap : int
        Echoes a point at least and at most.
    max_time : str, optional
        Longest total duration, such as `5 min`.
    world, out, set, seed, progress
        As of `tcpsbed.run`.

    Returns
    -------
    Latency
        The table of latencies, and whether the precision was reached.

    Raises
    ------
    TcpsbedError
        If the scenario is invalid, a value cannot be, or the run fails.

    Examples
    --------
    >>> import tcpsbed
    >>> found = tcpsbed.latency("quickstart.toml")  # doctest: +SKIP
    >>> found.table["srv"]["mean"]  # doctest: +SKIP
    """
    from tcpsbed import worlds
    from tcpsbed.runs import session

    worlds.require(world)
    rule = precision(f"{confidence!r}", floor, cap)
    asked = Asked(points, [flow] if isinstance(flow, str) else flow, period, rule, most_s(max_time))

    def record(one: Scenario, place: Place) -> bool:
        return session.record(one, place, world=world, progress=share, samples=False)

    with (
        by_option(""),
        given(scenario, set=set, seed=seed) as found,
        told(progress, f"{found.scenario.name}, {world}") as share,
        session.place(found.scenario, out_of(out), "-latency") as place,
    ):
        place.newest = out is not None
        reached = rounds(asked.of(found.scenario), asked, world, place, record)
    return Latency(Run(place.shown), rule, reached, asked.most_s)


def precision(confidence: str, floor: int, cap: int) -> Confidence:
    """The rule of a precision.

    Raises
    ------
    ConfigError
        If the cap is below the floor, or the precision is no share.
    """
    if cap < floor:
        raise ConfigError(
            f"found {cap}, which is below --floor {floor}",
            key="--cap",
            allowed=f"{floor} or more, or a lower --floor",
        )
    return Confidence(share_of(confidence), floor, cap)


def most_s(max_time: str | None) -> float:
    """The longest total duration, in seconds.

    Raises
    ------
    ConfigError
        If it is no time above 0.
    """
    from tcpsbed.lab.control import values

    allowed = 'a time above 0, such as "5 min"'
    found = math.inf if max_time is None else values.duration_ns(max_time, "--max-time") / 1e9
    if found <= 0:
        raise ConfigError(f'found "{max_time}"', key="--max-time", allowed=allowed)
    return found


@contextmanager
def by_option(front: str) -> Iterator[None]:
    """Names the option where a key that was made of it is refused."""
    try:
        yield
    except ConfigError as error:
        way, _, name = (error.key or "").rpartition(".")
        if not way.startswith("measure.echo.") or name not in ("flow", "period", "points"):
            raise
        raise ConfigError(error.found, key=f"{front}{name}", allowed=error.allowed) from None


def split_points(points: Iterable[str] | None) -> list[str]:
    """The points, given one an option or several parted by commas; none: all."""
    named = [name.strip() for text in points or () for name in text.split(",") if name.strip()]
    return named or ["all"]


def share_of(text: str) -> float:
    """A share such as `5%` or `0.05`."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if rest or not 0 < value < 1:
        raise ConfigError(
            f'found "{text}"', key="--confidence", allowed='a share above 0 and below 1, such as "5%"'
        )
    return value


def _inline(table: Mapping[str, Any]) -> str:
    """A table of texts and lists of texts as TOML on one line."""
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + "}"


def rounds(
    scenario: Scenario,
    asked: Asked,
    world: str,
    place: Place,
    record: Callable[[Scenario, Place], bool],
    after: Callable[[Round], None] = lambda _: None,
    failed: Callable[[int], None] = lambda _: None,
) -> bool:
    """Runs until the rule is kept, or the cap or the longest time reached.

    Parameters
    ----------
    scenario, asked, world, place
        What runs (`asked.of`), what is asked, where, and into which place.
    record
        Runs a round into the place: whether the user stopped it.
    after, failed
        Called with each round; with the number of one that failed, when there was one before it.

    Returns
    -------
    bool
        Whether the rule is kept.
    """
    from tcpsbed.analysis.summary import replace_echo
    from tcpsbed.runs import session

    rule = asked.rule
    plan, wanted, reached = _plan(scenario), rule.floor, False
    kept, had, spent_s = None, 0, 0.0
    for number in range(1, ROUNDS + 1):
        seconds = min(length_s(plan, wanted - had) + scenario.warmup_ns / 1e9, asked.most_s - spent_s)
        try:
            stopped = record(scenario.changed([f'duration="{math.ceil(seconds * 1000)} ms"']), place)
        except TcpsbedError:
            if place.keep:
                failed(number)
            raise
        spent_s += seconds
        summary = session.summary_of(place.path)
        if world not in SIMULATED:
            kept = pooled(kept, summary["echo"])
            replace_echo(place.path, kept)
            summary, had = summary | {"echo": kept}, wanted
        reached, needed = judged(rule, summary)
        after(Round(number, wanted, seconds, reached, needed, summary, had > 0))
        if stopped:
            raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {place.shown}")
        left_s = asked.most_s - spent_s - scenario.warmup_ns / 1e9
        if reached or wanted >= rule.cap or left_s <= GRACE_S or summary.get("errors"):
            break
        wanted = min(max(needed, wanted + CHECK_EVERY), (2 if had else GROWTH) * wanted, rule.cap)
    return reached


def _plan(scenario: Any) -> dict[str, Any]:
    from tcpsbed import scenarios

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan: dict[str, Any] = scenarios.compile_plan(scenario, Path(folder))
    return plan


def length_s(plan: Mapping[str, Any], echoes: int) -> float:
    """How long a run must be for this many echoes of each point, in seconds, without the warm-up."""
    longest = 0.0
    for probe in plan["probes"]:
        period_ns = max(probe["period_ns"], plan["flows"][probe["flow"]]["period_ns"])
        longest = max(longest, len(probe["points"]) * echoes * period_ns / 1e9)
    return longest + GRACE_S


def judged(rule: Confidence, summary: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether the means of all points are known well enough, and the echoes that the widest needs.

    [Polachan 2022]
    """
    means = list(_means(summary))
    needed = max((rule.needed(*mean) for mean in means), default=rule.floor)
    if means and all(n >= rule.floor and half <= rule.rel * abs(mean) for n, mean, half in means):
        return True, needed
    return False, min(CHECK_EVERY * math.ceil(MARGIN * needed / CHECK_EVERY), rule.cap)


def _means(summary: Mapping[str, Any]) -> Iterator[tuple[int, float, float]]:
    """Echoes, mean and half-width in milliseconds of every point; a point without an echo is infinitely wide."""
    from tcpsbed.views.numbers import half_width, statistic

    for result in summary.get("echo", {}).values():
        for point in result.get("points") or ():
            trip = point.get("round_trip_ms") or {}
            half = half_width(trip.get("ci95"))
            yield int(point.get("n") or 0), statistic(trip) or 0.0, math.inf if half is None else half


def _why(summary: Mapping[str, Any], rule: Confidence, most_s: float) -> str:
    """What ended the rounds, and how well the least known mean is known by then."""
    means = list(_means(summary))
    fewest = min((n for n, _, _ in means), default=0)
    shares = [half / abs(mean) if mean else math.inf for _, mean, half in means]
    worst = f"; the least known is within {max(shares):.1%}" if shares and max(shares) < math.inf else ""
    if fewest >= rule.cap or most_s == math.inf:
        return f"the cap of {rule.cap} echoes per point was reached{worst}"
    return f"--max-time is over, with {fewest} echoes or more per point{worst}"


def _verdict(summary: Mapping[str, Any], rule: Confidence, reached: bool, most_s: float) -> str:
    from tcpsbed.views.numbers import half_width, place, statistic

    asked = f"{100 * rule.rel:g} %"
    lines = [
        f"every point's mean is known within {asked} (95 % confidence)"
        if reached
        else f"NOT every point's mean is known within {asked}: {_why(summary, rule, most_s)}"
    ]
    wide = [
        place(entry["name"])
        for result in summary.get("echo", {}).values()
        for entry in [*(result.get("components") or ()), *(result.get("links") or ())]
        if (half_width(entry.get("ci95")) or 0.0) > rule.rel * abs(statistic(entry.get("latency_ms")) or 0.0)
    ]
    if wide:
        lines.append(f"differences known less precisely than {asked}: {', '.join(wide)}")
    measured = summary.get("echo", {})
    if left := [flow for flow in summary.get("flows", {}) if flow not in measured]:
        lines.append(
            f"measured with {', '.join(measured)}; --flow NAME, or all, measures others: {', '.join(left)}"
        )
    return "\n".join(lines)
