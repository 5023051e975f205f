"""A run and the folder it leaves: scenario, plan, rows, result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpsbed import clocks, config, results
from tcpsbed.results import marker
from tcpsbed.robots import OUTPUTS
from tcpsbed.worlds import memory, registry

PCAPNG_S = 60.0
"""Longest run whose packets are captured without being asked for."""
STREAMED = set(OUTPUTS) - {"publish"}
"""Parameters that name a file which a run writes bit by bit; a state that is published is refused where it is made."""


def run(
    scenario: config.Scenario,
    *,
    world: str = "virtual",
    out: Path,
    progress: Callable[[float], bool] | None = None,
    live: Callable[[bytes, float], None] | None = None,
) -> Path:
    """Runs a scenario in a world into a results folder of its own; parameters and errors are those of `record`."""
    with results.writing(out, "run", inputs=scenario.files) as place:
        record(scenario, world=world, out=place.path, home=place.target, progress=progress, live=live)
    return out


def record(
    scenario: config.Scenario,
    *,
    world: str = "virtual",
    out: Path,
    home: Path | None = None,
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
        An empty folder.
    home
        What the folder will be called in the end, for the paths in ``plan.json``; absent: as it is.
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
    memory.sweep()
    marker.note(out, world=world)
    begun = time.perf_counter()
    plan = config.compile_plan(scenario, out / "inputs")
    (out / "scenario.toml").write_text(config.dump(scenario), encoding="utf-8")
    (out / "plan.json").write_text(_at_home(json.dumps(plan), out, home or out), encoding="utf-8")
    with results.streamed(_streamed(plan)):
        result = _run(plan, scenario, world, out, progress, live)
    result["world"] = world
    result["total_s"] = time.perf_counter() - begun
    (out / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return out


def _streamed(plan: Any) -> set[Path]:
    """The files that the code of a plan writes bit by bit."""
    if isinstance(plan, dict):
        named = {Path(plan[key]) for key in STREAMED if isinstance(plan.get(key), str)}
        return {file for file in named if file.is_absolute()}.union(*map(_streamed, plan.values()))
    if isinstance(plan, list) and not (plan and isinstance(plan[0], int | float)):
        return set().union(*map(_streamed, plan))
    return set()


def _at_home(text: str, out: Path, home: Path) -> str:
    """JSON with the inputs of a run named as they will be."""
    return text.replace(json.dumps(f"{out.resolve()}/")[1:-1], json.dumps(f"{home}/")[1:-1])


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
