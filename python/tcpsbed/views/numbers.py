"""Formatted numbers: fixed decimals by size, a dash if absent, units in the column's heading."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

NONE = "–"
"""Shown where a number is absent."""


def finite(value: Any) -> float | None:
    """The value as a float, or None if it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def statistic(value: Any, key: str = "mean") -> float | None:
    """One statistic of a distribution; a plain number is its own mean."""
    if isinstance(value, Mapping):
        return finite(value.get(key))
    return finite(value) if key == "mean" else None


def half_width(value: Any) -> float | None:
    """Half the width of a confidence interval, given as that or as [low, high]."""
    if isinstance(value, (list, tuple)) and len(value) == 2:
        low, high = finite(value[0]), finite(value[1])
        return None if low is None or high is None else (high - low) / 2
    return finite(value)


def half_shown(half: float | None, shown: Callable[[Any], str]) -> str:
    """Half the width of an interval as numbers beside it are shown; one that is not 0 never looks like it."""
    if half is None:
        return NONE
    text = shown(half)
    least = re.sub(r"0(?=\D*$)", "1", text)
    return f"<{least}" if half > 0 and not re.search("[1-9]", text) else text


def nothing(mean: Any, half: Any) -> str:
    """A remark that a difference may be 0 by its interval; otherwise empty."""
    value, width = finite(mean), finite(half)
    return "may be 0" if value is not None and width and abs(value) <= width else ""


def ms(value: Any) -> str:
    """Milliseconds: to the microsecond below 100 ms, coarser above."""
    number = finite(value)
    if number is None:
        return NONE
    size = abs(number)
    return grouped(number, 3 if size < 100 else 2 if size < 1000 else 1)


def us(nanoseconds: Any) -> str:
    """Nanoseconds, shown in microseconds."""
    number = finite(nanoseconds)
    if number is None:
        return NONE
    return grouped(number / 1000, 3 if abs(number) < 100_000 else 1)


def place(name: Any) -> str:
    """The text of a place on a path: `srv → ss-com` for the path between two components."""
    return str(name).replace(" -> ", " → ")


def count(value: Any) -> str:
    """A whole number in groups of three digits."""
    number = finite(value)
    return NONE if number is None else grouped(number, 0)


def percent(share: Any) -> str:
    """A share of one, in percent."""
    number = finite(share)
    if number is None:
        return NONE
    size = abs(number) * 100
    return (
        grouped(number * 100, 4 if 0 < size < 0.01 else 3 if 0 < size < 1 else 2 if size < 10 else 1) + " %"
    )


def rate(bps: Any) -> str:
    """Bits a second with a fitting prefix."""
    return _prefixed(bps, "bit/s")


def size(nbytes: Any) -> str:
    """Bytes with a fitting decimal prefix."""
    return _prefixed(nbytes, "B")


def seconds(value: Any) -> str:
    """A span of time in seconds, three significant digits below a minute."""
    number = finite(value)
    if number is None:
        return NONE
    return f"{number:.3g} s" if abs(number) < 60 else f"{grouped(number, 0)} s"


def general(value: Any) -> str:
    """Anything else: four significant digits, or the text itself."""
    number = finite(value)
    if number is None:
        return NONE if value is None else str(value)
    return count(number) if number == int(number) else f"{number:.4g}".replace("-", "\u2212")


def grouped(number: float, decimals: int) -> str:
    """Fixed decimals, thousands in groups parted by a thin space."""
    text = f"{number:,.{decimals}f}".replace(",", "\u202f")
    return text.replace("-", "\u2212") if float(f"{number:.{decimals}f}") != 0 else text.lstrip("-")


def _prefixed(value: Any, unit: str) -> str:
    number = finite(value)
    if number is None:
        return NONE
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= factor:
            return f"{grouped(number / factor, 3 if abs(number) < 10 * factor else 1)} {prefix}{unit}"
    return f"{grouped(number, 0)} {unit}"
