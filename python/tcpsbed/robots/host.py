"""A robot in a process of its own, on the machine's clock: its physics keeps its own tick, whatever the node does.

```text
node's loop ── command ──► cell ──► host: step(now, newest command) every tick
            ◄── sense ──── cell ◄──
```
The node's loop only copies numbers: what it senses is the host's newest. The host ends with its node. Each watches the
other: the node ends the run when the host has ended, was stopped or is silent; the host has a watchdog (`Watchdog`), by
its own monotonic clock, for a node that hands no command over.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpsbed.errors import HookError, ProcessDied, TcpsbedError
from tcpsbed.nearest import close_match
from tcpsbed.processes import PYTHON, end_with_parent, how_ended
from tcpsbed.robots.cell import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

ROOM = 256
"""Most values of a command and of what is sensed."""
READY_S = 50.0
"""Longest time a host may take to load its robot."""
GAP_US = 1000
"""A loop that comes so late has stalled."""
PERIOD_NS = 1_000_000
"""The tick of a robot that does not say its own (`tick_ns`)."""
SILENT_NS = 1_000_000_000
"""Silence of the host, while its node runs, after which it counts as dead."""
_TURN_NS = 20_000_000
"""Longest time between two looks that counts as silence: where it is longer, the node itself stalled."""
WATCHDOG_MS = 100.0
"""Age of the last command at which the watchdog acts, if the scenario does not say another."""
ACTIONS = ("hold", "stop", "zero")
"""What the watchdog does: rest where it is, be stepped no more, go by zeros; until a command comes."""
_ABOUT = 2
_TIMER_SLACK = 29


@dataclass
class Watchdog:
    """Acts when the node has handed no command over for too long."""

    after_ms: float = WATCHDOG_MS
    action: str = "hold"
    trips: int = 0
    _seen: int = 0
    _since_ns: int = 0
    _tripped: bool = False

    @classmethod
    def of(cls, params: dict[str, Any]) -> tuple[Watchdog, dict[str, Any]]:
        """The watchdog that a robot's parameters ask for (`watchdog`, `watchdog_ms`), and the other parameters.

        Raises
        ------
        HookError
            If they make no sense.
        """
        rest = {key: value for key, value in params.items() if key not in ("watchdog", "watchdog_ms")}
        dog = cls(params.get("watchdog_ms", WATCHDOG_MS), params.get("watchdog", "hold"))
        if dog.action not in ACTIONS:
            raise HookError(f'watchdog: found "{dog.action}"', allowed=close_match(str(dog.action), ACTIONS))
        if not isinstance(dog.after_ms, int | float) or not 0 < dog.after_ms < 1e6:
            raise HookError(
                f"watchdog_ms: found {dog.after_ms}", allowed='a time such as watchdog = "100 ms"'
            )
        return dog, rest

    def command(self, robot: Any, seen: int, command: Values) -> Values | None:
        """The command to step with at this tick; none: the robot is not stepped."""
        now_ns = time.monotonic_ns()
        if seen != self._seen:
            self._seen, self._since_ns, self._tripped = seen, now_ns, False
        if now_ns - self._since_ns <= self.after_ms * 1e6:
            return command
        if not self._tripped:
            self._tripped, self.trips = True, self.trips + 1
            if self.action == "hold" and hasattr(robot, "hold"):
                robot.hold()
        return {"hold": np.zeros(0), "zero": np.zeros(len(command)), "stop": None}[self.action]


class Hosted:
    """What the node's loop holds in place of the robot.

    Parameters
    ----------
    module, name, params
        The robot's class and its parameters.
    """

    def __init__(self, module: str, name: str, params: dict[str, Any]) -> None:
        commands, senses = (os.memfd_create(f"tcpsbed-{what}") for what in ("command", "sense"))
        try:
            self._commands, self._senses = Cell(commands, ROOM), Cell(senses, _ABOUT + ROOM)
            self._child = subprocess.Popen(
                [*PYTHON, "-m", "tcpsbed.robots.host", str(os.getpid()), str(commands), str(senses)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(commands, senses),
                text=True,
                errors="replace",
            )
        finally:
            os.close(commands)
            os.close(senses)
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(json.dumps({"module": module, "name": name, "params": params}) + "\n")
            self._child.stdin.flush()
        said = self._hear(READY_S)
        if "error" in said:
            self.close()
            raise HookError(said["error"])
        self._arrived = True
        self._command: Values = np.zeros(0)
        self._changed = 0
        self._seen, self._looked_ns, self._silent_ns = 0, time.monotonic_ns(), 0

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Passes on the newest command; writes the host's last sensed values and returns their number."""
        self._commands.write(t_ns - time.monotonic_ns(), command)
        if not np.array_equal(command, self._command):
            self._command, self._changed = command.copy(), self._commands.sequence
        if self._child.poll() is not None:
            raise ProcessDied(self._hear(0.0)["error"])
        self._watch()
        newest = self._senses.read()
        if newest is None:
            return 0
        _, _, values = newest
        # To be where an older command sent it says nothing about this one.
        self._arrived = bool(values[0]) and values[1] >= self._changed
        n = min(len(values) - _ABOUT, len(sense))
        sense[:n] = values[_ABOUT : _ABOUT + n]
        return n

    def _watch(self) -> None:
        """Notices a host that was stopped by a signal, or is silent while this loop runs."""
        stopped = os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WNOHANG)
        if stopped is not None:
            self._child.kill()
            name = signal.Signals(stopped.si_status).name
            raise ProcessDied(f"the robot's process was stopped ({name})")
        now_ns = time.monotonic_ns()
        turn_ns, self._looked_ns = min(now_ns - self._looked_ns, _TURN_NS), now_ns
        seen = self._senses.sequence
        self._silent_ns = self._silent_ns + turn_ns if seen == self._seen else 0
        self._seen = seen
        if self._silent_ns > SILENT_NS:
            self._child.kill()
            raise ProcessDied(f"the robot's process has not moved it for {SILENT_NS / 1e9:g} s")

    def arrived(self) -> bool:
        """Whether the robot is where the newest command sent it."""
        return self._arrived

    def close(self) -> dict[str, Any]:
        """Ends the host.

        Returns
        -------
        dict
            `ticks`, `missed_ticks`, `gaps_over_1ms`, `watchdog` (how often it acted), and `late_ns` with `p50`, `p99` and
            `max`: how late its loop woke;
            empty if it ended before.
        """
        if self._child.stdin is not None and not self._child.stdin.closed:
            with suppress(BrokenPipeError):
                self._child.stdin.close()
        said = self._hear(2.0)
        try:
            self._child.wait(2)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        return {} if "error" in said else said

    def _hear(self, seconds: float) -> dict[str, Any]:
        assert self._child.stdout is not None
        if not select.select([self._child.stdout], [], [], seconds)[0]:
            return {"error": f"the robot's process did not answer for {seconds:g} s"}
        line = self._child.stdout.readline()
        if not line:
            return {"error": f"the robot's process ended {how_ended(self._child.wait())}"}
        said: dict[str, Any] = json.loads(line)
        return said


