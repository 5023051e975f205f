"""A run and the folder it leaves: scenario, plan, rows, result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpsbed import clocks, config
from tcpsbed.worlds import registry

PCAPNG_S = 60.0
"""Longest run whose packets are captured without being asked for."""


def run(
    scenario: config.Scenario,
    *,
    world: str = "virtual",
    out: Path,
    progress: Callable[[float], bool] | None = None,
    live: Callable[[bytes, float], None] | None = None,
) -> Path:
    """Runs a scenario in a world and leaves ``scenario.toml``, ``plan.json``, ``result.json`` and ``records.bin``.

    Parameters
    ----------
    scenario
        From ``tcpsbed.config.load``.
    world
        ``virtual``, ``real``, or another world that the registry knows.
    out
        Folder, made if it is not there.
    progress
        Called with the share done, 0 to 1; a false answer stops the run.
    live
        On the machine's clock only: called with new rows and the run time in seconds.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ConfigError, HookError, WorldError
        With the file or key and the remedy.
    """
    registry.check(world)
    begun = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    plan = config.compile_plan(scenario, out / "inputs")
    (out / "scenario.toml").write_text(config.dump(scenario), encoding="utf-8")
    (out / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    result = _run(plan, scenario, world, out, progress, live)
    result["world"] = world
    result["total_s"] = time.perf_counter() - begun
    (out / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return out


def _run(
    plan: dict[str, Any],
    scenario: config.Scenario,
    world: str,
    out: Path,
    progress: Callable[[float], bool] | None,
    live: Callable[[bytes, float], None] | None,
) -> dict[str, Any]:
    pcapng = _captures(scenario, plan)
    if world in clocks.SIMULATED:
        from tcpsbed.worlds import virtual

        return virtual.run(plan, out, progress=progress, pcapng=pcapng, world=world)
    from tcpsbed.worlds import real

    return real.run(
        plan,
        out,
        progress=progress,
        live=live,
        pcapng=pcapng,
        crowded=scenario.real.crowded,
        world=world,
        scenario=scenario,
    )


def _captures(scenario: config.Scenario, plan: dict[str, Any]) -> bool:
    wish = scenario.measure.pcapng
    return bool(wish == "on" or (wish == "auto" and plan["duration_ns"] <= PCAPNG_S * 1e9))
