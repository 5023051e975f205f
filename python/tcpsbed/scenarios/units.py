"""Quantities with units: `"15 ms"`, `"1.5 Mbit/s"`, `"15000 B"`, `"1 kHz"`, `"5 %"`, `"50 ppm"`.

A quantity is a number and a unit in one string. It is read exactly (decimal, not binary) and becomes an SI value: time in
nanoseconds, rate in bit/s, size in bytes, frequency in hertz.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, Overflow
from typing import Annotated, Any

from tcpsbed.errors import brief
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import AfterValidator, BeforeValidator, Called, Refusal, WithJsonSchema

_QUANTITY = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(\S.*?)?\s*")
_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*[^\s\d,].*")
_RANGE = re.compile(r"\s*([0-9.]+)[^-–\d]*(?:-|–|\.\.| to )\s*([0-9.]+)\s*([^\s\d].*?)\s*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
# The network's own limits: spans up to about eleven days, rates up to 1 Tbit/s.
_MOST = {"ns": Decimal("1e15"), "bps": Decimal("1e12")}
SHORTEST_NS = 1_000
"""Shortest time between two ticks of anything that repeats itself: one in a microsecond."""
SAMPLE_BYTES = 16_000_000
"""Largest sample or frame (`tcps_transport::udp::MAX_SAMPLE_BYTES`)."""
DRIFT_PPB = 100_000_000
"""Largest drift of a clock: 10 %, what an uncalibrated RC oscillator of a microcontroller may have."""


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: what it is called, an example, and its units with their factors."""

    name: str
    example: str
    suffix: str
    units: dict[str, Decimal]

    def allowed(self, value: Any = None) -> str:
        """The allowed values of this kind; for a number, the number with a unit."""
        examples = [self.example]
        if _NUMBER.fullmatch(str(value)):
            examples = [f"{value} {unit}" for unit in _BARE.get(self.suffix, examples[0].split()[1:])]
        shown = " or ".join(f'"{example}"' for example in examples)
        return f"{self.name} such as {shown} ({', '.join(u for u in self.units if u.isascii())})"

    @property
    def definition(self) -> tuple[str, dict[str, Any]]:
        """Its name in the JSON Schema, and what a value of this kind is there."""
        units = "|".join(re.escape(unit) for unit in self.units)
        pattern = rf"^\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*({units})\s*$"
        name = f"quantity.{self.suffix or 'share'}"
        return name, {"type": "string", "pattern": pattern, "examples": [self.example]}

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a value of this kind."""
        return {"$ref": f"#/$defs/{self.definition[0]}"}


def _units(**factors: str) -> dict[str, Decimal]:
    return {unit: Decimal(factor) for unit, factor in factors.items()}


TIME = Dimension(
    "a span of time",
    "15 ms",
    "ns",
    _units(ns="1", us="1e3", ms="1e6", s="1e9", min="60e9", h="3600e9")
    | {"µs": Decimal("1e3"), "μs": Decimal("1e3")},
)
RATE = Dimension(
    "a bit rate",
    "1.5 Mbit/s",
    "bps",
    {
        f"{prefix}bit/s": Decimal(factor)
        for prefix, factor in (("", "1"), ("k", "1e3"), ("M", "1e6"), ("G", "1e9"))
    },
)
SIZE = Dimension("a size", "1500 B", "bytes", _units(B="1", kB="1e3", MB="1e6", KiB="1024", MiB="1048576"))
FREQUENCY = Dimension("a frequency", "1 kHz", "hz", _units(Hz="1", kHz="1e3", MHz="1e6", fps="1"))
PACKETS = Dimension("a number of packets", "20 packets", "packets", _units(packets="1", packet="1"))
SHARE = Dimension("a share", "5 %", "", {"%": Decimal("0.01")})
DRIFT = Dimension("a drift", "50 ppm", "ppb", _units(ppm="1e3", ppb="1"))
_BARE = {"ns": ("ms", "s"), "bps": ("bit/s", "Mbit/s"), "hz": ("Hz",)}
"""What a number without a unit may mean, by the suffix of its dimension, where that is not the unit of the example."""
DIMENSIONS = (TIME, RATE, SIZE, FREQUENCY, PACKETS, SHARE, DRIFT)


def refuse(found: str, allowed: str, at: tuple[str | int, ...] = ()) -> Refusal:
    """The error of a value: `found`, `allowed`, and the key `at` in the table."""
    return Refusal("refused", found=found, allowed=allowed, at=at)


def shown(value: Any) -> str:
    """A value as written in a scenario file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value if value.isprintable() else json.dumps(value)[1:-1]
        return f'"{brief(text)}"'
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    try:
        text = str(value)
    except ValueError:  # a whole number of more digits than Python writes
        text = hex(value)
    return brief(text)


