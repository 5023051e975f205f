"""What the native module says of a scenario's code: the names that it brings along, and what a run would refuse."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from tcpsbed import door
from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key
from tcpsbed.config.units import DIMENSIONS, Dimension, dimension_of, parameters, shown
from tcpsbed.devices import DEVICES
from tcpsbed.errors import ConfigError
from tcpsbed.robots import MEMORY, OUTPUTS, ROBOTS

T = TypeVar("T")
_UNITS = ("_ns", "_us", "_ms", "_s", "_hz", "_bps", "_bytes", "_mm", "_m")
_UNKNOWN = re.compile(r"unknown (?:field|variant) `(?P<name>[^`]*)`, expected (?:one of )?(?P<names>`.*`)")
"""What the native module says of a key or a name that it does not know."""
_RANGE = re.compile(
    r"(?P<found>.*?): (?:(?:it|they) must be )?(?P<allowed>(?:above|below|at most|at least|within|finite|\d).*)"
    r"|(?P<said>.*): beyond (?P<limits>the limits .*)"
)
"""What it says of a number out of its range."""
_EXPECTED = re.compile(
    r"invalid (?P<of>type|value|length)\b:? ?(?P<was>\w*).*, expected (?P<kind>.+?)(?: at line \d+ .*)?$"
)
"""What it says of a value of another kind."""
_KINDS = (
    (r"f(32|64)", "a number", "numbers", "0.5"),
    (r"(u\d+|usize|a nonzero u\d+)", "a whole number from 0", "whole numbers from 0", "3"),
    (r"(i\d+|isize)", "a whole number", "whole numbers", "-3"),
    (r"a boolean", "true or false", "true or false", "true"),
    (r"a (borrowed )?string|string or map", "text in quotes", "texts in quotes", '"x"'),
    (r"a(n array| tuple) of (length|size) (\d+)", r"a list of \3", r"lists of \3", ""),
    (r"a sequence", "a list", "lists", "[0.5]"),
    (r"a map|struct .*", "a table", "tables", "{ }"),
)
"""Kinds of values as it names them, how a scenario's author would name one and several, and an example."""
_ALLOWED = {
    "transport": "parameters that the transport has (tcpsbed docs scenario)",
    "hook": "code that can be loaded with these params (tcpsbed docs hooks)",
    "playout": "parameters that the policy has (tcpsbed docs playout)",
    "queue": "a queue discipline that can be made with these params (tcpsbed docs scenario)",
    "source": "a background source that can be made with these params (tcpsbed docs scenario)",
    "robot": "a robot that can be made with these params (tcpsbed docs scenario)",
    "controller": "a rate controller that can be made with these params (tcpsbed docs transports)",
}
_PAGES = {
    "transport": "transports",
    "controller": "transports",
    "hook": "hooks",
    "playout": "playout",
    "robot": "robots",
}
"""Pages that say what parameters there are."""


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

    def refusal(given: dict[str, Any]) -> str:
        """Why it refuses these parameters; empty if it does not."""
        if what == "transport":
            own = any(isinstance(value, dict) for value in given.values())  # code, whose file may change
            refusal = _refusal_of_transport.__wrapped__ if own else _refusal_of_transport
            return refusal(name, json.dumps(parameters(given)))
        with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
            params = json.dumps(aside(parameters(given), folder))
            try:
                if what == "hook":
                    _tcps.check_hook(name, params, kind=stage)
                else:
                    checks: dict[str, Callable[[str, str], None]] = {
                        "robot": _tcps.check_robot,
                        "playout": _tcps.check_playout,
                        "controller": _controller,
                        "queue": partial(_tcps.check_network_code, "queue"),
                        "source": partial(_tcps.check_network_code, "source"),
                    }
                    checks[what](name, params)
            except ValueError as error:
                return str(error)
        return ""

    if text := refusal(given):
        own = {} if ":" in name else given
        culprits = (one for one in own if refusal({k: v for k, v in given.items() if k != one}) != text)
        raise _refused(scenario, key, what, given, text, next(culprits, None))


@cache
def _refusal_of_transport(name: str, params: str) -> str:
    """Why a transport refuses its parameters, which name no file; empty if it does not. Many channels have the same."""
    from tcpsbed import _tcps

    try:
        _tcps.check_transport(name, params)
    except ValueError as error:
        return str(error)
    return ""


def _controller(name: str, params: str) -> None:
    """Refuses a rate controller that a run would refuse."""
    from tcpsbed import _tcps

    module, _, symbol = name.rpartition(":")
    code = {"kind": "python", "name": module, "symbol": symbol, "params": json.loads(params)}
    _tcps.check_transport("telehaptic", json.dumps({"controller": code}))


