"""Metrics, and how a table of them becomes a part of `summary.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpsbed.analysis.units import ms

ABSENT: Any = object()
"""Of a metric that nothing told of: its key is left out."""
LIST = "[]"
"""Of a metric that is a list."""
SPREAD = ("mean", "p50", "p99", "max")
"""Statistics of a distribution that tables show."""
STATISTICS = ("min", "mean", "p50", "p95", "p99", "p999", "max")
"""All of them, in the order of their columns."""


@dataclass(frozen=True)
class Metric:
    """One number of a run, or one part of its summary, with its unit, label and meaning.

    Parameters
    ----------
    key
        In `summary.json`.
    meaning
        The sentence of `docs/summary.md`.
    unit
        `count`, `ratio`, `share`, `load` (a share of the time), `ms`, `ns`, `s`, `1/s`, `bit/s`, `B`, `dB`, `ppm`; empty
        for words.
    of
        Computes it from the source of its part; absent: the source has it under this key, or in nanoseconds under the
        same with `_ns` where the unit is `ms`.
    parts
        The metrics that it is made of; `of` gives the source of them, or a list of sources.
    each
        Of a list `LIST`; where there is one for each of several by their names, what is named (`flow`).
    listed
        Whether there is a list for each of these names.
    type
        The type in Python of a value without a unit.
    label
        The heading of its column, or of its table; absent: the key without its unit.
    shown
        Statistics of a distribution that tables show; empty: none of it is shown in a table.
    brief
        Those of them on the terminal; absent: all.
    table
        Heading of another table than that of its part in which it is shown.
    rare
        Whether nought is nothing to show.
    needs
        Of its parts those that are never absent and never null, in whichever version of tcpsbed wrote them.
    """

    key: str
    meaning: str = ""
    unit: str = ""
    of: Callable[[Any], Any] | None = None
    parts: tuple[Metric, ...] = ()
    each: str = ""
    listed: bool = False
    type: str = "str"
    label: str = ""
    shown: tuple[str, ...] = ("",)
    brief: tuple[str, ...] | None = None
    table: str = ""
    rare: bool = False
    needs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """How it is called where people read it."""
        return self.label or self.key.removesuffix(f"_{self.unit}").replace("_", " ")

    @property
    def axis(self) -> str:
        """The label of its axis."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def part(self, key: str) -> Metric:
        """One of its parts."""
        return next(metric for metric in self.parts if metric.key == key)

    def value(self, source: Any) -> Any:
        """It, from its source."""
        found = self.of(source) if self.of else self._told(source)
        if not self.parts or found is None or found is ABSENT:
            return found
        if self.each not in ("", LIST):
            return {name: made(self.parts, one) for name, one in found.items()}
        return made(self.parts, found)

    def _told(self, source: Mapping[str, Any]) -> Any:
        if self.unit != "ms" or self.key in source:
            return source.get(self.key, ABSENT)
        key = f"{self.key.removesuffix('_ms')}_ns"
        return ms(source[key]) if key in source else ABSENT


def made(metrics: Sequence[Metric], source: Any) -> Any:
    """A part of the summary: every metric by its key; of a list of sources a list."""
    if isinstance(source, list):
        return [made(metrics, one) for one in source]
    found = ((metric.key, metric.value(source)) for metric in metrics)
    return {key: value for key, value in found if value is not ABSENT}


def spread(key: str, meaning: str, unit: str = "ms", **more: Any) -> Metric:
    """A distribution."""
    return Metric(key, meaning, unit, **({"shown": SPREAD} | more))


def one_of(*keys: str) -> Callable[[Any], Any]:
    """The value in the source under nested keys; nothing if a key is missing."""

    def take(source: Any) -> Any:
        for key in keys:
            source = (source or {}).get(key)
        return source

    return take
