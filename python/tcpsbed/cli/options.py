"""Options that several commands share, each written once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli import complete

if TYPE_CHECKING:
    from tcpsbed.runs.forecast import Forecast

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Scenario, in TOML or .xlsx.",
        show_default=False,
        autocompletion=complete.scenario_files,
    ),
]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder of a run.", show_default=False, autocompletion=complete.run_folders
    ),
]
WORLDS = "virtual (simulated clock), real, ns3-virtual, namespaces, hosts, ns3, mininet, containers"
AnyWhere = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="WORLD",
        help=f"{WORLDS}, or HOSTING+NETWORK such as hosts+emulator (tcpsbed docs worlds).",
        autocompletion=complete.worlds,
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="In worlds of several hosts, let channels go without security.")
]
INSECURE = "real.insecure=true"
"""What that sets."""
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
Text = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The file to be written.",
        show_default=False,
        callback=lambda file: None if str(file) == "-" else file,
    ),
]
"""Where a text goes; none, or `-`: standard output."""
OnPage = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write it as a page (.html), too.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that tcpsbed did not write.")]
Sinks = Annotated[
    list[str] | None,
    typer.Option(
        "--sink",
        metavar="NAME[=TARGET]",
        help="Send live data elsewhere, too: openmetrics, foxglove, mcap=FILE, rerun=FILE (tcpsbed docs sinks); "
        "may be repeated.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        max=1000,
        help="Runs at a time [default: all cores; 1 on the machine's clock].",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on Dask: tcp://HOST:8786, or local:N for N workers here (tcpsbed docs campaign).",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Run even if the forecast is huge.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no tables.")]


def span_s(text: str, key: str) -> float:
    """A time such as `10 s` of an option, in seconds.

    Raises
    ------
    ConfigError
        If it is none, or not above zero.
    """
    from tcpsbed.errors import ConfigError
    from tcpsbed.scenarios.fields import Refusal
    from tcpsbed.scenarios.units import duration_ns

    try:
        span_ns = duration_ns(text)
    except Refusal as error:
        raise ConfigError(error.context["found"], key=key, allowed=error.context["allowed"]) from None
    if span_ns <= 0:
        raise ConfigError(f"found {text}", key=key, allowed='a time above zero, such as "10 s"')
    return float(span_ns) / 1e9


def agreed(found: Forecast | None, what: str, yes: bool) -> None:
    """Continues a huge run if the user agreed, and prints its size.

    Raises
    ------
    ConfigError
        If the user did not.
    """
    from tcpsbed.runs import forecast

    if found is None:
        return
    if not yes:
        raise forecast.refuse(found, what)
    print(f"tcpsbed: {what} will take {found}", file=sys.stderr)


def may_draw(
    figure: Path | None, *, force: bool, reads: Iterable[Path | str] = (), key: str = "--figure"
) -> None:
    """Refuses a file that no figure can be written to, if one is named, before what it shows is measured."""
    if figure is not None:
        from tcpsbed import drawing

        drawing.drawable(figure, force=force, reads=reads, key=key)


def overrides(sets: Sequence[str] | None, seed: int | None = None, duration: str | None = None) -> list[str]:
    """All overrides in the order of their weight: `--set` first, then the options with names of their own."""
    from tcpsbed import scenarios

    return scenarios.overrides(sets, seed=seed, duration=duration)


OwnPlant = Annotated[
    str | None,
    typer.Option(
        "--plant",
        metavar="SYSTEM",
        help="The plant: a name, code, or a table such as '{ kind = \"transfer-function\", num = [1], den = [0.05, 1] }'.",
        show_default=False,
    ),
]
OwnController = Annotated[
    str | None,
    typer.Option(
        "--controller",
        metavar="SYSTEM",
        help="A linear controller in place of PI, as --plant.",
        show_default=False,
    ),
]
Disturbed = Annotated[
    str | None,
    typer.Option(
        "--disturbance",
        metavar="KIND",
        help="What falls: the gain of the far side, or its output [default: the scenario's].",
        show_default=False,
    ),
]