def plain_digits(value: Any) -> str:
    """A text with digits of other scripts, quoted, with 0 to 9 in their place; empty without such digits."""
    if not isinstance(value, str) or not any(letter.isdecimal() and not letter.isascii() for letter in value):
        return ""
    plain = (str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in value)
    return f"the digits 0 to 9: {shown(''.join(plain))}"


def dimension_of(value: Any) -> Dimension | None:
    """The kind of quantity that a string is, or `None`."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or not match[2]:
        return None
    return next((dimension for dimension in DIMENSIONS if match[2] in dimension.units), None)


def read(value: Any, dimension: Dimension, *, signed: bool = False) -> Decimal:
    """The quantity in the base unit of its dimension.

    Raises
    ------
    Refusal
        If `value` is no quantity of this dimension, or negative where that makes no sense.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refuse(f"found {shown(value)}, a number without a unit", dimension.allowed(value))
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if plain := plain_digits(value):
        raise refuse(f"found {shown(value)}", plain)
    if isinstance(value, str) and not (match and (match[2] or "") in {"", *dimension.units}):
        _refuse_notation(value, dimension)
    if match is None:
        raise refuse(f"found {shown(value)}", dimension.allowed())
    if not match[2]:
        raise refuse(f"found {shown(value)}, a number without a unit", dimension.allowed(value))
    if match[2] not in dimension.units:
        other = dimension_of(value)
        hint = meant(match[2], dimension.units)
        counts = ", not samples or steps a second" if other is RATE and dimension is FREQUENCY else ""
        what = f"which is {other.name}{counts}" if other else f'with the unknown unit "{match[2]}"{hint}'
        raise refuse(f"found {shown(value)}, {what}", dimension.allowed())
    try:
        number = Decimal(match[1]) * dimension.units[match[2]]
    except Overflow:
        raise refuse(f"found {shown(value)}, which is too large", _at_most(dimension)) from None
    if number < 0 and not signed:
        raise refuse(f"found {shown(value)}, which is negative", dimension.allowed())
    if abs(number) > _MOST.get(dimension.suffix, 2**63 - 1):
        raise refuse(f"found {shown(value)}, which is too large", _at_most(dimension))
    return number


def _at_most(dimension: Dimension) -> str:
    """The most that there may be, in the largest unit in which it is a whole number."""
    most = _MOST.get(dimension.suffix)
    if most is None:
        return dimension.allowed()
    whole = {unit: most / size for unit, size in dimension.units.items() if size and most % size == 0}
    unit = min(whole, key=lambda name: whole[name])
    return f"{dimension.allowed()}, at most {whole[unit]:f} {unit}"


def _refuse_notation(value: str, dimension: Dimension) -> None:
    """Refuses a decimal comma, and a range."""
    if _COMMA.fullmatch(value):
        allowed = f'a decimal point ("{value.replace(",", ".")}"), and nothing between thousands'
        raise refuse(f"found {shown(value)}, with a comma", allowed)
    if (ends := _RANGE.fullmatch(value)) and ends[3] in dimension.units:
        first, last = f"{ends[1]} {ends[3]}", f"{ends[2]} {ends[3]}"
        allowed = f"{dimension.name} such as \"{first}\"; to sweep over several: --over 'KEY={first},{last}'"
        raise refuse(f"found {shown(value)}, a range", allowed)


def _positive(value: Any, dimension: Dimension) -> Decimal:
    number = read(value, dimension)
    if number == 0:
        raise refuse(f"found {shown(value)}, which is zero", dimension.allowed())
    return number


def _whole(value: Any, dimension: Dimension, most: int) -> int:
    number = read(value, dimension)
    if number != number.to_integral_value():
        raise refuse(
            f"found {shown(value)}, which is not a whole number of {dimension.suffix}", dimension.allowed()
        )
    if number > most:
        raise refuse(f"found {shown(value)}, which is too large", dimension.allowed())
    return int(number)


