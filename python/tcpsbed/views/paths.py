"""A flow's path through components and links from summary.json, without places that take no time; and, as a sentence, the
largest single part of its delay with the key that changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.views.numbers import count, finite, grouped, ms, place, statistic

Part = Mapping[str, Any]

LOSS = (
    "Loss: share of the samples sent until measure.grace (1 s unless set) before the end; later ones that have not arrived "
    "are in flight, not lost."
)
"""Why `loss` is not `lost` over `sent`."""
WHERE = {
    "queueing": "waiting in the queue of link",
    "serialisation": "serialisation on link",
    "propagation": "propagation over link",
    "radio": "retransmissions of radio link",
    "waiting": "waiting at component",
    "working": "processing at component",
    "merging": "waiting to be sent in channel",
    "retransmission": "waiting for a retransmission in channel",
    "held": "held by the receiver of channel",
    "playout": "waiting for its playout time in flow",
}
"""What a sentence says before a place, by cause."""


def total_ms(path: Sequence[Part]) -> float:
    """Mean delay end to end."""
    return sum(mean_ms(part) for part in path)


def mean_ms(part: Part) -> float:
    """Mean time spent in one place."""
    return statistic(part["latency_ms"]) or 0.0


def busy(path: Sequence[Part]) -> list[Part]:
    """The places that ever took time; all of them if none did."""
    return [part for part in path if not _idle(part)] or list(path)


def idle(path: Sequence[Part]) -> str:
    """A sentence about the components that took no time; empty if there are none."""
    names = [str(part["name"]) for part in path if _idle(part) and part["what"] == "component"]
    return f"Took no time: {', '.join(names)}." if names and len(busy(path)) < len(path) else ""


def largest(summary: Mapping[str, Any]) -> dict[str, str]:
    """By flow where most of its delay is, with the key to change; nothing of a summary that does not know."""
    known = summary.get("largest")
    if known is None:
        return {}
    split = summary.get("split") or {}
    said = {
        flow: _largest(flow, known.get(flow), of, split.get(flow)) for flow, of in summary["flows"].items()
    }
    return {flow: text for flow, text in said.items() if text}


UNSPLIT = 0.05
"""Share of the delay from which it is said that it could not be split."""


def _largest(
    flow: str, one: Mapping[str, Any] | None, of: Mapping[str, Any], split: Mapping[str, Any] | None
) -> str:
    median = statistic(of.get("delay_ms"), "p50")
    said = "" if median is None else f"delay {ms(median)} ms at the median"
    if one is None:
        if not of.get("delivered"):
            return f"{flow}: nothing arrived, so there is no delay to divide."
        if statistic(of.get("delay_ms"), "max") == 0:
            return f"{flow}: takes no time."
        return f"{flow}: {said}." if said else ""
    time = f"{ms(one['mean_ms'])} ms ({shared(one)}) of the mean time from source to sink is {_with_key(one)}"
    others = [
        f"{ms(more['mean_ms'])} ms ({shared(more)}) is {_with_key(more)}" for more in one.get("next") or ()
    ]
    rest = next(
        (part["mean_ms"] for part in (split or {}).get("parts") or () if part["part"] == "unsplit"), 0.0
    )
    known = {part["cause"] for part in (one, *(one.get("next") or ()))}
    if "unsplit" not in known and (rest or 0.0) > UNSPLIT * one["total_ms"]:
        others.append(f"{ms(rest)} ms are not split")
    return f"{flow}: {'; '.join(filter(None, [said, time, *others]))}."


def unsplit_ms(split: Mapping[str, Any] | None, beside: Mapping[str, Any]) -> float:
    """What of a delay is not split, if with that another part might exceed the largest (`beside`), also one of the same
    cause at another place; otherwise 0.
    """
    means = {part["part"]: finite(part["mean_ms"]) or 0.0 for part in (split or {}).get("parts") or ()}
    rest_ms, cause, most = means.pop("unsplit", 0.0), beside["cause"], beside["mean_ms"]
    if cause in means:
        means[cause] -= most
    return 0.0 if cause == "unsplit" or max(means.values(), default=0.0) + rest_ms <= most else rest_ms


def _with_key(one: Mapping[str, Any]) -> str:
    value = f" = {one['value']}" if one["value"] else ""
    return where(one) + (f" ({one['key']}{value})" if one["key"] else "")


def shared(one: Mapping[str, Any]) -> str:
    """The share of the largest part, in percent."""
    return f"{grouped(100 * min(finite(one['share']) or 0.0, 1.0), 0)} %"


def where(one: Mapping[str, Any]) -> str:
    """Cause and place of the largest part, in words."""
    cause, at = one["cause"], place(one["place"])
    if cause in WHERE and at:
        return f"{WHERE[cause]} {at}"
    if cause == "unsplit":
        return "not split"
    return " at ".join(filter(None, [cause, at]))


def renumbered(name: str, flow: Mapping[str, Any]) -> str:
    """A sentence about a flow whose samples are renumbered on the path; otherwise empty."""
    places = ", ".join(map(str, flow.get("resampled_at") or ()))
    if not places:
        return ""
    return (
        f"{name}: {places} sends samples at its own period. Delivered samples and delays count only those that were made "
        f"from new input; {count(flow.get('repeated') or 0)} more repeated old input. Lost is the sum of the losses before "
        "and behind it."
    )


def _idle(part: Part) -> bool:
    return mean_ms(part) == 0 and (statistic(part["latency_ms"], "max") or 0.0) == 0
