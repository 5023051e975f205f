"""Options that several commands share, each written once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tcpsbed.forecast import Forecast

File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario, in TOML or .xlsx.", show_default=False)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.", show_default=False)]
AnyWhere = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="WORLD",
        help="virtual (simulated clock), real, or where the nodes run and what lies between them (tcpsbed docs worlds).",
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
MOST_SEED = 2**64 - 1
MOST_SEEDS = 10_000
"""Most runs of packets, each with a seed of its own."""
MOST_RUNS = 1_000_000
"""Most runs of a setting of a loop that is computed without packets: all of them are kept in memory."""
MOST_BURST = 1_000_000
"""Longest mean length of a loss."""
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
Force = Annotated[
    bool, typer.Option("--force", help="Write over a file that is there and that tcpsbed did not write.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Run what is predicted to be huge.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no tables.")]


def span_s(text: str, key: str) -> float:
    """A time such as `10 s` of an option, in seconds.

    Raises
    ------
    ConfigError
        If it is none.
    """
    from pydantic_core import PydanticCustomError

    from tcpsbed.config.units import duration_ns
    from tcpsbed.errors import ConfigError

    try:
        return float(duration_ns(text)) / 1e9
    except PydanticCustomError as error:
        context = error.context or {}
        raise ConfigError(context["found"], key=key, allowed=context["allowed"]) from None


def agreed(found: Forecast | None, what: str, yes: bool) -> None:
    """Goes on with what is huge if the user said so, and says its size.

    Raises
    ------
    ConfigError
        If the user did not.
    """
    from tcpsbed import forecast

    if found is None:
        return
    if not yes:
        raise forecast.refuse(found, what)
    print(f"tcpsbed: {what} will take {found}", file=sys.stderr)


def overrides(sets: Sequence[str] | None, seed: int | None = None, duration: str | None = None) -> list[str]:
    """All overrides in the order of their weight: `--set` first, then the options with names of their own."""
    named = [] if seed is None else [f"seed={seed}"]
    named += [] if duration is None else [f"duration={json.dumps(duration)}"]
    return [*(sets or ()), *named]
