"""Delay, rate, loss and jitter of an emulated network, each judged by itself: whether it was delivered as it was set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tcpsbed.analysis.delivered import LATE, LEAST, LOSES, SLOW, Margin, beyond
from tcpsbed.analysis.metrics.network import CHANGED
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.errors import counted
from tcpsbed.proxy.profile import lost, way
from tcpsbed.views import numbers
from tcpsbed.views.programs import GOOD, NOT_GOOD, NOT_SHOWN

SHOWN = 0.9
"""Share of the time for which a link has to be busy if a run is to show its rate."""
DRAWS = 20
"""Draws below which a run says nothing about a loss."""
MOST_NAMED = 4
"""Links that are told."""
TAIL = 0.025
"""Probability of more draws than an interval has, and of less."""
NORMAL = 25.0
"""Variance of a number of draws from which its distribution is taken as normal."""
INSIDE = "inside"
"""Cause: a path delivered nothing, and packets were still in flight at the end."""
SETTING = {LATE: "delay", SLOW: "rate", LOSES: "loss", INSIDE: "delivery"}
"""The setting that is not good, by cause."""
Row = Mapping[str, Any]
Said = tuple[str, str]


def judged(
    paths: Sequence[Row], margin: Margin, network: Mapping[str, Any], outcome: Mapping[str, Any]
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
    outcome
        What the network told at its end: counters of `links`, `duration_s`, and what was `changed` in the run by link.

    Returns
    -------
    list of dict
        `what`: `delay`, `rate`, `loss` or `jitter`, of those that a link sets, and of those that are beyond the margin, and
        `delivery` where a path delivered nothing;
        `verdict`: `good`, `not good`, or `not shown` where the run does not tell; `said`: measured against set, in words.
    """
    rows = [row for row in paths if "part_of" not in row and row["packets"]]
    links = _links(network, outcome)
    causes = {cause for row in rows for cause, _ in beyond("", row, margin)}
    every: tuple[tuple[str, str, str | None, Callable[[], Said]], ...] = (
        ("delay", "delay_ns", LATE, lambda: _delay(rows, margin, LATE in causes)),
        ("rate", "rate_bps", SLOW, lambda: _rate(rows, margin, links, outcome, SLOW in causes)),
        ("loss", "loss", LOSES, lambda: _loss(rows, margin, links, LOSES in causes)),
        ("jitter", "jitter", None, lambda: _jitter(rows, margin, links)),
    )
    found = []
    for what, key, cause, judge in every:
        if rows and (cause in causes or any(link.get(key) for link in links)):
            verdict, said = judge()
            found.append({"what": what, "verdict": verdict, "said": said})
    if held := next((row for row in rows if held_back(row)), None):
        said = f"{held['path']} {held_back(held)}"
        found.append({"what": SETTING[INSIDE], "verdict": NOT_GOOD, "said": said})
    return found


def held_back(row: Row) -> str:
    """That a path delivered nothing because its packets were still in flight; empty if it is not so."""
    if row["delivered"] or not row["inside"]:
        return ""
    came = counted(row["packets"], "packet")
    return f"delivered none of {came}: {row['inside']} were still in flight at the end"


def _links(network: Mapping[str, Any], outcome: Mapping[str, Any]) -> list[Row]:
    """The links with what they counted, and with `CHANGED` in place of what was changed in the run."""
    changed, told = outcome.get("changed", {}), {link["name"]: link for link in outcome.get("links", ())}
    known = {link["name"]: link for link in network.get("links", ())}
    names = dict.fromkeys([*known, *changed])
    return [
        known.get(name, {"name": name}) | dict.fromkeys(changed.get(name, ()), CHANGED) | told.get(name, {})
        for name in names
    ]


def _ms(row: Row, key: str, percentile: str) -> float:
    found: float = row[key][percentile] / NS_PER_MS
    return found


def _measured(rows: Sequence[Row]) -> list[Row]:
    """Those with enough packets for percentiles."""
    return [row for row in rows if row["delivered"] >= LEAST]


_FEW: Said = (NOT_SHOWN, f"no path delivered {LEAST} packets")


