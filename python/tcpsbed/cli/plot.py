"""`tcpsbed plot`: figures for papers from finished runs and sweeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tcpsbed.cli import complete
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Force
from tcpsbed.errors import ConfigError

HELP = """Draw a figure for a paper from finished runs or sweeps.

\b
Examples:
  tcpsbed plot runs/udp runs/dpm --kind ccdf --out delay.pdf
  tcpsbed plot runs/sweep-a --x links.l1.rate --y haptic.delay_ms.p99 --by transport --out fig.pdf
  tcpsbed plot runs/latest --kind waterfall --y haptic --style slides --out time.svg
  tcpsbed plot runs/sweep-a --y haptic.loss --latex > loss.tex

Kinds: lines (means with 95 % bands), cdf, ccdf, box, violin, heat (two factors of a sweep), waterfall (where the time
goes), time (curves). Without --kind: lines for a sweep or a number, otherwise cdf. The same command on the same folders
gives the same bytes; the file holds the command, the seeds and the versions (tcpsbed docs plot).
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("plot", help=HELP)(guarded(plot))


def plot(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folders of runs, or of sweeps.",
            show_default=False,
            autocompletion=complete.result_folders,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Figure, in .pdf, .svg, .png or .pgf.", show_default=False
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="lines, cdf, ccdf, box, violin, heat, waterfall or time.",
            show_default=False,
            autocompletion=complete.figures,
        ),
    ] = None,
    y: Annotated[
        list[str] | None,
        typer.Option(
            "--y",
            metavar="METRIC",
            help="What is drawn, such as haptic.delay_ms.p99; of a waterfall a flow; may be repeated.",
            show_default=False,
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(
            "--x", metavar="KEY", help="Factor of the x axis [default: the first].", show_default=False
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Factor of the lines [default: all others]; of a waterfall place or cause; may be repeated.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=V1,V2,...",
            help="Values of a factor; may be repeated.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="OLD=NEW",
            help="Name a folder, value, key or metric in the figure; may be repeated.",
            show_default=False,
        ),
    ] = None,
    style: Annotated[
        str,
        typer.Option(
            "--style",
            metavar="STYLE",
            help="ieee, acm, slides, dark or page.",
            autocompletion=complete.styles,
        ),
    ] = "ieee",
    wide: Annotated[bool, typer.Option("--wide", help="As wide as both columns of the paper.")] = False,
    log: Annotated[
        str, typer.Option("--log", metavar="AXES", help="Logarithmic axes: x, y or xy.", show_default=False)
    ] = "",
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the numbers with their intervals as a table in LaTeX.")
    ] = False,
    force: Force = False,
) -> None:
    """Draws; see HELP."""
    from tcpsbed import drawing, figures

    if out is None and not latex:
        raise ConfigError("is missing", key="--out", allowed="a file such as fig.pdf, or --latex for a table")
    if out is not None:
        drawing.drawable(out, force=force, reads=folders, key="--out")
    drawn = figures.plot(
        *folders, kind=kind, y=y or (), x=x, by=by or (), where=where or (), labels=label or (), style=style,
        wide=wide, log=log,
    )  # fmt: skip
    for note in drawn.notes:
        print(f"tcpsbed: {note}", file=sys.stderr)
    if latex:
        print(drawn.latex, end="")
    if out is not None:
        drawn.save(out, force=force)
        print(out, file=sys.stderr if latex else sys.stdout)
