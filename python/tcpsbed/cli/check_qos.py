"""`tcpsbed check-qos`: does a run keep the limits of a profile?"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.cli.options import Folder, Quiet

if TYPE_CHECKING:
    from tcpsbed.qos.check import Verdict
    from tcpsbed.qos.profile import Profile

HELP = """Compare a run with a profile of limits, flow by flow; ends with 1 if one of them is broken.

\b
Examples:
  tcpsbed check-qos runs/latest --profile telehaptics
  tcpsbed check-qos runs/latest --profile mine.toml --json
  tcpsbed check-qos runs/latest --profile list

Profiles that ship: telehaptics, ieee1918-high, ieee1918-medium, 3gpp-tactile, 3gpp-multimodal, 3gpp-remote-robot,
lip-sync, inter-media, slice-automation, slice-interactive. docs/qos.md says how to write one, and how pytest runs a
scenario as a test.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("check-qos", help=HELP)(guarded(check_qos))


def check_qos(
    folder: Folder,
    profile: Annotated[
        str,
        typer.Option("--profile", metavar="NAME", help="A profile by name, or its file.", show_default=False),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON, and nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Checks a run; see HELP."""
    from tcpsbed import documents
    from tcpsbed.qos import check
    from tcpsbed.qos import profile as profiles
    from tcpsbed.report.folder import open_folder

    if profile == "list":
        print(*profiles.shipped(), sep="\n")
        return
    chosen = profiles.load(profile)
    with documents.trusted(folder):
        verdicts = check.check(open_folder(folder).summary, chosen)
    passed = all(verdict.passed for verdict in verdicts)
    if as_json:
        rows = [asdict(one) | {"margin": one.margin, "passed": one.passed} for one in verdicts]
        rows = [{key: _plain(value) for key, value in row.items()} for row in rows]
        print(json.dumps({"profile": chosen.name, "passed": passed, "verdicts": rows}, indent=1))
    elif not quiet:
        print(_table(chosen, verdicts, passed=passed))
    if not passed:
        raise typer.Exit(FAILED)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(chosen: Profile, verdicts: list[Verdict], *, passed: bool) -> str:
    from tcpsbed.report import text
    from tcpsbed.report.markup import Column, words
    from tcpsbed.report.numbers import NONE

    def number(value: float) -> str:
        return f"{value:g}" if math.isfinite(value) else NONE

    columns = [
        words("flow"),
        words("number"),
        Column("found"),
        Column("least"),
        Column("most"),
        Column("margin"),
    ]
    rows = [
        [
            one.flow,
            one.metric,
            *(number(value) for value in (one.found, one.least, one.most, one.margin)),
            "pass" if one.passed else "FAIL",
        ]
        for one in verdicts
    ]
    head = f"{chosen.name}" + (f" · {chosen.source}" if chosen.source else "")
    return f"{head}\n\n{text.table([*columns, words('')], rows)}\n{'pass' if passed else 'FAIL'}"
