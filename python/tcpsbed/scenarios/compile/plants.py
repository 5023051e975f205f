"""Plants of the step experiment: built-in, of a package, or a class of the user that returns its matrices."""

from __future__ import annotations

import inspect
import json
from typing import Any

from tcpsbed import _tcps, door
from tcpsbed.errors import HookError, Refused
from tcpsbed.hooks import has, make, safely, told
from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.compile.code import loaded
from tcpsbed.scenarios.model.entries import choices, entries, is_code
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import parameters, shown

_ALLOWED = '"lag", { kind = "lag", time_constant = "5 ms" }, or { kind = "./mine.py:Mine", params = {…} }'
_MATRICES = "(a, b, c) or (a, b, c, d) with numbers, such as ([[-50.0]], [50.0], [1.0])"


def plant(scenario: Scenario, key: Key, given: Any) -> dict[str, Any]:
    """The plant that a string or a table names, as the plan has it; code of the user's becomes a `state-space`.

    Parameters
    ----------
    key
        Where it stands, for messages.
    """
    table = {"kind": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise scenario.error(key, f"found {shown(given)}", _ALLOWED)
    text, rest = table["kind"], {name: value for name, value in table.items() if name != "kind"}
    name = text if text in entries("plant") else door.named("plant", text)
    if is_code(name):
        return _own(scenario, key, name, rest)
    if name not in entries("plant"):
        raise scenario.error(key, f'found "{name}"', choices("plant", [*entries("plant")], name))
    try:
        return {"kind": name} | _completed(name, parameters(rest))
    except Refused as fault:
        raise builtins.faulty(scenario.error, key, name, rest, fault) from None


def _completed(name: str, given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_tcps.completed("plant", name, json.dumps(given)))
    return found


def _own(scenario: Scenario, key: Key, text: str, rest: dict[str, Any]) -> dict[str, Any]:
    params, stray = rest.get("params", {}), sorted(rest.keys() - {"params"})
    if stray:
        raise scenario.error((*key, stray[0]), "unknown key beside code of your own", "kind, params")
    module, kind = loaded(scenario, key, text)
    symbol = text.rpartition(":")[2]
    if not (inspect.isclass(kind) and issubclass(kind, door.Plant)):
        allowed = f"class {symbol}(tcpsbed.Plant) with matrices(self), as tcpsbed docs step shows"
        raise scenario.error(key, f'found "{text}", which is not a plant', allowed)
    builtins.by_table(scenario, (*key, "params"), module, symbol, params)
    try:
        made = make(module, symbol, parameters(params))
        has(made, f"plant {text}", "matrices")
        said = safely(made.matrices)
    except HookError as error:
        raise scenario.error(key, error.text, error.allowed or "a plant that can be made") from None
    except Exception as error:  # the user's code may fail in any way
        found = f'found "{text}", whose matrices() fails ({told(error)})'
        raise scenario.error(key, found, _MATRICES) from None
    try:
        given = dict(zip("abcd", _plain(said), strict=False)) | {"code": f"{module}:{symbol}"}
        return {"kind": "state-space"} | _completed("state-space", given)
    except Refused as fault:
        found = f'found "{text}", whose matrices() gives {fault.key} = {fault.found}'
        raise scenario.error(key, found, fault.allowed) from None
    except (TypeError, ValueError):
        found = f'found "{text}", whose matrices() gives {said!r:.120}'
        raise scenario.error(key, found, _MATRICES) from None


def _plain(said: Any) -> list[Any]:
    """Matrices as lists of numbers; B and C are vectors, D is a number."""
    import numpy as np

    if not isinstance(said, tuple) or len(said) not in (3, 4):
        raise TypeError
    a, b, c, d = (np.asarray(part, float) for part in (*said, 0.0)[:4])
    if not all(np.isfinite(part).all() for part in (a, b, c, d)):
        raise ValueError
    return [
        a.reshape(len(a), -1).tolist() if a.size else [],
        b.ravel().tolist(),
        c.ravel().tolist(),
        d.item(),
    ]