def serve(
    robot: Any, commands: Cell, senses: Cell, period_ns: int, line: int, dog: Watchdog
) -> dict[str, Any]:
    """Steps a robot at its tick, from the beginning of the run on, until standard input ends.

    Returns
    -------
    dict
        What `Hosted.close` gives.
    """
    late_us, longest = np.zeros(100_000, np.int64), 0
    sense, ticks, missed = np.zeros(ROOM), 0, 0
    senses.write(0, np.concatenate(([1.0, 0.0], sense[: robot.step(0, np.zeros(0), sense)])))
    tell(line, ready=True)
    due = time.monotonic_ns()
    while not select.select([sys.stdin], [], [], 0)[0]:
        due += period_ns
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        late = time.monotonic_ns() - due
        late_us[min(max(late // 1000, 0), len(late_us) - 1)] += 1
        ticks, longest = ticks + 1, max(longest, late)
        if late > period_ns:
            missed += late // period_ns
            due += late // period_ns * period_ns  # one step makes up for the ticks that were missed
        newest = commands.read()
        if newest is None:
            continue
        seen, offset_ns, handed = newest
        command = dog.command(robot, seen, handed)
        if command is None:
            continue
        n = robot.step(due + offset_ns, command, sense)
        arrived = float(robot.arrived()) if hasattr(robot, "arrived") else 1.0
        senses.write(due + offset_ns, np.concatenate(([arrived, seen], sense[:n])))
    late_ns = _percentiles_ns(late_us) | {"max": longest}
    gaps = int(late_us[GAP_US:].sum())
    told = {"ticks": ticks, "missed_ticks": missed, "gaps_over_1ms": gaps, "watchdog": dog.trips}
    return told | {"late_ns": late_ns}


def _percentiles_ns(late_us: NDArray[np.int64]) -> dict[str, int]:
    """Percentiles of a count by microseconds, to the microsecond."""
    up_to = np.cumsum(late_us)
    return {f"p{p}": 1000 * int(np.searchsorted(up_to, p / 100 * up_to[-1])) for p in (50, 99)}


def own_line() -> int:
    """The line to the process that started this one; what anybody prints goes to standard error from now on."""
    line = os.dup(1)
    os.dup2(2, 1)
    return line


def tell(line: int, **message: Any) -> None:
    """A line of JSON for the process that started this one, which may be gone."""
    with suppress(BrokenPipeError):
        os.write(line, (json.dumps(message) + "\n").encode())


def prompt() -> None:
    """Requests prompt wake-ups: no timer slack, SCHED_FIFO if permitted, no collection of existing garbage."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_TIMER_SLACK, 1, 0, 0, 0)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.collect()
    gc.freeze()


def main() -> None:
    """The host process: a robot named by a line on standard input, who started it and its cells by the arguments."""
    from tcpsbed import hooks

    end_with_parent(int(sys.argv[1]))
    line = own_line()
    commands, senses = (int(text) for text in sys.argv[2:4])
    asked = json.loads(sys.stdin.readline())
    try:
        dog, params = Watchdog.of(asked["params"])
        robot = hooks.make_robot(asked["module"], asked["name"], params)
    except TcpsbedError as error:
        tell(line, error=str(error))
        return
    if hasattr(robot, "may_lag"):
        robot.may_lag = True
    prompt()
    period_ns = int(getattr(robot, "tick_ns", PERIOD_NS))
    try:
        told = serve(robot, Cell(commands, ROOM), Cell(senses, _ABOUT + ROOM), period_ns, line, dog)
    except Exception as error:  # the user's robot may fail in any way
        told = {"error": f"the robot failed in its process: {type(error).__name__}: {error}"}
    if hasattr(robot, "close"):
        robot.close()
    tell(line, **told)


if __name__ == "__main__":
    main()
