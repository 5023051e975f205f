"""`tcpsbed key`: a file with a pre-shared key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli.failures import guarded

HELP = """Make a file with a new key for channels with security.

\b
Examples:
  tcpsbed key lab.key
  tcpsbed run my.toml --set 'channels.session.security={kind="aead", key_file="lab.key"}'

Without a key file every run makes a key of its own: see tcpsbed docs security.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("key", help=HELP)(guarded(key))


def key(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to make (mode 0600).", show_default=False)
    ],
) -> None:
    """Makes the file; see HELP."""
    from tcpsbed import keyfile

    keyfile.make(file)
    print(f"wrote {file}: keep it secret, and give it to nobody who is not to command the robot")
