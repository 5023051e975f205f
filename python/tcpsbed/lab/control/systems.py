"""Plants and controllers as objects of Python: what a scenario says of them.

| object | example |
|---|---|
| name, table, code | `"lag"`, `{"kind": "lag", "time_constant": "5 ms"}`, `"./mine.py:Shaft"` |
| numerator and denominator, from the highest power on | `([1.0], [0.05, 1.0])` |
| in z, with the sample time in s | `([0.1], [1.0, -0.9], 0.001)` |
| A, B, C, D; in z with the sample time in s behind | `([[-50.0]], [50.0], [1.0], 0.0)` |
| transfer function or state space of python-control or scipy.signal | `control.tf([1], [0.05, 1])` |
| class or function of a file | `Shaft`, a `tcpsbed.Plant`, or code with the interface of a hook |
"""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.loop import COMPENSATOR, CONTROLLER, ROBOT
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.origin import Option
from tcpsbed.scenarios.units import duration_ns

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
        If it is none of them, has several inputs or outputs, or is not finite.

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
    for num, den in (("num_list", "den_list"), ("num", "den")):
        if hasattr(system, num) and hasattr(system, den):
            parts = [_siso(getattr(system, num), key), _siso(getattr(system, den), key)]
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
    num, den = (_numbers(part, f"{key}: {name}", 1) for part, name in zip(parts, ("num", "den"), strict=True))
    return {"kind": "transfer-function", "num": num, "den": den} | _timed(sample_s)


def _state_space(parts: list[Any], sample_s: float | None, key: str) -> dict[str, Any]:
    """Matrices of one input and one output; B and C are vectors, D is a number."""
    import numpy as np

    given = dict(zip("abcd", parts, strict=True))
    found: dict[str, Any] = {
        name: _numbers(part, f"{key}: {name.upper()}", 2) for name, part in given.items()
    }
    states = np.shape(found["a"])[0] if np.size(found["a"]) else 0
    for name in "bcd":
        size = np.size(found[name])
        if size != (1 if name == "d" else states):
            wanted = (
                "one number" if name == "d" else f"{states} numbers, as A has rows (one input, one output)"
            )
            raise ConfigError(f"found {size} numbers", key=f"{key}: {name.upper()}", allowed=wanted)
        found[name] = np.ravel(found[name]).tolist()
    a = found["a"] if states else []
    return {"kind": "state-space"} | found | {"a": a, "d": found["d"][0]} | _timed(sample_s)


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
    if not np.isfinite(found).all():
        raise ConfigError(f"found {float(found[~np.isfinite(found)][0]):g}", key=key, allowed=example)
    return found.tolist()


def _siso(part: Any, key: str) -> Any:
    """Coefficients of the only input and output: python-control has a list of lists of arrays."""
    nested = part
    while isinstance(nested, Sequence) and len(nested) == 1 and not isinstance(nested[0], int | float):
        nested = nested[0]
    if isinstance(nested, Sequence) and nested and not isinstance(nested[0], int | float):
        allowed = "one input and one output, such as system[0, 0]"
        raise ConfigError("found a system with several inputs or outputs", key=key, allowed=allowed)
    return nested


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


def _code(code: Any, key: str) -> str:
    """The place of a class or function."""
    try:
        file = inspect.getsourcefile(code)
    except TypeError:
        file = None
    if file is None or not Path(file).is_file() or not code.__qualname__.isidentifier():
        allowed = 'a class or function at the top of a file, such as "./mine.py:Mine"'
        raise ConfigError(
            f"found {code.__qualname__}, which no file has at its top", key=key, allowed=allowed
        )
    return f"{Path(file).resolve()}:{code.__name__}"


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
            sets += [f"{place}.params.plant={EMPTY}", override("plant", f"{place}.params.plant", said)]
        if disturbance is not None:
            sets.append(override("disturbance", f"{place}.params.disturbance", disturbance))
    if controller is not None:
        hooks = [name for name, hook in scenario.hooks.items() if hook.run in (CONTROLLER, COMPENSATOR)]
        name = _only(hooks, None, "controller", f'a hook with run = "{CONTROLLER}" or "{COMPENSATOR}"')
        said = table(controller, "controller")
        sets += [f'hooks.{name}.run="{COMPENSATOR}"', f"hooks.{name}.params={EMPTY}"]
        sets.append(override("controller", f"hooks.{name}.params.system", said))
    return scenario.changed(sets) if sets else scenario


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
