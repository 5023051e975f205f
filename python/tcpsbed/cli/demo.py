"""`tcpsbed demo`: a demonstration with a guided tour in the browser."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, Out, Sinks
from tcpsbed.cli.page import CertificateFile, KeyFile, Listen, NoBrowser, Page, Port, listening, operated
from tcpsbed.clocks import REAL, VIRTUAL
from tcpsbed.errors import ConfigError

HELP = """Show what delay does to force: a page with a robot, sliders and a guided tour.

\b
Examples:
  tcpsbed demo             push an arm into a wall with the pointer, over a link that you change
  tcpsbed demo network     a merging transport beside plain UDP, with a slider for the cross traffic

Needs no file. The first demonstration runs on the machine's clock and needs MuJoCo (pip install
'tcpsbed[robot,console]'); the second runs in virtual time, as fast as a clock, and needs 'tcpsbed[studio]'. Each change
is an event of the run. The address holds a token; it is on loopback unless --listen says otherwise. A second address is to
watch only. Ctrl-C ends the demonstration.
"""
SCENARIOS = {"arm": "demo", "network": "demo-network"}
"""Shipped scenarios, by what the command is asked for."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo", help=HELP)(guarded(demo))


def demo(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[arm|network]", help="What is shown.", autocompletion=lambda: list(SCENARIOS)
        ),
    ] = "arm",
    out: Out = None,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    duration: Duration = None,
    sinks: Sinks = None,
    no_browser: NoBrowser = False,
) -> None:
    """Runs and serves; see HELP."""
    from tcpsbed import shipped
    from tcpsbed.cli.run import perform
    from tcpsbed.media.packages import need
    from tcpsbed.nearest import close_match

    if what not in SCENARIOS:
        raise ConfigError(f'found "{what}"', key="demo", allowed=close_match(what, SCENARIOS))
    arm = what == "arm"
    need("websockets.sync.server", "tcpsbed demo", "robot,console" if arm else "studio")
    if arm:
        _need_to_draw()
    page = Page(
        listening(listen, port, certificate, key),
        not no_browser,
        stays=sys.stdout.isatty(),
        label="demo",
        sinks=tuple(sinks or ()),
        operator=arm,
        tour=SCENARIOS[what],
    )
    with operated() if arm else nullcontext():
        perform(
            shipped.find(SCENARIOS[what]),
            world=REAL if arm else VIRTUAL,
            out=out,
            sets=None,
            seed=None,
            duration=duration,
            pace="max" if arm else "1",
            page=page,
            samples=False,
            yes=True,
        )


def _need_to_draw() -> None:
    """Refuses a machine without what draws the robot, before anything is started."""
    from tcpsbed.media.packages import need
    from tcpsbed.robots.scene import mujoco

    need("simplejpeg", "tcpsbed demo", "robot,console")
    mujoco()
