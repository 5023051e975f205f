"""`tcpsbed latency`: latency component by component, by echo commands. [Polachan 2022]"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import AnyWhere, File, Out, Quiet, Seed, Sets

if TYPE_CHECKING:
    from tcpsbed.api.latency import Round

MOST_ECHOES = 10_000_000
"""Most echoes of a point that can be asked for: at 10 ms, more than a day."""
HELP = """Measure latency component by component.

\b
Examples:
  tcpsbed latency my.toml
  tcpsbed latency my.toml --points srv.entry --points srv.exit --confidence 2%
  tcpsbed latency my.toml --world real --flow haptic --period "20 ms"
  tcpsbed latency my.toml --flow all
  sudo tcpsbed latency my.toml --world namespaces --max-time "5 min"

Echo commands travel in ordinary samples of the running system. They alternate between the points. Each is sent at a random
time within its period, so that it meets periodic traffic at every phase. The run ends when the mean of every point has a
95 % confidence half-width below --confidence, with at least --floor echoes per point. It also ends at --cap echoes per
point or after --max-time. The scenario's duration is not used. On sockets several rounds are pooled, without percentiles.
runs/latest stays as it is, unless --out names a folder below runs.
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
OfFlows = Annotated[
    list[str] | None,
    typer.Option(
        "--flow",
        metavar="FLOW",
        help="Flow whose samples carry the commands; may be repeated; all: every flow [default: kinematic, else the "
        "first forward flow].",
        show_default=False,
    ),
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
    flow: OfFlows = None,
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
    from tcpsbed import worlds
    from tcpsbed.api import latency as api
    from tcpsbed.cli.run import refuse_errors, watched
    from tcpsbed.runs import session
    from tcpsbed.runs.given import given
    from tcpsbed.runs.run import Run
    from tcpsbed.studio import freeze

    worlds.require(world)
    rule = api.precision(confidence, floor, cap)
    asked = api.Asked(points or (), tuple(flow or ()), period, rule, api.most_s(max_time))
    silent = quiet or as_json

    def failed(number: int) -> None:
        print(f"tcpsbed: what was measured before round {number} is in {place.shown}", file=sys.stderr)

    with (
        api.by_option("--"),
        given(file, set=sets or (), seed=seed) as found,
        session.place(found.scenario, out, "-latency") as place,
    ):
        place.newest = out is not None
        reached = api.rounds(
            asked.of(found.scenario),
            asked,
            world,
            place,
            lambda one, at: watched(one, world, at, quiet=silent, samples=False),
            lambda one: None if silent else _tell(one),
            failed,
        )
        run = Run(place.path)
        page = freeze.write(place.path)
    measured = api.Latency(run, rule, reached, asked.most_s)
    if as_json:
        print(json.dumps(run.summary.get("echo", {}), indent=1))
    else:
        print(measured)
        print(f"report: {place.told(page)}")
    refuse_errors(run.summary)


def _tell(one: Round) -> None:
    """Prints a finished round."""
    from tcpsbed.views import text

    enough = "enough" if one.enough else f"{one.needed} needed"
    told = f"{one.echoes} echoes per point in {one.seconds:.0f} s, {enough}"
    print(
        f"round {one.number}: {told}", text.echo(one.summary) if one.pooled else "", sep="\n", file=sys.stderr
    )
