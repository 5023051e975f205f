"""The number of echoes that a precision needs, and the table of latencies.

A mean is known well enough when the half width of its 95 % interval is at most a share of it (Polachan 2022):
`t(0.975, n - 1) s / sqrt(n) <= rel * mean`, with a floor and a cap on `n`, looked at every so many values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.frame import Frame, field

if TYPE_CHECKING:
    import pyarrow as pa

CHECK_EVERY = 10
"""Numbers of echoes are multiples of this."""


# [Polachan 2022]
@dataclass(frozen=True)
class Confidence:
    """The rule for when echo commands stop.

    Parameters
    ----------
    rel
        Half width asked for, as a share of the mean.
    floor, cap
        Fewest and most values of each mean.

    Examples
    --------
    >>> Confidence(rel=0.05).needed(30, 10.0, 1.0)
    120
    """

    rel: float = 0.05
    floor: int = 30
    cap: int = 20_000

    def needed(self, n: int, mean: float, half: float) -> int:
        """Values that a mean is likely to need in all.

        Parameters
        ----------
        n, mean, half
            Values so far, their mean and the half width of its interval.

        Returns
        -------
        int
            At most `n` if these are enough; else more, from the spread seen so far, between floor and cap.
        """
        wanted = self.rel * abs(mean)
        if n < 2 or n < self.floor:
            return self.floor
        if half <= wanted:
            return n
        ratio = half / wanted if wanted > 0 else math.inf
        if ratio * ratio >= self.cap / n:
            return self.cap
        more = n * ratio * ratio
        return min(max(math.ceil(more / CHECK_EVERY) * CHECK_EVERY, n + 1), self.cap)


COLUMNS = (
    "flow",
    "what",
    "name",
    "n",
    "mean",
    "ci95",
    "ci95_batch",
    "p50",
    "p95",
    "p99",
    "p999",
    "max",
    "from",
)
"""Columns of the table; spans in milliseconds."""
WORDS = ("flow", "what", "name", "from")
"""Those of words."""


@dataclass(frozen=True)
class LatencyTable(Frame):
    """Latencies of a run: whole delay, points, components and links; spans in milliseconds.

    `from` says where a number comes from: `samples` (ages joined sample by sample), `round trip`, `one way` (stamps of
    the nodes' clocks), or `round trip / 2` (a link's difference halved, because its echo comes back over it).
    """

    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> LatencyTable:
        """The table of a `summary.json`."""
        return cls([row for flow in summary["flows"] for row in _flow_rows(summary, flow)])

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the columns of `COLUMNS`; spans are in ms, and null where there is none."""
        import pyarrow

        words, number = pyarrow.string(), pyarrow.float64()
        fields = [
            field(name, words)
            if name in WORDS
            else field(name, pyarrow.int64())
            if name == "n"
            else field(name, number, "ms")
            for name in COLUMNS
        ]
        return pyarrow.Table.from_pylist(self.rows, pyarrow.schema(fields))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The first row of this name, such as `run.latency["srv"]`."""
        for row in self.rows:
            if row["name"] == name:
                return row
        raise KeyError(name)

    def __repr__(self) -> str:
        cells = [list(COLUMNS), *([_shown(row.get(column)) for column in COLUMNS] for row in self.rows)]
        columns = [
            _column(name, cells) for name, cells in zip(COLUMNS, zip(*cells, strict=True), strict=True)
        ]
        return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in COLUMNS)
        body = "".join(f"<tr>{_cells(row)}</tr>" for row in self.rows)
        caption = "<caption>latency in milliseconds</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _cells(row: Mapping[str, Any]) -> str:
    return "".join(f"<td>{escape(_shown(row.get(column)))}</td>" for column in COLUMNS)


def _column(name: str, cells: Sequence[str]) -> list[str]:
    """Cells padded to one width: words to the left, numbers to the right."""
    width = max(map(len, cells))
    return [cell.ljust(width) if name in WORDS else cell.rjust(width) for cell in cells]


def _row(flow: str, what: str, name: str, found: Mapping[str, Any] | None, source: str) -> dict[str, Any]:
    numbers = {key: (found or {}).get(key) for key in COLUMNS[3:-1]}
    return {"flow": flow, "what": what, "name": name, **numbers, "from": source}


_SOURCES = {"one_way": "one way", "round_trip": "round trip"}


def _flow_rows(summary: Mapping[str, Any], flow: str) -> Iterator[dict[str, Any]]:
    yield _row(flow, "delay", flow, summary["flows"][flow]["delay_ms"], "samples")
    for part in summary["path"].get(flow, ()):
        yield _row(flow, part["what"], part["name"], part["latency_ms"], "samples")
    probe = summary["echo"].get(flow)
    if probe:
        yield from _echo_rows(flow, probe)


def _echo_rows(flow: str, probe: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for point in probe["points"]:
        for what, key in (("echo", "round_trip_ms"), ("forward", "forward_ms"), ("return", "return_ms")):
            if point[key]:
                yield _row(
                    flow, what, point["point"], point[key], "round trip" if what == "echo" else "one way"
                )
    for part in [*probe["components"], *probe["links"], *probe["spans"]]:
        source = "round trip / 2" if part["halved"] else _SOURCES[part["source"]]
        yield _row(flow, part["what"], part["name"], part["latency_ms"], source)
    if probe["actuation_ms"]:
        yield _row(flow, "actuation", "held until done", probe["actuation_ms"], "difference")
