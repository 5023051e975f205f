"""Spans of time for costs, delays and jitter: constant, random or measured (design: costs)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, FiniteFloat

from tcpsbed.config.model.table import Table
from tcpsbed.config.units import Duration, PositiveDuration, refuse, shown

_EXAMPLES = '"3 ms", { kind = "normal", mean = "3 ms", sd = "1 ms" } or { trace = "file.csv" }'


class Constant(Table):
    """Always the same span."""

    kind: Literal["constant"]
    span_ns: Duration = Field(alias="span")
    """A span of time such as "3 ms"."""


class Uniform(Table):
    """Uniform between two spans."""

    kind: Literal["uniform"]
    low_ns: Duration = Field(alias="low")
    """The smallest span."""
    high_ns: Duration = Field(alias="high")
    """The largest span."""


class Normal(Table):
    """Normal, cut at zero."""

    kind: Literal["normal"]
    mean_ns: Duration = Field(alias="mean")
    """The mean span."""
    sd_ns: Duration = Field(alias="sd")
    """The standard deviation."""


class Exponential(Table):
    """A smallest span plus an exponential one."""

    kind: Literal["exponential"]
    mean_ns: Duration = Field(alias="mean")
    """The mean of the exponential part."""
    shift_ns: Duration = Field(0, alias="shift")
    """The smallest span."""


class Gumbel(Table):
    """Gumbel (largest extreme value), cut at zero."""

    kind: Literal["gumbel"]
    mode_ns: Duration = Field(alias="mode")
    """The most frequent span."""
    scale_ns: PositiveDuration = Field(alias="scale")
    """The scale of the spread."""


class Pareto(Table):
    """Pareto with a smallest span and a tail index."""

    kind: Literal["pareto"]
    scale_ns: PositiveDuration = Field(alias="scale")
    """The smallest span."""
    shape: Annotated[FiniteFloat, Field(gt=0)]
    """The tail index, above 1 for a finite mean."""


class Empirical(Table):
    """Draws from quantiles at equally spaced probabilities from 0 to 1."""

    kind: Literal["empirical"]
    quantiles_ns: Annotated[list[Duration], Field(alias="quantiles", min_length=2)]
    """Spans at equally spaced probabilities from 0 to 1."""


class Trace(Table):
    """A measured trace, replayed in order and repeated."""

    kind: Literal["trace"] = "trace"
    trace: str
    """A csv file with a column of spans."""
    column: str | int = 0
    """The column, by name or by number from 0."""
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """The unit of the values; absent: the end of the column's name (`_ns`, `_us`, `_ms`, `_s`)."""


class Histogram(Table):
    """Draws from a measured histogram: a bin by its count, and any span within it."""

    kind: Literal["histogram"] = "histogram"
    histogram: str
    """A csv file with a line a bin: where it begins, and its count; the last line, with count 0, ends the last bin."""
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """The unit of the spans; absent: the end of the first column's name (`_ns`, `_us`, `_ms`, `_s`)."""


def _span(value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"kind": "constant", "span": value}
    if isinstance(value, dict) and "trace" in value:
        return {"kind": "trace"} | value
    if isinstance(value, dict) and "histogram" in value:
        return {"kind": "histogram"} | value
    if not isinstance(value, dict) or "kind" not in value:
        raise refuse(f"found {shown(value)}", _EXAMPLES)
    return value


_Any = Constant | Uniform | Normal | Exponential | Gumbel | Pareto | Empirical | Trace | Histogram
Span = Annotated[_Any, Discriminator("kind"), BeforeValidator(_span, json_schema_input_type=str | _Any)]
"""A span of time: a constant, a distribution or a trace."""
