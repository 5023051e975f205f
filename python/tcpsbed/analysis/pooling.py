"""Echoes of several rounds as those of one: numbers, means, deviations and intervals; percentiles cannot be pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.stats import t975

Found = Mapping[str, Any]

DISTRIBUTIONS = ("round_trip_ms", "forward_ms", "return_ms", "latency_ms", "round_trip_difference_ms")
COUNTED = ("commands", "n", "lost", "superseded")
LISTS = ("points", "components", "links", "spans")


def pooled(before: Found | None, now: Found) -> dict[str, Any]:
    """The `echo` part of a summary out of that of the rounds before and that of this one.

    Parameters
    ----------
    before
        What `pooled` gave of earlier rounds; none before the second.
    now
        `echo` of the round's summary.
    """
    if before is None:
        return dict(now)
    return {flow: _probe(before[flow], found) if flow in before else found for flow, found in now.items()}


def _probe(a: Found, b: Found) -> dict[str, Any]:
    """A probe: its points and differences one by one, in the order that both rounds have."""
    joined = _entry(a, b)
    for key in LISTS:
        joined[key] = [_entry(one, other) for one, other in zip(a[key], b[key], strict=True)]
    joined["actuation_ms"] = distribution(a["actuation_ms"], b["actuation_ms"])
    return joined


def _entry(a: Found, b: Found) -> dict[str, Any]:
    joined = dict(b)
    joined |= {key: a[key] + b[key] for key in COUNTED if key in b}
    joined |= {key: distribution(a[key], b[key]) for key in DISTRIBUTIONS if key in b}
    if "latency_ms" in b:
        latency = joined["latency_ms"] or {}
        joined |= {key: latency.get(key) for key in ("ci95", "ci95_batch")}
    return joined


def distribution(a: Found | None, b: Found | None) -> dict[str, Any] | None:
    """Two samples of one quantity as one: what is not known of the whole is null."""
    if not a or not b:
        return dict(a or b or {}) or None
    n = a["n"] + b["n"]
    apart = b["mean"] - a["mean"]
    squares = sum(one["sd"] ** 2 * (one["n"] - 1) for one in (a, b)) + apart**2 * a["n"] * b["n"] / n
    sd = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
    known = {
        "n": n,
        "mean": a["mean"] + apart * b["n"] / n,
        "sd": sd,
        "min": min(a["min"], b["min"]),
        "max": max(a["max"], b["max"]),
        "ci95": t975(n - 1) * sd / math.sqrt(n) if n > 1 else None,
    }
    return dict.fromkeys(b) | {key: value for key, value in known.items() if key in b}
