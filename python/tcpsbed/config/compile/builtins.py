"""What the native module says of a scenario's code: the names that it brings along, and what a run would refuse."""

from __future__ import annotations

import json
import re
from typing import Any

from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key
from tcpsbed.config.units import DIMENSIONS, Dimension, parameters
from tcpsbed.errors import ConfigError
from tcpsbed.robots import ROBOTS

_ALLOWED = {
    "transport": "parameters that the transport has (docs/scenario.md)",
    "hook": "code that can be loaded with these params (docs/hooks.md)",
    "playout": "parameters that the policy has (docs/playout.md)",
    "robot": "a robot that can be made with these params (docs/scenario.md)",
}


def known() -> dict[str, list[str]]:
    """The built-in names of each kind (`hooks`, `robots`, `transports`); none where the native module is missing."""
    try:
        from tcpsbed import _tcps
    except ImportError:
        return {}
    names: dict[str, list[str]] = _tcps.builtins()
    return names | {"robots": [*names["robots"], *ROBOTS]}


def check(scenario: Scenario, key: Key, name: str, kind: str, others: str = "") -> str:
    """The name, if it is a built-in `hook`, `robot` or `transport`; any name where none are known."""
    names = known().get(f"{kind}s")
    if names is not None and name not in names:
        raise scenario.error(
            key, f'found "{name}"', f"a built-in {kind}: {close_match(name, sorted(names))}{others}"
        )
    return name


def rehearse(scenario: Scenario, key: Key, what: str, name: str, given: dict[str, Any], stage: str) -> None:
    """Makes a `transport`, `hook`, `robot` or `playout` as a run would, and drops it: raises what the run would refuse.

    Parameters
    ----------
    given
        Its parameters as the scenario has them.
    stage
        What a hook does, such as `decode`.
    """
    try:
        from tcpsbed import _tcps
    except ImportError:
        return
    params = json.dumps(parameters(given))
    try:
        if what == "hook":
            _tcps.check_hook(name, params, kind=stage)
        else:
            checks = {
                "transport": _tcps.check_transport,
                "robot": _tcps.check_robot,
                "playout": _tcps.check_playout,
            }
            checks[what](name, params)
    except ValueError as error:
        raise _refused(scenario, key, what, given, str(error)) from None


def rehearse_plan(scenario: Scenario, plan: dict[str, Any]) -> None:
    """Sets a plan up and ends it after the first nanosecond: raises what a run would refuse for any other reason.

    Pictures and sound begin later, so that no speaker writes its file.
    """
    try:
        from tcpsbed import _tcps
    except ImportError:
        return
    flows = [
        flow | {"start_ns": max(flow["start_ns"], 1)} if _shown(flow) else flow for flow in plan["flows"]
    ]
    try:
        _tcps.run_virtual(json.dumps(plan | {"duration_ns": 1, "events": [], "flows": flows}))
    except ValueError as error:
        raise scenario.error((), f"cannot be run: {error}", "what docs/scenario.md says") from None


def _shown(flow: dict[str, Any]) -> bool:
    """Whether a flow carries pictures or sound."""
    return any(step["kind"] == "show" for visit in flow["path"] for step in visit["steps"])


def _refused(scenario: Scenario, key: Key, what: str, given: dict[str, Any], text: str) -> ConfigError:
    for name, value in given.items():
        dimension = _bare(name, value, text)
        if dimension is not None:
            found = f"found {value} for {name}, a number without a unit"
            return scenario.error(key, found, dimension.allowed())
    units = "|".join(dimension.suffix for dimension in DIMENSIONS if dimension.suffix)
    said = re.sub(rf"\b([a-z]\w*?)_(?:{units})\b", r"\1", " ".join(text.split()))
    found, _, allowed = said.partition("; allowed: ")
    return scenario.error(key, found, allowed or _ALLOWED[what])


def _bare(name: str, value: Any, text: str) -> Dimension | None:
    """What a parameter is of which only the number was given."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return next((d for d in DIMENSIONS if d.suffix and re.search(rf"\b{name}_{d.suffix}\b", text)), None)
