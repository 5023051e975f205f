"""Lists of quantities in options of commands: `"5 ms,10 ms"`, `"0,10 %"`, `"0.2:0.09"`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Number
from typing import Any, TypeVar

from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.verdict import Limits
from tcpsbed.scenarios import units
from tcpsbed.scenarios.fields import Refusal

_PLAIN = re.compile(r"[+-]?[0-9.]+")

T = TypeVar("T")


def parts(text: str | None) -> list[str]:
    """The texts between commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def several(
    text: object, key: str, example: str, reader: Callable[[str, str], object] = lambda text, _key: text
) -> list[str]:
    """Values as a list of texts, or as one text with commas; `None` is no value. Two are
    the same if `reader` reads the same.

    Examples
    --------
    >>> several("5 ms,10 ms", "--rtt", "5 ms"), several(["0", "30 %"], "--loss", "30 %")
    (['5 ms', '10 ms'], ['0', '30 %'])

    Raises
    ------
    ConfigError
        If they are no texts, one is empty or a range, there is one twice, or `reader` refuses one.
    """
    if text is None:
        return []
    every = [text] if isinstance(text, str) or not isinstance(text, Sequence) else text
    for one in every:
        if isinstance(one, str) and one.strip().startswith(("[", "(")):
            allowed = f'values with commas and without brackets, such as "{example}"'
            raise ConfigError(f'found "{one}", a list in brackets', key=key, allowed=allowed)
    found = [
        part for one in every for part in parts(given(one, key, f'"{example}", or a list of such texts'))
    ]
    if not found and len(every):
        raise ConfigError('found ""', key=key, allowed=f'"{example}", or a list of such texts')
    for one in found:
        if ".." in one:
            low, high = (end.strip() for end in one.split("..", 1))
            unit = high.lstrip("+-0123456789.eE")
            ends = f'"{low if low.endswith(unit.strip()) else low + unit},{high}"'
            allowed = f"values with commas, such as {ends}"
            if key in ("--rtt", "--loss"):
                allowed += f'; a range is what tcpsbed map takes: {key} "{one}"'
            raise ConfigError(f'found "{one}", a range', key=key, allowed=allowed)
    once(found, [reader(one, key) for one in found], key)
    return found


def once(said: Sequence[str], read: Sequence[object], key: str) -> None:
    """Raises `ConfigError` if two texts are read as the same value."""
    for number, value in enumerate(read):
        if (first := read.index(value)) < number:
            one, same = said[first], said[number]
            found = f'found "{one}" twice' if one == same else f'found "{one}" and "{same}", the same value'
            raise ConfigError(found, key=key, allowed="each value once")


def given(text: object, key: str, example: str) -> str:
    """A text, once it is known to be one."""
    if not isinstance(text, str):
        raise ConfigError(f"found {text!r:.80}", key=key, allowed=f"a text such as {example}")
    return text


def number(text: str) -> float:
    """A number in the digits 0 to 9; everything else raises ValueError."""
    if not text.isascii():
        raise ValueError(text)
    return float(text)


def duration_ns(text: str, key: str, most_ns: int | None = None) -> int:
    """A span of time up to the longest that makes sense, in nanoseconds.

    Examples
    --------
    >>> duration_ns("0.5 ms", "--rtt")
    500000
    """
    return _at_most(_read(units.duration_ns, _no_range(text, key), key), text, key, most_ns)


def positive_ns(text: str, key: str, most_ns: int | None = None) -> int:
    """A span of time above 0 up to the longest that makes sense, in nanoseconds."""
    return _at_most(_read(units.positive_duration_ns, _no_range(text, key), key), text, key, most_ns)


def _no_range(text: str, key: str) -> str:
    """A text that may be a span of time; a range is refused here, because these options take none."""
    if isinstance(text, str) and ".." in text:
        allowed = 'one span of time, such as "5 ms"'
        raise ConfigError(f'found "{text}", a range', key=key, allowed=allowed)
    return text


def _at_most(ns: int, text: str, key: str, most_ns: int | None) -> int:
    if most_ns is not None and ns > most_ns:
        raise ConfigError(f'found "{text}"', key=key, allowed=f'at most "{most_ns / 1e9:g} s"')
    return ns


def frequency_hz(text: str, key: str) -> float:
    """A frequency, in Hz."""
    return _read(units.frequency_hz, text, key)