def duration_ns(value: Any) -> int:
    """A span of time in nanoseconds, not negative."""
    return int(read(value, TIME).to_integral_value())


def positive_duration_ns(value: Any) -> int:
    """A span of time in nanoseconds, at least one."""
    return max(1, int(_positive(value, TIME).to_integral_value()))


def period_ns(value: Any) -> int:
    """The time between two ticks in nanoseconds, at least a microsecond."""
    span = positive_duration_ns(value)
    if span < SHORTEST_NS:
        raise refuse(f"found {shown(value)}, which is below 1 us", TIME.allowed())
    return span


def period_or_none_ns(value: Any) -> int:
    """The time between two ticks in nanoseconds, at least a microsecond; 0 for no period."""
    return 0 if read(value, TIME) == 0 else period_ns(value)


def offset_ns(value: Any) -> int:
    """A difference of time in nanoseconds, of either sign."""
    return int(read(value, TIME, signed=True).to_integral_value())


def rate_bps(value: Any) -> float:
    """A rate in bit/s, not negative."""
    return float(read(value, RATE))


def positive_rate_bps(value: Any) -> float:
    """A rate in bit/s, at least one."""
    number = _positive(value, RATE)
    if number < 1:
        raise refuse(f"found {shown(value)}, which is below 1 bit/s", RATE.allowed())
    return float(number)


def frequency_hz(value: Any) -> float:
    """A frequency in hertz, from one tick in eleven days to one in a microsecond."""
    number = _positive(value, FREQUENCY)
    if number * SHORTEST_NS > Decimal("1e9"):
        raise refuse(f"found {shown(value)}, which is above 1 MHz", FREQUENCY.allowed())
    if number * _MOST["ns"] < Decimal("1e9"):
        raise refuse(f"found {shown(value)}, which is less than once in 11 days", FREQUENCY.allowed())
    return float(number)


def size_bytes(value: Any) -> int:
    """A size in whole bytes, below 4 GiB."""
    return _whole(value, SIZE, 2**32 - 1)


def positive_size_bytes(value: Any) -> int:
    """A size in whole bytes, at least one."""
    size = size_bytes(value)
    if size == 0:
        raise refuse(f"found {shown(value)}, which is zero", SIZE.allowed())
    return size


def sample_bytes(value: Any) -> int:
    """A size of a sample or frame in whole bytes, from one to 16 MB."""
    size = positive_size_bytes(value)
    if size > SAMPLE_BYTES:
        raise refuse(f"found {shown(value)}, which is above 16 MB", SIZE.allowed())
    return size


def packet_bytes(value: Any) -> int:
    """A size of a packet on the wire in whole bytes, from one to 65535."""
    size = positive_size_bytes(value)
    if size > 65535:
        raise refuse(f"found {shown(value)}, which is above 65535 B", SIZE.allowed())
    return size


def packets(value: Any) -> int:
    """A whole number of packets."""
    return _whole(value, PACKETS, 2**32 - 1)


def drift_ppb(value: Any) -> int:
    """A rate error of a clock in parts per billion, of either sign."""
    number = read(value, DRIFT, signed=True)
    if abs(number) > DRIFT_PPB:
        found = f"found {shown(value)}, which is beyond {DRIFT_PPB // 1000} ppm"
        raise refuse(
            found, 'a drift such as "50 ppm": crystals stay within 100 ppm, RC oscillators within 100000 ppm'
        )
    return int(number.to_integral_value())


def share(value: Any) -> float:
    """A probability or share, `"5 %"`: a bare number is refused, for 0.5 may mean half or half a percent; 0 is 0 %."""
    allowed = 'a share with its percent sign, such as "0.5 %" or "50 %"'
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value == 0:
            return 0.0
        if 0 < value <= 1:
            allowed = f'"{value:g} %", or "{value * 100:g} %" if {value:g} of 1 is meant'
        raise refuse(f"found {shown(value)}, a share without a percent sign", allowed)
    try:
        number = float(read(value, SHARE))
    except Refusal as error:
        raise refuse(error.context["found"], plain_digits(value) or allowed) from None
    if number > 1.0:
        raise refuse(f"found {shown(value)}, which is above 100 %", allowed)
    return number


