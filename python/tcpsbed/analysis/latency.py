"""How many echoes are enough, and the table of latencies.

A mean is known well enough when the half width of its 95 % interval is at most a share of it (Polachan 2022):
`t(0.975, n - 1) s / sqrt(n) <= rel * mean`, with a floor and a cap on `n`, looked at every so many values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.records import ECHO
from tcpsbed.analysis.stats import t975

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Key = tuple[int, int] | str


@dataclass
class Moments:
    """Count, mean and spread of values met one by one (Welford 1962)."""

    n: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, value: float) -> None:
        """Takes a value."""
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        self._squares += step * (value - self.mean)

    def half_width(self) -> float:
        """Half width of the 95 % interval of the mean; infinite for fewer than two values."""
        if self.n < 2:
            return math.inf
        return t975(self.n - 1) * math.sqrt(self._squares / (self.n - 1) / self.n)


# [PROTOCOLS 6.1] [Polachan 2022]
@dataclass
class Confidence:
    """The rule that says when echo commands may stop.

    Parameters
    ----------
    rel
        Half width asked for, as a share of the mean.
    floor, cap
        Fewest and most values of each mean.
    check_every
        The rule is looked at whenever a mean has this many values more.

    Examples
    --------
    >>> rule = Confidence(rel=0.05)
    >>> rule.add("srv.exit", [10.0, 10.2] * 15)
    >>> rule.satisfied
    True
    """

    rel: float = 0.05
    floor: int = 30
    cap: int = 20_000
    check_every: int = 10
    means: dict[Key, Moments] = field(default_factory=dict)
    _done: set[Key] = field(default_factory=set)

    def add(self, key: Key, values: Iterable[float]) -> None:
        """Takes the next values of a mean, in the order in which they came."""
        moments = self.means.setdefault(key, Moments())
        for value in values:
            moments.add(value)
            if moments.n % self.check_every == 0 and self._enough(moments):
                self._done.add(key)

    def add_rows(self, rows: NDArray[np.void]) -> None:
        """Takes the echo rows among rows of a running or finished run, by (flow, point)."""
        import numpy as np

        echoes = rows[rows["kind"] == ECHO]
        pairs = np.unique(np.stack([echoes["flow"], echoes["point"]], axis=1), axis=0)
        for flow, point in pairs.tolist():
            chosen = (echoes["flow"] == flow) & (echoes["point"] == point)
            self.add((flow, point), (echoes["value"][chosen] / 1e6).tolist())

    def _enough(self, moments: Moments) -> bool:
        return self.needed(moments.n, moments.mean, moments.half_width()) <= moments.n

    @property
    def satisfied(self) -> bool:
        """Whether every mean is known well enough or has reached the cap."""
        return bool(self.means) and len(self._done) == len(self.means)

    @property
    def open(self) -> list[Key]:
        """Means that need more values."""
        return [key for key in self.means if key not in self._done]

    @property
    def capped(self) -> list[Key]:
        """Means that stopped at the cap without being known well enough."""
        full = ((key, m) for key, m in self.means.items() if m.n >= self.cap)
        return [key for key, m in full if m.half_width() > self.rel * abs(m.mean)]

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
        more = n * (half / wanted) ** 2 if wanted > 0 else math.inf
        if more >= self.cap:
            return self.cap
        return min(max(math.ceil(more / self.check_every) * self.check_every, n + 1), self.cap)


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


@dataclass(frozen=True)
class LatencyTable:
    """Latencies of a run: whole delay, points, components and links; spans in milliseconds.

    `from` says where a number comes from: `samples` (ages joined sample by sample), `round trip`, `one way` (stamps of
    the nodes' clocks), or `round trip / 2` (a link's difference halved, because its echo comes back over it).
    """

    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> LatencyTable:
        """The table of a `summary.json`."""
        return cls([row for flow in summary["flows"] for row in _flow_rows(summary, flow)])

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
    words = name in ("flow", "what", "name", "from")
    return [cell.ljust(width) if words else cell.rjust(width) for cell in cells]


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


def processor_rows(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Processor time of each hook, and the share of a core that each component needs, so that a board can be chosen.

    Returns
    -------
    list of dict
        `component`, `flow`, `hook`, `calls`, `mean_us`, `p99_us`, `max_us`, `core_share`; a component's sum has the hook
        `"all"`.
    """
    rows = []
    for stage in summary["stages"]:
        spent = stage["cpu_ns"]
        times = {f"{key}_us": spent[key] / 1e3 for key in ("mean", "p99", "max")}
        place = {
            "component": stage["component"],
            "flow": stage["flow"],
            "hook": stage["name"] or stage["kind"],
        }
        rows.append({**place, "calls": stage["calls"], **times, "core_share": stage["core_share"]})
    for component in dict.fromkeys(row["component"] for row in rows):
        own = [row for row in rows if row["component"] == component]
        share = sum(row["core_share"] or 0.0 for row in own)
        calls = sum(row["calls"] for row in own)
        rows.append({"component": component, "flow": "", "hook": "all", "calls": calls, "core_share": share})
    return rows


def spacing_rows(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Time between packets and delay variation of each flow, with the fitted laws.

    Returns
    -------
    list of dict
        `flow`, `what` (`interarrival` or `ipdv`), the statistics of a distribution in ms, and for the time between packets
        `gaussian` and `gumbel` (docs/summary.md).
    """
    rows = []
    for name, flow in summary["flows"].items():
        fits = flow["interarrival_fits"] or {}
        if flow["interarrival_ms"]:
            rows.append({"flow": name, "what": "interarrival", **flow["interarrival_ms"], **fits})
        if flow["ipdv_ms"]:
            rows.append({"flow": name, "what": "ipdv", **flow["ipdv_ms"]})
    return rows
