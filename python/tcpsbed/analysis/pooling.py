"""Echoes of several rounds pooled: counts, means, deviations and intervals; percentiles cannot be pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.analysis import metrics
from tcpsbed.analysis.metrics import Metric
from tcpsbed.analysis.stats import t975

Found = Mapping[str, Any]


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
    parts = metrics.section("echo").parts
    return {
        flow: _joined(parts, before[flow], found) if flow in before else found for flow, found in now.items()
    }


def _joined(parts: Sequence[Metric], a: Found, b: Found) -> dict[str, Any]:
    """Counts and distributions of both; lists one by one, in the order that both rounds have."""
    joined = dict(b)
    for metric in parts:
        if metric.key not in b:
            continue
        one, other = a[metric.key], b[metric.key]
        if metric.each == metrics.LIST:
            pairs = zip(one, other, strict=True)
            joined[metric.key] = [_joined(metric.parts, *pair) for pair in pairs]
        elif metric.unit == "count":
            joined[metric.key] = one + other
        elif "mean" in metric.shown:
            joined[metric.key] = distribution(one, other)
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
