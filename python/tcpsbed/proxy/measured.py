"""A profile from measurements: a link from round trips and bit rates of an access network, one line per second.

```
 round trip     ─► half of it each way, less the mean of its short-term spread, which becomes jitter
 bit rates      ─► rate down (to the clients) and up
```
A link stands for one state of the network, chosen by a quantile: 50 is an ordinary moment, 95 a bad one, in which delays
are as long and rates as low as in one of twenty. What changes slowly is no jitter: packets a millisecond apart would each
draw another state.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcpsbed import inputs
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.nearest import close_match, meant

RATES_BPS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6}
"""Units that bit rates may have."""
MOST = 1e15
"""No round trip, share or bit rate is beyond this in any of the units."""
NOTHING = ("", "-", "nan", "NaN", "null")
"""What stands in a cell where nothing was measured."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns.

    Attributes
    ----------
    rtt : str
        Round trip in ms.
    spread : str, optional
        Standard deviation of the round trip around that moment, in ms.
    loss : str, optional
        Share lost, in percent.
    down, up : str, optional
        Bit rates to and from the clients, in `rate_unit`; lines with 0 are left out, as nothing was asked for then.
    rate_unit : str
        One of `RATES_BPS`.
    """

    rtt: str
    spread: str | None = None
    loss: str | None = None
    down: str | None = None
    up: str | None = None
    rate_unit: str = "kbit/s"


def profile_text(files: Sequence[Path], columns: Columns, quantile: float = 50.0) -> str:
    """The profile as TOML.

    Parameters
    ----------
    files : sequence of Path
        csv files with a header; their lines are taken together.
    columns : Columns
        Where things stand in them.
    quantile : float
        Which state: percent of the moments that are better, 0 to 100.

    Raises
    ------
    ConfigError, DataError
        If a column is not there, a value is no number, or nothing was measured.
    """
    if columns.rate_unit not in RATES_BPS:
        raise ConfigError(
            f'found "{columns.rate_unit}"',
            key="--rate-unit",
            allowed=close_match(columns.rate_unit, RATES_BPS),
        )
    if not 0 <= quantile <= 100:
        raise ConfigError(f"found {quantile:g}", key="--quantile", allowed="0 to 100")
    rtt_ms = _column(files, columns.rtt)
    spread_ms = 0.0
    if columns.spread is not None:
        # Two ways that vary alike and on their own.
        spread_ms = float(np.median(_column(files, columns.spread))) / math.sqrt(2)
    one_way_ms = float(np.percentile(rtt_ms, quantile)) / 2
    if spread_ms > one_way_ms:
        found = (
            f"found a standard deviation of {spread_ms * math.sqrt(2):g} ms, too large for a round trip of "
            f"{2 * one_way_ms:g} ms (at most {one_way_ms * math.sqrt(2):.3g} ms)"
        )
        allowed = "a column with the short-term deviation in ms (is this one in µs?), a higher --quantile, or no --spread"
        raise DataError(found, file=files[0], key=columns.spread, allowed=allowed)
    shared = [f'delay = "{one_way_ms - spread_ms:.3f} ms"']
    if spread_ms:
        shared.append(f'jitter = {{ kind = "exponential", mean = "{spread_ms:.3f} ms" }}')
    if columns.loss is not None:
        shared.append(f'loss = "{np.mean(_column(files, columns.loss)):.4f} %"')
    ways = [_way(files, name, columns, 100 - quantile) for name in (columns.up, columns.down)]
    names = ", ".join(" ".join(file.name.split()) for file in files[:3])
    names += f" and {len(files) - 3} more" if len(files) > 3 else ""
    description = f"measured ({names}), {quantile:g} % of the measurements are better"
    lines = [
        f"# {len(rtt_ms)} round trips of {names}: {_span(rtt_ms)} ms (5, 50, 95 %), half of it each way.",
        *(f"# {said}" for said, _ in ways if said),
        f"description = {json.dumps(description)}",
        "",
        "[links.path]",
        'queue = "500 packets"',
        *shared,
        *(
            f"{side} = {{ {rate} }}"
            for side, (_, rate) in zip(("forward", "backward"), ways, strict=True)
            if rate
        ),
    ]
    return "\n".join(lines) + "\n"


def _way(files: Sequence[Path], name: str | None, columns: Columns, percent: float) -> tuple[str, str]:
    """What was measured of the rate in a direction, and the key that sets it."""
    if name is None:
        return "", ""
    found = _column(files, name)
    found = found[found > 0]
    if not len(found):
        raise DataError("no bit rate above 0", file=files[0], key=name, allowed="a column of bit rates")
    bps = float(np.percentile(found, percent)) * RATES_BPS[columns.rate_unit]
    said = f"{len(found)} seconds with traffic ({name}): {_span(found)} {columns.rate_unit} (5, 50, 95 %)."
    return said, f'rate = "{bps / 1e6:.4f} Mbit/s"'


def _span(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.4g}" for value in np.percentile(values, (5, 50, 95)))


def _column(files: Sequence[Path], name: str) -> NDArray[np.float64]:
    """All values of a column without empty cells."""
    found = [value for file in files for value in _values(file, name)]
    if not found:
        raise DataError("nothing was measured", file=files[0], key=name, allowed="at least one value")
    return np.array(found)


def _values(file: Path, name: str) -> list[float]:
    try:
        inputs.regular(file, "a csv with a header")
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as opened:
            table = csv.reader(opened)
            place = _place(file, next(table, []), name)
            cells = [(table.line_num, row[place].strip() if place < len(row) else "") for row in table]
    except (OSError, csv.Error) as error:
        raise DataError(f"cannot be read: {error}", file=file, allowed="a csv with a header") from None
    return [_number(file, line, name, cell) for line, cell in cells if cell not in NOTHING]


def _place(file: Path, header: list[str], name: str) -> int:
    """The number of a column, from 0, by its name, or by that number where several have its name."""
    places = [number for number, title in enumerate(header) if title == name]
    if not places and name.isdecimal() and len(name) < 6 and int(name) < len(header):
        places = [int(name)]
    if not places:
        allowed = (", ".join(header)[:300] or "a csv with a header") + meant(name, header)
        raise DataError(f'found no column "{name}"', file=file, allowed=allowed)
    if len(places) > 1:
        allowed = f"one of them by its number: {', '.join(map(str, places))}"
        raise DataError(f'found {len(places)} columns "{name}"', file=file, allowed=allowed)
    return places[0]


def _number(file: Path, line: int, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST:
        allowed = f"a number, 0 to {MOST:g}"
        raise DataError(f'found "{cell[:40]}"', file=file, line=line, key=name, allowed=allowed)
    return value