def _delay(rows: Sequence[Row], margin: Margin, late: bool) -> Said:
    if not (measured := _measured(rows)):
        return _FEW
    worst = max(
        measured,
        key=lambda row: max(
            _ms(row, "error_ns", "p50") - margin.p50_ms, _ms(row, "error_ns", "p99") - margin.p99_ms
        ),
    )
    said = (
        f"{_ms(worst, 'error_ns', key):.3f} ms at {key} (margin {most:g} ms; {_set(worst, key)} ms)"
        for key, most in (("p50", margin.p50_ms), ("p99", margin.p99_ms))
    )
    return NOT_GOOD if late else GOOD, f"{worst['path']} error of each packet {', '.join(said)}"


def _set(row: Row, key: str) -> str:
    delivered, chosen = (_ms(row, name, key) for name in ("delivered_delay_ns", "set_delay_ns"))
    return f"delivered {delivered:.3f}, set {chosen:.3f}"


def _jitter(rows: Sequence[Row], margin: Margin, links: Sequence[Row]) -> Said:
    """By how much the emulation error varies: a constant one leaves jitter as it is. TCP ports have none."""
    if not (drawing := [row for row in rows if not row["door"].endswith("/tcp")]):
        return NOT_SHOWN, "no packet came to the jitter of a link"
    if not (measured := _measured(drawing)):
        return _FEW
    worst = max(measured, key=lambda row: _varies(row, "error_ns"))
    error, delivered, chosen = (
        _varies(worst, key) for key in ("error_ns", "delivered_delay_ns", "set_delay_ns")
    )
    said = f"{worst['path']} error of each packet varies by {error:.3f} ms"
    more = f"(p99 - p50; margin {margin.p99_ms:g} ms; delivered {delivered:.3f}, set {chosen:.3f} ms)"
    if any(link.get("jitter") == CHANGED for link in links):
        more += f"; jitter {CHANGED}"
    return NOT_GOOD if error > margin.p99_ms else GOOD, f"{said} {more}"


def _varies(row: Row, key: str) -> float:
    return _ms(row, key, "p99") - _ms(row, key, "p50")


def _loss(rows: Sequence[Row], margin: Margin, links: Sequence[Row], loses: bool) -> Said:
    """What paths lost against what the network dropped, and what its links drew against what they set."""
    known = [row for row in rows if row["delivered_loss"] is not None and row["set_loss"] is not None]
    worst = max(
        known, key=lambda row: (abs(row["delivered_loss"] - row["set_loss"]), row["lost"]), default=None
    )
    said = []
    if worst is not None:
        share, dropped = (numbers.percent(worst[key]) for key in ("delivered_loss", "set_loss"))
        limit = f"(margin {margin.loss:.1%})"
        said.append(f"{worst['path']} lost {share}, of these dropped by the network {dropped} {limit}")
    lossy = [link for link in links if link.get("loss") and _draws(link)]
    if not (loses or lossy):
        return NOT_SHOWN, "no packet came to the loss of a link"
    enough = any(_draws(link) >= DRAWS for link in lossy)
    return NOT_GOOD if loses else GOOD if enough else NOT_SHOWN, _few([*said, *map(_drawn, lossy)])


def _draws(link: Row) -> int:
    """Packets that met the loss of a link: full queues and outages take theirs before."""
    return int(link.get("packets", 0) + link.get("drops", {}).get("loss", 0))


def _drawn(link: Row) -> str:
    """The share that the loss of a link took, beside what it sets; with one probability the shares that so many draws have
    in 95 of 100 runs, or more.
    """
    draws = _draws(link)
    if draws < DRAWS:
        return f"{link['name']} {counted(draws, 'draw')}: too few to tell"
    taken = link["drops"].get("loss", 0)
    said = f"{link['name']} {numbers.percent(taken / draws)} of {numbers.grouped(draws, 0)} draws"
    if link["loss"] == CHANGED:
        return f"{said}, loss {CHANGED}"
    if (share := lost(link["loss"])) is None:
        return said
    said += f", set {numbers.percent(share)}"
    if "r" in link["loss"]:
        return f"{said} in the long run of its bursts"
    low, high = interval(draws, share)
    outside = "" if low <= taken <= high else "; outside that interval"
    return (
        f"{said} (95 % interval {numbers.percent(low / draws)} to {numbers.percent(high / draws)}{outside})"
    )


