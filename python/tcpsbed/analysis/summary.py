"""`summary.json` and `series.json`: what a run was and what it found (docs/summary.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tcpsbed import documents, results
from tcpsbed.analysis import disturbances, echo, facts, flows, machine, media, series
from tcpsbed.analysis.units import distribution_ms, ms
from tcpsbed.errors import DataError

VERSION = 1
"""Version of `summary.json`."""
HISTOGRAM = "quantiles_ns"
"""Key of a stage or a node that stays in `result.json`."""

Found = Mapping[str, Any]


def summarise(folder: Path) -> dict[str, Any]:
    """Analyses the records of a run folder and writes `summary.json` and `series.json` there.

    Parameters
    ----------
    folder
        With `plan.json`, `result.json`, `records.bin` and `scenario.toml`, as a world leaves it.

    Raises
    ------
    DataError
        If one of them is absent or not what it should be.
    """
    from tcpsbed import _tcps, config

    plan = documents.read(folder / "plan.json")
    result = documents.read(folder / "result.json")
    scenario = config.load(folder / "scenario.toml")
    records = folder / "records.bin"
    if not records.is_file():
        raise DataError("found no such file", file=records, allowed="a run whose records were kept")
    found = json.loads(
        _tcps.analyse(str(records), json.dumps(plan), scenario.warmup_ns, scenario.measure.grace_ns)
    )
    world = result.get("world", "virtual")
    info = facts.scenario_info(plan, world=world, warmup_ns=scenario.warmup_ns, phases=scenario.phases)
    info["media"] = media.media(folder, plan, scenario.warmup_ns)
    return build(folder, info, result, found)


def build(folder: Path, scenario_info: Found, result: Found, analysis: Found) -> dict[str, Any]:
    """Writes `summary.json` and `series.json` into a run folder.

    Parameters
    ----------
    folder
        The run folder.
    scenario_info
        From `facts.scenario_info`.
    result
        What the run told about itself (`result.json`).
    analysis
        What the rows say (`_tcps.analyse`).

    Returns
    -------
    dict
        The content of `summary.json`.
    """
    summary = _summary(scenario_info, result, analysis)
    _write(folder / "summary.json", summary)
    results.write_whole(folder / "series.json", json.dumps(series.series(analysis), allow_nan=False) + "\n")
    return summary


def add_across_seeds(folder: Path, across: Found) -> dict[str, Any]:
    """Puts what further seeds gave into `summary.json` of a run folder, and returns its content."""
    file = folder / "summary.json"
    summary = documents.read(file) | {"across_seeds": across}
    _write(file, summary)
    return summary


def replace_echo(folder: Path, echo: Found) -> None:
    """Puts the echoes of several rounds in place of those of the last into `summary.json` of its folder."""
    file = folder / "summary.json"
    _write(file, documents.read(file) | {"echo": echo})


def _summary(info: Found, result: Found, analysis: Found) -> dict[str, Any]:
    seconds = analysis["end_ns"] / 1e9
    return {
        "version": VERSION,
        **{key: info[key] for key in ("name", "world", "seed", "duration_s", "warmup_s")},
        "ran_s": seconds,
        "versions": machine.versions(),
        "machine": machine.machine(),
        "promise": info["promise"],
        "random": info["random"],
        "wall": {key: result.get(key) for key in ("simulate_s", "total_s")},
        "records": {"rows": analysis["rows"], "level": info["level"], "digits": analysis["digits"]},
        "across_seeds": {
            "seeds": [info["seed"]],
            "unchanged": False,
            "failed": [],
            "disturbed": [],
            "flows": {},
        },
        "records_sha256": result.get("records_sha256", ""),
        "flows": {
            flow["name"]: flows.flow(flow, info["flows"].get(flow["name"], {})) for flow in analysis["flows"]
        },
        "path": {flow["name"]: flows.path(flow) for flow in analysis["flows"]},
        "points": {flow["name"]: flows.points(flow) for flow in analysis["flows"]},
        "echo": {probe["flow"]: echo.echo(probe) for probe in analysis["echo"]},
        "media": info.get("media", {}),
        "network": [_link(link, seconds) for link in result.get("links", ())],
        "queues": [_queue(queue) for queue in analysis["queues"]],
        "traffic": list(result.get("traffic", ())),
        "channels": analysis["channels"],
        "stages": [_stage(stage, seconds) for stage in result.get("stages", ())],
        "components": _components(result.get("stages", ()), seconds),
        "nodes": [_node(node) for node in result.get("nodes", ())],
        "robots": list(result.get("robots", ())),
        "emulator": [_emulated(path) for path in result.get("emulator", ())],
        "hosts": list(result.get("hosts", ())),
        "endpoints": list(result.get("endpoints", ())),
        "boards": list(result.get("boards", ())),
        "clocks": _clocks(info, result, analysis),
        "events": analysis["events"],
        "states": [_watched(states, result.get("stages", ())) for states in analysis.get("states", ())],
        "assumed_free": list(info["assumed_free"]),
        "ignored": list(info["ignored"]),
        "untried": list(info["untried"]),
        "disturbances": disturbances.disturbances(info, result, analysis),
        "errors": list(result.get("errors", ())),
    }


def _link(link: Found, seconds: float) -> dict[str, Any]:
    met = link["packets"] + link["dropped_packets"]
    kept = {key: value for key, value in link.items() if key != "busy_s"}
    busy_s = link.get("busy_s")
    return {
        **kept,
        "loss": link["dropped_packets"] / met if met else 0.0,
        "utilisation": busy_s / seconds if busy_s is not None and seconds > 0 else None,
    }


def _queue(queue: Found) -> dict[str, Any]:
    return {
        "link": queue["link"],
        "bytes": queue["bytes"],
        "packets": queue["packets"],
        "delay_ms": distribution_ms(queue["delay_ns"]),
    }


def _watched(states: Found, stages: Iterable[Found]) -> dict[str, Any]:
    """States of a flow at a component, with what led to each if the one hook that has them told."""
    at = [stage for stage in stages if all(stage[key] == states[key] for key in ("component", "flow"))]
    told = [stage for stage in at if stage.get("watch")]
    if len(told) != 1:
        return {**states, "causes": {}, "limited": None}
    [stage], watch = told, told[0]["watch"]
    turns = watch["turns"] if len(watch["turns"]) == len(states["changes"]) else []
    changes = [change | {"cause": cause} for change, cause in zip(states["changes"], turns, strict=False)]
    limited = watch["limited"] / stage["calls"] if stage["calls"] else None
    return {
        **states,
        "changes": changes or states["changes"],
        "causes": watch["causes"],
        "limited": limited,
    }


def _stage(stage: Found, seconds: float) -> dict[str, Any]:
    kept = {key: value for key, value in stage.items() if key not in (HISTOGRAM, "watch")}
    busy_s = stage["calls"] * stage["cpu_ns"]["mean"] / 1e9
    return {**kept, "core_share": busy_s / seconds if seconds > 0 else None}


def _components(stages: Iterable[Found], seconds: float) -> list[dict[str, Any]]:
    """Processor time of all stages at each component, in the order in which they were told."""
    busy_s: dict[str, float] = {}
    for stage in stages:
        took_s = stage["calls"] * stage["cpu_ns"]["mean"] / 1e9
        busy_s[stage["component"]] = busy_s.get(stage["component"], 0.0) + took_s
    return [
        {"component": name, "busy_s": took_s, "core_share": took_s / seconds if seconds > 0 else None}
        for name, took_s in busy_s.items()
    ]


def _node(node: Found) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != HISTOGRAM}


def _emulated(path: Found) -> dict[str, Any]:
    return {
        "path": path["path"],
        "packets": path.get("packets"),
        "set_delay_ms": ms((path.get("set_delay_ns") or {}).get("mean")),
        "delivered_delay_ms": distribution_ms(path.get("delivered_delay_ns")),
        "error_ms": distribution_ms(path.get("error_ns")),
        "set_rate_bps": path.get("set_rate_bps"),
        "delivered_rate_bps": path.get("delivered_rate_bps"),
        "set_loss": path.get("set_loss"),
        "delivered_loss": path.get("delivered_loss"),
        "stamps": path.get("stamps"),
    }


def _clocks(info: Found, result: Found, analysis: Found) -> list[dict[str, Any]]:
    """Exchanges as rows tell them; where a node fitted a line to them, its estimate.

    The true error needs a common clock: it is absent where nodes are on several hosts.
    """
    fitted = {clock["node"]: clock for clock in result.get("clocks", ())}
    found = []
    for clock in analysis["clocks"]:
        line = fitted.get(clock["node"], {})
        drift_ppb = line.get("drift_ppb")
        found.append(
            {
                "node": clock["node"],
                "reference": clock["peer"],
                "exchanges": clock["n"],
                "offset_ms": ms(line.get("offset_ns", clock["offset_ns"])),
                "bound_ms": ms(line.get("bound_ns", clock["bound_ns"])),
                "drift_ppm": clock["drift_ppm"] if drift_ppb is None else drift_ppb / 1e3,
                "true_error_ms": ms(_true_error_ns(line, clock)) if info["one_host"] else None,
                "true_error_max_ms": ms(clock["true_error_max_ns"]) if info["one_host"] else None,
            }
        )
    return found


def _true_error_ns(line: Found, clock: Found) -> float:
    """Estimate minus truth: of the fitted line where it is known, else of the last exchange."""
    known = line.get("true_error_ns")
    return float(clock["true_error_ns"] if known is None else known)


def _write(path: Path, content: Found) -> None:
    """Writes JSON in one step, so that a reader never sees half a file."""
    results.write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
