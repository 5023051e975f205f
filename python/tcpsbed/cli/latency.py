"""`tcpsbed latency`: echo commands interleaved over points, until every mean has the target precision. [Polachan 2022]

```text
run ─► half-width of each mean ≤ confidence × mean? ─► yes: tables and report
 ▲                     │ no
 └── as many echoes as the widest mean needs, at most the cap
```
In virtual time a longer round begins with the very echoes of the shorter one. On the machine's clock a round adds to those
before it: as many echoes as there are already, so that the table narrows as one looks.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tcpsbed.analysis.latency import CHECK_EVERY, Confidence
from tcpsbed.analysis.pooling import pooled
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import AnyWhere, File, Out, Quiet, Seed, Sets, overrides, span_s
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.results import Place

GRACE_S = 1.2
"""Time after the last command in which its echo may still come, and in which samples do not count as lost."""
MARGIN = 1.15
"""More echoes than the widest mean needs, so that one more round is usually the last."""
GROWTH = 4
"""A round is at most this many times as long as the one before: a rare late echo makes a short one ask for too many."""
MOST_ECHOES = 10_000_000
"""Most echoes of a point that can be asked for: at 10 ms, more than a day."""
ROUNDS = 20
"""Rounds at most; each aims at the number that the one before asked for."""

HELP = """Measure latency component by component.

\b
Examples:
  tcpsbed latency my.toml
  tcpsbed latency my.toml --points srv.entry --points srv.exit --confidence 2%
  tcpsbed latency my.toml --world real --flow haptic --period "20 ms"
  sudo tcpsbed latency my.toml --world namespaces --max-time "5 min"

