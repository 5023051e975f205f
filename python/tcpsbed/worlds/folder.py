"""A run and its folder: scenario, plan, rows, result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpsbed import clocks, results, scenarios
from tcpsbed.errors import HookError, WorldError
from tcpsbed.results import marker
from tcpsbed.robots import OUTPUTS
from tcpsbed.worlds import acceptance, fit, memory, registry
from tcpsbed.worlds.steering import Live, Progress, Steering

PCAPNG_S = 60.0
"""Longest run whose packets are captured without being asked for."""
STREAMED = set(OUTPUTS) - {"publish"}
"""Parameters that name a file which a run writes bit by bit; a state that is published is refused where it is made."""


def run(
    scenario: scenarios.Scenario,
    *,
    world: str = "virtual",
    out: Path,
    progress: Progress | None = None,
    live: Live | None = None,
) -> Path:
    """Runs a scenario in a world into a results folder of its own; parameters and errors are those of `record`."""
    with results.writing(out, "run", inputs=scenario.files) as place:
        record(scenario, world=world, out=place.path, home=place.target, progress=progress, live=live)
    return out


def record(
    scenario: scenarios.Scenario,
    *,
    world: str = "virtual",
    out: Path,
    home: Path | None = None,
    progress: Progress | None = None,
    live: Live | None = None,
    steering: Steering | None = None,
    begin: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """Runs a scenario in a world and leaves ``scenario.toml``, ``plan.json``, ``result.json`` and ``records.bin``.

    Parameters
    ----------
    scenario
        From ``tcpsbed.scenarios.load``.
    world
        ``virtual``, ``real``, or another world that the registry knows.
    out
        An empty folder.
    home
        What the folder will be called in the end, for the paths in ``plan.json``; absent: as it is.
    progress, live
        Called while it runs (``worlds.steering``).
    steering
        Events that are asked for while the run goes on; in virtual time its pace, too.
    begin
        Called with the plan, which is in the folder by then, before anything of it runs.

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
    plan = scenarios.compile_plan(scenario, out / "inputs")
    if not registry.has_network(world, plan):
        plan = fit.without_network(plan)
    (out / "scenario.toml").write_text(scenarios.dump(scenario), encoding="utf-8")
    text = json.dumps(plan)
    (out / "plan.json").write_text(_at_home(text, out, home or out), encoding="utf-8")
    if begin is not None:
        begin(plan)
    named = any(f'"{key}"' in text for key in STREAMED)
    with results.streamed(_streamed(plan) if named else set()):
        try:
            result = _run(plan, scenario, world, out, progress, live, steering)
        except WorldError as error:
            raise acceptance.placed(error, scenario) from None
    if steering is not None:  # in one step: another thread may read it
        results.write_whole(out / "plan.json", _at_home(json.dumps(plan), out, home or out))
        result["asked_by"] = steering.by
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
    scenario: scenarios.Scenario,
    world: str,
    out: Path,
    progress: Progress | None,
    live: Live | None,
    steering: Steering | None,
) -> dict[str, Any]:
    pcapng = _captures(scenario, plan)
    if steering is not None and not registry.takes_events(world, plan):
        steering.refusal = f"found an event of the network, which cannot change during a run in {world}"
    if world in clocks.SIMULATED:
        from tcpsbed.worlds import virtual

        try:
            return virtual.run(
                plan, out, progress=progress, pcapng=pcapng, world=world, live=live, steering=steering
            )
        except HookError:
            rows = out / "records.bin"
            if not rows.exists() or rows.stat().st_size == 0:
                scenarios.check(scenario)  # it could not begin: a check knows the key
            raise
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
        steering=steering,
    )


def _captures(scenario: scenarios.Scenario, plan: dict[str, Any]) -> bool:
    wish = scenario.measure.pcapng
    return bool(wish == "on" or (wish == "auto" and plan["duration_ns"] <= PCAPNG_S * 1e9))
