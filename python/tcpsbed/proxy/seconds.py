"""Delay and loss over time of each service behind an emulated network, from what it says of its last second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tcpsbed.proxy import verdict

SECOND = 1.0
"""What the network speaks of, s."""
MOST = 7_200
"""Bins of half a second: no two seconds share one in the first hour. Of a longer run bins become twice as wide, and again:
in the second hour they are as wide as a second, and two seconds whose middles fall into one are joined.
"""
_RECENT = ("rate_pps", "rate_bps", "recent_lost", "recent_delay_ns")
"""What a row says of its last second; another one differs in its rates, whose times are in ns."""
_POINT = ("t_s", "p50_ms", "p99_ms", "packets", "lost")


@dataclass
class _Point:
    """The middle of a second, median and 99th percentile of the delay, packets whose fate became known, and those of them
    that the network lost or the kernel refused.
    """

    t_s: float
    p50_ms: float | None
    p99_ms: float | None
    packets: int
    lost: int

    def add(self, more: _Point) -> None:
        """Percentiles of both are not known: the mean of the medians, by packets, and the greater 99th percentile."""
        mine, its = max(self.packets - self.lost, 1), max(more.packets - more.lost, 1)
        self.t_s = (self.t_s * mine + more.t_s * its) / (mine + its)
        if self.p50_ms is None:
            self.p50_ms, self.p99_ms = more.p50_ms, more.p99_ms
        elif more.p50_ms is not None:
            self.p50_ms = (self.p50_ms * mine + more.p50_ms * its) / (mine + its)
            self.p99_ms = max(self.p99_ms or 0.0, more.p99_ms or 0.0)
        self.packets += more.packets
        self.lost += more.lost

    def value(self, key: str) -> float | None:
        value = getattr(self, key)
        return round(value, 6) if isinstance(value, float) else value


@dataclass
class _Path:
    """A service in a direction."""

    since_s: float
    """When the present window began."""
    recent: list[Any] = field(default_factory=list)
    decided: int = 0
    lost: int = 0
    points: dict[int, _Point] = field(default_factory=dict)


class Seconds:
    """A point a second, or fewer of a long run, by service and direction."""

    def __init__(self) -> None:
        self.bin_s = SECOND / 2
        self._paths: dict[tuple[str, str], _Path] = {}

    def note(self, snapshot: Mapping[str, Any]) -> None:
        """What the network says while it runs, at least once a second."""
        t_s = snapshot["t_s"]
        for row in snapshot["services"]:
            path = self._paths.setdefault(_key(row), _Path(t_s))
            recent = [row[key] for key in _RECENT]
            if recent == path.recent:
                continue
            if row["rate_pps"] or row["recent_lost"]:
                delay = row["recent_delay_ns"] if row["rate_pps"] else {}
                self._add(path, row, (path.since_s + t_s) / 2, delay)
            path.since_s, path.recent = t_s, recent

    def over(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """The content of `services` of `series.json`; empty where there were none. Packets after the last whole second
        are in their count and have no delay.
        """
        end_s, found = outcome["duration_s"], {}
        for row in verdict.paths(outcome):
            if "part_of" in row:
                path = found[row["path"]] = self._paths.setdefault(_key(row), _Path(end_s))
                if _decided(row) > path.decided:
                    self._add(path, row, (path.since_s + end_s) / 2, {})
        curves = {
            name: {key: [point.value(key) for point in path.points.values()] for key in _POINT}
            for name, path in found.items()
        }
        return {"span_s": max(self.bin_s, SECOND), "paths": curves} if curves else {}

    def _add(self, path: _Path, row: Mapping[str, Any], t_s: float, delay_ns: Mapping[str, float]) -> None:
        decided = _decided(row)
        p50_ms, p99_ms = (delay_ns[key] / 1e6 if key in delay_ns else None for key in ("p50", "p99"))
        lost = row["lost"] + row["unsent"]
        more = _Point(t_s, p50_ms, p99_ms, decided - path.decided, lost - path.lost)
        path.decided, path.lost = decided, lost
        number = math.floor(t_s / self.bin_s)
        _put(path.points, number, more)
        if number >= MOST:
            self._widen()

    def _widen(self) -> None:
        self.bin_s *= 2
        for path in self._paths.values():
            before, path.points = path.points, {}
            for number, one in before.items():
                _put(path.points, number // 2, one)


def _put(points: dict[int, _Point], number: int, one: _Point) -> None:
    if number in points:
        points[number].add(one)
    else:
        points[number] = one


def _decided(row: Mapping[str, Any]) -> int:
    """Packets whose fate is known."""
    return int(row["delivered"] + row["lost"] + row["unsent"])


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    """A service and its direction, without the program, whose name comes later than the first packets."""
    return " ".join(row["door"].split()[:2]), row["way"]
