"""Delay, rate, loss and jitter of an emulated network, each judged by itself: whether it was delivered as it was set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpsbed.analysis.delivered import LATE, LEAST, LOSES, SLOW, Margin, beyond
from tcpsbed.analysis.metrics.network import CHANGED
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.errors import counted
from tcpsbed.proxy.profile import lost
from tcpsbed.views import numbers
from tcpsbed.views.programs import GOOD, NOT_GOOD, NOT_SHOWN

SHOWN = 0.9
"""Share of a rate from which a run is said to show it."""
DRAWS = 20
"""Draws below which a run says nothing about a loss."""
VARIES = "varies"
"""Cause: an emulation error that is not constant."""
SETTING = {LATE: "delay", SLOW: "rate", LOSES: "loss", VARIES: "jitter"}
"""The setting that is not good, by cause."""
Row = Mapping[str, Any]
Said = tuple[str, str]


def judged(
    paths: Sequence[Row], margin: Margin, network: Mapping[str, Any], changed: Mapping[str, Sequence[str]]
) -> list[dict[str, str]]:
    """Each setting of a network with its verdict; none where no packet came in.

    Parameters
    ----------
    paths
        Rows of directions, as `verdict.paths` has them.
    margin
        What is accepted.
    network
        As it was set at the start.
    changed
        By link the keys that were changed in the run, which have no one value.

    Returns
    -------
    list of dict
        `what`: `delay`, `rate`, `loss` or `jitter`, of those that a link sets, and of those that are beyond the margin;
        `verdict`: `good`, `not good`, or `not shown` where too few packets came in; `said`: measured against set at the
        worst path, in words.
    """
    rows = _whole(paths)
    links = _links(network, changed)
    causes = {cause for row in rows for cause, _ in beyond("", row, margin)}
    every = (
        ("delay", "delay_ns", LATE, _delay),
        ("rate", "rate_bps", SLOW, _rate),
        ("loss", "loss", LOSES, _loss),
        ("jitter", "jitter", VARIES, _jitter),
    )
    found = []
    for what, key, cause, judge in every:
        if rows and (cause in causes or any(link.get(key) for link in links)):
            verdict, said = judge(rows, margin, links, cause in causes)
            found.append({"what": what, "verdict": verdict, "said": said})
    return found


def varying(
    paths: Sequence[Row], margin: Margin, network: Mapping[str, Any], changed: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Paths of a network with jitter whose emulation error varies beyond the margin, each with its sentence."""
    if any(link.get("jitter") for link in _links(network, changed)):
        for row in _measured(_whole(paths)):
            if (error := _varies(row, "error_ns")) > margin.p99_ms:
                said = f"emulation error {error:.3f} ms (p99 - p50; margin {margin.p99_ms:g} ms)"
                yield row["path"], f"{row['path']}: {said}"


def _whole(paths: Sequence[Row]) -> list[Row]:
    """Those of whole doors that had packets."""
    return [row for row in paths if "part_of" not in row and row["packets"]]


def _links(network: Mapping[str, Any], changed: Mapping[str, Sequence[str]]) -> list[Row]:
    """The links, with `CHANGED` in place of what was changed."""
    known = {link["name"]: link for link in network.get("links", ())}
    keys = known | {name: known.get(name, {"name": name}) for name in changed}
    return [link | dict.fromkeys(changed.get(name, ()), CHANGED) for name, link in keys.items()]


def _ms(row: Row, key: str, percentile: str) -> float:
    found: float = row[key][percentile] / NS_PER_MS
    return found


def _measured(rows: Sequence[Row]) -> list[Row]:
    """Those with enough packets for percentiles."""
    return [row for row in rows if row["delivered"] >= LEAST]


_FEW: Said = (NOT_SHOWN, f"no path delivered {LEAST} packets")


def _delay(rows: Sequence[Row], margin: Margin, _all: Any, late: bool) -> Said:
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


def _jitter(rows: Sequence[Row], margin: Margin, links: Sequence[Row], _late: bool) -> Said:
    """By how much the emulation error varies: a constant one leaves jitter as it is."""
    if not (measured := _measured(rows)):
        return _FEW
    worst = max(measured, key=lambda row: _varies(row, "error_ns"))
    error, delivered, chosen = (
        _varies(worst, key) for key in ("error_ns", "delivered_delay_ns", "set_delay_ns")
    )
    said = f"{worst['path']} delivered {delivered:.3f}, set {chosen:.3f} ms"
    more = f"(p99 - p50; that of the error {error:.3f} ms, margin {margin.p99_ms:g} ms)"
    if any(link.get("jitter") == CHANGED for link in _along(worst, links)):
        more += f"; jitter {CHANGED}"
    return NOT_GOOD if error > margin.p99_ms else GOOD, f"{said} {more}"


def _varies(row: Row, key: str) -> float:
    return _ms(row, key, "p99") - _ms(row, key, "p50")


