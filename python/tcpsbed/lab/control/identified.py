"""The linear model of a plant that is code, from what it answers: realised from its impulse response.

```text
g(n) = (y+(n) - y-(n)) / 2 eps     k = 1 +- eps at tick 0, 1 afterwards; y = 1 at rest
H(i, j) = g(i + j + 1) = U S V^T   A = S^-1/2 U^T H' V S^-1/2,  B = S^1/2 V^T e1,  C = e1^T U S^1/2,  D = g(0)
```
H' is H one tick later. [Kung 1978] Of the orders up to 16 it is the lowest one whose answer is that of the code. With
several axes each g(n) is a matrix, with a column for each command, and H has them as blocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from tcpsbed import _tcps, linear
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control.loci import margins
from tcpsbed.lab.control.theory import LoopModel, Margins
from tcpsbed.scenarios.model.entries import CODE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpsbed.lab.control.loop import Loop

EPS = 1e-3
"""Size of the impulse."""
ROWS, LEAST_ROWS = 250, 60
"""Rows and columns of H, in blocks, of all axes together and at least."""
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

    axes = (linear.shape(plant) or (1, 1))[0]
    rows = max(LEAST_ROWS, ROWS // axes)
    period_ns, length = round(period_ms * 1e6), 2 * rows + 1
    g = np.stack([_impulse_of(plant, period_ns, length, axes, k, key) for k in range(axes)], axis=2)
    if not g.any(axis=(0, 1)).all():
        found = "code that does not answer to a small change of its command"
        raise ConfigError(f"found {found}", key=key, allowed="a plant without dead zone about its rest")
    hankel, later = _blocks(g, rows, rows, 1), _blocks(g, rows - 1, rows, 2)
    left, sizes, right = np.linalg.svd(hankel)
    best: tuple[float, int, linear.Sampled] | None = None
    for order in range(MOST_ORDER + 1):
        if order and sizes[order - 1] <= sizes[0] * 1e-14:
            break
        root = np.sqrt(sizes[:order])
        observed, reached = left[:, :order] * root, right[:order].T * root
        a = np.linalg.pinv(observed[:-axes]) @ later @ np.linalg.pinv(reached.T)
        system = linear.Sampled(a, reached[:axes].T, observed[:axes], g[0])
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
    step = answers(plant, period_ns, np.full((length, axes), 2.0), key) - 1
    off = _off(np.cumsum(_impulse(system, length).sum(axis=2), axis=0), step)
    return Linearised(
        _as_planned(system, axes, period_ns, several=linear.shape(plant) is not None), order, off
    )


def _impulse_of(
    plant: dict[str, Any], period_ns: int, length: int, axes: int, command: int, key: str
) -> NDArray[np.float64]:
    """What code answers to an impulse of a command, by the size of that, shape (length, axes)."""
    import numpy as np

    def answered(eps: float) -> NDArray[np.float64]:
        k = np.ones((length, axes))
        k[0, command] = 1 + eps
        return answers(plant, period_ns, k, key)

    return (answered(EPS) - answered(-EPS)) / (2 * EPS)


def _blocks(g: NDArray[np.float64], rows: int, columns: int, first: int) -> NDArray[np.float64]:
    """The matrix of blocks g(i + j + first)."""
    import numpy as np

    found = g[first + np.add.outer(np.arange(rows), np.arange(columns))]
    blocks: NDArray[np.float64] = found.transpose(0, 2, 1, 3).reshape(rows * g.shape[1], -1)
    return blocks


def _as_planned(system: linear.Sampled, axes: int, period_ns: int, *, several: bool) -> dict[str, Any]:
    a, b, c, d = (part.tolist() for part in (system.a, system.b, system.c, system.d))
    if not several:
        b, c, d = [row[0] for row in b], c[0], d[0][0]
    return {"kind": "state-space", "a": a, "b": b, "c": c, "d": d, "sample_time_ns": period_ns}


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
    return margins(
        LoopModel(*gains, loop.period_ms, loop.delay_ms, step.divisor, step.plant, loop.law, step.axis)
    )


def answers(
    plant: dict[str, Any], period_ns: int, commands: NDArray[np.float64], key: str
) -> NDArray[np.float64]:
    """What a plant answers to commands that hold for a tick each; both of shape (ticks, axes)."""
    import numpy as np

    from tcpsbed.robots import axes

    try:
        if linear.shape(plant) is not None:
            return axes.answers(plant, period_ns, commands)
        return np.array(_tcps.plant_response(json.dumps(plant), period_ns, commands[:, 0].tolist()))[:, None]
    except ConfigError:
        raise
    except Exception as error:  # the user's code may fail in any way
        found = getattr(error, "text", str(error))
        raise ConfigError(
            f"found code that fails: {found}", key=key, allowed="a plant that answers every k"
        ) from None


def _impulse(system: linear.Sampled, length: int) -> NDArray[np.float64]:
    """The impulse response, shape (length, outputs, inputs)."""
    import numpy as np

    found, x = [system.d], system.b
    for _ in range(length - 1):
        found.append(system.c @ x)
        x = system.a @ x
    return np.array(found)


def _off(found: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    import numpy as np

    largest = float(np.abs(right).max())
    return float(np.abs(found - right).max()) / largest if largest else float(np.abs(found).max())
