"""Flows and their ways in the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis.units import distribution_ms, ms

Found = Mapping[str, Any]


def flow(found: Found, info: Found) -> dict[str, Any]:
    """One flow of the summary from one of the analysis.

    Parameters
    ----------
    found
        A flow of the analysis; spans in nanoseconds.
    info
        Its session and direction.
    """
    order = found["reordering"]
    return {
        "session": info.get("session", ""),
        "direction": info.get("direction", ""),
        **{
            key: found[key]
            for key in ("sent", "delivered", "repeated", "lost", "loss", "in_flight", "duplicated")
        },
        "duplicates_dropped": found["duplicates_dropped"],
        "reordered": order["reordered"],
        "reordering": {
            "ratio": order["ratio"],
            "mean_extent": order["mean_extent"],
            "max_extent": order["max_extent"],
            "max_late_ms": ms(order["max_late_ns"]),
        },
        "superseded": found["superseded"],
        "suppressed": found["suppressed"],
        "snr_db": found["snr_db"],
        "rate_reduction": found["suppressed"] / found["sent"] if found["sent"] else 0.0,
        "resampled_at": found["resampled_at"],
        "drops": {f"{drop['at']} {drop['reason']}": drop["packets"] for drop in found["drops"]},
        "delay_ms": distribution_ms(found["delay_ns"]),
        "jitter_ms": _jitter(found),
        "ipdv_ms": distribution_ms(found["ipdv_ns"]),
        "interarrival_ms": distribution_ms(found["interarrival_ns"]),
        "interarrival_fits": fits_ms(found["interarrival_fits"]),
        "age_ms": distribution_ms(found["age_ns"]),
        "payload_bytes": found["payload_bytes"],
        "rate_bps": found["rate_bps"],
        "verified": found["verified"],
        "playout": _playout(found["playout"]),
    }


# [Ramjee 1994]
def _playout(shown: Found | None) -> dict[str, Any] | None:
    if shown is None:
        return None
    return {
        **{key: shown[key] for key in ("played", "late", "skipped", "starved")},
        "age_ms": distribution_ms(shown["age_ns"]),
        "interval_ms": distribution_ms(shown["interval_ns"]),
    }


# [RFC 5481]
def _jitter(found: Found) -> dict[str, Any]:
    jitter = found["jitter"]
    return {
        "step": distribution_ms(jitter["step_ns"]),
        "displayed": distribution_ms(jitter["displayed_ns"]),
        "rfc3550": ms(jitter["rfc3550_ns"]),
        "rfc3550_max": ms(jitter["rfc3550_max_ns"]),
        "pdv": distribution_ms(found["pdv_ns"]),
    }


def fits_ms(fits: Found | None) -> dict[str, Any] | None:
    """Fitted laws with their parameters in milliseconds; the distance has no unit."""
    if fits is None:
        return None
    return {
        law: {"location": ms(fit["location"]), "scale": ms(fit["scale"]), "distance": fit["distance"]}
        for law, fit in fits.items()
    }


def path(found: Found) -> list[dict[str, Any]]:
    """Where a flow's time went; means add up to the mean delay of the samples seen at every point."""
    way = found["path"]
    whole_ns = way["delay_mean_ns"]
    return [
        {
            "what": part["what"],
            "name": part["name"],
            "latency_ms": distribution_ms(part["latency_ns"]) or {"mean": ms(part["mean_ns"])},
            "where_from": "samples",
            "share": part["mean_ns"] / whole_ns if whole_ns else None,
        }
        for part in way["segments"]
        if part["mean_ns"] is not None
    ]


def points(found: Found) -> list[dict[str, Any]]:
    """Ages at a flow's echo points."""
    return [
        {"point": point["point"], "n": point["n"], "age_ms": distribution_ms(point["age_ns"])}
        for point in found["points"]
    ]