def _loss(rows: Sequence[Row], margin: Margin, links: Sequence[Row], loses: bool) -> Said:
    known = [row for row in rows if row["delivered_loss"] is not None and row["set_loss"] is not None]
    if not loses:  # a connection that ends here has no loss
        known = [row for row in known if _losses(row, links) and not row["door"].endswith("/tcp")]
        known = [row for row in known if _draws(row) >= DRAWS] or known
    if not known:
        return NOT_SHOWN, "no packet has left or was lost where a link sets a loss"
    worst = max(known, key=lambda row: (abs(row["delivered_loss"] - row["set_loss"]), row["set_loss"]))
    share, dropped = numbers.percent(worst["delivered_loss"]), numbers.percent(worst["set_loss"])
    said = (
        f"{worst['path']} lost {share}, of these dropped by the network {dropped} (margin {margin.loss:.1%})"
    )
    others = {reason: count for reason, count in worst["drops"].items() if reason != "loss" and count}
    draws = _draws(worst)
    if draws < DRAWS:
        few = f"{said}, {counted(draws, 'draw')} of a loss: too few to tell"
        return (NOT_GOOD, said) if loses else (NOT_SHOWN, few)
    drawn = _drawn(worst)
    without = f"; without {', '.join(others)} {numbers.percent(drawn)}" if others else ""
    asked = _asked(_losses(worst, links), _is_chain(worst, links), draws, drawn)
    return NOT_GOOD if loses else GOOD, f"{said}{without if asked else ''}{asked}"


def _draws(row: Row) -> int:
    """Packets that were not dropped for another reason than a loss."""
    dropped: int = sum(count for reason, count in row["drops"].items() if reason != "loss")
    return int(row["packets"]) - dropped


def _drawn(row: Row) -> float:
    """The share of its draws that a loss took."""
    taken: int = row["drops"].get("loss", 0)
    return taken / max(_draws(row), 1)


def _asked(losses: Sequence[Any], is_chain: bool, draws: int, drawn: float) -> str:
    """The loss that links set together, where it is known, and the shares between which so many draws are in 95 of 100 runs,
    where each is one probability.
    """
    if CHANGED in losses:
        return f", loss {CHANGED}"
    shares = [lost(loss) for loss in losses]
    if not losses or (len(losses) > 1 and not is_chain) or None in shares:
        return ""
    share = 1 - math.prod(1 - one for one in shares if one is not None)
    if any("r" in loss for loss in losses):
        return f", set {numbers.percent(share)} in the mean of its bursts"
    half = 1.96 * math.sqrt(share * (1 - share) / draws)
    low, high = (min(max(share + one, 0.0), 1.0) for one in (-half, half))
    outside = "" if low <= drawn <= high else "; outside that range"
    span = f"{numbers.percent(low)} to {numbers.percent(high)}"
    return f", set {numbers.percent(share)} ({numbers.grouped(draws, 0)} draws: {span}{outside})"


def _losses(row: Row, links: Sequence[Row]) -> list[Any]:
    """The losses that the links of a path's direction set."""
    return [link["loss"] for link in _along(row, links) if link.get("loss")]


def _is_chain(row: Row, links: Sequence[Row]) -> bool:
    """Whether the links of a path's direction lead one after the other from end to end, so that each packet meets all."""
    along = _along(row, links)
    here, end = (0, 1) if _is_forward(row) else (1, 0)
    onward: dict[Any, Any] = {link.get("from"): link.get("to") for link in along}
    whole = len(onward) == len(along)
    while here in onward:
        here = onward.pop(here)
    return whole and here == end and not onward


def _along(row: Row, links: Sequence[Row]) -> list[Row]:
    """The links of a path's direction."""
    ends = ".forward" if _is_forward(row) else ".backward"
    return [link for link in links if link["name"].endswith(ends)]


def _is_forward(row: Row) -> bool:
    return bool(row["way"] == "near -> far")


def _rate(rows: Sequence[Row], margin: Margin, links: Sequence[Row], slow: bool) -> Said:
    if slow:
        known = [row for row in rows if row["set_rate_bps"] and row["delivered_rate_bps"] is not None]
        worst = max(known, key=lambda row: abs(row["delivered_rate_bps"] / row["set_rate_bps"] - 1))
        delivered, released = numbers.rate(worst["delivered_rate_bps"]), numbers.rate(worst["set_rate_bps"])
        return (
            NOT_GOOD,
            f"{worst['path']} delivered {delivered}, released {released} (margin {margin.rate:.0%})",
        )
    found = list(_reached(rows, links))
    unknown = [said for share, said in found if share is None]
    missed = "; ".join(said for share, said in found if share is not None and share < SHOWN)
    if not (reached := [said for share, said in found if share is not None and share >= SHOWN]):
        not_shown = [f"not reached: {missed}"] if missed else []
        return NOT_SHOWN, "; ".join([*not_shown, *unknown]) or "packets came for less than 1 s"
    not_shown = [f"not reached, so not shown: {missed}"] if missed else []
    return GOOD, "; ".join([*reached, *not_shown, *unknown])


def _reached(rows: Sequence[Row], links: Sequence[Row]) -> Iterator[tuple[float | None, str]]:
    """The share of each path's rate that was used, and it in words. Packets that a loss takes use the line, too; those that
    a full queue refuses do not.
    """
    for row in rows:
        came, drawn = row.get("wire_rate_bps", row["set_rate_bps"]), _drawn(row)
        used = came / (1 - drawn) if came and drawn < 1 else 0.0
        rates = [link["rate_bps"] for link in _along(row, links) if link.get("rate_bps")]
        if used and CHANGED in rates:
            yield None, f"{row['path']} {numbers.rate(used)}, rate {CHANGED}"
        elif used and rates:
            yield used / min(rates), f"{row['path']} {numbers.rate(used)} of {numbers.rate(min(rates))}"
