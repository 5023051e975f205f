"""The one sentence about a run that opens its page: the largest part of the longest delay, and what was lost by whom.

Where the machine itself was too slow, it begins with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import counted
from tcpsbed.views import paths
from tcpsbed.views.numbers import finite, grouped, ms, statistic

Said = list[tuple[str, str]]
"""Pieces of a sentence, each with its emphasis: `much`, `bad` or none."""
LEAST_LOSS = 0.0005
"""A smaller share is told as nothing."""
MOST_NAMED = 4
"""Flows whose losses are told one by one."""
MOSTLY = 0.5
"""Share of what nothing else explains from which receive buffers are named for it."""
IN_NETWORK = {
    "full": "full queue",
    "managed": "queue management",
    "loss": "loss",
    "outage": "outage",
    "no route": "no route",
    "corrupt": "damage",
}
"""Reasons for a drop by a link, in words."""
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
    return [*_attacked(summary), *_measured(summary)]


def _attacked(summary: Mapping[str, Any]) -> Said:
    """What an attacker got through, before anything else."""
    found = list(summary.get("attacked") or ())
    if not found:
        return []
    more = f", and {counted(len(found) - 1, 'line')} more below" if len(found) > 1 else ""
    return [("bad", f"ATTACKED: {found[0]}"), ("", f"{more}. ")]


def _measured(summary: Mapping[str, Any]) -> Said:
    """Delay and loss."""
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
    said = [("much", f"{paths.shared(one)} of the delay of {flow}"), ("", f" is {paths.where(one)}")]
    rest_ms = paths.unsplit_ms((summary.get("split") or {}).get(flow), beside=one)
    others = (more for more in one.get("next") or () if not (rest_ms and more["cause"] == "unsplit"))
    said += [("", f", {paths.shared(more)} is {paths.where(more)}") for more in others]
    if rest_ms:
        share = grouped(100 * rest_ms / one["total_ms"], 0)
        said.append(("", f" ({share} % is not split: another part may be larger)"))
    return said


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
    flows = _together(flow, summary)
    found = _dropped(flows, summary)[0]
    return f": {f'of {_all(flows)} ' * (len(_lost(summary)) > 1)}{found}" if found else ""


def causes(summary: Mapping[str, Any]) -> list[str]:
    """By whom the packets of flows that lost any to speak of were dropped: a line a flow, the largest shares first."""
    lost = _lost(summary)
    worst = dict.fromkeys(_together(flow, summary) for flow in sorted(lost, key=lambda name: -lost[name]))
    known = ((flows, found) for flows in worst if (found := _dropped(flows, summary)[0]))
    told = list(islice(known, MOST_NAMED))
    said = [f"dropped of {_all(flows)}: {found}" for flows, found in told]
    left = len(lost.keys() - {flow for flows, _ in told for flow in flows})
    more = "" if len(said) == MOST_NAMED else ", no cause known"
    return said + [f"and {counted(left, 'other flow')} lost samples{more}"] * (left > 0 and bool(said))


def _together(flow: str, summary: Mapping[str, Any]) -> tuple[str, ...]:
    """A flow, with those from whose packets a link cannot tell its own."""
    found = next((one for one in summary.get("drops_together") or () if flow in one), [flow])
    return tuple(name for name in found if name in summary["flows"])


def _all(flows: Sequence[str]) -> str:
    return flows[0] if len(flows) == 1 else f"{', '.join(flows[:-1])} and {flows[-1]} together"


def _late(summary: Mapping[str, Any]) -> Said:
    """Says that the machine was too slow, where that lost most of what was lost."""
    lost = _lost(summary)
    if not lost:
        return []
    slow = _dropped(_together(max(lost, key=lambda name: lost[name]), summary), summary)[1]
    return [("bad", "This machine was too slow"), ("", ": ")] if slow else []


def _dropped(flows: Sequence[str], summary: Mapping[str, Any]) -> tuple[str, bool]:
    of, stages = [summary["flows"][flow] for flow in flows], summary.get("stages") or ()
    drops = sum((Counter(one.get("drops") or {}) for one in of), Counter[str]())
    full = {node["name"]: node.get("socket_drops") or 0 for node in summary.get("nodes") or ()}
    most = max(full, key=lambda name: full[name], default="")
    lost, told = sum(one.get("lost") or 0 for one in of), drops.total()
    # Drops count packets, of which a sample has several: if they are more than the lost samples, they explain no number.
    unknown = lost - told if told <= lost else lost
    unread = (most, full[most], min(full[most], unknown)) if full else None
    return dropped(
        drops,
        lambda place: [one["kind"] for one in stages if one["component"] == place and one["flow"] in flows],
        machine=summary.get("world") not in SIMULATED,
        unread=unread if unknown > 0 and full and full[most] >= max(MOSTLY * unknown, 1) else None,
    )


def dropped(
    drops: Mapping[str, int],
    kinds: Callable[[str], list[str]],
    *,
    machine: bool,
    unread: tuple[str, int, int] | None = None,
) -> tuple[str, bool]:
    """By whom and why packets of a flow were dropped: by links, as set; by the machine, whose clock it is; by others. With
    counts, the most first: `40 packets by link l1, as set (full queue), and 7 by the machine: …`. And whether most were
    dropped by the machine.

    Parameters
    ----------
    drops
        Dropped packets by place and reason (`"l1.forward full"`).
    kinds
        The stages that the flow has at a component.
    machine
        Whether the clock is the machine's, so that a camera or another stage that cannot keep up is its doing.
    unread
        The node whose kernel dropped datagrams before they were read, how many of all flows, and how many of this flow that
        may be at most, if nothing else explains the loss.
    """
    links, slow, others = Counter[str](), Counter[str](), Counter[str]()
    why: dict[str, None] = {}
    for drop, count in sorted(drops.items(), key=lambda one: -one[1]):
        place, _, reason = drop.partition(" ")
        if reason in IN_NETWORK:
            links[place.rsplit(".", 1)[0]] += count
            why[IN_NETWORK[reason]] = None
        elif machine and reason == "overload" and kinds(place):
            slow[_did(place, reason, kinds)] += count
        else:
            others[_did(place, reason, kinds)] += count
    node, of_all, most = unread or ("", 0, 0)
    found = [
        (n, f"{counted(n, 'packet')} {text}")
        for n, text in (
            (links.total(), f"by link{'s' * (len(links) > 1)} {_first(links)}, as set ({', '.join(why)})"),
            (slow.total(), f"by the machine: {_first(slow)}"),
            (others.total(), f"at {_first(others)}"),
        )
        if n
    ]
    if unread:
        few = f"dropped up to {counted(of_all, 'datagram')} of all flows"
        found.append((most, f"the kernel at {node} {few} (receive buffer full, or bad checksum)"))
    machines = slow.total() + most
    each = [text for _, text in sorted(found, key=lambda one: -one[0])]
    return "; ".join(each), machines > links.total() and machines >= max(others.total(), 1)


def _first(counts: Counter[str]) -> str:
    """The first two by their counts, and how many more."""
    names, left = [name for name, _ in counts.most_common(2)], len(counts) - 2
    return " and ".join(names) if left < 1 else f"{', '.join(names)} and {counted(left, 'other')}"


def _did(place: str, reason: str, kinds: Callable[[str], list[str]]) -> str:
    """What a component did that dropped packets; the reason alone of a channel."""
    if reason not in IN_COMPONENTS:
        return f"{place} ({reason})"
    stages = kinds(place)
    media = " and ".join(STAGES[kind] for kind in stages if kind in STAGES)
    late = reason == "overload" and bool(stages)
    at = f"the {media} of {place}" if media and late else place
    return (
        f"{at}, which {IN_COMPONENTS[reason] if late or reason != 'overload' else 'had no room in its queue'}"
    )
