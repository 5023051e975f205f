"""Options that several commands share, each written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario in TOML.", show_default=False)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.", show_default=False)]
AnyWhere = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="WORLD",
        help="virtual (simulated clock), real, or where the nodes run and what lies between them (docs/worlds.md).",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the scenario; may be repeated.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Replace the scenario's seed.", show_default=False)
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="TIME", help='Replace the duration, such as "10 s".', show_default=False
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Run folder [default: runs/NAME-DATE-TIME].", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no tables.")]


def overrides(sets: Sequence[str] | None, seed: int | None = None, duration: str | None = None) -> list[str]:
    """All overrides in the order of their weight: `--set` first, then the options with names of their own."""
    named = [] if seed is None else [f"seed={seed}"]
    named += [] if duration is None else [f"duration={json.dumps(duration)}"]
    return [*(sets or ()), *named]
