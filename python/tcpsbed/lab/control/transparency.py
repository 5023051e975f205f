"""Bilateral schemes measured: felt against true impedance, and stability over delay.

```text
felt    the hand swings by a millimetre at several frequencies at once:  Z(f) = F(f) / V(f) at the device
there   a wall K deep in contact: |Z| = K / (2 pi f);  free space: 0
Z-width |Z| at the wall less |Z| in free space: what of the range can be told apart
rest    the hand presses and stays: how fast the device still moves in the last second, and the least energy in the channel
```
Schemes that are not linear (passivity control, learned models) are described by what they do at this swing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpsbed import _tcps
from tcpsbed.errors import ConfigError, Refused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FREQUENCIES_HZ = (0.5, 1.0, 2.0, 4.0, 8.0)
SWING_M = 0.001
"""How far the hand swings at each frequency."""
WALL_M, DEEP_M, FREE_M = 0.02, 0.015, 1.0
"""Where the wall begins; how far beyond it the hand wants to be; and where the wall is when there is none."""
APPROACH_S, SETTLE_S, MEASURE_S = 1.0, 4.0, 4.0
"""The hand goes there, comes to rest, and is measured over whole periods of every frequency."""
MOST_RTT_MS = 1000
"""Longest round trip: several of them pass while the device comes to rest, or nothing would be felt."""
STIFFNESS_N_M = 500.0
REST_M_S = 0.02
"""A device that moves slower than this while the hand stays is at rest."""
TICK_S = 0.001


@dataclass(frozen=True)
class Setting:
    """A scheme over a network."""

    scheme: str
    rtt_ms: int
    loss: float = 0.0
    burst: float = 1.0
    deadband: float = 0.0
    seed: int = 1
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """What a setting is like.

    Attributes
    ----------
    rest_m_s : float
        Highest speed of the device in the last second while the hand stays pressed.
    least_mj : float
        Least energy in the channel, in mJ; below 0 it has given out more than it was given.
    messages : float
        Share of messages that went, 1 without a deadband.
    wall, free : tuple of float
        |Z| at the wall and in free space at `FREQUENCIES_HZ`, in N s/m; empty where it does not come to rest.
    """

    setting: Setting
    rest_m_s: float
    least_mj: float
    messages: float
    wall: tuple[float, ...]
    free: tuple[float, ...]

    @property
    def stable(self) -> bool:
        """Whether the device comes to rest."""
        return self.rest_m_s < REST_M_S

    @property
    def width(self) -> tuple[float, ...]:
        """Z-width at each frequency, in N s/m."""
        return tuple(wall - free for wall, free in zip(self.wall, self.free, strict=True))


def there(frequency_hz: float) -> float:
    """|Z| of the wall itself, in N s/m.

    Examples
    --------
    >>> round(there(1.0), 2)
    79.58
    """
    from math import pi

    return STIFFNESS_N_M / (2 * pi * frequency_hz)


def measure(settings: Iterable[Setting], progress: Callable[[float], object] | None = None) -> list[Measured]:
    """Measures settings, in their order.

    Raises
    ------
    ConfigError
        If a scheme, or a parameter of it, is not known, or a round trip is too long.
    """
    listed = list(settings)
    for setting in listed:
        if setting.rtt_ms > MOST_RTT_MS:
            raise ConfigError(f"found {setting.rtt_ms} ms", key="--rtt", allowed=f"0 to {MOST_RTT_MS} ms")
    found = []
    for number, setting in enumerate(listed):
        found.append(_measured(setting))
        if progress is not None:
            progress((number + 1) / len(listed))
    return found


def _measured(setting: Setting) -> Measured:
    import numpy as np

    press = _run(setting, WALL_M, _approach(WALL_M + 0.01))
    rest = float(np.abs(press[-1000:, 1]).max())
    wall: tuple[float, ...] = ()
    free: tuple[float, ...] = ()
    if rest < REST_M_S:
        wall = _felt(_run(setting, WALL_M, _swing(WALL_M + DEEP_M)))
        free = _felt(_run(setting, FREE_M, _swing(0.0)))
    least, messages = float(press[:, 5].min()), float(press[:, 6].mean()) / 2
    return Measured(setting, rest, 1e3 * least, messages, wall, free)


def _run(setting: Setting, wall_m: float, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (ticks, 7): x, v of the device, x of the slave, force, contact, energy, messages."""
    import numpy as np

    slave = {"wall_m": wall_m, "stiffness_n_m": STIFFNESS_N_M}
    try:
        rows = _tcps.bilateral(json.dumps(vars(setting) | {"slave": slave}), wanted.tolist())
    except Refused as fault:
        key = "--schemes" if fault.key == "scheme" else fault.key
        raise ConfigError(f"found {fault.found}", key=key, allowed=fault.allowed) from None
    return np.array(rows)


def _approach(to_m: float) -> NDArray[np.float64]:
    import numpy as np

    t = np.arange(0, APPROACH_S + SETTLE_S + MEASURE_S, TICK_S)
    return to_m * np.minimum(t / APPROACH_S, 1.0)


def _swing(about_m: float) -> NDArray[np.float64]:
    import numpy as np

    wanted = _approach(about_m)
    t = np.arange(len(wanted)) * TICK_S
    for number, hz in enumerate(FREQUENCIES_HZ):
        wanted = wanted + SWING_M * np.sin(2 * np.pi * hz * t + number)
    return wanted


def _felt(rows: NDArray[np.float64]) -> tuple[float, ...]:
    """|Z| at each frequency, over whole periods at the end."""
    import numpy as np

    count = round(MEASURE_S / TICK_S)
    last = rows[-count:]
    t = np.arange(count) * TICK_S
    waves = np.exp(-2j * np.pi * np.outer(FREQUENCIES_HZ, t))
    force, speed = waves @ last[:, 3], waves @ last[:, 1]
    return tuple(float(z) for z in np.abs(force) / np.maximum(np.abs(speed), 1e-12))
