"""`tcpsbed doctor`: tests of what this machine can do."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.errors import needs_linux

HELP = """Say what this machine can do: each thing is tried, and what does not work comes with a line to paste.

\b
Examples:
  tcpsbed doctor
  sudo tcpsbed doctor
  tcpsbed doctor --json > machine.json

Takes some seconds. For three of them it measures how late a loop wakes up; other busy programs make this worse. Every run
repeats the checks that take no time, and stores them in its folder as doctor.json.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor", help=HELP)(guarded(doctor))


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, and nothing else.")
    ] = False,
) -> None:
    """Examines the machine; see HELP."""
    from tcpsbed.doctor import examine

    needs_linux("doctor")
    shown = sys.stderr.isatty() and not as_json

    def tell(section: str) -> None:
        if shown:
            print(f"\r\x1b[K{section} …", end="", file=sys.stderr, flush=True)

    found = examine(tell)
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1) if as_json else _text(found))


def _text(found: dict[str, Any]) -> str:
    who = "root" if found["root"] else "not root"
    lines = [f"{found['kernel']}, {found['cores']} cores, {who}"]
    for section, rows in found["sections"].items():
        lines += ["", section]
        wide = max((len(row["name"]) for row in rows), default=0)
        for row in rows:
            mark = "yes" if row["there"] else "no "
            lines.append(f"  {mark}  {row['name']:{wide}}  {row['said']}".rstrip())
            if not row["there"] and row["remedy"]:
                lines.append(f"       {'':{wide}}  → {row['remedy']}")
    return "\n".join(lines)
