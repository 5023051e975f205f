"""`tcpsbed campaign`: factors, seeds and worlds from a file, on all cores or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Cluster, Jobs, Quiet, Yes
from tcpsbed.cli.sweep import perform

HELP = """Run a campaign: factors, seeds and worlds from a file.

\b
Examples:
  tcpsbed campaign transports.toml
  tcpsbed campaign transports.toml --cluster local:4
  tcpsbed campaign transports.toml --cluster tcp://head:8786 --out runs/transports

The file names a scenario, factors (grid, zipped, random, Latin hypercube), seeds, metrics and a baseline (tcpsbed docs
campaign). All combinations are checked before the first run. Cells run in random order; after a kill, the same command
continues, and the table is the same. With `until` in the file, a combination gets as many seeds as its interval needs.
The folder is that of a sweep: tcpsbed plot draws it, tcpsbed studio shows it while it fills.
"""
Plan = Annotated[Path, typer.Argument(metavar="FILE", help="Campaign, in TOML.", show_default=False)]
Results = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder of results [default: runs/campaign-NAME-HASH].",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("campaign", help=HELP)(guarded(campaign))


def campaign(
    file: Plan,
    out: Results = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Runs a campaign; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.campaign import file as files

    survey = files.load(file, out)
    first = scenarios.load(survey.file, survey.settings)
    perform(survey, first, jobs, cluster, yes=yes, quiet=quiet)
