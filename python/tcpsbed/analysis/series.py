"""Curves over time and cumulative curves: the content of `series.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.units import curve_ms

Found = Mapping[str, Any]


def series(analysis: Found) -> dict[str, Any]:
    """The content of `series.json` from an analysis.

    Times are the middles of bins; a bin in which nothing was measured is null.
    """
    curves = analysis["series"]
    p = analysis["p"]
    return {
        "t_s": [start + curves["bin_s"] / 2 for start in curves["t_s"]],
        "bin_s": curves["bin_s"],
        "flows": {flow["name"]: _flow(flow) for flow in curves["flows"]},
        "queues": {queue["name"]: _queue(queue) for queue in curves["queues"]},
        "events": analysis["events"],
        "disturbed": list(_disturbed(analysis)),
        "cdf": {flow["name"]: _cdf(flow, p) for flow in analysis["flows"] if flow["delay_ns"]},
        "echo": {probe["flow"]: _echo(probe, p) for probe in analysis["echo"]},
    }


def _flow(curve: Found) -> dict[str, Any]:
    return {
        "delay_mean_ms": curve_ms(curve["delay_mean_ns"]),
        "delay_max_ms": curve_ms(curve["delay_max_ns"]),
        "rate_bps": curve["rate_bps"],
        "lost": curve["lost"],
        "age_ms": curve_ms(curve["age_ns"]),
        "fragments": curve["fragments"],
    }


def _queue(curve: Found) -> dict[str, Any]:
    return {
        "bytes": curve["bytes"],
        "bytes_max": curve["bytes_max"],
        "packets": curve["packets"],
        "delay_ms": curve_ms(curve["delay_ns"]),
    }


def _cdf(flow: Found, p: list[float]) -> dict[str, Any]:
    cdf = flow["cdf"]
    found = {"p": p, "delay_ms": curve_ms(cdf["delay_ns"])}
    if flow["interarrival_ns"]:
        found["interarrival_ms"] = curve_ms(cdf["interarrival_ns"])
    return found


def _echo(probe: Found, p: list[float]) -> dict[str, Any]:
    trips = {
        point["point"]: curve_ms(point["round_trip_curve_ns"]) for point in probe["points"] if point["n"]
    }
    return {"p": p, "round_trip_ms": trips}


def _disturbed(analysis: Found) -> Any:
    """Spans in which a loop stood still."""
    for node in analysis["nodes"]:
        for gap in node["first_gaps"]:
            yield {
                "from_s": gap["t_s"] - gap["length_ns"] / 1e9,
                "to_s": gap["t_s"],
                "why": f"{node['name']} stood still",
            }