def dscp(value: Any) -> int:
    """A differentiated services code point: 0 to 63, or a name such as "EF", "CS5", "AF41" (RFC 4594)."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 63:
        return value
    name = value.upper() if isinstance(value, str) else ""
    if name in ("EF", "CS0"):
        return {"EF": 46, "CS0": 0}[name]
    if match := re.fullmatch(r"CS([1-7])", name):
        return 8 * int(match[1])
    if match := re.fullmatch(r"AF([1-4])([1-3])", name):
        return 8 * int(match[1]) + 2 * int(match[2])
    raise refuse(f"found {shown(value)}", 'a code point from 0 to 63 or a name such as "EF", "CS5", "AF41"')


def free(table: dict[str, Any]) -> dict[str, Any]:
    """The table of free parameters, if all of them can be handed on (as JSON, with quantities in SI).

    Raises
    ------
    Refusal
        If a value is no text, truth value, finite number of 64 bits, or list or table of these.
    """
    _check_free((), table)
    return table


def _check_free(at: tuple[str | int, ...], value: Any) -> None:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _check_free((*at, key), inner)
        return
    plain = isinstance(value, str | bool) or (isinstance(value, float) and math.isfinite(value))
    whole = isinstance(value, int) and -(2**63) <= value < 2**63
    if not plain and not whole:
        allowed = "text, true or false, a finite number, a quantity with its unit, a list or a table"
        raise refuse(f"found {shown(value)}", allowed, at)
    if (dimension := dimension_of(value)) is not None:
        try:
            read(value, dimension, signed=True)
        except Refusal as error:
            raise refuse(**error.context | {"at": at}) from None


def parameters(table: dict[str, Any]) -> dict[str, Any]:
    """Free parameters with their quantities in SI: `horizon = "10 ms"` becomes `horizon_ns = 10000000`.

    The unit moves from the value into the name (`_ns`, `_bps`, `_bytes`, `_hz`, `_ppb`, `_packets`); shares keep theirs.
    """
    out: dict[str, Any] = {}
    for key, value in table.items():
        dimension = dimension_of(value)
        if isinstance(value, dict):
            out[key] = parameters(value)
        elif dimension is None:
            out[key] = value
        else:
            number = read(value, dimension, signed=True)
            whole = number == number.to_integral_value() and dimension is not SHARE
            out[f"{key}_{dimension.suffix}".rstrip("_")] = int(number) if whole else float(number)
    return out


_SHARE_SCHEMA = {"anyOf": [SHARE.schema(), {"const": 0}]}

Duration = Annotated[int, BeforeValidator(duration_ns), WithJsonSchema(TIME.schema())]
PositiveDuration = Annotated[int, BeforeValidator(positive_duration_ns), WithJsonSchema(TIME.schema())]
Period = Annotated[int, BeforeValidator(period_ns), WithJsonSchema(TIME.schema())]
PeriodOrNone = Annotated[int, BeforeValidator(period_or_none_ns), WithJsonSchema(TIME.schema())]
Offset = Annotated[int, BeforeValidator(offset_ns), WithJsonSchema(TIME.schema())]
Rate = Annotated[float, BeforeValidator(rate_bps), WithJsonSchema(RATE.schema())]
PositiveRate = Annotated[float, BeforeValidator(positive_rate_bps), WithJsonSchema(RATE.schema())]
Frequency = Annotated[float, BeforeValidator(frequency_hz), WithJsonSchema(FREQUENCY.schema())]
Size = Annotated[int, BeforeValidator(size_bytes), WithJsonSchema(SIZE.schema())]
PositiveSize = Annotated[int, BeforeValidator(positive_size_bytes), WithJsonSchema(SIZE.schema())]
SampleSize = Annotated[int, BeforeValidator(sample_bytes), WithJsonSchema(SIZE.schema())]
PacketSize = Annotated[int, BeforeValidator(packet_bytes), WithJsonSchema(SIZE.schema())]
Drift = Annotated[int, BeforeValidator(drift_ppb), WithJsonSchema(DRIFT.schema())]
Share = Annotated[float, BeforeValidator(share), WithJsonSchema(_SHARE_SCHEMA)]
Parameters = Annotated[dict[str, Any], AfterValidator(free)]
Dscp = Annotated[int, BeforeValidator(dscp, json_schema_input_type=int | str), Called("code point")]
