"""Plants and controllers as objects of Python: what a scenario says of them.

| object | example |
|---|---|
| name, table, code | `"lag"`, `{"kind": "lag", "time_constant": "5 ms"}`, `"./mine.py:Shaft"` |
| numerator and denominator, from the highest power on | `([1.0], [0.05, 1.0])` |
| in z, with the sample time in s | `([0.1], [1.0, -0.9], 0.001)` |
| A, B, C, D; in z with the sample time in s behind | `([[-50.0]], [50.0], [1.0], 0.0)` |
| transfer function or state space of python-control or scipy.signal | `control.tf([1], [0.05, 1])` |
| object of a `tcpsbed.Plant`, also of a notebook | `Shaft(spring_hz=15)` |
| class or function of a file | `Shaft`, a `tcpsbed.Plant`, or code with the interface of a hook |
| several axes: rows with those of each input, matrices, objects | `control.ss(A, B, C, D)` |
"""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import Plant, linear, scenarios
from tcpsbed.errors import ConfigError, one_line
from tcpsbed.hooks import find, make, safely
from tcpsbed.lab.control.loop import COMPENSATOR, CONTROLLER, ROBOT, alone
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.model.entries import defaults
from tcpsbed.scenarios.origin import Option
from tcpsbed.scenarios.units import duration_ns, parameters

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

System = Any
"""An object of the table above."""
ALLOWED = (
    'numerator and denominator such as ([1.0], [0.05, 1.0]), matrices (A, B, C, D), a name such as "lag", a table, '
    'code such as "./mine.py:Mine", or a transfer function or state space of python-control or scipy.signal'
)

EMPTY = '""'
"""Put in place of a table before another one: tables would be merged."""


def table(system: System, key: str) -> str | dict[str, Any]:
    """What a scenario says of an object.

    Parameters
    ----------
    system
        One of the objects above.
    key
        What it was given as, for messages.

    Returns
    -------
    str or dict
        A name, or a table with `kind`.

    Raises
    ------
    ConfigError
        If it is none of them, or is not finite.

    Examples
    --------
    >>> table(([1], [0.05, 1]), "plant")
    {'kind': 'transfer-function', 'num': [1.0], 'den': [0.05, 1.0]}
    """
    if isinstance(system, str):
        return _placed(system) if ":" in system else system
    if isinstance(system, Mapping):
        named = {name: value for name, value in system.items() if isinstance(value, str)}
        files = {name: _placed(value) for name, value in named.items() if name == "file" or ":" in value}
        return {str(name): files.get(name, value) for name, value in system.items()}
    if isinstance(system, Sequence):
        return _of_parts(list(system), key)
    if isinstance(system, Plant):  # whatever its parameters are called
        return _matrices(system, key)
    for num, den in (("num_list", "den_list"), ("num", "den")):
        if hasattr(system, num) and hasattr(system, den):
            parts = [_unwrapped(getattr(system, num)), _unwrapped(getattr(system, den))]
            return _transfer_function(parts, _sample_time(system, key), key)
    if all(hasattr(system, name) for name in "ABCD"):
        return _state_space([getattr(system, name) for name in "ABCD"], _sample_time(system, key), key)
    if hasattr(system, "to_ss"):  # zeros, poles and gain of scipy
        return table(system.to_ss(), key)
    if hasattr(system, "updfcn"):
        allowed = "its linear model, such as control.linearize(system, x0, u0), or a class of your own"
        raise ConfigError("found a nonlinear system of python-control", key=key, allowed=allowed)
    if inspect.isclass(system) or inspect.isfunction(system):
        return _code(system, key)
    raise ConfigError(f"found {type(system).__name__}", key=key, allowed=ALLOWED)


def _placed(text: str) -> str:
    """Code, or a file, with its whole path if it is below the working folder; other paths start from the scenario."""
    place, colon, symbol = text.rpartition(":")
    file = Path.cwd() / (place or text)
    return f"{file.resolve()}{colon}{symbol if colon else ''}" if file.is_file() else text


