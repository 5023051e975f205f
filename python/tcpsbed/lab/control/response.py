"""Measures of a step response: rise time, overshoot, undershoot, settling time, steady-state error.

```text
h 1.0 ┤━━━━━━┓           ╭──╮   overshoot        h falls from 1 to 1/c at t0 and is brought back to 1
      │      ┃         ╭─╯  ╰─────────           the step is 1 - 1/c
  0.95┤------┃-------╭─╯  90 % of the step       c = 2: 0.95
      │      ┃     ╭─╯
  1/c ┤      ┗━━━━━╯
             t0      │ rise time
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tcpsbed import _tcps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Disturbance = Literal["gain", "output"]


@dataclass(frozen=True)
class Step:
    """A step: what is asked for falls to `1/c` of it at `t0_ms`. The plant is as a plan has it, if it has a memory.

    With a disturbance of the `gain` the loop after the step has a c-th of its gain; with one of the `output` all of it.
    """

    c: float = 2.0
    t0_ms: float = 200.0
    plant: dict[str, Any] | None = None
    disturbance: Disturbance = "gain"
    axis: int = 0
    """The place of the axis that jumps, of several."""

    @property
    def divisor(self) -> float:
        """What the gain of the loop is divided by after the step."""
        return self.c if self.disturbance == "gain" else 1.0

    @property
    def left(self) -> str:
        """How much of its gain the loop has after the step, in words; empty: all of it."""
        return "" if self.divisor == 1 else f", with 1/{self.divisor:g} of the gain, as after the step"

    @property
    def height(self) -> float:
        """The size of the step."""
        return 1 - 1 / self.c


@dataclass(frozen=True)
class Response:
    """One response. Shares of the step are in percent.

    Attributes
    ----------
    rise_ms : float
        From t0 until h first reaches 90 % of the step; not a number if it never does.
    overshoot : float
        How far h goes above 1.
    undershoot : float
        How far h falls below 1 again, after it first crossed 1.
    settling_ms : float
        From t0 until h stays within 5 % of the step about 1; not a number if it does not do so for the last tenth of the
        time after t0.
    error : float
        Mean of h less 1 over the last tenth of the time after t0.
    """

    rise_ms: float
    overshoot: float
    undershoot: float
    settling_ms: float
    error: float


# [Polachan 2022] rise time, overshoot, undershoot; settling and error are the testbed's own definitions
def characterise(t_ms: NDArray[np.float64], h: NDArray[np.float64], step: Step) -> Response:
    """The response of a run.

    Parameters
    ----------
    t_ms : numpy.ndarray
        Shape (n,), times of the values, rising, in ms.
    h : numpy.ndarray
        Shape (n,), the value at the far side, which holds until the next one.
    step : Step
        The step.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(0.0, 10.0)
    >>> h = np.array([1, 1, 0.5, 0.5, 0.7, 0.96, 1.1, 1.0, 0.99, 1.0])
    >>> found = characterise(t, h, Step(2, 2))
    >>> found.rise_ms, round(found.overshoot), round(found.undershoot)
    (3.0, 20, 2)
    """
    return Response(*_tcps.step_response(step.c, step.t0_ms, t_ms.tolist(), h.tolist()))


def dip(h: NDArray[np.float64]) -> tuple[float, int]:
    """The deepest fall before a response first crosses 1, which undershoot does not count.

    Parameters
    ----------
    h : numpy.ndarray
        Shape (n,), a response from the step on.

    Returns
    -------
    tuple of float and int
        The fall from the highest value before it, and the place of its lowest value; 0 and 0 of a response that only rises.

    Examples
    --------
    >>> import numpy as np
    >>> dip(np.array([0.0, 0.75, 0.5, 1.0, 0.25]))
    (0.25, 2)
    """
    import numpy as np

    crossed = np.flatnonzero(h >= 1)
    before = h[: crossed[0]] if len(crossed) else h
    falls = np.maximum.accumulate(before) - before
    place = int(falls.argmax()) if len(falls) else 0
    return (float(falls[place]), place) if len(falls) else (0.0, 0)


def coupling(t_ms: NDArray[np.float64], h: NDArray[np.float64], step: Step) -> float:
    """How far axes beside that of the step leave 1 from t0 on, in percent of the step; `h` has a column for each axis."""
    import numpy as np

    others = np.delete(h, step.axis, axis=1)[t_ms >= step.t0_ms]
    return 100 * float(np.abs(others - 1).max()) / step.height if others.size else 0.0
