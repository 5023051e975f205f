"""`tcpsbed archive`: a run or a sweep with all that it takes to run again, as one zip."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli import complete
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Quiet
from tcpsbed.errors import counted

HELP = """Pack a run, a sweep or a campaign with all that it takes to run again.

\b
Examples:
  tcpsbed archive runs/latest run.zip
  tcpsbed archive runs/sweep-my-1a2b3c4d artifact.zip --licence CC-BY-4.0

The zip holds the scenario with all files that it names, summaries, versions, seeds, hashes and RO-Crate metadata. Others
check it with: tcpsbed rerun artifact.zip
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("archive", help=HELP)(guarded(archive))


def archive(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of a run, a sweep or a campaign.",
            show_default=False,
            autocompletion=complete.run_folders,
        ),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="FILE.zip", help="The archive, a new file.", show_default=False)
    ],
    licence: Annotated[
        str, typer.Option("--licence", metavar="TEXT", help="Its licence in the metadata, such as CC-BY-4.0.")
    ] = "",
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="Its name there [default: the scenario's].")
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Writes an archive; see HELP."""
    from tcpsbed.archive import packing
    from tcpsbed.archive.content import SCENARIO
    from tcpsbed.views.folder import state_of

    packed = packing.pack(folder, out, licence=licence, title=title)
    content = packed.content
    if (folder / "sweep.json").is_file() and (state := state_of(folder)):
        print(f"tcpsbed: {folder}: {state}", file=sys.stderr)
    for file in packed.newer:
        print(f"tcpsbed: {file} was changed after these results were written", file=sys.stderr)
    if not quiet:
        named = [name for name in content.files if name.startswith(f"{SCENARIO}/")]
        size = f"{out.stat().st_size / 1e6:.2f} MB"
        print(
            f"archive: {out} ({counted(len(content.cells), 'run')}, {counted(len(named), 'input file')}, {size})"
        )
        print(f"made by: {content.command}")
        print(f"check it on another machine: tcpsbed rerun {out.name}")
