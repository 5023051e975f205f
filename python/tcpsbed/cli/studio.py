"""`tcpsbed studio`: a page that shows a run while it happens, and changes it."""

from __future__ import annotations

import sys
import time
import webbrowser
from contextlib import ExitStack
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import AnyWhere, Duration, File, Out, Seed, Sets, Sinks, overrides
from tcpsbed.clocks import SIMULATED

LOOK_S = 0.2

HELP = """Watch a run in the browser while it happens, and change its links.

\b
Examples:
  tcpsbed init --from quickstart && tcpsbed studio quickstart.toml --duration "2 min"
  tcpsbed studio my.toml --world namespaces --no-browser
  tcpsbed studio telehaptic-dumbbell.toml --world virtual --pace 0.1
  tcpsbed studio my.toml --sink openmetrics --sink mcap=run.mcap

The page shows the path, where the time goes, delay, rate and queues over time, and sliders for the delay, loss and rate
of each link. Each change is an event of the run: its plan and report have it. The address is on loopback and holds a
token. After the run the page leads to its report; Ctrl-C ends it. In virtual time --pace says how fast simulated time
passes: 1 as on a clock, 0.1 in slow motion, max as fast as the machine can.
"""
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on loopback; 0 takes a free one.")]
Pace = Annotated[
    str,
    typer.Option(
        "--pace", metavar="NUMBER", help="Simulated seconds per second with --world virtual, or max."
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("studio", help=HELP)(guarded(studio))


def studio(
    file: File,
    world: AnyWhere = "real",
    out: Out = None,
    port: Port = 0,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    pace: Pace = "1",
    sinks: Sinks = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
) -> None:
    """Runs and serves; see HELP."""
    from tcpsbed import scenarios, worlds
    from tcpsbed.cli.run import refuse_errors
    from tcpsbed.interrupts import interrupts
    from tcpsbed.runs import session
    from tcpsbed.studio.feed import Feed
    from tcpsbed.views import html
    from tcpsbed.worlds import Steering

    worlds.check(world)
    speed = _speed(pace)
    if speed != 1 and world not in SIMULATED:
        raise typer.BadParameter(
            f"found {pace}: {world} runs on the machine's clock; allowed: --world virtual --pace {pace}",
            param_hint="--pace",
        )
    scenario = scenarios.load(file, overrides(sets, seed, duration))
    steering = Steering(scenario, pace=speed)
    with ExitStack() as stays:
        with session.place(scenario, out) as place:
            feed = stays.enter_context(
                Feed(place.path, place.shown, steering=steering, port=port, sinks=sinks or ())
            )
            print(f"studio: {feed.address}", *feed.sinks, sep="\n", flush=True)
            if not no_browser:
                webbrowser.open(feed.address)
            session.record(scenario, place, world=world, live=feed, steering=steering)
            page = html.write(place.path)
        summary = session.summary_of(place.shown)
        feed.over(summary)
        print(f"report: {place.told(page)}", flush=True)
        with interrupts() as stop:
            print("studio: the page stays until Ctrl-C", file=sys.stderr, flush=True)
            while not stop.asked and feed.alive:
                time.sleep(LOOK_S)
    refuse_errors(summary)


def _speed(pace: str) -> float | None:
    """Simulated seconds a second; `None`: as fast as the machine can."""
    if pace == "max":
        return None
    try:
        speed = float(pace)
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1000:
        raise typer.BadParameter(f'found "{pace}"; allowed: 0.001 to 1000, or max', param_hint="--pace")
    return speed
