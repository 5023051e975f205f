"""The native module's view of a scenario's code: built-in names, and what a run would refuse."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from tcpsbed import door
from tcpsbed.devices import DEVICES
from tcpsbed.errors import ConfigError, Refused, TcpsbedError
from tcpsbed.nearest import close_match
from tcpsbed.robots import MEMORY, OUTPUTS, ROBOTS
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import DIMENSIONS, FREQUENCY, parameters, shown

T = TypeVar("T")
_SUFFIX = re.compile(
    rf"(?<=[a-z])_(?:{'|'.join(d.suffix for d in DIMENSIONS if d.suffix and d is not FREQUENCY)})\b"
)
"""What keys of a plan end with, where a scenario has the unit in the value."""
_UNKNOWN = "an unknown key"
_ALLOWED = {
    "transport": "parameters that the transport has (tcpsbed docs scenario)",
    "hook": "code that can be loaded with these params (tcpsbed docs built-in-hooks)",
    "queue": "a queue discipline that can be made with these params (tcpsbed docs scenario)",
    "loss": "a loss model that can be made with these params (tcpsbed docs scenario)",
    "delay": "a delay model that can be made with these params (tcpsbed docs scenario)",
    "source": "a background source that can be made with these params (tcpsbed docs scenario)",
    "robot": "a robot that can be made with these params (tcpsbed docs scenario)",
    "controller": "a rate controller that can be made with these params (tcpsbed docs transports)",
}
"""What is allowed where code of the user's does not say it."""


def known() -> dict[str, list[str]]:
    """The built-in names of each kind (`hooks`, `robots`, `transports`); none where the native module is missing."""
    try:
        from tcpsbed import _tcps
    except ImportError:
        return {}
    names: dict[str, list[str]] = _tcps.builtins()
    return names | {"robots": [*names["robots"], *ROBOTS], "hooks": [*names["hooks"], *DEVICES]}


def resolved(kind: str, text: str) -> str:
    """The code `module:Name` that an installed package has under this name of a kind; the text where it is no such name."""
    if ":" in text or text in known().get(f"{kind}s", ()):
        return text
    return door.named(kind, text)


def check(scenario: Scenario, key: Key, name: str, kind: str, others: str = "") -> str:
    """The name, if it is a built-in `hook`, `robot` or `transport`; any name where none are known."""
    names = known().get(f"{kind}s")
    if names is not None and name not in names:
        names += door.installed(kind)
        raise scenario.error(
            key, f'found "{name}"', f"a built-in {kind}: {close_match(name, sorted(names))}{others}"
        )
    return name


def rehearse(scenario: Scenario, key: Key, what: str, name: str, given: dict[str, Any], stage: str) -> None:
    """Makes a `transport`, `hook`, `robot`, `playout` or `security` as a run would: raises what the run would refuse.

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

    try:
        if what == "transport":
            own = any(isinstance(value, dict) for value in given.values())  # code, whose file may change
            taken = _transport.__wrapped__ if own else _transport
            taken(name, json.dumps(parameters(given)))
            return
        checks: dict[str, Callable[[str, str], object]] = {
            "hook": partial(_tcps.check_hook, kind=stage),
            "robot": _tcps.check_robot,
            "playout": _tcps.check_playout,
            "security": partial(_tcps.completed, "security"),
            "controller": _controller,
            "queue": partial(_tcps.check_network_code, "queue"),
            "loss": partial(_tcps.check_network_code, "loss"),
            "delay": partial(_tcps.check_network_code, "delay"),
            "source": partial(_tcps.check_network_code, "source"),
        }
        told = parameters(given)
        text = json.dumps(told)
        if not _written(told) and MEMORY not in text:
            checks[what](name, text)
            return
        with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
            checks[what](name, json.dumps(aside(told, folder)))
    except Refused as fault:
        raise faulty(scenario.error, key, name, given, fault) from None
    except TcpsbedError as error:
        found, _, said = " ".join(error.text.split()).partition("; allowed: ")
        raise scenario.error(key, found, error.allowed or said or _ALLOWED[what]) from None


@cache
def _transport(name: str, params: str) -> None:
    """Refuses a transport that a run would refuse; its parameters name no file. Many channels have the same."""
    from tcpsbed import _tcps

    _tcps.check_transport(name, params)


def _controller(name: str, params: str) -> None:
    """Refuses a rate controller that a run would refuse."""
    from tcpsbed import _tcps

    module, _, symbol = name.rpartition(":")
    code = {"kind": "python", "name": module, "symbol": symbol, "params": json.loads(params)}
    _tcps.check_transport("telehaptic", json.dumps({"controller": code}))


def by_table(scenario: Scenario, key: Key, module: str, symbol: str, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a Python class as it is given them: refuses what its table does not have, or not so."""
    from tcpsbed.hooks import find

    try:
        return door.complete(find(module, symbol), parameters(given))
    except Refused as fault:
        raise faulty(scenario.error, key, symbol, given, fault) from None