def interval(draws: int, share: float) -> tuple[int, int]:
    """Between which numbers of hits so many draws of a probability are, but for `TAIL` of the runs at most on each side.

    Examples
    --------
    >>> interval(100, 0.01), interval(100, 0.99), interval(10_000, 0.5)
    ((0, 3), (97, 100), (4902, 5098))
    """
    variance = draws * share * (1 - share)
    if variance >= NORMAL:
        half = 1.96 * math.sqrt(variance)
        return math.ceil(draws * share - half), math.floor(draws * share + half)
    if share > 0.5:
        low, high = interval(draws, 1 - share)
        return draws - high, draws - low
    mass = below = math.exp(draws * math.log1p(-share))
    least = 0
    for hits in count(1):
        if below < TAIL:
            least = hits
        if below >= 1 - TAIL:
            return least, hits - 1
        mass *= (draws - hits + 1) / hits * share / (1 - share)
        below += mass
    raise AssertionError


def _rate(
    rows: Sequence[Row], margin: Margin, links: Sequence[Row], outcome: Mapping[str, Any], slow: bool
) -> Said:
    if slow:
        known = [row for row in rows if row["set_rate_bps"] and row["delivered_rate_bps"] is not None]
        worst = max(known, key=lambda row: abs(row["delivered_rate_bps"] / row["set_rate_bps"] - 1))
        delivered, released = numbers.rate(worst["delivered_rate_bps"]), numbers.rate(worst["set_rate_bps"])
        said = f"{worst['path']} delivered {delivered}, released {released} (margin {margin.rate:.0%})"
        return NOT_GOOD, said
    found = list(_used(rows, links, outcome))
    if reached := [said for share, said in found if share >= SHOWN]:
        return GOOD, _few(reached)
    if not found:
        return NOT_SHOWN, "packets came out for less than 1 s"
    return NOT_SHOWN, f"not reached: {max(found)[1]}"


def _used(
    rows: Sequence[Row], links: Sequence[Row], outcome: Mapping[str, Any]
) -> Iterator[tuple[float, str]]:
    """For which share of the time in which packets came a link was busy, and it in words; of a TCP port, which has a line of
    its own, the share of the least rate that it used.
    """
    for here, end, toward in ((0, 1, "near -> far"), (1, 0, "far -> near")):
        along = [link for link in way(links, here, end) if link.get("rate_bps")]
        mine = [row for row in rows if row["way"] == toward and row["delivered_rate_bps"]]
        streams = [row for row in mine if row["door"].endswith("/tcp")]
        for row in streams if along else ():
            came = row.get("wire_rate_bps", row["set_rate_bps"])
            if any(link["rate_bps"] == CHANGED for link in along):
                yield 1.0, f"{row['path']} {numbers.rate(came)}, rate {CHANGED}"
            else:
                least = min(link["rate_bps"] for link in along)
                yield came / least, f"{row['path']} {numbers.rate(came)} of {numbers.rate(least)}"
        spans = [8 * row["delivered_bytes"] / row["delivered_rate_bps"] for row in mine if row not in streams]
        span_s = min(sum(spans), outcome["duration_s"])
        for link in along if span_s else ():
            share = min(link.get("busy_s", 0.0) / span_s, 1.0)
            rate = CHANGED if link["rate_bps"] == CHANGED else numbers.rate(link["rate_bps"])
            yield share, f"{link['name']} (rate {rate}) busy {numbers.percent(share)} of the time"


def _few(said: Iterable[str]) -> str:
    """The first of several sentences, and how many others there are."""
    every = list(said)
    others = len(every) - MOST_NAMED - 1
    return "; ".join(every[: MOST_NAMED + 1] + [f"and {counted(others, 'other link')}"] * (others > 0))