def read(text: str | None, key: str) -> System | None:
    """A plant or controller as an option has it: a name, code, or a table as TOML writes it on one line."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        found: dict[str, Any] = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError as error:
        allowed = "a table of TOML on one line, such as '{ kind = \"transfer-function\", num = [1], den = [0.05, 1] }'"
        raise ConfigError(f'found "{text}" ({error})', key=f"--{key}", allowed=allowed) from None
    return found


def _of_parts(parts: list[Any], key: str) -> dict[str, Any]:
    """A tuple: its length says what it is, a number at its end is the sample time."""
    timed = len(parts) in (3, 5) and isinstance(parts[-1], int | float) and not isinstance(parts[-1], bool)
    *most, last = parts if parts else [None]
    if len(parts) == 2 or (len(parts) == 3 and timed):
        num, den = parts[:2]
        return _transfer_function([num, den], _positive(last, key) if timed else None, key)
    if len(parts) in (3, 4):
        return _state_space([*parts, 0.0][:4], None, key)
    if timed:
        return _state_space(most, _positive(last, key), key)
    raise ConfigError(f"found {len(parts)} parts", key=key, allowed=ALLOWED)


def _transfer_function(parts: list[Any], sample_s: float | None, key: str) -> dict[str, Any]:
    """Coefficients, or rows with those of each input; of python-control arrays of arrays."""
    rows = [_rows(part) for part in parts]
    if None in rows:
        num, den = (
            _numbers(part, f"{key}: {name}", 1) for part, name in zip(parts, ("num", "den"), strict=True)
        )
        return {"kind": "transfer-function", "num": num, "den": den} | _timed(sample_s)
    num, den = (
        [[_numbers(of, f"{key}: {name}", 1) for of in row] for row in part or ()]
        for part, name in zip(rows, ("num", "den"), strict=True)
    )
    if len(num) == len(den) == 1 and len(num[0]) == len(den[0]) == 1:
        num, den = num[0][0], den[0][0]
    return {"kind": "transfer-function", "num": num, "den": den} | _timed(sample_s)


def _rows(part: Any) -> list[list[Any]] | None:
    """Rows of lists of coefficients; none if it has coefficients alone."""
    import numpy as np

    nested = (Sequence, np.ndarray)
    if not isinstance(part, nested) or not len(part) or not all(isinstance(row, nested) for row in part):
        return None
    if not all(len(row) and all(isinstance(of, nested) for of in row) for row in part):
        return None
    return [list(row) for row in part]


def _state_space(parts: list[Any], sample_s: float | None, key: str) -> dict[str, Any]:
    """Matrices; of one input and one output B and C are vectors, D is a number."""
    import numpy as np

    given = dict(zip("abcd", parts, strict=True))
    found: dict[str, Any] = {
        name: _numbers(part, f"{key}: {name.upper()}", 2) for name, part in given.items()
    }
    states = np.shape(found["a"])[0] if np.size(found["a"]) else 0
    a = found["a"] if states else []
    if (size := _axes_of(found, states)) is not None:
        b, c, d = (np.array(found[name], float) for name in "bcd")
        d = (
            np.broadcast_to(d, size)
            if d.size == 1 and not d.any()
            else d.reshape(d.shape if d.ndim == 2 else size)
        )
        told = {"b": b.reshape(states, -1), "c": c.reshape(-1, states) if states else c, "d": d}
        return {"kind": "state-space", "a": a} | {k: v.tolist() for k, v in told.items()} | _timed(sample_s)
    for name in "bcd":
        size_ = np.size(found[name])
        if size_ != (1 if name == "d" else states):
            wanted = (
                "one number" if name == "d" else f"{states} numbers, as A has rows (one input, one output)"
            )
            raise ConfigError(f"found {size_} numbers", key=f"{key}: {name.upper()}", allowed=wanted)
        found[name] = np.ravel(found[name]).tolist()
    return {"kind": "state-space"} | found | {"a": a, "d": found["d"][0]} | _timed(sample_s)


def _axes_of(found: Mapping[str, Any], states: int) -> tuple[int, int] | None:
    """Outputs and inputs of matrices; none of a single input and output, or if B and C are not such matrices."""
    import numpy as np

    b, c, d = (np.array(found[name], float) for name in "bcd")
    if not states:
        return (d.shape[0], d.shape[1]) if d.ndim == 2 and d.size > 1 else None
    inputs = b.shape[1] if b.ndim == 2 and len(b) == states else 1 if b.size == states else 0
    outputs = len(c) if c.ndim == 2 and c.shape[1] == states else 1 if c.size == states else 0
    many = inputs * outputs > 1
    return (
        (outputs, inputs)
        if many and (d.shape == (outputs, inputs) or (d.size == 1 and not d.any()))
        else None
    )


def _numbers(part: Any, key: str, axes: int) -> Any:
    """Finite numbers as lists."""
    import numpy as np

    example = (
        "a list of finite numbers, such as [0.05, 1.0]" if axes == 1 else "finite numbers, such as [[-50.0]]"
    )
    try:
        found = np.asarray(part, float)
    except (TypeError, ValueError):
        raise ConfigError(f"found {part!r:.80}", key=key, allowed=example) from None
    if axes == 1 and found.ndim == 0:
        allowed = f"a list of coefficients, from the highest power on, such as [{found:g}]"
        raise ConfigError(f"found {part!r:.80}", key=key, allowed=allowed)
    if found.ndim > axes or (axes == 1 and found.ndim != 1):
        raise ConfigError(f"found an array of {found.ndim} dimensions", key=key, allowed=example)
    if max(found.shape, default=0) > linear.MOST_STATES:
        size = " × ".join(map(str, found.shape))
        allowed = f"at most {linear.MOST_STATES} states or coefficients: {example}"
        raise ConfigError(f"found {size} numbers", key=key, allowed=allowed)
    if not np.isfinite(found).all():
        raise ConfigError(f"found {float(found[~np.isfinite(found)][0]):g}", key=key, allowed=example)
    return found.tolist()


def _unwrapped(part: Any) -> Any:
    """Coefficients of a system with one input and output: python-control has a list of lists of arrays."""
    rows = _rows(part)
    return rows[0][0] if rows is not None and len(rows) == len(rows[0]) == 1 else part


def _sample_time(system: Any, key: str) -> float | None:
    """The sample time in s of a system in z; none of one in s."""
    dt = getattr(system, "dt", None)
    if dt is None or (dt == 0 and dt is not False):
        return None
    if isinstance(dt, bool):
        raise ConfigError(
            f"found dt = {dt}", key=key, allowed="a sample time in s, such as dt = 0.001, or 0: a system in s"
        )
    return _positive(dt, key)


def _positive(value: Any, key: str) -> float:
    if not (math.isfinite(value) and 1e-6 <= value <= 1e4):
        raise ConfigError(
            f"found {value:g}", key=f"{key}: sample time", allowed="1e-6 to 1e4 s, such as 0.001"
        )
    return float(value)


def _timed(sample_s: float | None) -> dict[str, str]:
    return {} if sample_s is None else {"sample_time": f"{round(sample_s * 1e9) / 1e6:.12g} ms"}


def _matrices(plant: Plant, key: str) -> dict[str, Any]:
    """What an object of a class returns: A, B and C, and D unless it is 0."""
    try:
        parts = list(safely(plant.matrices))
    except Exception as error:
        raise ConfigError(
            f"found {type(plant).__name__}, whose matrices() failed: {one_line(str(error))}", key=key
        ) from error
    if len(parts) not in (3, 4):
        raise ConfigError(
            f"found {len(parts)} parts", key=key, allowed="A, B and C, or A, B, C and D, from matrices()"
        )
    return _state_space([*parts, 0.0][:4], None, key)


def _code(code: Any, key: str) -> str:
    """The place of a class or function."""
    try:
        file = inspect.getsourcefile(code)
    except (TypeError, OSError):  # of a cell or a prompt, which no file holds
        file = None
    if file is None or not Path(file).is_file() or not code.__qualname__.isidentifier():
        allowed = f'a class or function at the top of a file, such as "./mine.py:Mine"{_made(code)}'
        raise ConfigError(
            f"found {code.__qualname__}, which no file has at its top", key=key, allowed=allowed
        )
    return f"{Path(file).resolve()}:{code.__name__}"


def _made(code: Any) -> str:
    """What a class of a notebook can be given as instead."""
    plant = inspect.isclass(code) and issubclass(code, Plant)
    return f", or an object of it, such as {code.__name__}()" if plant else ""


def override(name: str, key: str, value: Any) -> Option:
    """The override of a scenario by something that was given as `name`."""
    try:
        found = Option(*scenarios.overrides({key: value}))
    except ConfigError as error:
        raise ConfigError(error.found, key=name, allowed=error.allowed) from None
    found.typed = f"--{name}"
    return found


def own(
    scenario: Scenario,
    plant: System | None,
    controller: System | None,
    disturbance: str | None,
) -> Scenario:
    """The shipped scenario with these, at the sample time of a system in z."""
    return applied(paced(scenario, sample_time_ns(plant, controller)), plant, controller, disturbance)


def applied(
    scenario: Scenario,
    plant: System | None = None,
    controller: System | None = None,
    disturbance: str | None = None,
    loop: str | None = None,
) -> Scenario:
    """The scenario whose loop has this plant, controller and disturbance; what is not given stays.

    Parameters
    ----------
    loop
        The component of the loop's robot; absent: the only one.
    """
    sets: list[str] = []
    size: tuple[int, int] | None = None
    if plant is not None or disturbance is not None:
        robots = {
            name: one.robot
            for name, one in scenario.components.items()
            if one.robot and one.robot.run == ROBOT
        }
        name = _only(
            list(robots), loop, "plant" if plant is not None else "disturbance", f'robot = "{ROBOT}"'
        )
        place = f"components.{name}.robot"
        if isinstance(scenario.document["components"][name]["robot"], str):
            sets.append(f'{place}={{ run = "{ROBOT}" }}')
        if plant is not None:
            said = table(plant, "plant")
            said = said if isinstance(said, str) else alone(said)
            size = axes(said)
            sets += [f"{place}.params.plant={EMPTY}", override("plant", f"{place}.params.plant", said)]
        if disturbance is not None:
            sets.append(override("disturbance", f"{place}.params.disturbance", disturbance))
    if size is not None:
        sets += _roomy(scenario, size)
    if controller is not None or size is not None:
        hooks = [name for name, hook in scenario.hooks.items() if hook.run in (CONTROLLER, COMPENSATOR)]
        name = _only(hooks, None, "controller", f'a hook with run = "{CONTROLLER}" or "{COMPENSATOR}"')
        said = _gains(scenario, name) if controller is None else table(controller, "controller")
        if size is not None and axes(said) is None:
            said = _on_each(said, size)
        sets += [f'hooks.{name}.run="{COMPENSATOR}"', f"hooks.{name}.params={EMPTY}"]
        sets.append(override("controller", f"hooks.{name}.params.system", said))
    return scenario.changed(sets) if sets else scenario


def axes(said: str | Mapping[str, Any]) -> tuple[int, int] | None:
    """Outputs and inputs of a system of several axes, as a scenario has it; none of one axis, or where it is not known."""
    told: Mapping[str, Any] = {"kind": said} if isinstance(said, str) else said
    kind = str(told.get("kind", ""))
    if kind in ("state-space", "transfer-function"):
        return linear.shape(told) if linear.several(told) else None
    if kind == "mujoco":
        number = len(named) if isinstance(named := told.get("actuator"), list) else 1
        return (number, number) if isinstance(named, list) else None
    place, _, symbol = kind.rpartition(":")
    if not place.endswith(".py") or not Path(place).is_file():
        return None
    with suppress(Exception):  # the user's code may fail in any way; the scenario says how
        code = find(place, symbol)
        if inspect.isclass(code) and issubclass(code, Plant):
            made = safely(make(place, symbol, parameters(dict(told.get("params", {})))).matrices)
            parts = _state_space([*made, 0.0][:4], None, "plant")
            return linear.shape(parts) if linear.several(parts) else None
        number = int(getattr(code, "axes", 1))
        return (number, number) if 1 < number <= linear.MOST_AXES else None
    return None


def _roomy(scenario: Scenario, size: tuple[int, int]) -> Iterator[str]:
    """Samples of the flows of values that hold one for each axis."""
    for name, flow in scenario.flows.items():
        if flow.codec == "f64":
            number = size[1] if flow.direction == "forward" else size[0]
            yield from scenarios.overrides({f"flows.{name}.sample": f"{8 * number} B"})


def _gains(scenario: Scenario, name: str) -> dict[str, Any]:
    """The controller of a hook `pi` as a system in z, or the system of a compensator."""
    hook = scenario.hooks[name]
    if hook.run == COMPENSATOR:
        return table(hook.params.get("system", "static"), "controller")  # type: ignore[return-value]
    known = defaults("hook", CONTROLLER) | parameters(hook.params)
    forward = next(flow for flow in scenario.flows.values() if flow.direction == "forward")
    period_ms = 1e3 / forward.rate_hz
    kp, g = known["kp"], known["ki_per_ms"] * period_ms
    return _transfer_function([[kp + g, -kp], [1.0, -1.0]], period_ms * 1e-3, "controller")


def _on_each(said: str | dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """A controller of one axis on each of several."""
    outputs, inputs = size
    if outputs != inputs:
        found = f"found a controller of one axis for a plant of {outputs} outputs and {inputs} inputs"
        raise ConfigError(found, key="controller", allowed=f"one of {inputs} outputs and {outputs} inputs")
    if isinstance(said, str) or said["kind"] != "transfer-function":
        allowed = (
            "a transfer function for all axes, such as ([0.2, 10], [1, 0]), or a controller of several axes"
        )
        raise ConfigError(f"found {said!r:.80} for {inputs} axes", key="controller", allowed=allowed)
    num, den = (
        [[said[key] if i == j else [rest] for j in range(inputs)] for i in range(inputs)]
        for key, rest in (("num", 0.0), ("den", 1.0))
    )
    return said | {"num": num, "den": den}


def paced(scenario: Scenario, period_ns: int | None) -> Scenario:
    """The shipped scenario whose controller and robot have this period; as it is, if there is none."""
    if period_ns is None:
        return scenario
    rates = {f"flows.{name}.rate": f"{1e9 / period_ns!r} Hz" for name in scenario.flows}
    robots = {
        f"components.{name}.robot.period": f"{period_ns} ns"
        for name, one in scenario.components.items()
        if one.robot
    }
    return scenario.changed(rates | robots)


def sample_time_ns(plant: System | None, controller: System | None) -> int | None:
    """The longest sample time of systems in z; none if all are in s."""
    given = plant, controller
    tables = [
        table(one, key) for key, one in zip(("plant", "controller"), given, strict=True) if one is not None
    ]
    found = [one["sample_time"] for one in tables if isinstance(one, dict) and "sample_time" in one]
    with suppress(Refusal):  # the scenario says what is wrong with it
        return max((duration_ns(one) for one in found), default=None)
    return None


def _only(names: list[str], wanted: str | None, key: str, what: str) -> str:
    if wanted in names:
        return str(wanted)
    if len(names) == 1 and wanted is None:
        return names[0]
    found = f'found "{wanted}"' if wanted else f"found {len(names)} of {what} in the scenario"
    allowed = close_match(wanted or "", names) if names else f"a scenario with {what}"
    raise ConfigError(found, key=f"--{key}", allowed=allowed)
