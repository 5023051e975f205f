"""Echo points in the summary: round trips, one-way legs, and differences between neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.units import NS_PER_MS, distribution_ms

Found = Mapping[str, Any]


def echo(found: Found) -> dict[str, Any]:
    """What one probe found, in milliseconds.

    Parameters
    ----------
    found
        A probe of the analysis; spans in nanoseconds.
    """
    parts = [_stretch(part) for part in found["differences"]]
    movement = next((part for part in parts if part["what"] == "actuation"), None)
    return {
        "commands": found["commands"],
        "points": [_point(point) for point in found["points"]],
        "components": [part for part in parts if part["what"] == "component"],
        "links": [part for part in parts if part["what"] == "link"],
        "spans": [part for part in parts if part["what"] == "span"],
        "actuation_ms": movement and movement["latency_ms"],
        "clocks": _clocks(found.get("clocks")),
    }


def _clocks(found: Found | None) -> dict[str, Any] | None:
    """Between which clocks round trips are; none where one clock takes both stamps."""
    if found is None:
        return None
    corrected = found["corrected"]
    return {
        "from": found["from"],
        "to": found["to"],
        "corrected": corrected,
        "unknown": found["unknown"],
        "correction_ms": found["correction_ns"] / NS_PER_MS if corrected else None,
        "bound_ms": found["bound_ns"] / NS_PER_MS if corrected else None,
    }


def _point(point: Found) -> dict[str, Any]:
    return {
        "point": point["point"],
        "n": point["n"],
        "lost": point["lost"],
        "superseded": point["superseded"],
        "round_trip_ms": distribution_ms(point["round_trip_ns"]),
        "forward_ms": distribution_ms(point["forward_ns"]),
        "return_ms": distribution_ms(point["return_ns"]),
    }


# [Polachan 2022]
def _stretch(part: Found) -> dict[str, Any]:
    latency = distribution_ms(part["latency_ns"])
    return {
        "what": part["what"],
        "name": part["name"],
        "from": part["from"],
        "to": part["to"],
        "latency_ms": latency,
        "ci95": latency and latency["ci95"],
        "ci95_batch": latency and latency["ci95_batch"],
        "source": part["source"],
        "halved": part["halved"],
        "round_trip_difference_ms": distribution_ms(part["round_trip_difference_ns"]),
    }
