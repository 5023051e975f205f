"""Spans of time for costs, delays and jitter: a time, a delay model of the native module, or a file of measured spans."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from tcpsbed.scenarios.fields import BeforeValidator, Called, Discriminator, Tag
from tcpsbed.scenarios.model.entries import Chosen, kinds, one_of
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import refuse, shown

_EXAMPLES = '"3 ms", { kind = "normal", mean = "3 ms", sd = "1 ms" } or { trace = "file.csv" }'


class TraceFile(Table):
    """A measured trace in a file, replayed in order and repeated."""

    kind: Literal["trace"] = "trace"
    trace: Annotated[str, Called("file")]
    """A csv file whose spans are replayed in order and repeated."""
    column: Annotated[str | int, Called("column")] = 0
    """Column of the spans, by name or by number from 0."""
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """Unit of the spans; absent: the unit at the end of the column's name, as in `took_us`."""


class HistogramFile(Table):
    """A measured histogram in a file, uniform within a bin."""

    kind: Literal["histogram"] = "histogram"
    histogram: Annotated[str, Called("file")]
    """A csv file. Each line has the start of a bin and its count. The last line has the end of the last bin and
    the count 0.
    """
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """Unit of the spans; absent: the unit at the end of the first column's name."""


FILES = {"trace": TraceFile, "histogram": HistogramFile}
"""What is read from a file, by the key that names it."""


def _span(value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"kind": "constant", "span": value}
    if not isinstance(value, dict) or not ({"kind"} | FILES.keys()) & value.keys():
        raise refuse(f"found {shown(value)}", _EXAMPLES)
    return value


def _which(value: Any) -> str:
    """The tag of a table: of what is read from files, and of the models."""
    named = (
        key
        for key, table in FILES.items()
        if isinstance(value, table) or (hasattr(value, "get") and key in value)
    )
    return next((f"{key} of a file" for key in named), "model")


if TYPE_CHECKING:
    Span = Chosen | TraceFile | HistogramFile
else:
    _MODELS = one_of(kinds("delay").values())
    _ALL = one_of(
        [
            Annotated[_MODELS, Discriminator("kind"), Tag("model")],
            *(Annotated[table, Tag(f"{key} of a file")] for key, table in FILES.items()),
        ]
    )
    Span = Annotated[
        _ALL,
        Discriminator(_which),
        BeforeValidator(_span, json_schema_input_type=str | _ALL),
        Called("span"),
    ]
"""A span of time: a constant, a distribution or a trace."""
