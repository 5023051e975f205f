"""`tcpsbed console`: a real run with an operator at a browser."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, File, Out, Quiet, Seed, Sets, overrides

HELP = """Run a scenario on real sockets with an operator at a browser.

\b
Example:
  tcpsbed init --from console && tcpsbed console console.toml --duration "10 min"

Prints an address on loopback that holds a token; whoever opens it sees pictures and force and moves the robot. tcpsbed docs
console describes the hooks that connect a scenario to the console.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("console", help=HELP)(guarded(console))


def console(
    file: File,
    out: Out = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on loopback; 0 takes a free one.")
    ] = 0,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    quiet: Quiet = False,
) -> None:
    """Serves a run; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.analysis import operator
    from tcpsbed.cli.run import refuse_errors, watched
    from tcpsbed.clocks import REAL
    from tcpsbed.console.server import Console
    from tcpsbed.media.line import VARIABLE
    from tcpsbed.runs import session

    asked = overrides(sets, seed, duration)
    scenario = scenarios.load(file, [*asked, *operator.recording(scenarios.load(file, asked))])
    with tempfile.TemporaryDirectory(prefix="tcpsbed-console-") as folder:
        os.environ[VARIABLE] = folder  # for the node processes of this run
        served = Console(Path(folder), port)
        served.told = lambda what: print(f"console: {what}", file=sys.stderr, flush=True)
        served.start()
        print(f"console: {served.address}", flush=True)
        try:
            with session.place(scenario, out) as place:
                stopped = watched(scenario, REAL, place, quiet=quiet, samples=False)
        finally:
            served.stop()
            del os.environ[VARIABLE]
    print(f"run: {place.shown}")
    if stopped:
        raise KeyboardInterrupt(f"stopped early; what was recorded until then is in {place.shown}")
    refuse_errors(session.summary_of(place.target))
