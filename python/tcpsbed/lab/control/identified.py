"""The linear model of a plant that is code, from what it answers: realised from its impulse response.

```text
g(n) = (y+(n) - y-(n)) / 2 eps     k = 1 +- eps at tick 0, 1 afterwards; y = 1 at rest
H(i, j) = g(i + j + 1) = U S V^T   A = S^-1/2 U^T H' V S^-1/2,  B = S^1/2 V^T e1,  C = e1^T U S^1/2,  D = g(0)
```
H' is H one tick later. [Kung 1978] Of the orders up to 16 it is the lowest one whose answer is that of the code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from tcpsbed import _tcps
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.theory import LoopModel, Margins, margins
from tcpsbed.scenarios.model.entries import CODE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.loop import Loop

EPS = 1e-3
"""Size of the impulse."""
ROWS = 250
"""Rows and columns of H."""
MOST_ORDER = 16
EXACT = 1e-9
"""Deviation of the impulse response, in shares of its largest value, below which an order is high enough."""
CLOSE = 1e-2
"""Largest deviation with which a linear model stands for the code."""


@dataclass(frozen=True)
class Linearised:
    """A linear model.

    Attributes
    ----------
    plant : dict
        As a plan has it.
    order : int
        Number of its states.
    off : float
        Largest deviation from the step response of the code to k = 2, in shares of its largest value: what is not linear.
    """

    plant: dict[str, Any]
    order: int
    off: float

    def __str__(self) -> str:
        off = (
            f"{100 * self.off:.3g} % off for a step to k = 2"
            if self.off > EXACT
            else "exact for a step to k = 2"
        )
        return f"plant: code, of which the linear model of order {self.order} was computed ({off})"


def is_code(plant: dict[str, Any] | None) -> TypeGuard[dict[str, Any]]:
    """Whether a plant of a plan is code that is called."""
    return plant is not None and plant["kind"] == CODE


def linearised(plant: dict[str, Any], period_ms: float, key: str = "plant") -> Linearised:
    """The linear model of a plant of a plan that is code, about its rest at k = y = 1, from tick to tick.

    Parameters
    ----------
    plant
        As a plan has it.
    period_ms
        Time between two ticks.
    key
        What named it, for messages.

    Raises
    ------
    ConfigError
        If the code fails, or no linear model answers as it does.
    """
    import numpy as np

    period_ns, length = round(period_ms * 1e6), 2 * ROWS + 1
    up, down = (answers(plant, period_ns, [1 + side * EPS, *[1.0] * (length - 1)], key) for side in (1, -1))
    g = (up - down) / (2 * EPS)
    if not g.any():
        found = "code that does not answer to a small change of its command"
        raise ConfigError(f"found {found}", key=key, allowed="a plant without dead zone about its rest")
    hankel = g[1 + np.add.outer(np.arange(ROWS), np.arange(ROWS))]
    later = g[2 + np.add.outer(np.arange(ROWS - 1), np.arange(ROWS))]
    left, sizes, right = np.linalg.svd(hankel)
    best: tuple[float, int, list[NDArray[np.float64]]] | None = None
    for order in range(MOST_ORDER + 1):
        if order and sizes[order - 1] <= sizes[0] * 1e-14:
            break
        root = np.sqrt(sizes[:order])
        observed, reached = left[:, :order] * root, right[:order].T * root
        a = np.linalg.pinv(observed[:-1]) @ later @ np.linalg.pinv(reached.T)
        system = [a, reached[0], observed[0], g[:1]]
        off = _off(_impulse(system, length), g)
        if best is None or off < best[0]:
            best = off, order, system
        if off < EXACT:
            break
    assert best is not None
    off, order, system = best
    if not off <= CLOSE:
        found = f"code whose answer to a small impulse is not that of a linear plant ({100 * off:.2g} % off)"
        allowed = "a plant that is smooth about its rest, or its linear model, such as a transfer function"
        raise ConfigError(f"found {found}", key=key, allowed=allowed)
    a, b, c, d = (part.tolist() for part in system)
    made = {"kind": "state-space", "a": a, "b": b, "c": c, "d": d[0], "sample_time_ns": period_ns}
    step = answers(plant, period_ns, [2.0] * length, key) - 1
    return Linearised(made, order, _off(np.cumsum(_impulse(system, length)), step))


def with_linear(loop: Loop, period_ms: float) -> tuple[Loop, Linearised | None]:
    """A loop whose plant is linear, and the model in place of code; nothing changes where the plant is linear already."""
    if not is_code(loop.step.plant):
        return loop, None
    found = linearised(loop.step.plant, period_ms)
    return replace(loop, step=replace(loop.step, plant=found.plant)), found


def margins_of(loop: Loop) -> Margins | None:
    """Margins of a loop at the delay of its links, without loss; none where its controller, its delay or its plant's linear
    model is not known.
    """
    known = loop.law is not None or loop.kp is not None
    if loop.delay_ms is None or not known:
        return None
    try:
        step = with_linear(loop, loop.period_ms)[0].step
    except ConfigError:
        return None
    gains = loop.kp or 0.0, loop.ki_per_ms or 0.0
    return margins(LoopModel(*gains, loop.period_ms, loop.delay_ms, step.divisor, step.plant, loop.law))


def answers(plant: dict[str, Any], period_ns: int, commands: list[float], key: str) -> NDArray[np.float64]:
    """What a plant answers to commands that hold for a tick each."""
    import numpy as np

    try:
        return np.array(_tcps.plant_response(json.dumps(plant), period_ns, commands))
    except ConfigError:
        raise
    except Exception as error:  # the user's code may fail in any way
        found = getattr(error, "text", str(error))
        raise ConfigError(
            f"found code that fails: {found}", key=key, allowed="a plant that answers every k"
        ) from None


def _impulse(system: list[NDArray[np.float64]], length: int) -> NDArray[np.float64]:
    import numpy as np

    a, b, c, d = system
    found, x = [float(d[0])], b
    for _ in range(length - 1):
        found.append(float(c @ x))
        x = a @ x
    return np.array(found)


def _off(found: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    import numpy as np

    largest = float(np.abs(right).max())
    return float(np.abs(found - right).max()) / largest if largest else float(np.abs(found).max())
