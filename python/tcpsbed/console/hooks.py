"""The operator's hand, head and force feedback in the browser, as hooks of flows.

| `run` | kind | what it does |
|---|---|---|
| `tcpsbed.console.hooks:Hand` | `kinematics` at the operator | gives x, y, z (m), button, wheel, when it moved (s) |
| `tcpsbed.console.hooks:Head` | `kinematics` at the operator | gives the pose of a headset: x, y, z (m), quaternion, when |
| `tcpsbed.console.hooks:Mark` | `kinematics` at the operator | gives what is marked: x, y, width, height (shares), when |
| `tcpsbed.console.hooks:Feel` | `feedback` | shows the force, and whether it is predicted; passes it on |
| `tcpsbed.console.model:Answered` | `sense` at the robot | adds to a force the position that was commanded |
| `tcpsbed.console.model:Switch` | `kinematics` at the operator | gives the time: who sees it pass knows that its flow runs |
| `tcpsbed.console.model:Model` | `predict` at the operator | the force as it came, or of a model |
"""

from __future__ import annotations

import math
import struct
import time

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media.line import FELT, FORCE, HELD, MARK, PLACE, POSE, TOOK, FromConsole, ToConsole

Floats = NDArray[np.float64]

PER_FORCE = 20
"""Samples of force for one that is shown: 50 a second of 1 kHz."""
PER_PLACE = 10
"""Samples of the hand for one that is shown where force moves it."""


class Hand:
    """The hand in the browser: a position before the robot, button, wheel, and the time of its last event.

    Nearer and further in the browser is x (to the front), right and left is y (to the left), up and down is z.

    Parameters
    ----------
    rest
        Where the hand is when the pointer is in the middle, x, y, z in metres.
    reach
        Metres from the middle to the edge.
    yields
        Which values of the feedback are how far force has moved the hand, x, y, z in metres, as the hook `hand` gives
        them; absent: none, the hand is where the pointer is.

    Raises
    ------
    HookError
        If `rest` or `yields` has not three values.
    """

    def __init__(
        self, rest: list[float] | None = None, reach: float = 0.1, yields: list[int] | None = None
    ) -> None:
        self.rest = [0.0, 0.0, 0.0] if rest is None else [float(v) for v in rest]
        if len(self.rest) != 3:
            raise HookError(f"Hand: found {len(self.rest)} values of rest", allowed="x, y, z")
        self.yields = yields or []
        if len(self.yields) not in (0, 3) or any(type(i) is not int or i < 0 for i in self.yields):
            raise HookError(f"Hand: found yields = {yields}", allowed="three numbers of values, as [3, 4, 5]")
        self.reach = float(reach)
        self.left, self.felt_m, self.unfelt_m = False, np.zeros(3), np.zeros(3)
        """Whether the operator was away, and how far force has moved the hand, and a hand that nobody held."""
        self.console, self.answer = FromConsole(), ToConsole()
        self.seen_ns, self.when_s = 0, 0.0

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """The newest state of the hand; nothing while the operator is away, so that the far side sees commands stop."""
        state = self.console.newest()
        if self.console.away:
            self.left = True
            return 0
        right, up, further = state[:3]
        for i, moved in enumerate((further, -right, up)):
            y[i] = self.rest[i] + self.reach * moved
        if self.yields and len(other) > max(self.yields):
            self._yield(t_ns, index, other[self.yields], y)
        y[3], y[4] = state[3], state[4]
        if self.console.at_ns != self.seen_ns:
            self.seen_ns = self.console.at_ns
            took_ns = time.monotonic_ns() - self.seen_ns
            self.when_s = (t_ns - took_ns) / 1e9
            self.answer.send(TOOK, index, t_ns, struct.pack("<d", took_ns / 1e6))
        y[5] = self.when_s
        return 6

    def _yield(self, t_ns: int, index: int, moved_m: Floats, y: Floats) -> None:
        """Moves the hand as far as force has moved it while somebody held it, and shows where it is then."""
        unfelt_m = moved_m - self.felt_m if self.left else self.unfelt_m
        self.left, self.unfelt_m = False, np.clip(unfelt_m, np.minimum(moved_m, 0), np.maximum(moved_m, 0))
        self.felt_m = moved_m - self.unfelt_m
        y[:3] += self.felt_m
        if index % PER_PLACE == 0:
            further, left, up = (y[:3] - self.rest) / self.reach
            self.answer.send(HELD, index, t_ns, PLACE.pack(-left, up, further))


class _Newest:
    """The newest state of a kind with its time; nothing before the first, and while the operator is away."""

    def __init__(self, name: str, form: struct.Struct) -> None:
        self.console = FromConsole(name, form)
        self.seen_ns, self.when_s = 0, 0.0

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """The newest state."""
        state = self.console.newest()
        if self.console.at_ns == 0 or self.console.away:
            return 0
        if self.console.at_ns != self.seen_ns:
            self.seen_ns = self.console.at_ns
            self.when_s = (t_ns - (time.monotonic_ns() - self.seen_ns)) / 1e9
        n = len(state)
        y[:n], y[n] = state, self.when_s
        return n + 1


class Head(_Newest):
    """The head in a headset; nobody follows one that is not there."""

    def __init__(self) -> None:
        super().__init__("head", POSE)


class Mark(_Newest):
    """What the operator has marked in the picture."""

    def __init__(self) -> None:
        super().__init__("mark", MARK)


class Feel:
    """Shows the force that comes back.

    Parameters
    ----------
    force
        Which values are the force, one to three, in N; absent: the first three.
    mark
        Which value says, above 0.5, that the force is predicted, as `environment` does; absent: none.

    Raises
    ------
    HookError
        If these are no numbers of values.
    """

    def __init__(self, force: list[int] | None = None, mark: int | None = None) -> None:
        self.force = list(range(3)) if force is None else list(force)
        named = [*self.force, *([] if mark is None else [mark])]
        if not 1 <= len(self.force) <= 3 or any(type(i) is not int or i < 0 for i in named):
            raise HookError(
                f"Feel: found force = {force}, mark = {mark}",
                allowed="one to three numbers of values, and one",
            )
        self.mark = mark
        self.live_ns: int | None = None
        self.console = ToConsole()

    def __call__(self, t_ns: int, index: int, x: Floats | None, other: Floats, y: Floats) -> int:
        """Passes the force on and shows one sample in twenty, with the age of the newest that was not predicted."""
        if x is None:
            return 0
        predicted = self.mark is not None and self.mark < len(x) and x[self.mark] > 0.5
        if not predicted or self.live_ns is None:
            self.live_ns = t_ns
        if index % PER_FORCE == 0:
            age_ms = (t_ns - self.live_ns) / 1e6 if predicted else math.nan
            force = np.zeros(3)
            known = [x[i] for i in self.force if i < len(x)]
            force[: len(known)] = known
            self.console.send(FORCE, index, t_ns, FELT.pack(*force, age_ms))
        y[: len(x)] = x
        return len(x)
