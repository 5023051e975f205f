"""Runs that are over before h has risen: how long they would have to be."""

from __future__ import annotations

import math
from dataclasses import replace

from tcpsbed.lab.control.batch import Bench, Cell

LONGEST = 64
"""How many times as long a run is tried."""
FEW = 20
"""Runs of each try."""
SPARE = 1.2
"""Share of the mean rise time that a run lasts after its step."""


def remedy(bench: Bench, cell: Cell) -> tuple[bool, str]:
    """What to do about runs of a cell that are over before h reaches 90 % of the step.

    Parameters
    ----------
    bench, cell
        What ran.

    Returns
    -------
    tuple of bool and str
        Whether the runs were only too short; and the end of a sentence with the duration that would do, or that none would.
    """
    found = enough_ms(bench, cell)
    if found is None:
        most_s = LONGEST * bench.duration_ms / 1e3
        why = f"nor would one of {most_s:.2g} s: h keeps an error (has the controller an integral?), or is far slower"
        return False, why
    return True, f'the runs are too short, a duration of "{found / 1e3:g} s" would do'


def enough_ms(bench: Bench, cell: Cell) -> float | None:
    """The duration, to two digits, in which h of a cell rises in every run; none if none of those that are tried."""
    runs = min(FEW, bench.runs)
    times = 2
    while times <= LONGEST:
        longer = replace(bench, runs=runs, duration_ms=times * bench.duration_ms)
        rise = longer.run([cell])[0]["rise_ms"]
        if rise["n"] == runs:
            return _rounded_up(bench.step.t0_ms + SPARE * rise["mean"])
        times *= 2
    return None


def _rounded_up(ms: float) -> float:
    digit = 10.0 ** (math.floor(math.log10(ms)) - 1)
    return math.ceil(ms / digit) * digit
