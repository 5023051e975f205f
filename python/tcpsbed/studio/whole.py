"""Messages about a run that is over, for its page: the numbers are those of summary.json and series.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpsbed.clocks import BETWEEN
from tcpsbed.scenarios.model.entries import defaults
from tcpsbed.views.charts import plotted
from tcpsbed.views.numbers import finite, statistic
from tcpsbed.views.sections import marks
from tcpsbed.views.sentence import sentence

_DELAY = ("mean", "p50", "p99", "max")
_CURVES = {
    "mean_ms": "delay_mean_ms",
    "least_ms": "delay_min_ms",
    "most_ms": "delay_max_ms",
    "rate_bps": "rate_bps",
    "lost": "lost",
    "age_ms": "age_ms",
    "merged": "fragments",
}
"""Curves of a flow in the message "bins", and in series.json."""


def shown(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a page needs of a plan."""
    flows = [
        {
            "name": flow["name"],
            "direction": flow["direction"],
            "period_ns": flow["period_ns"],
            "path": [stop["component"] for stop in flow["path"]],
        }
        for flow in plan["flows"]
    ]
    return (
        {key: plan[key] for key in ("name", "seed", "duration_ns", "events")}
        | _drawn(plan)
        | {"flows": flows, "queues_probed": bool(plan["queue_probe_ns"]), "supervisors": supervisors(plan)}
    )


def supervisors(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By component, the limits that each supervisor of a plan goes by: times in ms, and what takes control up again."""
    found = {}
    for stop in (stop for flow in plan["flows"] for stop in flow["path"]):
        for step in stop.get("steps", ()):
            code = step.get("run", {})
            if (code.get("kind"), code.get("name")) == ("builtin", "supervisor"):
                params = defaults("hook", "supervisor") | code.get("params", {})
                limits = {key: params[key] for key in ("hold_ms", "stop_ms", "recover_ms", "engage")}
                oldest_ms = params["end_to_end_ms"] - params["clock_ms"]
                found[plan["components"][stop["component"]]["name"]] = limits | {"oldest_ms": oldest_ms}
    return found


def _drawn(plan: Mapping[str, Any]) -> dict[str, Any]:
    network = {key: plan["network"].get(key, []) for key in ("vertices", "links", "traffic")}
    return {"nodes": plan["nodes"], "components": plan["components"], "network": network}


def whole(
    summary: Mapping[str, Any], plan: Mapping[str, Any], network: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The message of `Collector.lately`, about the whole run.

    Parameters
    ----------
    summary
        The content of its summary.json.
    plan
        What the page has of its plan.
    network
        What became of every link, where the summary has the first of many only.
    """
    found = {link["name"]: link for link in network or summary.get("network") or ()}
    links = [found.get(link["name"], {}) for link in plan["network"]["links"]]
    return {
        "k": "now",
        "whole": True,
        "t_s": summary.get("ran_s", summary["duration_s"]),
        "flows": [_flow(name, flow, summary) for name, flow in summary["flows"].items()],
        "sentence": sentence(summary),
        "unseen": [(0, summary["warmup_s"])] if summary.get("warmup_s") else [],
        "drops": [finite(link.get("dropped_packets")) for link in links],
        "fullest": [finite(link.get("max_queue_bytes")) for link in links],
    }


def _flow(name: str, flow: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    delay = flow.get("delay_ms") or {}
    path = (summary.get("path") or {}).get(name) or []
    split = (summary.get("split") or {}).get(name) or {}
    return {
        "name": name,
        "n": flow.get("delivered", 0),
        **{f"{key}_ms": value for key in _DELAY if (value := finite(delay.get(key))) is not None},
        "loss": finite(flow.get("loss")),
        "parts": [
            {"what": part["what"], "name": part["name"], "ms": mean_ms}
            for part in path
            if (mean_ms := statistic(part.get("latency_ms"))) is not None
        ],
        "causes": [
            {"name": part["part"], "ms": mean_ms}
            for part in split.get("parts") or ()
            if (mean_ms := finite(part["mean_ms"])) is not None
        ],
    }


def messages(
    summary: Mapping[str, Any],
    series: Mapping[str, Any],
    plan: Mapping[str, Any] | None,
    network: Sequence[Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """All that a page is sent of a run, from its results alone; without its plan no network is drawn."""
    happened = marks(dict(summary))
    kept = _network(summary, series, plan) | {
        "name": summary["name"],
        "seed": summary["seed"],
        "queues_probed": bool(series.get("queues")),
        "duration_ns": (finite(summary["duration_s"]) or 0.0) * 1e9,
        "events": [
            {"name": str(one.get("name", "")), "at_ns": one["t_s"] * 1e9, "action": {}, "by": one.get("by")}
            for one in happened
        ],
        "flows": [
            {
                "name": name,
                "direction": flow.get("direction"),
                "period_ns": _apart_ns(series, name),
                "path": [],
            }
            for name, flow in summary["flows"].items()
        ],
    }
    spans = [(span.get("from_s"), span.get("to_s")) for span in series.get("disturbed") or ()]
    now = whole(summary, kept, network) | {
        "events": [{"t_s": one["t_s"], "number": number} for number, one in enumerate(happened)],
        "disturbed": [span for span in spans if None not in span],
    }
    between = [{"k": "steered", "by": False, "why": "", "saves": "profile"}]
    return [
        *(between if summary["world"] in BETWEEN else []),
        {"k": "plan", "plan": kept},
        *_bins(series, kept),
        now,
        {"k": "over", "errors": [], "disturbances": []},
    ]


def _network(
    summary: Mapping[str, Any], series: Mapping[str, Any], plan: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is drawn as the path; only the links with queues without a plan, and of a part of a large run."""
    if plan is not None and len(plan["flows"]) == len(summary["flows"]):
        return _drawn(plan)
    links = [{"name": name, "from": 0, "to": 0, "queue": {}} for name in series.get("queues") or ()]
    return {"nodes": [], "components": [], "network": {"vertices": [], "links": links, "traffic": []}}


def _apart_ns(series: Mapping[str, Any], flow: str) -> float:
    """Time between samples over which a curve goes on: twice that and two bins are what series.json bridges."""
    bridge_s = finite((series.get("flows") or {}).get(flow, {}).get("bridge_s")) or 0.0
    return max(bridge_s - 2 * (finite(series.get("bin_s")) or 0.0), 0.0) / 2 * 1e9


def _bins(series: Mapping[str, Any], plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    times: Sequence[float] = series.get("t_s") or ()
    if not len(times):
        return []
    flows = [series["flows"].get(flow["name"], {}) for flow in plan["flows"]]
    queues = [(series.get("queues") or {}).get(link["name"], {}) for link in plan["network"]["links"]]
    bin_s = finite(series.get("bin_s")) or 2 * times[0]

    def curves(key: str) -> list[list[float | None]]:
        return [plotted(flow.get(key) or [None] * len(times)) for flow in flows]

    told: dict[str, Any] = {
        "k": "bins",
        "first": 0,
        "generation": 0,
        "width_s": bin_s,
        "smoothed": True,
        "queued_bytes": [
            plotted(one.get("bytes_max") or one.get("bytes") or [None] * len(times)) for one in queues
        ],
    }
    told |= {key: curves(of) for key, of in _CURVES.items()}
    if not any(value for curve in told["lost"] for value in curve):
        del told["lost"]
    return [told]
