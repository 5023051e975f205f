"""Delay, rate, loss and jitter of an emulated network, each judged by itself: whether it was delivered as it was set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tcpsbed.analysis.delivered import LATE, LEAST, LOSES, SLOW, Margin, beyond
from tcpsbed.analysis.metrics.network import CHANGED
from tcpsbed.analysis.units import NS_PER_MS
from tcpsbed.errors import counted
from tcpsbed.proxy.profile import lost, way
from tcpsbed.views import numbers
from tcpsbed.views.programs import GOOD, NOT_GOOD, NOT_SHOWN

SHOWN = 0.9
"""Share of its rate that a link has to be used for if a run is to show it."""
HOPS = "hops"
"""The routing whose ways `profile.way` has, where no link has a `dscp`."""
MOST = 1.02
"""Share of its rate beyond which the count of what came out cannot be that of the link."""
DRAWS = 20
"""Draws below which a run says nothing about a loss."""
MOST_NAMED = 4
"""Links that are told."""
TAIL = 0.025
"""Probability of more draws than an interval has, and of less."""
NEVER = 1e-9
"""Probability of what chance does not explain, of both tails together."""
FAR = 12.0
"""Standard deviations from the mean beyond which hits are as good as never."""
INSIDE = "inside"
"""Cause: a path delivered nothing, and packets were still in flight at the end."""
DRAWN = "drawn"
"""Cause: the loss of a link took a share that chance does not explain."""
SETTING = {LATE: "delay", SLOW: "rate", LOSES: "loss", DRAWN: "loss", INSIDE: "delivery"}
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
        ("rate", "rate_bps", SLOW, lambda: _rate(rows, margin, links, network, SLOW in causes)),
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


def unexplained(network: Mapping[str, Any], outcome: Mapping[str, Any]) -> Iterator[Said]:
    """Links whose loss took a share that chance does not explain, each with its sentence."""
    for link in filter(_is_far, _links(network, outcome)):
        said = f"{_taken(link)}, set {numbers.percent(lost(link['loss']))}"
        yield (
            link["name"],
            f"{link['name']}: its loss took {said}: chance does that in less than 1 of 10^9 runs",
        )


def _links(network: Mapping[str, Any], outcome: Mapping[str, Any]) -> list[Row]:
    """The links with what they counted, whether they were `changed` in the run, and `CHANGED` in place of what was."""
    changed, told = outcome.get("changed", {}), {link["name"]: link for link in outcome.get("links", ())}
    known = {link["name"]: link for link in network.get("links", ())}
    names = dict.fromkeys([*known, *changed])
    return [
        {"name": name, "changed": name in changed}
        | known.get(name, {})
        | dict.fromkeys(changed.get(name, ()), CHANGED)
        | told.get(name, {})
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
    largest = max((_ms(row, "error_ns", "max") for row in rows if row["delivered"]), default=0.0)
    more = f"; of all packets {largest:.3f} ms at most"
    return NOT_GOOD if late else GOOD, f"{worst['path']} error of each packet {', '.join(said)}{more}"


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
    lossy.sort(key=_is_far, reverse=True)
    if not (loses or lossy):
        return NOT_SHOWN, "no packet came to the loss of a link"
    setting = [link for link in lossy if link["loss"] == CHANGED or lost(link["loss"]) != 0] or lossy
    found = GOOD if any(map(_shows, setting)) else NOT_SHOWN
    is_bad = loses or any(map(_is_far, lossy))
    return NOT_GOOD if is_bad else found, _few([*map(_drawn, lossy)], "; ".join(said))


def _shows(link: Row) -> bool:
    """Whether a link drew so often that its loss takes something in 97.5 of 100 runs or more: with less a run does not tell
    it from none. Of bursts one has to begin.
    """
    draws, loss = _draws(link), link["loss"]
    if loss == CHANGED or draws < DRAWS:
        return False
    share = lost(loss)
    return not share or interval(draws, share * loss.get("r", 1.0))[0] > 0


def _is_far(link: Row) -> bool:
    """Whether a single probability took a number that chance does not explain. On a radio link blocks that are given up
    count as its loss, too; a link that was changed may have drawn the same numbers again.
    """
    draws, loss = _draws(link), link.get("loss")
    if not loss or draws < DRAWS or link["changed"] or "radio" in link or loss["kind"] != "random":
        return False
    low, high = interval(draws, loss["p"], NEVER / 2)
    return not low <= link["drops"].get("loss", 0) <= high


def _draws(link: Row) -> int:
    """Packets that met the loss of a link: full queues and outages take theirs before."""
    return int(link.get("packets", 0) + link.get("drops", {}).get("loss", 0))


def _taken(link: Row) -> str:
    draws = _draws(link)
    share = link["drops"].get("loss", 0) / draws
    return f"{numbers.percent(share)} of {numbers.grouped(draws, 0)} draws"


def _drawn(link: Row) -> str:
    """The share that the loss of a link took, beside what it sets, and for one probability its `interval`."""
    draws = _draws(link)
    if draws < DRAWS:
        return f"{link['name']} {counted(draws, 'draw')}: too few to tell"
    said = f"{link['name']} {_taken(link)}"
    if link["loss"] == CHANGED:
        return f"{said}, loss {CHANGED}"
    if (share := lost(link["loss"])) is None:
        return said
    said += f", set {numbers.percent(share)}"
    if "r" in link["loss"]:
        return f"{said} in the long run of its bursts"
    if "radio" in link:
        return f"{said} beside blocks that are given up"
    low, high = interval(draws, share)
    far = "far outside" if _is_far(link) else "outside"
    outside = "" if low <= link["drops"].get("loss", 0) <= high else f"; {far} that interval"
    return (
        f"{said} (95 % interval {numbers.percent(low / draws)} to {numbers.percent(high / draws)}{outside})"
    )


def interval(draws: int, share: float, tail: float = TAIL) -> tuple[int, int]:
    """Between which numbers of hits so many draws of a probability are: fewer, and more, have a probability of `tail` or
    less each (binomial law).

    Examples
    --------
    >>> interval(100, 0.01), interval(100, 0.99), interval(10_000, 0.5)
    ((0, 3), (97, 100), (4902, 5098))
    """
    if not 0 < share < 1:
        return (0, 0) if share <= 0 else (draws, draws)
    far = FAR * math.sqrt(draws * share * (1 - share)) + FAR
    hits, last = max(0, math.floor(draws * share - far)), min(draws, math.ceil(draws * share + far))
    ways = math.lgamma(draws + 1) - math.lgamma(hits + 1) - math.lgamma(draws - hits + 1)
    mass = math.exp(ways + hits * math.log(share) + (draws - hits) * math.log1p(-share))
    below, least = mass, hits
    while below < 1 - tail and hits < last:
        least = hits + 1 if below < tail else least
        mass *= (draws - hits) / (hits + 1) * share / (1 - share)
        hits, below = hits + 1, below + mass
    return least, hits


def _rate(
    rows: Sequence[Row], margin: Margin, links: Sequence[Row], network: Mapping[str, Any], slow: bool
) -> Said:
    if slow:
        known = [row for row in rows if row["set_rate_bps"] and row["delivered_rate_bps"] is not None]
        worst = max(known, key=lambda row: abs(row["delivered_rate_bps"] / row["set_rate_bps"] - 1))
        delivered, released = numbers.rate(worst["delivered_rate_bps"]), numbers.rate(worst["set_rate_bps"])
        said = f"{worst['path']} delivered {delivered}, released {released} (margin {margin.rate:.0%})"
        return NOT_GOOD, said
    if network.get("routing", HOPS) != HOPS or any(link.get("dscp") is not None for link in links):
        return NOT_SHOWN, "the links of a packet are chosen by its routing or by dscp"
    found = list(_used(rows, links))
    if reached := [said for share, said in found if SHOWN <= share <= MOST]:
        return GOOD, _few(reached)
    return NOT_SHOWN, max(found)[1] if found else "packets came out for less than 1 s"


def _used(rows: Sequence[Row], links: Sequence[Row]) -> Iterator[tuple[float, str]]:
    """The share of its rate that each link was used for while packets came out, and it in words; of a TCP port, which has a
    line of its own, that of the least rate.
    """
    for here, end, toward in ((0, 1, "near -> far"), (1, 0, "far -> near")):
        along = way(links, here, end)
        mine = [row for row in rows if row["way"] == toward and row["set_rate_bps"]]
        rates = [link["rate_bps"] for link in along if link.get("rate_bps")]
        for row in mine if rates else ():
            if row["door"].endswith("/tcp"):
                least = CHANGED if CHANGED in rates else min(rates)
                yield _share(row["path"], _wire_bps(row), least)
        plain = [row for row in mine if not row["door"].endswith("/tcp")]
        bits = sum(_wire_bps(row) * _length_s(row["released_ns"]) for row in plain)
        span_s = sum(map(_length_s, _joined(row["released_ns"] for row in plain)))
        # Copies are made behind a link; what a loss takes has used it, and those before it.
        for link in reversed(along):
            bits /= 1 + link.get("duplicated", 0) / max(link.get("packets", 0), 1)
            bits /= 1 - min(link.get("drops", {}).get("loss", 0) / max(_draws(link), 1), 0.999)
            if span_s and link.get("rate_bps"):
                yield _share(link["name"], bits / span_s, link["rate_bps"])


def _share(name: str, used_bps: float, rate: Any) -> tuple[float, str]:
    if rate == CHANGED:
        return 0.0, f"{name} {numbers.rate(used_bps)}, rate {CHANGED}"
    share = used_bps / rate
    head = "used less on average: " if share < SHOWN else "above its rate: " if share > MOST else ""
    return share, f"{head}{name} {numbers.rate(used_bps)} of {numbers.rate(rate)}"


def _wire_bps(row: Row) -> float:
    return float(row.get("wire_rate_bps") or row["set_rate_bps"])


def _length_s(span_ns: Sequence[float]) -> float:
    return (span_ns[1] - span_ns[0]) / 1e9


def _joined(spans: Iterable[Sequence[float]]) -> list[tuple[float, float]]:
    """Spans in order, those that overlap as one."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted((begin, end) for begin, end in spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def _few(links: Sequence[str], head: str = "") -> str:
    """A sentence, those of the first links, and how many others there are."""
    others = len(links) - MOST_NAMED
    more = [f"and {counted(others, 'other link')}"] * (others > 0)
    return "; ".join([*([head] if head else []), *links[:MOST_NAMED], *more])
