"""`tcpsbed bilateral`: transparency and stability of bilateral schemes over delay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import MOST_BURST, MOST_SEED, Force, Quiet, may_draw
from tcpsbed.errors import ConfigError
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.lab.control.transparency import Measured

HELP = """Measure bilateral schemes: what is felt of a wall and of free space, and whether they come to rest, over delay.

\b
Examples:
  tcpsbed bilateral
  tcpsbed bilateral --schemes wave,tdpa --rtt "0 ms,100 ms" --loss 10% --bursts 5 --figure transparency.svg
  tcpsbed bilateral --rtt "50 ms" --deadband 0.1

A modelled arm swings a device by a millimetre at several frequencies at once, before a wall of 500 N/m and in free space;
the Z-width is the difference of the impedances that it feels. Both sides tick at 1 kHz, without packets.
"""

SCHEMES = "pd,position,wave,tdpa,mmt"
SHOWN_HZ = (1.0, 4.0)
"""Frequencies in the table; the figure and the JSON have all."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bilateral", help=HELP)(guarded(bilateral))


def bilateral(
    schemes: Annotated[str, typer.Option("--schemes", metavar="NAME,...", help="Which.")] = SCHEMES,
    rtt: Annotated[
        str, typer.Option("--rtt", metavar="TIME,...", help="Round trips.")
    ] = "0 ms,20 ms,50 ms,100 ms,200 ms",
    loss: Annotated[str, typer.Option("--loss", metavar="SHARE", help="Loss each way.")] = "0",
    bursts: Annotated[
        float,
        typer.Option("--bursts", min=1, max=MOST_BURST, help="Mean length of a loss burst, in messages."),
    ] = 1.0,
    deadband: Annotated[
        float, typer.Option("--deadband", min=0, max=0.9, help="Messages go on a change by this share.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of the losses.")] = 1,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw it.", show_default=False)
    ] = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the measures as JSON, and nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Measures; see HELP."""
    from tcpsbed.lab.control import transparency, values

    may_draw(figure, force=force)
    share = values.share(loss, "--loss")
    if share >= 1:
        raise ConfigError(f'found "{loss}"', key="--loss", allowed="below 100 %")
    settings = [
        transparency.Setting(name, _whole_ms(text), share, bursts, deadband, seed)
        for name in values.parts(schemes)
        for text in values.parts(rtt)
    ]
    if not settings:
        raise ConfigError("found no scheme or no round trip", key="--schemes, --rtt", allowed=SCHEMES)
    with Progress("bilateral", quiet=quiet or as_json) as bar:
        found = transparency.measure(settings, bar)
    if figure is not None:
        from tcpsbed.lab.control import bilateral_figure

        bilateral_figure.draw(found, figure)
    if as_json:
        head = {"frequencies_hz": transparency.FREQUENCIES_HZ, "stiffness_n_m": transparency.STIFFNESS_N_M}
        print(
            json.dumps(head | {"measured": [asdict(one) | {"width": one.width} for one in found]}, indent=1)
        )
    elif not quiet:
        print(_table(found))
        if figure is not None:
            print(f"figure: {figure}")


def _whole_ms(text: str) -> int:
    from tcpsbed.lab.control import transparency, values

    ns = values.duration_ns(text, "--rtt", transparency.MOST_RTT_MS * 1_000_000)
    if ns % 1_000_000:
        raise ConfigError(
            f'found "{text}"', key="--rtt", allowed="whole milliseconds: both sides tick at 1 kHz"
        )
    return ns // 1_000_000


def _table(found: Sequence[Measured]) -> str:
    from tcpsbed.lab.control.transparency import FREQUENCIES_HZ, there
    from tcpsbed.views import text
    from tcpsbed.views.markup import Column, words

    columns = [words("scheme"), Column("RTT", "ms"), words("at rest"), Column("residual speed", "mm/s")]
    columns += [Column("least energy", "mJ"), Column("messages", "%")]
    for hz in SHOWN_HZ:
        columns += [Column(f"felt {hz:g} Hz", "% of the wall"), Column(f"free {hz:g} Hz", "N s/m")]
        columns += [Column(f"Z-width {hz:g} Hz", "N s/m")]
    rows = []
    for one in found:
        row = [one.setting.scheme, f"{one.setting.rtt_ms}", "yes" if one.stable else "NO"]
        row += [f"{1e3 * one.rest_m_s:.1f}", f"{one.least_mj:.2f}", f"{100 * one.messages:.0f}"]
        for hz in SHOWN_HZ:
            n = FREQUENCIES_HZ.index(hz)
            row += (
                [f"{100 * one.wall[n] / there(hz):.0f}", f"{one.free[n]:.1f}", f"{one.width[n]:.1f}"]
                if one.stable
                else ["", "", ""]
            )
        rows.append(row)
    return text.table(columns, rows)
