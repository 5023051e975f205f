"""`tcpsbed config link-from-csv`: a link profile from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcpsbed import results
from tcpsbed.cli.failures import guarded
from tcpsbed.cli.options import Force, Text

HELP = """Write a link out of measurements of an access network: a profile for proxy and netns, and for scenarios.

\b
Examples:
  tcpsbed config link-from-csv day.csv --rtt PINGAVG --spread PINGSTDEV --down DL_bitrate --out 5g.toml
  tcpsbed config link-from-csv *.csv --rtt ping_ms --quantile 95 --out bad-moment.toml
  tcpsbed proxy --profile 5g.toml 7000=127.0.0.1:7100

Half of the round trip goes to each way; the clients' side of the link is the mobile's. What becomes of the columns:
tcpsbed docs proxy
"""


def add(group: typer.Typer) -> None:
    """Adds the command to a group."""
    group.command("link-from-csv", help=HELP)(guarded(link_from_csv))


def link_from_csv(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="csv files.", show_default=False)],
    rtt: Annotated[
        str, typer.Option("--rtt", metavar="COLUMN", help="Round trip in ms.", show_default=False)
    ],
    spread: Annotated[
        str | None,
        typer.Option("--spread", metavar="COLUMN", help="Its standard deviation, in ms.", show_default=False),
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", metavar="COLUMN", help="Loss in percent.", show_default=False)
    ] = None,
    down: Annotated[
        str | None,
        typer.Option("--down", metavar="COLUMN", help="Bit rate to the mobile.", show_default=False),
    ] = None,
    up: Annotated[
        str | None,
        typer.Option("--up", metavar="COLUMN", help="Bit rate from the mobile.", show_default=False),
    ] = None,
    rate_unit: Annotated[str, typer.Option("--rate-unit", help="bit/s, kbit/s or Mbit/s.")] = "kbit/s",
    quantile: Annotated[
        float, typer.Option("--quantile", help="Share of the measurements that are better, in %.")
    ] = 50.0,
    out: Text = None,
    force: Force = False,
) -> None:
    """Writes a profile; see HELP."""
    from tcpsbed.proxy.measured import Columns, profile_text

    if out is not None:
        results.may_write(out, force=force, reads=files)
    text = profile_text(files, Columns(rtt, spread, loss, down, up, rate_unit), quantile)
    if out is None:
        print(text, end="")
    else:
        results.write_whole(out, text)
