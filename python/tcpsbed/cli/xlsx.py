"""`tcpsbed config`: a scenario as a spreadsheet and back, and a link from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpsbed import results
from tcpsbed.cli import link
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.group import Group
from tcpsbed.cli.options import File, Force, Text

HELP = """Convert a scenario to a spreadsheet and back, and measurements to a link.

\b
Examples:
  tcpsbed config to-xlsx my.toml                 writes my.xlsx
  tcpsbed config from-xlsx my.xlsx --out my.toml

`tcpsbed check my.xlsx` and `tcpsbed run my.xlsx` take a spreadsheet as it is; `tcpsbed init --xlsx` writes a blank one.
Hosts, interfaces, flows, devices and network have a sheet each, with one row per entry. Converting there and back loses
only comments. Needs openpyxl: pip install 'tcpsbed[xlsx]'. link-from-csv makes a profile of measured round trips and rates.
"""
TO = """Write a scenario as a spreadsheet.

\b
Example:
  tcpsbed config to-xlsx my.toml      writes my.xlsx
"""
FROM = """Write the scenario in a spreadsheet as TOML.

\b
Example:
  tcpsbed config from-xlsx my.xlsx --out my.toml
"""
Target = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="The file to be written.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(
        cls=Group,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=app.info.context_settings,
    )
    group.command("to-xlsx", help=TO)(guarded(to_xlsx))
    group.command("from-xlsx", help=FROM)(guarded(from_xlsx))
    link.add(group)
    app.add_typer(group, name="config")


def to_xlsx(file: File, out: Target = None, force: Force = False) -> None:
    """Writes a spreadsheet; see HELP."""
    from tcpsbed import scenarios
    from tcpsbed.scenarios import xlsx

    target = file.with_suffix(".xlsx") if out is None else out
    results.may_write(target, force=force, reads=[file])
    xlsx.to_xlsx(scenarios.tables(file).document, target)
    print(target)


def from_xlsx(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Spreadsheet.", show_default=False)],
    out: Text = None,
    force: Force = False,
) -> None:
    """Writes TOML; see HELP."""
    from tcpsbed.scenarios import xlsx

    if out is not None:
        results.may_write(out, force=force, reads=[file])
    text = xlsx.from_xlsx(file)
    if out is None:
        print(text, end="")
    else:
        results.write_whole(out, text)
