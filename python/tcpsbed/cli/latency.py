"""`tcpsbed latency`: echo commands interleaved over points, until every mean is known well enough. [PROTOCOLS 6.1]

```text
run ─► half-width of each mean ≤ confidence × mean? ─► yes: tables and report
 ▲                     │ no
 └── as many echoes as the widest mean needs, at most the cap
```
In virtual time a longer round begins with the very echoes of the shorter one; on sockets each round stands alone.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tcpsbed.analysis.latency import CHECK_EVERY, Confidence
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import AnyWhere, File, Out, Quiet, Seed, Sets, overrides
from tcpsbed.errors import ConfigError

GRACE_S = 1.2
"""Time after the last command in which its echo may still come, and in which samples do not count as lost."""
MARGIN = 1.15
"""More echoes than the widest mean needs, so that one more round is usually the last."""
GROWTH = 4
"""A round is at most this many times as long as the one before: a rare late echo makes a short one ask for too many."""
ROUNDS = 20
"""Rounds at most; each aims at the number that the one before asked for."""

HELP = """Measure latency component by component.

\b
Examples:
  tcpsbed latency my.toml
  tcpsbed latency my.toml --points srv.entry --points srv.exit --confidence 2%
  tcpsbed latency my.toml --world real --flow haptic --period "20 ms"
  sudo tcpsbed latency my.toml --world namespaces

Echo commands ride on ordinary samples while the system is fully working, interleaved over the points, until the 95 %
confidence half-width of every point's mean is within the asked share of it, with at least FLOOR and at most CAP
echoes a point. The length of the run follows from that; the scenario's own duration is not used.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("latency", help=HELP)(guarded(latency))


def latency(
    file: File,
    points: Annotated[
        list[str] | None,
        typer.Option(
            "--points",
            metavar="POINT",
            help="Such as srv.exit; may be repeated [default: all].",
            show_default=False,
        ),
    ] = None,
    flow: Annotated[
        str | None, typer.Option("--flow", help="Flow whose samples carry the commands.", show_default=False)
    ] = None,
    period: Annotated[
        str, typer.Option("--period", help="Time between commands; 0 ms: every sample.")
    ] = "10 ms",
    confidence: Annotated[
        str, typer.Option("--confidence", help="Half-width asked for, as a share of the mean.")
    ] = "5%",
    floor: Annotated[int, typer.Option("--floor", min=2, help="Echoes a point at least.")] = 30,
    cap: Annotated[int, typer.Option("--cap", min=2, help="Echoes a point at most.")] = 20_000,
    world: AnyWhere = "virtual",
    out: Out = None,
    sets: Sets = None,
    seed: Seed = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the echo part of summary.json, and nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Measures latencies; see HELP."""
    from tcpsbed import worlds
    from tcpsbed.report import html, text
    from tcpsbed.report.folder import open_folder

    worlds.require(world)
    if cap < floor:
        raise ConfigError(f"found {cap}, below the floor of {floor}", key="--cap", allowed=f"{floor} or more")
    rule = Confidence(share_of(confidence), floor, cap)
    echo = {"points": split_points(points), "period": period} | ({"flow": flow} if flow else {})
    sets_ = [*overrides(sets, seed), f"measure.echo=[{_inline(echo)}]"]
    folder, reached = _rounds(file, sets_, rule, world, out, quiet=quiet or as_json)
    opened = open_folder(folder)
    page = html.write(folder)
    if as_json:
        print(json.dumps(opened.summary.get("echo", {}), indent=1))
        return
    print(text.headline(opened), text.echo(opened.summary), sep="\n")
    print(_verdict(opened.summary, rule, reached))
    print(f"report: {page}")


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
    file: Path, sets: list[str], rule: Confidence, world: str, out: Path | None, *, quiet: bool
) -> tuple[Path, bool]:
    """Runs until the rule is kept or the cap reached: the folder, and which of the two it was."""
    from tcpsbed import config, session
    from tcpsbed.cli.run import watched

    first = config.load(file, [*sets, _start(config.load(file, sets))])
    folder = out or session.new_folder(f"{first.name}-latency")
    plan, wanted, reached = _plan(first), rule.floor, False
    for number in range(1, ROUNDS + 1):
        seconds = length_s(plan, wanted) + first.warmup_ns / 1e9
        scenario = config.load(file, [*sets, _start(first), f'duration="{math.ceil(seconds * 1000)} ms"'])
        outcome = watched(scenario, world, folder, quiet=quiet, samples=False)
        reached, needed = judged(rule, session.summary_of(folder))
        if not quiet:
            print(
                f"round {number}: {wanted} echoes a point in {seconds:.0f} s, {'enough' if reached else f'{needed} needed'}",
                file=sys.stderr,
            )
        if outcome.stopped:
            raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {folder}")
        if reached or wanted >= rule.cap:
            break
        wanted = min(max(needed, wanted + CHECK_EVERY), GROWTH * wanted, rule.cap)
    return folder, reached


def _start(scenario: Any) -> str:
    """Commands begin after the warm-up, which statistics leave out."""
    echo = scenario.document["measure"]["echo"][0]
    return f"measure.echo=[{_inline(echo | {'start': f'{scenario.warmup_ns} ns'})}]"


def _plan(scenario: Any) -> dict[str, Any]:
    from tcpsbed import config

    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        plan: dict[str, Any] = config.compile_plan(scenario, Path(folder))
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

    [Polachan 2022] [PROTOCOLS 6.1]
    """
    means = list(_means(summary))
    needed = max((rule.needed(*mean) for mean in means), default=rule.floor)
    if means and all(n >= rule.floor and half <= rule.rel * abs(mean) for n, mean, half in means):
        return True, needed
    return False, min(CHECK_EVERY * math.ceil(MARGIN * needed / CHECK_EVERY), rule.cap)


def _means(summary: Mapping[str, Any]) -> Iterator[tuple[int, float, float]]:
    """Echoes, mean and half-width in milliseconds of every point; a point without an echo is infinitely wide."""
    from tcpsbed.report.numbers import half_width, statistic

    for result in summary.get("echo", {}).values():
        for point in result.get("points") or ():
            trip = point.get("round_trip_ms") or {}
            half = half_width(trip.get("ci95"))
            yield int(point.get("n") or 0), statistic(trip) or 0.0, math.inf if half is None else half


def _verdict(summary: Mapping[str, Any], rule: Confidence, reached: bool) -> str:
    from tcpsbed.report.numbers import half_width, place, statistic

    asked = f"{100 * rule.rel:g} %"
    lines = [
        f"every point's mean is known within {asked} (95 % confidence)"
        if reached
        else f"NOT every point's mean is known within {asked}: the cap of {rule.cap} echoes a point was reached"
    ]
    wide = [
        place(entry["name"])
        for result in summary.get("echo", {}).values()
        for entry in [*(result.get("components") or ()), *(result.get("links") or ())]
        if (half_width(entry.get("ci95")) or 0.0) > rule.rel * abs(statistic(entry.get("latency_ms")) or 0.0)
    ]
    if wide:
        lines.append(f"differences that are known less well than {asked}: {', '.join(wide)}")
    return "\n".join(lines)
