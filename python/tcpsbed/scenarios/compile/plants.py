"""Plants and linear controllers of the step experiment: built-in, of a package, or code of the user's.

| what a class or function of the user's is | what the plan has |
|---|---|
| a `tcpsbed.Plant`, which returns its matrices | `{kind = "state-space", a, b, c, d}`; of several axes: matrices |
| any other code with the interface of a hook | `{kind = "code", run}`, called with k at each tick of the robot |
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from tcpsbed import _tcps, door, linear
from tcpsbed.errors import HookError, Refused, TcpsbedError
from tcpsbed.hooks import find, has, make, safely, told
from tcpsbed.inputs import LIBRARY
from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.compile.book import Book
from tcpsbed.scenarios.compile.code import code, loaded
from tcpsbed.scenarios.model.entries import CODE, choices, entries, is_code
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import parameters, shown

IN_PYTHON = {"mujoco": "tcpsbed.robots.plant:MujocoPlant"}
"""Built-in plants in Python."""
OF_AXES = {"mujoco": "tcpsbed.robots.plant:MujocoAxes"}
"""The same with several axes, which have lists of names."""
_PLANT = '"lag", { kind = "lag", time_constant = "5 ms" }, or { kind = "./mine.py:Mine", params = {…} }'
_CONTROLLER = '{ kind = "transfer-function", num = [0.2, 10.0], den = [1.0, 0.0] }, or another linear system'
_MATRICES = "(a, b, c) or (a, b, c, d) with numbers, such as ([[-50.0]], [50.0], [1.0])"
_ANSWERS = (
    "code that answers each k with one finite y, and k = 1 at rest with y = 1, as tcpsbed docs plants shows"
)
STATE_SPACE, TRANSFER_FUNCTION = "state-space", "transfer-function"
_REST = 1e-6
"""How far the answer of a plant at rest may be from 1."""


def plant(book: Book, key: Key, given: Any, period_ns: int) -> dict[str, Any]:
    """The plant that a string or a table names, as the plan has it.

    Parameters
    ----------
    key
        Where it stands, for messages.
    period_ns
        Time between two ticks of the robot.
    """
    name, rest = _named(book.scenario, key, given, _PLANT)
    if (found := _several(book.scenario, key, name, rest, period_ns, bilinear=False)) is not None:
        return found
    if is_code(name) and (run := _run(book, key, name, rest)) is not None:
        axes = _axes(book, key, name, rest, run)
        return _answering(book, key, name, {"kind": CODE, "run": run} | axes, period_ns)
    return _linear(book.scenario, key, name, rest, period_ns, bilinear=False)


def controller(book: Book, key: Key, given: Any, period_ns: int) -> dict[str, Any]:
    """The linear controller that a string or a table names, as the plan has it; as `plant`, with the period of its flow."""
    name, rest = _named(book.scenario, key, given, _CONTROLLER)
    if (several := _several(book.scenario, key, name, rest, period_ns, bilinear=True)) is not None:
        return _of_the_flow(book.scenario, key, several, period_ns)
    if is_code(name) and not _is_plant(book.scenario, key, name):
        allowed = f"a class with matrices(self); a controller that computes is a hook, run = {name!r} in place of this one"
        raise book.scenario.error(key, f'found "{name}", which has no matrices', allowed)
    return _of_the_flow(
        book.scenario, key, _linear(book.scenario, key, name, rest, period_ns, bilinear=True), period_ns
    )


def _of_the_flow(scenario: Scenario, key: Key, found: dict[str, Any], period_ns: int) -> dict[str, Any]:
    """A controller, whose sample time must be the period of its flow."""
    if (step_ns := found.get("sample_time_ns")) not in (None, period_ns):
        amiss = (
            f"found {step_ns / 1e6:g} ms; the flow of the controller has a period of {period_ns / 1e6:g} ms"
        )
        raise scenario.error(
            (*key, "sample_time"), amiss, "that period: the controller takes one step a sample"
        )
    return found


def _several(
    scenario: Scenario, key: Key, name: str, rest: dict[str, Any], period_ns: int, *, bilinear: bool
) -> dict[str, Any] | None:
    """A linear system of several axes as the plan has it, once it can be computed from tick to tick; none if it has one."""
    if name not in (STATE_SPACE, TRANSFER_FUNCTION):
        return None
    found = {"kind": name} | parameters(rest)
    if not linear.several(found):
        return None
    if name == STATE_SPACE and isinstance(found.get("b"), list) and isinstance(found.get("c"), list):
        columns = next((len(row) for row in found["b"] if isinstance(row, list)), 0)
        found = {"d": [[0.0] * columns for _ in found["c"]]} | found
    try:
        linear.refuse_shapes(found)
        linear.sampled(found, period_ns, controls=bilinear)
    except Refused as fault:
        raise builtins.faulty(scenario.error, key, name, rest, fault) from None
    return found


def _axes(book: Book, key: Key, text: str, rest: dict[str, Any], run: dict[str, Any]) -> dict[str, int]:
    """How many axes a plant that is code has, where there are several: as its class says (`axes`), or its actuators."""
    if text in OF_AXES.values():
        number: Any = len(rest["params"].get("actuator", []))
    elif run["kind"] == "python":
        number = getattr(loaded(book.scenario, key, text)[1], "axes", 1)
    else:
        number = 1
    if type(number) is not int or not 1 <= number <= linear.MOST_AXES:
        allowed = f"a whole number from 1 to {linear.MOST_AXES}, such as axes = 2"
        raise book.scenario.error(key, f'found "{text}" with axes = {shown(number)}', allowed)
    return {"axes": number} if number > 1 else {}


def _named(scenario: Scenario, key: Key, given: Any, allowed: str) -> tuple[str, dict[str, Any]]:
    """Name or code, and what else stands in the table."""
    table = {"kind": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise scenario.error(key, f"found {shown(given)}", allowed)
    text, rest = table["kind"], {name: value for name, value in table.items() if name != "kind"}
    if text in IN_PYTHON:
        return (OF_AXES if isinstance(rest.get("actuator"), list) else IN_PYTHON)[text], {"params": rest}
    name = text if text in entries("plant") else door.named("plant", text)
    if not is_code(name) and name not in entries("plant"):
        raise scenario.error(key, f'found "{name}"', choices("plant", [*entries("plant"), *IN_PYTHON], name))
    if is_code(name) and (stray := sorted(rest.keys() - {"params"})):
        raise scenario.error((*key, stray[0]), "unknown key beside code of your own", "kind, params")
    return name, rest


def _linear(
    scenario: Scenario, key: Key, name: str, rest: dict[str, Any], period_ns: int, *, bilinear: bool
) -> dict[str, Any]:
    """A linear system that can be computed from tick to tick."""
    try:
        found = (
            _own(scenario, key, name, rest)
            if is_code(name)
            else {"kind": name} | _completed(name, parameters(rest))
        )
        linear.sampled(found, period_ns, controls=bilinear)
    except Refused as fault:
        raise builtins.faulty(scenario.error, key, name, rest, fault) from None
    return found


def _completed(name: str, given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_tcps.completed("plant", name, json.dumps(given)))
    return found


def _is_plant(scenario: Scenario, key: Key, text: str) -> bool:
    """Whether code is a class of plants that return their matrices."""
    if LIBRARY.fullmatch(text.rpartition(":")[0]):
        return False
    found = loaded(scenario, key, text)[1]
    return inspect.isclass(found) and issubclass(found, door.Plant)


def _run(book: Book, key: Key, text: str, rest: dict[str, Any]) -> dict[str, Any] | None:
    """The code of a plant that is called at each tick; none if it returns matrices."""
    if _is_plant(book.scenario, key, text):
        return None
    module, symbol = text.rpartition(":")[::2]
    params = rest.get("params", {})
    if text in (*IN_PYTHON.values(), *OF_AXES.values()):
        params = door.located(find(module, symbol), params, book.scenario.folder)
    return code(book, (*key, "kind"), text, "hook", params, "kinematics")


def _answering(book: Book, key: Key, text: str, found: dict[str, Any], period_ns: int) -> dict[str, Any]:
    """A plant of code, once it has answered at rest with 1."""
    try:
        answers = _rest(found, period_ns)
    except TcpsbedError as error:
        why = error.text.removeprefix("the plant ")
        raise book.scenario.error(key, f'found "{text}", which {why}', error.allowed or _ANSWERS) from None
    if any(abs(y - 1) > _REST for y in answers):
        said = ", ".join(f"{y:g}" for y in answers)
        raise book.scenario.error(key, f'found "{text}", which answers k = 1 with {said}', _ANSWERS)
    return found


def _rest(plant: dict[str, Any], period_ns: int) -> list[float]:
    """What code answers to k = 1, three times; the values of all axes one after the other."""
    if "axes" not in plant:
        found: list[float] = _tcps.plant_response(json.dumps(plant), period_ns, [1.0, 1.0, 1.0])
        return found
    import numpy as np

    from tcpsbed.robots import axes

    try:
        answered: list[float] = np.ravel(axes.answers(plant, period_ns, np.ones((3, plant["axes"])))).tolist()
    except TcpsbedError:
        raise
    except Exception as error:  # the user's code may fail in any way
        raise HookError(f"fails: {told(error)}") from None
    return answered


def _own(scenario: Scenario, key: Key, text: str, rest: dict[str, Any]) -> dict[str, Any]:
    """A class of the user's that returns matrices."""
    params = rest.get("params", {})
    module, _ = loaded(scenario, key, text)
    symbol = text.rpartition(":")[2]
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
        if linear.several({"kind": STATE_SPACE} | given):
            linear.refuse_shapes({"kind": STATE_SPACE} | given)
            return {"kind": STATE_SPACE} | given
        return {"kind": STATE_SPACE} | _completed(STATE_SPACE, given)
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
    n = len(a) if a.size else 0
    if d.size == 1 and b.size == n and c.size == n:
        b, c, d = b.ravel(), c.ravel(), np.asarray(d.item())
    elif d.size == 1 and not d.any() and b.ndim == c.ndim == 2:
        d = np.zeros((len(c), b.shape[1]))
    return [a.reshape(len(a), -1).tolist() if a.size else [], b.tolist(), c.tolist(), d.tolist()]
