"""Numbers of a run that is over, for its page: those of its summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpsbed.studio.collector import Collector

_DELAY = ("mean", "p50", "p99", "max")


def whole(summary: Mapping[str, Any], seen: Collector) -> dict[str, Any]:
    """The message of `Collector.lately`, about the whole run.

    Parameters
    ----------
    summary
        The content of its summary.json.
    seen
        What has read its rows.
    """
    return {
        "k": "now",
        "whole": True,
        "t_s": summary.get("ran_s", summary["duration_s"]),
        "flows": [_flow(name, flow, summary) for name, flow in summary["flows"].items()],
        "rows": seen.rows,
        "left_out": seen.left_out,
        "events": seen.events,
        "gaps": seen.gaps,
        **seen.health(),
    }


def _flow(name: str, flow: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    delay = flow.get("delay_ms") or {}
    path = (summary.get("path") or {}).get(name) or []
    split = (summary.get("split") or {}).get(name) or {}
    return {
        "name": name,
        "n": flow.get("delivered", 0),
        **{f"{key}_ms": delay[key] for key in _DELAY if delay.get(key) is not None},
        "loss": flow.get("loss"),
        "parts": [
            {"what": part["what"], "name": part["name"], "ms": part["latency_ms"]["mean"]}
            for part in path
            if (part.get("latency_ms") or {}).get("mean") is not None
        ],
        "causes": [{"name": part["part"], "ms": part["mean_ms"]} for part in split.get("parts") or ()],
    }
