"""The one sentence about a run that opens its page: the largest part of the longest delay, and what was lost where.

Where the machine itself was too slow, it begins with that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tcpsbed.clocks import SIMULATED
from tcpsbed.views import paths
from tcpsbed.views.numbers import finite, grouped, ms, statistic

Said = list[tuple[str, str]]
"""Pieces of a sentence, each with its emphasis: `much`, `bad` or none."""
LEAST_LOSS = 0.0005
"""A smaller share is told as nothing."""
MOST_NAMED = 4
"""Flows whose losses are told one by one."""
MOSTLY = 0.5
"""Share of what a flow lost from which receive buffers are named for it."""
IN_NETWORK = ("full", "managed", "loss", "outage", "no route", "corrupt")
"""Reasons for a drop by a link."""
IN_COMPONENTS = {
    "overload": "could not keep up",
    "hook": "failed on them",
    "dead": "was dead",
    "malformed": "found damaged bytes",
    "line": "has a serial line that lost them",
}
"""What a component did whose reason for a drop this is."""
STAGES = {"capture": "camera", "code": "encoder", "decode": "decoder", "show": "display"}
"""Stages of media, as readers know them."""


def sentence(summary: Mapping[str, Any]) -> Said:
    """What matters most in a run."""
    delays = {name: flow.get("delay_ms") for name, flow in (summary.get("flows") or {}).items()}
    known = {name: found for name, found in delays.items() if statistic(found) is not None}
    if not known:
        return [("bad", "Nothing arrived"), ("", " in this run.")]
    worst = max(known, key=lambda name: statistic(known[name], "p99") or statistic(known[name]) or 0.0)
    said, lost = _delay(worst, known[worst], summary), _loss(summary)
    late = _late(summary)
    first, second = (lost, said) if late else (said, lost)
    return [*late, *first, ("", "; "), *second, ("", ".")]


def _delay(flow: str, delay: Mapping[str, Any], summary: Mapping[str, Any]) -> Said:
    one = (summary.get("largest") or {}).get(flow)
    if not one:
        return [("much", f"{flow} takes {ms(statistic(delay) or 0.0)} ms")]
    return [("much", f"{paths.shared(one)} of the delay of {flow}"), ("", f" is {paths.where(one)}")]


def _lost(summary: Mapping[str, Any]) -> dict[str, float]:
    """Share that each flow lost, of those that lost any to speak of."""
    losses = {name: finite(flow.get("loss")) or 0.0 for name, flow in summary["flows"].items()}
    return {name: share for name, share in losses.items() if share >= LEAST_LOSS}


def _loss(summary: Mapping[str, Any]) -> Said:
    lost = _lost(summary)
    if not lost:
        few = [name for name, flow in summary["flows"].items() if finite(flow.get("loss"))]
        named = ", ".join(few) if len(few) <= MOST_NAMED else f"each of {len(few)} flows"
        return [("", f"less than {100 * LEAST_LOSS:g} % of {named} is lost" if few else "nothing is lost")]
    worst = max(lost, key=lambda name: lost[name])
    shares = [
        f"{grouped(100 * share, 1 if share >= 0.001 else 2)} % of {name}" for name, share in lost.items()
    ]
    if len(shares) > MOST_NAMED:
        shares = [shares[list(lost).index(worst)], f"less of {len(lost) - 1} other flows"]
    told = " and ".join(filter(None, (", ".join(shares[:-1]), shares[-1])))
    return [("bad", f"{told} {'is' if len(shares) == 1 else 'are'} lost"), ("", _where(worst, summary))]


def _where(flow: str, summary: Mapping[str, Any]) -> str:
    return dropped(*_drops(flow, summary))[0]


def _late(summary: Mapping[str, Any]) -> Said:
    """Says that the machine was too slow, where that lost most of what was lost."""
    lost = _lost(summary)
    if not lost or summary.get("world") in SIMULATED:
        return []
    worst = max(lost, key=lambda name: lost[name])
    slow = dropped(*_drops(worst, summary))[1]
    return [("bad", "This machine was too slow"), ("", ": ")] if slow else []


def _drops(
    flow: str, summary: Mapping[str, Any]
) -> tuple[Mapping[str, int], Callable[[str], list[str]], str]:
    """As `dropped` takes them."""
    stages = summary.get("stages") or ()
    of, full = (
        summary["flows"][flow],
        {n["name"]: n.get("socket_drops") or 0 for n in summary.get("nodes") or ()},
    )
    most = max(full, key=lambda name: full[name], default="")
    return (
        of.get("drops") or {},
        lambda place: [one["kind"] for one in stages if (one["component"], one["flow"]) == (place, flow)],
        most if full and full[most] >= max(MOSTLY * (of.get("lost") or 0), 1) else "",
    )


def dropped(
    drops: Mapping[str, int], kinds: Callable[[str], list[str]], unread: str = ""
) -> tuple[str, bool]:
    """Where most of what a flow lost was dropped, and why unless a link did it, as the end of a sentence; and whether
    that was a machine that is too slow, if the clock is its own.

    Parameters
    ----------
    drops
        Dropped packets by place and reason (`"l1.forward full"`).
    kinds
        The stages that the flow has at a component.
    unread
        The node whose kernel dropped at least half as many datagrams before they were read as the flow lost.
    """
    place, reason = _parted(max(drops, key=lambda name: drops[name], default=""))
    if not reason:
        return (f", most in receive buffers of the kernel at {unread}", True) if unread else ("", False)
    if reason in IN_NETWORK:
        return f", most at {place.rsplit('.', 1)[0]}", False
    if reason not in IN_COMPONENTS:
        return f", most at {place} ({reason})", False
    stages = kinds(place)
    media = " and ".join(STAGES[kind] for kind in stages if kind in STAGES)
    late = reason == "overload" and bool(stages)
    at = f"the {media} of {place}" if media and late else place
    did = IN_COMPONENTS[reason] if late or reason != "overload" else "had no room in its queue"
    return f", most at {at}, which {did}", late


def _parted(drop: str) -> tuple[str, str]:
    place, _, reason = drop.partition(" ")
    return place, reason
