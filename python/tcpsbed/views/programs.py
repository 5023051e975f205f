"""The verdict over an emulated network between a user's own programs, in sentences for terminal and page (`programs` of a
summary).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.analysis import stalls
from tcpsbed.errors import counted
from tcpsbed.views import numbers

GOOD, NOT_GOOD, NOTHING = "good", "not good", "no packet arrived"
"""Verdicts."""
NOT_SHOWN = "not shown"
"""Verdict on a setting of which a run says nothing."""
PROVES_NOTHING = "no packet arrived, so this run proves nothing"
OTHERWISE = "for reasons other than the settings"
UNCOVERED = "time that packets wait in your programs is not covered"
_SAID = {
    GOOD: f"good: the network delivered as set; {UNCOVERED}",
    NOTHING: PROVES_NOTHING,
}


def judged(programs: Mapping[str, Any]) -> list[str]:
    """The verdict in a line; none where nothing arrived, which stands among the disturbances of the run."""
    return [] if programs["verdict"] == NOTHING else [verdict(programs)]


def verdict(programs: Mapping[str, Any]) -> str:
    """The verdict, and which settings are not good; other reasons are among the disturbances of the run."""
    found = programs["verdict"]
    bad, good, unknown = (
        ", ".join(one["what"] for one in programs.get("settings", ()) if one["verdict"] == which)
        for which in (NOT_GOOD, GOOD, NOT_SHOWN)
    )
    if found == GOOD and unknown:
        return f"good: {good or 'nothing failed'}; not shown: {unknown}; {UNCOVERED}"
    if found in _SAID:
        return _SAID[found]
    rest = f"; good: {good}" * bool(good) + f"; not shown: {unknown}" * bool(unknown)
    return f"{found.upper()}: {bad or OTHERWISE}{rest}"


def settings(programs: Mapping[str, Any]) -> list[str]:
    """Delay, rate, loss and jitter, measured against set: a line each of those that were set."""
    return [f"{one['what']} {one['verdict']}: {one['said']}" for one in programs.get("settings", ())]


def remedies(programs: Mapping[str, Any]) -> list[str]:
    """What to do about it: a line a cause."""
    return [f"→ {remedy}" for remedy in programs.get("remedies", ())]


def measured(programs: Mapping[str, Any], stalled: Mapping[str, Any] | None = None) -> list[str]:
    """What TCP sent again, how late this machine woke a program, and what stalls touched (`stalls` of a summary): a
    sentence each, of what is known.
    """
    lines = (_again(programs.get("tcp") or ()), _late(programs.get("late_ms")), _touched(stalled))
    return [line for line in lines if line]


def _touched(stalled: Mapping[str, Any] | None) -> str:
    return f"{stalls.sentence(stalled)}: that is part of the emulation error" if stalled else ""


def _again(tcp: Any) -> str:
    """What TCP sent again in the namespaces of `netns`; the ports of a proxy have no connections from end to end."""
    sides = [
        f"{one['side']} {numbers.count(one['retransmitted'])} of {counted(one['sent'] + one['retransmitted'], 'segment')}"
        for one in tcp
        if one["sent"]
    ]
    return f"TCP retransmitted: {', '.join(sides)}" if sides else ""


def _late(late_ms: Mapping[str, float] | None) -> str:
    """How late programs beside the network were woken: what they measure has this, too."""
    if not late_ms:
        return ""
    p50, p99, most = (f"{late_ms[key]:.3g} ms" for key in ("p50", "p99", "max"))
    said = f"woke {p50} late at p50, {p99} at p99, {most} at most"
    return f"this machine: a program that sleeps 2 ms at a time {said}; your programs wait like that, too"