def faulty(
    error: Callable[[Key, str, str], ConfigError], key: Key, owner: str, given: dict[str, Any], fault: Refused
) -> ConfigError:
    """The error of a parameter that a table refuses, in the words and units of the scenario.

    Parameters
    ----------
    error
        Makes it, from a key, what was found and what is allowed.
    """
    written = {next(iter(parameters({name: value}))): name for name, value in given.items()}
    name = written.get(fault.key, fault.key)
    at, value = (*key, name) if name in given else key, given.get(name)
    if fault.found != _UNKNOWN:
        missing = f'no parameter "{_plain(name)}"'
        found = missing if fault.found in ("nothing", "null") else fault.found
        if name in given and isinstance(value, str | int | float) and " beside " not in found:
            found = shown(value)
        elif name and name not in given and not found.startswith("no "):
            found = f"{_plain(name)} = {found}"
        return error(at, f"found {found}", _plain(fault.allowed))
    known = fault.allowed.removeprefix("no key, or ").split(", ")
    for dimension in DIMENSIONS:
        own = f"{name}_{dimension.suffix}"
        if dimension.suffix and own in known and isinstance(value, int | float):
            found = f"found {value}, a number without a unit"
            return error(at, found, f"{dimension.allowed()}, or {own} = {value}")
    if name in known and isinstance(value, str):
        found = f"found {shown(value)}, whose unit is in the name of the key"
        return error(at, found, f"a number, such as {name} = {value.split()[0]}")
    for dimension in DIMENSIONS:
        own = f"{name}_{dimension.suffix}"
        if dimension.suffix and own in known and name in given:
            return error(at, f"found {shown(value)}", dimension.allowed())
    found = f'found "{name}", which is not a parameter of {owner}'
    return error(key, found, close_match(name, [_plain(one) for one in known]))


def _plain(text: str) -> str:
    """Keys of a table as a scenario writes them: the unit is in the value; a rate has it in its name."""
    return _SUFFIX.sub("", text)


def accepted(
    scenario: Scenario, key: Key, check: Callable[[str], None], part: dict[str, Any]
) -> dict[str, Any]:
    """A part of a plan, unless a check of the native module refuses it."""
    try:
        check(json.dumps(part))
    except Refused as fault:
        at = (*key, *_plain(fault.key).split("."))
        raise scenario.error(at, f"found {fault.found}", fault.allowed) from None
    return part


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
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        tried = aside(plan | {"duration_ns": 1, "events": [], "flows": flows}, folder)
        try:
            _tcps.run_virtual(json.dumps(tried))
        except TcpsbedError as error:
            found, _, allowed = str(error).partition("; allowed: ")
            allowed = allowed or "what tcpsbed docs scenario says"
            raise scenario.error((), f"cannot be run: {found}", allowed) from None


def aside(plan: T, folder: str) -> T:
    """A plan, or parameters, whose files that code writes, or shares in memory, are in a folder: a check touches none.

    A file in a folder that is not there stays as it is: the check is to say so.
    """
    written = enumerate(sorted(_written(plan)))
    moved = {file: f"{folder}/{number}{Path(file).suffix}" for number, file in written}
    replaced: T = _replaced(plan, moved, folder)
    return replaced


def _written(value: Any, key: str = "") -> set[str]:
    """The files of the parameters that name what is written."""
    if isinstance(value, dict):
        return set().union(*(_written(item, name) for name, item in value.items()))
    if isinstance(value, list):
        return set() if _numbers(value) else set().union(*(_written(item, key) for item in value))
    is_file = key in OUTPUTS and isinstance(value, str) and ":" not in value and set(value) & set("./")
    return {value} if is_file and Path(value).parent.is_dir() else set()


def _replaced(value: Any, moved: dict[str, str], folder: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, moved, folder) for name, item in value.items()}
    if isinstance(value, list):
        return value if _numbers(value) else [_replaced(item, moved, folder) for item in value]
    if isinstance(value, str) and value.startswith(MEMORY):
        return f"{folder}/{value.removeprefix(MEMORY)}"
    return moved.get(value, value) if isinstance(value, str) else value


def _numbers(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], int | float)


def _shown(flow: dict[str, Any]) -> bool:
    """Whether a flow carries pictures or sound."""
    return any(step["kind"] == "show" for visit in flow["path"] for step in visit["steps"])
