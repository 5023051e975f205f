"""`tcpsbed console`: a real run with an operator at a browser."""

from __future__ import annotations

import sys

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Duration, File, Out, Quiet, Seed, Sets, Sinks, overrides
from tcpsbed.cli.page import CertificateFile, KeyFile, Listen, NoBrowser, Page, Port, listening, operated
from tcpsbed.clocks import REAL

HELP = """Run a scenario on real sockets with an operator at a browser.

\b
Example:
  tcpsbed init --from console && tcpsbed console console.toml --duration "10 min"

Prints an address on loopback that holds a token, and opens it in the browser. It shows pictures and force; the first who
opens it moves the robot and changes the links, and can hand that over. The operator's pane is above the panels of the
studio. A second address is to watch only. --listen 0.0.0.0 lets a headset in, over TLS. After the run the page is its
report, on a terminal until Ctrl-C. tcpsbed docs console describes the hooks that connect a scenario to the console.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("console", help=HELP)(guarded(console))


def console(
    file: File,
    out: Out = None,
    port: Port = 0,
    listen: Listen = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    sets: Sets = None,
    seed: Seed = None,
    duration: Duration = None,
    sinks: Sinks = None,
    no_browser: NoBrowser = False,
    quiet: Quiet = False,
) -> None:
    """Serves a run; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.analysis import operator
    from tcpsbed.cli.run import perform
    from tcpsbed.media.packages import need

    need("websockets.sync.server", "tcpsbed console", "console")
    asked = scenarios.load(file, overrides(sets, seed, duration))
    page = Page(
        listening(listen, port, certificate, key),
        not no_browser,
        stays=sys.stdout.isatty(),
        label="console",
        sinks=tuple(sinks or ()),
        operator=True,
    )
    with operated():
        perform(
            file,
            world=REAL,
            out=out,
            sets=[*(sets or ()), *operator.recording(asked)],
            seed=seed,
            duration=duration,
            pace="max",
            page=page,
            samples=False,
            yes=True,
            quiet=quiet,
        )