def share(text: str, key: str) -> float:
    """A share of 0 to 1, with its percent sign.

    Examples
    --------
    >>> share("30 %", "--loss"), share("0", "--loss")
    (0.3, 0.0)
    """
    value: object = text
    if isinstance(text, str):
        with suppress(ValueError):
            value = number(text)
    return _read(units.share, value, key)


def limits(rise_ms: float, overshoot: float, undershoot: float = math.inf) -> Limits:
    """Limits of a good response; an infinite rise time or undershoot means no limit.

    Raises
    ------
    ConfigError
        If one is not a number of 0 or more.
    """
    given = {"--rise": rise_ms, "--overshoot": overshoot, "--undershoot": undershoot}
    for key, value in given.items():
        if not value >= 0 or (key == "--overshoot" and math.isinf(value)):
            unit = "ms" if key == "--rise" else "% of the step"
            allowed = f"a finite number of 0 or more, in {unit}, such as 20"
            raise ConfigError(f"found {value:g}", key=key, allowed=allowed)
    return Limits(rise_ms, overshoot, undershoot)


def gains(text: str, key: str) -> tuple[float, float]:
    """Kp and Ki per ms.

    Examples
    --------
    >>> gains("0.2:0.09", "--gain")
    (0.2, 0.09)
    """
    kp, _, ki = given(text, key, 'Kp and Ki per ms, "0.2:0.09"').partition(":")
    try:
        found = number(kp), number(ki)
    except ValueError:
        found = -1.0, -1.0
    if not all(0 <= value < float("inf") for value in found):
        raise ConfigError(
            f'found "{text}"', key=key, allowed='Kp and Ki per ms, 0 or more, such as "0.2:0.09"'
        )
    return found


def factor(text: str, key: str) -> float:
    """What a controller is multiplied by.

    Examples
    --------
    >>> factor("1.2", "--factor")
    1.2
    """
    try:
        found = number(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        allowed = "a number above 0 that multiplies the controller, such as 1.2"
        raise ConfigError(f'found "{text}"', key=key, allowed=allowed)
    return found


def texts(of: Any) -> Any:
    """Numbers as texts, also those of numpy and `Decimal`; of nothing none; everything else as it is.

    Examples
    --------
    >>> texts(1.5), texts([1.5, 2]), texts("1.5,2"), texts(None)
    (['1.5'], ['1.5', '2'], '1.5,2', [])
    """
    found = [] if of is None else _plain(of)
    every = [found] if isinstance(found, int | float) and not isinstance(found, bool) else found
    if isinstance(every, str) or not isinstance(every, Sequence):
        return every
    return [one if isinstance(one, str) else repr(_plain(one)) for one in every]


def _plain(of: Any) -> Any:
    """A number as Python's own, an array as a list; everything else as it is."""
    found = of.tolist() if hasattr(of, "tolist") else of
    if isinstance(found, int):
        return found
    return float(found) if isinstance(found, Number) and not isinstance(found, complex) else found  # type: ignore[arg-type]


def _read(reader: Callable[[object], T], value: object, key: str) -> T:
    try:
        return reader(value)
    except Refusal as error:
        raise ConfigError(error.context["found"], key=key, allowed=error.context["allowed"]) from None


def span(text: str, count: int, reader: Callable[[str, str], float], key: str) -> list[float]:
    """Values at equal distances from `LOW..HIGH`; of a count of 1 one value.

    Examples
    --------
    >>> span("0..60%", 4, share, "--loss")
    [0.0, 0.2, 0.4, 0.6]
    >>> span("0..30 ms", 4, lambda text, key: duration_ns(text, key, most_ns=10**9), "--rtt")
    [0.0, 10000000.0, 20000000.0, 30000000.0]
    """
    example = "0..60%" if key == "--loss" else "0 ms..50 ms"
    low, dots, high = given(text, key, f'two ends, "{example}"').partition("..")
    if not dots and count == 1:
        return [reader(low.strip(), key)]
    if not dots:
        raise ConfigError(f'found "{text}"', key=key, allowed='two ends, such as "0 ms..50 ms" or "0..60%"')
    if _PLAIN.fullmatch(low.strip()):  # the unit stands behind the second
        low += high.strip().lstrip("0123456789.+-")
    first, last = reader(low.strip(), key), reader(high.strip(), key)
    if not first < last:
        raise ConfigError(f'found "{text}"', key=key, allowed="a first end below the second")
    return [round(first + (last - first) * i / (count - 1), 12) for i in range(count)]