def by_table(scenario: Scenario, key: Key, module: str, symbol: str, given: dict[str, Any]) -> None:
    """Refuses parameters of a Python class that its table does not have, or not so."""
    from tcpsbed import _tcps
    from tcpsbed.hooks import find

    try:
        door.complete(find(module, symbol), parameters(given))
    except _tcps.Refused as fault:
        raise faulty(scenario, key, given, fault) from None


def faulty(scenario: Scenario, key: Key, given: dict[str, Any], fault: Any) -> ConfigError:
    """The error of a parameter that a table refuses, in the words and units of the scenario."""
    written = {next(iter(parameters({name: value}))): name for name, value in given.items()}
    name = written.get(fault.key, fault.key)
    at = (*key, name) if name in given else key
    if fault.found != "an unknown key":
        found = f"found {shown(given[name])}" if name in given else f"found no {_plain(name)}"
        return scenario.error(at, found, fault.allowed)
    known = fault.allowed.removeprefix("no key, or ").split(", ")
    value = given.get(name)
    for dimension in DIMENSIONS:
        own = f"{name}_{dimension.suffix}"
        if dimension.suffix and own in known and isinstance(value, int | float):
            found = f"found {value}, a number without a unit"
            return scenario.error(at, found, f"{dimension.allowed()}, or {own} = {value}")
    return scenario.error(key, f'found "{name}"', close_match(name, [_plain(one) for one in known]))


def _plain(name: str) -> str:
    """A key of a table as a scenario writes it: its unit is in the value; a rate has it in its name."""
    suffix = next((d.suffix for d in DIMENSIONS if d.suffix and name.endswith(f"_{d.suffix}")), "")
    return name if suffix in ("", "hz") else name.removesuffix(f"_{suffix}")


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
        except ValueError as error:
            raise scenario.error((), f"cannot be run: {error}", "what tcpsbed docs scenario says") from None


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


def _refused(
    scenario: Scenario, key: Key, what: str, given: dict[str, Any], text: str, culprit: str | None
) -> ConfigError:
    """The error of parameters: `culprit` is the one without which it would be another, or none."""
    for name, value in given.items():
        dimension = _bare(name, value, text)
        if dimension is not None:
            found = f"found {value} for {name}, a number without a unit"
            return scenario.error(
                key, found, f"{dimension.allowed()}, or {name}_{dimension.suffix} = {value}"
            )
        dimension = dimension_of(value)
        if dimension is not None and name.endswith(_UNITS) and f"{name}_{dimension.suffix}" in text:
            found = f'found "{value}" for {name}, whose unit is in its name'
            return scenario.error(key, found, f"a number, such as {name} = {value.split()[0]}")
    units = "|".join(dimension.suffix for dimension in DIMENSIONS if dimension.suffix)
    said = re.sub(rf"\b([a-z]\w*?)_(?:{units})\b", r"\1", " ".join(text.split()))
    if (unknown := _UNKNOWN.search(said)) and (whole := _UNKNOWN.search(" ".join(text.split()))):
        name = whole["name"] if whole["name"] in given else unknown["name"]
        known_as = zip(*(re.findall(r"`(\w+)`", one["names"]) for one in (whole, unknown)), strict=True)
        names = [
            own if own.endswith("_hz") else plain for own, plain in known_as
        ]  # a rate has it in its name
        return scenario.error(key, f'found "{name}"', close_match(name, names))
    found, _, allowed = said.partition("; allowed: ")
    if not allowed and (ranged := _RANGE.fullmatch(found)):
        found, allowed = ranged["found"] or ranged["said"], ranged["allowed"] or f"within {ranged['limits']}"
    if not allowed and culprit is not None:
        kind = _EXPECTED.search(found.rpartition("': ")[2])
        found = f"found {culprit} = {json.dumps(given[culprit])}" if kind else found
        allowed = (
            _kind(culprit, given[culprit], kind) if kind else f"{culprit} as tcpsbed docs {_PAGES[what]} says"
        )
    return scenario.error(key, found, allowed or _ALLOWED[what])


def _kind(name: str, value: Any, expected: re.Match[str]) -> str:
    """What is allowed for a parameter whose value, or one in whose list, is of another kind."""
    for pattern, one, many, example in _KINDS:
        if found := re.fullmatch(pattern, expected["kind"]):
            whole = expected["was"] == "sequence" and not any(isinstance(item, list) for item in value)
            listed = isinstance(value, list) and expected["of"] != "length" and not whole
            example = f"[{example}]" if listed else example
            word = f"a list of {many}" if listed else one
            return f"{name} = {found.expand(word)}" + f", such as {name} = {example}" * (
                example not in ("", "[]")
            )
    return f"{name} = {expected['kind']}"


def _bare(name: str, value: Any, text: str) -> Dimension | None:
    """What a parameter is of which only the number was given."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return next((d for d in DIMENSIONS if d.suffix and re.search(rf"\b{name}_{d.suffix}\b", text)), None)
