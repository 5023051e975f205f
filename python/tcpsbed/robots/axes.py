"""The step experiment's loop with several axes: the robot `step` and the hook `compensator` where a packet carries them all.

```text
commands k (inputs)  ─►  y = 1 + G (k - 1)       h = y, but from t0 on on the axis of the step  y / c, or y - (1 - 1/c)
answers h (outputs)  ─►  k = 1 + C (1 - h)
```
A scenario names them as those of one axis; its compiler puts these in their place. [Polachan 2022: steps]
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed import hooks
from tcpsbed.errors import HookError
from tcpsbed.linear import Motion, shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


class Called:
    """A plant that is code: called with all commands, it answers with a value for each axis."""

    def __init__(self, run: Mapping[str, Any], axes: int) -> None:
        found = hooks.find(run["name"], run["symbol"])
        self._function = not inspect.isclass(found)
        self._code = found if self._function else hooks.make(run["name"], run["symbol"], run["params"] or {})
        self._memory = (np.zeros(hooks.STATE),) * self._function
        self._y, self._ticks, self._none = np.zeros(axes), 0, np.zeros(0)

    def answer(self, now_ns: int, k: Values) -> Values:
        """Y under the command `k`, which holds from now on."""
        self._y[:] = np.nan
        number = self._code(now_ns, self._ticks, k.copy(), self._none, *self._memory, self._y)
        self._ticks += 1
        if number != len(self._y) or not np.isfinite(self._y).all():
            told = ", ".join(f"{y:g}" for y in self._y)
            raise HookError(
                f"the plant answers with {number} values, {told}, not with {len(self._y)} finite numbers"
            )
        return self._y.copy()


class Linear:
    """A linear plant: y = 1 + G (k - 1)."""

    def __init__(self, system: Mapping[str, Any]) -> None:
        self._motion = Motion(system, controls=False)
        self._last_ns: int | None = None

    def answer(self, now_ns: int, k: Values) -> Values:
        """Y under the command `k`, which holds from now on."""
        self._motion.move(0 if self._last_ns is None else max(0, now_ns - self._last_ns))
        self._last_ns = now_ns
        return 1.0 + self._motion.answer(k - 1.0)


def made(system: Mapping[str, Any]) -> Linear | Called:
    """The plant of a plan, at rest."""
    return Called(system["run"], system["axes"]) if system["kind"] == "code" else Linear(system)


def answers(system: Mapping[str, Any], period_ns: int, commands: Values) -> Values:
    """What a plant answers to commands that hold for a tick each.

    Parameters
    ----------
    system
        As a plan has it.
    commands : numpy.ndarray
        Shape (n, inputs).

    Returns
    -------
    numpy.ndarray
        Shape (n, outputs).
    """
    plant = made(system)
    return np.array([plant.answer(tick * period_ns, k) for tick, k in enumerate(commands)])


class Step:
    """The far side."""

    def __init__(self, c: float, t0_ns: int, disturbance: str, axis: int, plant: dict[str, Any]) -> None:
        self._place, self._t0_ns = axis - 1, t0_ns
        self._scale, self._shift = (1 / c, 0.0) if disturbance == "gain" else (1.0, 1 / c - 1)
        found = shape(plant)
        assert found is not None
        self._plant = made(plant)
        self._k = np.ones(found[1])

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Moves the plant, and writes h of all axes."""
        if len(command) >= len(self._k) and np.isfinite(command[: len(self._k)]).all():
            self._k = command[: len(self._k)].copy()
        h = self._plant.answer(t_ns, self._k)
        if t_ns >= self._t0_ns:
            h[self._place] = self._scale * h[self._place] + self._shift
        sense[: len(h)] = h
        return len(h)


class Compensator:
    """The controller, at each sample of the flow of commands; until something has come back e is 0 and k is 1.

    It moves by whole periods of that flow, also where the clock of the machine is not as even.
    """

    def __init__(self, system: dict[str, Any], period_ns: int) -> None:
        found = shape(system)
        assert found is not None
        self._period_ns = period_ns
        self._motion, (self._inputs, self._outputs) = Motion(system, controls=True), found
        self._last_ns: int | None = None

    def __call__(self, t_ns: int, index: int, x: Values | None, other: Values, y: Values) -> int:
        """Writes k of all inputs of the plant."""
        if x is None:
            return 0
        if 0 < len(other) < self._outputs:
            raise HookError(
                f"found {len(other)} returned values, not the {self._outputs} that the controller takes"
            )
        if not np.isfinite(other[: self._outputs]).all():
            raise HookError(f"found a returned value that is no finite number: {other[: self._outputs]}")
        e = 1.0 - other[: self._outputs] if len(other) else np.zeros(self._outputs)
        periods = 0 if self._last_ns is None else round((t_ns - self._last_ns) / self._period_ns)
        self._motion.move(max(0, periods) * self._period_ns)
        self._last_ns = t_ns
        y[: self._inputs] = 1.0 + self._motion.answer(e)
        return self._inputs
