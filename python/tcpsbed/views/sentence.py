"""The one sentence about a run that opens its page: the largest part of the longest delay, and what was lost where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.views import paths
from tcpsbed.views.numbers import finite, grouped, ms, statistic

Said = list[tuple[str, str]]
"""Pieces of a sentence, each with its emphasis: `much`, `bad` or none."""
LEAST_LOSS = 0.0005
"""A smaller share is told as nothing."""
MOST_NAMED = 4
"""Flows whose losses are told one by one."""


def sentence(summary: Mapping[str, Any]) -> Said:
    """What matters most in a run."""
    delays = {name: flow.get("delay_ms") for name, flow in (summary.get("flows") or {}).items()}
    known = {name: found for name, found in delays.items() if statistic(found) is not None}
    if not known:
        return [("bad", "Nothing arrived"), ("", " in this run.")]
    worst = max(known, key=lambda name: statistic(known[name], "p99") or statistic(known[name]) or 0.0)
    return [*_delay(worst, known[worst], summary), ("", "; "), *_loss(summary), ("", ".")]


def _delay(flow: str, delay: Mapping[str, Any], summary: Mapping[str, Any]) -> Said:
    one = (summary.get("largest") or {}).get(flow)
    if not one:
        return [("much", f"{flow} takes {ms(statistic(delay) or 0.0)} ms")]
    return [("much", f"{paths.shared(one)} of the delay of {flow}"), ("", f" is {paths.where(one)}")]


def _loss(summary: Mapping[str, Any]) -> Said:
    losses = {name: finite(flow.get("loss")) or 0.0 for name, flow in summary["flows"].items()}
    lost = {name: share for name, share in losses.items() if share >= LEAST_LOSS}
    if not lost:
        return [("", "nothing is lost")]
    worst = max(lost, key=lambda name: lost[name])
    shares = [
        f"{grouped(100 * share, 1 if share >= 0.001 else 2)} % of {name}" for name, share in lost.items()
    ]
    if len(shares) > MOST_NAMED:
        shares = [shares[list(lost).index(worst)], f"less of {len(lost) - 1} other flows"]
    told = " and ".join(filter(None, (", ".join(shares[:-1]), shares[-1])))
    drops = summary["flows"][worst].get("drops") or {}
    most = max(drops, key=lambda name: drops[name], default="")
    at = f", most at {most.partition(' ')[0].rsplit('.', 1)[0]}" if most else ""
    return [("bad", f"{told} {'is' if len(shares) == 1 else 'are'} lost"), ("", at)]
