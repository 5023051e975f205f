"""Curves over time and cumulative curves: the content of `series.json`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.analysis.units import curve_ms

Found = Mapping[str, Any]

BRIDGED = 2.0
"""Times between arrivals (95th percentile) without one over which a curve goes on."""
RATED = 10.0
"""Times between arrivals (mean) over which a rate is taken at least."""
AGED = 2.0
"""The same of an age, which rises and falls once in each."""


def series(analysis: Found) -> dict[str, Any]:
    """The content of `series.json` from an analysis.

    Times are the middles of bins; a bin in which nothing was measured is null.
    """
    curves = analysis["series"]
    p = analysis["p"]
    return {
        "t_s": [start + curves["bin_s"] / 2 for start in curves["t_s"]],
        "bin_s": curves["bin_s"],
        "flows": {
            curve["name"]: _flow(curve, flow, curves["bin_s"])
            for curve, flow in zip(curves["flows"], analysis["flows"], strict=True)
        },
        "queues": {queue["name"]: _queue(queue) for queue in curves["queues"]},
        "events": analysis["events"],
        "disturbed": list(_disturbed(analysis)),
        "cdf": {flow["name"]: _cdf(flow, p) for flow in analysis["flows"] if flow["delay_ns"]},
        "echo": {probe["flow"]: _echo(probe, p) for probe in analysis["echo"]},
    }


def _flow(curve: Found, flow: Found, bin_s: float) -> dict[str, Any]:
    between = flow["interarrival_ns"] or {"mean": 0.0, "p95": 0.0}
    return {
        "delay_mean_ms": curve_ms(curve["delay_mean_ns"]),
        "delay_min_ms": curve_ms(curve["delay_min_ns"]),
        "delay_max_ms": curve_ms(curve["delay_max_ns"]),
        "rate_bps": _running(curve["rate_bps"], RATED * between["mean"] / 1e9 / bin_s),
        "lost": curve["lost"],
        "age_ms": _running(curve_ms(curve["age_ns"]), AGED * between["mean"] / 1e9 / bin_s),
        "fragments": curve["fragments"],
        "bridge_s": bin_s + BRIDGED * between["p95"] / 1e9,
    }


def _running(values: Sequence[float | None], bins: float) -> list[float | None]:
    """Means over this many bins around each, gaps kept; shorter bins than the sampling interval are meaningless."""
    half = math.ceil(bins) // 2
    sums = [0.0, *itertools.accumulate(value or 0.0 for value in values)]
    known = [0, *itertools.accumulate(int(value is not None) for value in values)]
    ends = ((max(i - half, 0), min(i + half + 1, len(values))) for i in range(len(values)))
    return [
        None if value is None else (sums[to] - sums[start]) / (known[to] - known[start])
        for value, (start, to) in zip(values, ends, strict=True)
    ]


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
    """Spans in which a loop stalled."""
    for node in analysis["nodes"]:
        for gap in node["first_gaps"]:
            yield {
                "from_s": gap["t_s"] - gap["length_ns"] / 1e9,
                "to_s": gap["t_s"],
                "why": f"{node['name']} stalled",
            }
