"""Delay, rate, loss and jitter of an emulated network, each judged by itself: whether it was delivered as it was set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed.analysis.delivered import LATE, LEAST, LOSES, SLOW, Margin, beyond
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.views import numbers
from tcpsbed.views.programs import GOOD, NOT_GOOD, NOT_SHOWN

SHOWN = 0.9
"""Share of a rate from which a run is said to show it."""
FORWARD = "to far"
"""How paths end whose links are those forward."""
Row = Mapping[str, Any]
Said = tuple[str, str]


def judged(paths: Sequence[Row], margin: Margin, network: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each setting of a network with its verdict; none where no packet came in.

    Parameters
    ----------
    paths
        Rows of directions, as `verdict.paths` has them.
    margin
        What is accepted.
    network
        As it was set at the start.

    Returns
    -------
    list of dict
        `what`: `delay`, `rate`, `loss` or `jitter`, of those that a link sets, and of those that are beyond the margin;
        `verdict`: `good`, `not good`, or `not shown` where too few packets came in; `said`: measured against set at the
        worst path, in words.
    """
    rows = [row for row in paths if "part_of" not in row and row["packets"]]
    links = network.get("links", ())
    causes = {cause for row in rows for cause, _ in beyond("", row, margin)}
    every = (
        ("delay", "delay_ns", LATE, _delay),
        ("rate", "rate_bps", SLOW, _rate),
        ("loss", "loss", LOSES, _loss),
        ("jitter", "jitter", None, _jitter),
    )
    found = []
    for what, key, cause, judge in every:
        if rows and (cause in causes or any(link.get(key) for link in links)):
            verdict, said = judge(rows, margin, links, cause in causes)
            found.append({"what": what, "verdict": verdict, "said": said})
    return found


def _ms(row: Row, key: str, percentile: str) -> float:
    found: float = row[key][percentile] / NS_PER_MS
    return found


def _measured(rows: Sequence[Row]) -> list[Row]:
    """Those with enough packets for percentiles."""
    return [row for row in rows if row["delivered"] >= LEAST]


_FEW: Said = (NOT_SHOWN, f"no path delivered {LEAST} packets")


def _delay(rows: Sequence[Row], margin: Margin, _links: Any, late: bool) -> Said:
    if not (measured := _measured(rows)):
        return _FEW
    worst = max(
        measured,
        key=lambda row: max(
            _ms(row, "error_ns", "p50") - margin.p50_ms, _ms(row, "error_ns", "p99") - margin.p99_ms
        ),
    )
    said = (
        f"{_set(worst, key)} ms ({key}; error {_ms(worst, 'error_ns', key):.3f} ms, margin {most:g} ms)"
        for key, most in (("p50", margin.p50_ms), ("p99", margin.p99_ms))
    )
    return NOT_GOOD if late else GOOD, f"{worst['path']} {'; '.join(said)}"


def _set(row: Row, key: str) -> str:
    delivered, chosen = (_ms(row, name, key) for name in ("delivered_delay_ns", "set_delay_ns"))
    return f"delivered {delivered:.3f}, set {chosen:.3f}"


def _jitter(rows: Sequence[Row], margin: Margin, _links: Any, _late: bool) -> Said:
    """By how much the emulation error varies: a constant one leaves jitter as it is."""
    if not (measured := _measured(rows)):
        return _FEW
    worst = max(measured, key=lambda row: _varies(row, "error_ns"))
    error, delivered, chosen = (
        _varies(worst, key) for key in ("error_ns", "delivered_delay_ns", "set_delay_ns")
    )
    said = f"{worst['path']} delivered {delivered:.3f}, set {chosen:.3f} ms"
    more = f"(p99 - p50; that of the error {error:.3f} ms, margin {margin.p99_ms:g} ms)"
    return NOT_GOOD if error > margin.p99_ms else GOOD, f"{said} {more}"


def _varies(row: Row, key: str) -> float:
    return _ms(row, key, "p99") - _ms(row, key, "p50")


def _loss(rows: Sequence[Row], margin: Margin, links: Sequence[Row], loses: bool) -> Said:
    known = [row for row in rows if row["delivered_loss"] is not None and row["set_loss"] is not None]
    if not known:
        return NOT_SHOWN, "no packet has left or was lost"
    worst = max(known, key=lambda row: (abs(row["delivered_loss"] - row["set_loss"]), row["set_loss"]))
    lost, dropped = numbers.percent(worst["delivered_loss"]), numbers.percent(worst["set_loss"])
    losses = [link["loss"] for link in _along(worst, links) if link.get("loss")]
    asked = _asked(losses[0]["p"], worst) if len(losses) == 1 and set(losses[0]) <= _ALONE else ""
    said = f"{worst['path']} lost {lost}, of these dropped by the network {dropped} (margin {margin.loss:.1%}){asked}"
    return NOT_GOOD if loses else GOOD, said


def _asked(share: float, row: Row) -> str:
    """A probability, and the shares between which so many draws are in 95 of 100 runs; what was drawn, where packets were
    dropped for other reasons, too.
    """
    others = {reason: count for reason, count in row["drops"].items() if reason != "loss" and count}
    draws = row["packets"] - sum(others.values())
    if draws < 1:
        return ""
    half = 1.96 * math.sqrt(share * (1 - share) / draws)
    low, high = (numbers.percent(min(max(share + one, 0.0), 1.0)) for one in (-half, half))
    drawn = (
        f"; without {', '.join(others)} {numbers.percent(row['drops'].get('loss', 0) / draws)}"
        if others
        else ""
    )
    return f"{drawn}, set {numbers.percent(share)} ({numbers.grouped(draws, 0)} draws: {low} to {high})"


_ALONE = {"kind", "p"}
"""Keys of a loss that is one probability."""


def _along(row: Row, links: Sequence[Row]) -> list[Row]:
    """The links of a path's direction."""
    ends = ".forward" if row["path"].endswith(FORWARD) else ".backward"
    return [link for link in links if link["name"].endswith(ends)]


def _rate(rows: Sequence[Row], margin: Margin, links: Sequence[Row], slow: bool) -> Said:
    if slow:
        worst = min(rows, key=lambda row: (row["delivered_rate_bps"] or 0.0) / (row["set_rate_bps"] or 1.0))
        delivered, released = numbers.rate(worst["delivered_rate_bps"]), numbers.rate(worst["set_rate_bps"])
        return (
            NOT_GOOD,
            f"{worst['path']} delivered {delivered}, released {released} (margin {margin.rate:.0%})",
        )
    found = list(_reached(rows, links))
    reached, missed = (
        [said for share, said in found if (share >= SHOWN) == is_shown] for is_shown in (True, False)
    )
    if not reached:
        return NOT_SHOWN, f"not reached: {'; '.join(missed)}" if missed else "packets came for less than 1 s"
    return GOOD, "; ".join(reached) + (f"; not reached, so not shown: {'; '.join(missed)}" if missed else "")


def _reached(rows: Sequence[Row], links: Sequence[Row]) -> Iterator[tuple[float, str]]:
    """The share of each path's rate that was used, and it in words; lost packets use the line, too."""
    for row in rows:
        came = row.get("wire_rate_bps", row["set_rate_bps"])
        least = min((link["rate_bps"] for link in _along(row, links) if link.get("rate_bps")), default=None)
        used = came / (1 - row["set_loss"]) if came and row["set_loss"] < 1 else 0.0
        if least and used:
            yield used / least, f"{row['path']} {numbers.rate(used)} of {numbers.rate(least)}"
