"""`tcpsbed image`: the image of nodes in the world `containers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded

HELP = """Make the image that nodes run in, from a tar of a root file system with Python 3.11 or newer.

\b
Examples:
  tcpsbed image base.tar
  tcpsbed run my.toml --world containers

Needs Podman or Docker and no registry. The tar is, for example, what debootstrap makes: see tcpsbed docs containers.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("image", help=HELP)(guarded(image))


def image(
    base: Annotated[
        Path, typer.Argument(metavar="BASE.tar", help="Tar of a root file system.", show_default=False)
    ],
) -> None:
    """Makes the image; see HELP."""
    from tcpsbed.worlds import containers

    print(containers.make_image(base))