Echo commands travel in ordinary samples of the running system. They alternate between the points. Each is sent at a random
time within its period, so that it meets periodic traffic at every phase. The run ends when the mean of every point has a
95 % confidence half-width below --confidence, with at least --floor echoes per point. It also ends at --cap echoes per
point or after --max-time. The scenario's duration is not used. On sockets several rounds are pooled, without percentiles.
"""


Points = Annotated[
    list[str] | None,
    typer.Option(
        "--points",
        metavar="POINT",
        help="Such as srv.exit; may be repeated [default: all].",
        show_default=False,
    ),
]
OfFlow = Annotated[
    str | None, typer.Option("--flow", help="Flow whose samples carry the commands.", show_default=False)
]
Period = Annotated[str, typer.Option("--period", help="Mean time between commands; 0 ms: every sample.")]
HalfWidth = Annotated[str, typer.Option("--confidence", help="Target half-width, as a share of the mean.")]
Floor = Annotated[int, typer.Option("--floor", min=2, max=MOST_ECHOES, help="Echoes a point at least.")]
Cap = Annotated[int, typer.Option("--cap", min=2, max=MOST_ECHOES, help="Echoes a point at most.")]
MaxTime = Annotated[
    str | None,
    typer.Option("--max-time", metavar="TIME", help="Longest total duration.", show_default=False),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the echo part of summary.json, and nothing else.")
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("latency", help=HELP)(guarded(latency))


def latency(
    file: File,
    points: Points = None,
    flow: OfFlow = None,
    period: Period = "10 ms",
    confidence: HalfWidth = "5%",
    floor: Floor = 30,
    cap: Cap = 20_000,
    max_time: MaxTime = None,
    world: AnyWhere = "virtual",
    out: Out = None,
    sets: Sets = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measures latencies; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.cli.run import refuse_errors
    from tcpsbed.runs import session
    from tcpsbed.studio import freeze
    from tcpsbed.views import text
    from tcpsbed.views.echoes import COST
    from tcpsbed.views.folder import open_folder

    worlds.require(world)
    if cap < floor:
        raise ConfigError(
            f"found {cap}, which is below --floor {floor}",
            key="--cap",
            allowed=f"{floor} or more, or a lower --floor",
        )
    rule = Confidence(share_of(confidence), floor, cap)
    asked = {"points": split_points(points), "period": period, "drawn": True}
    echo = asked | ({"flow": flow} if flow else {})
    sets_ = [*overrides(sets, seed), f"measure.echo=[{_inline(echo)}]"]
    most_s = math.inf if max_time is None else span_s(max_time, "--max-time")
    if most_s <= 0:
        raise ConfigError(f'found "{max_time}"', key="--max-time", allowed='a time above 0, such as "5 min"')
    with _by_option():
        first = scenarios.load(file, [*sets_, _start(scenarios.load(file, sets_))])
    with _by_option(), session.place(first, out, "-latency") as place:
        reached = _rounds(file, sets_, first, rule, world, place, most_s, quiet=quiet or as_json)
        opened = open_folder(place.path)
        page = freeze.write(place.path)
    if as_json:
        print(json.dumps(opened.summary.get("echo", {}), indent=1))
    else:
        print(text.headline(opened), text.echo(opened.summary), sep="\n")
        print(_verdict(opened.summary, rule, reached, most_s))
        print(COST)
        print(f"report: {place.told(page)}")
    refuse_errors(opened.summary)


@contextmanager
def _by_option() -> Iterator[None]:
    """Names the option where a key that was made of it is refused."""
    try:
        yield
    except ConfigError as error:
        way, _, name = (error.key or "").rpartition(".")
        if way != "measure.echo.0" or name not in ("flow", "period", "points"):
            raise
        raise ConfigError(error.found, key=f"--{name}", allowed=error.allowed) from None


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


def _rounds(
    file: Path,
    sets: list[str],
    first: Any,
    rule: Confidence,
    world: str,
    place: Place,
    most_s: float,
    *,
    quiet: bool,
) -> bool:
    """Runs until the rule is kept, or the cap or the longest time reached: whether the rule is kept."""
    from tcpsbed import scenarios
    from tcpsbed.analysis.summary import replace_echo
    from tcpsbed.cli.run import watched
    from tcpsbed.runs import session
    from tcpsbed.views import text

    plan, wanted, reached = _plan(first), rule.floor, False
    kept, had, spent_s = None, 0, 0.0
    for number in range(1, ROUNDS + 1):
        seconds = min(length_s(plan, wanted - had) + first.warmup_ns / 1e9, most_s - spent_s)
        scenario = scenarios.load(file, [*sets, _start(first), f'duration="{math.ceil(seconds * 1000)} ms"'])
        try:
            stopped = watched(scenario, world, place, quiet=quiet, samples=False)
        except TcpsbedError:
            if place.keep:
                print(
                    f"tcpsbed: what was measured before round {number} is in {place.shown}", file=sys.stderr
                )
            raise
        spent_s += seconds
        summary = session.summary_of(place.path)
        if world not in SIMULATED:
            kept = pooled(kept, summary["echo"])
            replace_echo(place.path, kept)
            summary, had = summary | {"echo": kept}, wanted
        reached, needed = judged(rule, summary)
        if not quiet:
            told = (
                f"{wanted} echoes per point in {seconds:.0f} s, {'enough' if reached else f'{needed} needed'}"
            )
            print(f"round {number}: {told}", text.echo(summary) if had else "", sep="\n", file=sys.stderr)
        if stopped:
            raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {place.shown}")
        left_s = most_s - spent_s - first.warmup_ns / 1e9
        if reached or wanted >= rule.cap or left_s <= GRACE_S or summary.get("errors"):
            break
        wanted = min(max(needed, wanted + CHECK_EVERY), (2 if had else GROWTH) * wanted, rule.cap)
    return reached


def _start(scenario: Any) -> str:
    """Commands begin after the warm-up, which statistics leave out."""
    echo = scenario.document["measure"]["echo"][0]
    return f"measure.echo=[{_inline(echo | {'start': f'{scenario.warmup_ns} ns'})}]"


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
    return "\n".join(lines)
