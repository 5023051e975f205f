"""Robot `coppeliasim`: joints of a model in CoppeliaSim, over its ZeroMQ remote API in lock step.

```text
setStepping(True), startSimulation          a step of the simulator for each step_s that has passed, never ahead
command   targets of the joints, in the order given                          setJointTargetPosition
sense     positions of the joints, then force x, y, z (N) of each sensor     getJointPosition, readForceSensor
```
The simulator only moves when it is told to (`step`), so that a run in virtual time stays deterministic on its side of
the line and a run in real time shows how late it is.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from tcpsbed.door import ABOVE_ZERO, Param
from tcpsbed.errors import HookError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LEAST_STEP_S, MOST_STEP_S = 1e-5, 10.0
"""Bounds of what a simulator may say of its step."""
MOST_STEPS = 100
"""Steps that one call takes at most in real time, so that a late call ends; the rest is caught up with later."""


class CoppeliaSim:
    """Joints and force sensors of an open scene."""

    params: ClassVar[dict[str, Param]] = {
        "joints": Param({"list": "text"}, doc="paths of joints in the scene, such as `/arm/joint1`"),
        "sensors": Param({"list": "text"}, default="[]", doc="paths of force sensors"),
        "host": Param("text", default="localhost", doc="host of the simulator"),
        "port": Param("count", 1, 65535, default="23000", doc="port of the simulator"),
        "tolerance": Param(
            "number",
            0,
            default="0.01",
            doc="distance from the target (rad or m) at which joints have arrived",
        ),
        "patience_s": Param(
            "number", ABOVE_ZERO, default="5", doc="longest time to wait for an answer of the simulator"
        ),
    }

    own_process = True
    may_lag = False
    """Whether a call may leave steps to the next ones; set in the process of its own, on the machine's clock."""

    def __init__(
        self,
        joints: list[str],
        sensors: list[str],
        host: str,
        port: int,
        tolerance: float,
        patience_s: float,
    ) -> None:
        self._place = f"tcp://{host}:{port}"
        self._sim = self._asked(lambda: _connected(host, port, patience_s))
        self._joints = [self._handle(path) for path in joints]
        self._sensors = [self._handle(path) for path in sensors]
        self._step_s = self._asked(lambda: _finite(self._sim.getSimulationTimeStep()))
        if not LEAST_STEP_S <= self._step_s <= MOST_STEP_S:
            found = f"CoppeliaSim at {self._place} says that a step takes {self._step_s:g} s"
            raise HookError(found, allowed=f"{LEAST_STEP_S:g} to {MOST_STEP_S:g} s")
        self.tick_ns = round(self._step_s * 1e9)
        self.tolerance = tolerance
        self._goal: list[float] = []
        self._told: list[float] = []
        self._begin_ns: int | None = None
        self._steps = 0
        self._positions = [0.0] * len(self._joints)
        self._forces = [0.0] * 3 * len(self._sensors)

    def step(self, t_ns: int, command: Values, sense: Values) -> int:
        """Steps the simulator up to `t_ns`; writes the sensed values and returns their number."""
        if self._begin_ns is None:
            self._begin_ns = t_ns
            self._begin()
        wanted = [float(value) for value in command[: len(self._joints)]]
        if all(map(math.isfinite, wanted)):
            self._goal = wanted
        behind = int((t_ns - self._begin_ns) / (self._step_s * 1e9) + 1e-9) - self._steps
        for _ in range(min(behind, MOST_STEPS) if self.may_lag else behind):
            self._steps += 1
            self._go()
        values = [*self._positions, *self._forces]
        n = min(len(values), len(sense))
        sense[:n] = values[:n]
        return n

    def hold(self) -> None:
        """Its goal is where it is."""
        self._goal = list(self._positions)

    def arrived(self) -> bool:
        """Whether all joints are where they were sent."""
        pairs = zip(self._positions, self._goal, strict=False)
        return all(abs(at - goal) <= self.tolerance for at, goal in pairs)

    def close(self) -> None:
        """Stops the simulation that it started."""
        if self._begin_ns is not None:
            self._begin_ns = None
            with suppress(HookError):
                self._asked(lambda: self._sim.stopSimulation())

    def __del__(self) -> None:
        if hasattr(self, "_begin_ns"):
            self.close()

    def _begin(self) -> None:
        self._asked(lambda: self._sim.setStepping(True))
        self._asked(lambda: self._sim.startSimulation())
        self._positions, self._forces = self._read_joints(), self._read_sensors()

    def _go(self) -> None:
        """One step of the simulator, with the newest goal."""
        if self._goal != self._told:
            for joint, goal in zip(self._joints, self._goal, strict=False):
                self._asked(lambda j=joint, g=goal: self._sim.setJointTargetPosition(j, g))
            self._told = list(self._goal)
        self._asked(lambda: self._sim.step())
        self._positions, self._forces = self._read_joints(), self._read_sensors()

    def _read_joints(self) -> list[float]:
        return [self._asked(lambda j=joint: _finite(self._sim.getJointPosition(j))) for joint in self._joints]

    def _read_sensors(self) -> list[float]:
        forces: list[float] = []
        for sensor in self._sensors:
            forces += self._asked(lambda s=sensor: _force(self._sim.readForceSensor(s)))
        return forces

    def _handle(self, path: str) -> int:
        handle: int = self._asked(lambda: int(self._sim.getObject(path)))
        return handle

    def _asked(self, ask: Any) -> Any:
        """An answer of the simulator; errors name its address and the remedy."""
        try:
            return ask()
        except HookError:
            raise
        except Exception as error:  # the client raises what the simulator says, and what ZeroMQ does
            said = f"{type(error).__name__}: {error}"
            is_strange = isinstance(error, AttributeError | LookupError | TypeError)
            if is_strange or type(error).__module__.partition(".")[0] in ("cbor2", "_cbor2"):
                raise HookError(
                    f"CoppeliaSim at {self._place}: found an answer that is not CoppeliaSim's ({said})",
                    allowed="the host and port of a running CoppeliaSim with its ZeroMQ remote API "
                    "(tcpsbed docs coppeliasim)",
                ) from None
            raise HookError(
                f"CoppeliaSim at {self._place}: {said}",
                allowed="a running CoppeliaSim whose scene has all objects of joints and sensors "
                "(tcpsbed docs coppeliasim)",
            ) from None


def _finite(said: Any) -> float:
    """A finite number from the simulator."""
    value = float(said)
    if not math.isfinite(value):
        raise ValueError(f"it says {value}")
    return value


def _force(said: Any) -> list[float]:
    """The three numbers of a force sensor; none where it has not measured yet."""
    valid, force, _ = said
    if not valid:
        return [0.0] * 3
    x, y, z = force
    return [_finite(x), _finite(y), _finite(z)]


def _connected(host: str, port: int, patience_s: float) -> Any:
    """The simulator's own interface `sim`."""
    try:
        import cbor2  # noqa: F401  what the client prefers; the other decoder that it knows crashes on broken replies
        from coppeliasim_zmqremoteapi_client import RemoteAPIClient
    except ImportError as error:
        raise HookError(
            f"the client of CoppeliaSim cannot be imported ({error})",
            allowed="pip install 'tcpsbed[coppeliasim]' first",
        ) from None
    client = RemoteAPIClient(host, port)
    client.socket = _Line(client.socket, round(1e3 * patience_s))
    return client.require("sim")


class _Line:
    """The client's socket, with a limit on waiting for an answer."""

    def __init__(self, socket: Any, patience_ms: int) -> None:
        import zmq

        self._socket, self._patience_ms = socket, patience_ms
        socket.sndtimeo, socket.linger = patience_ms, 0
        self._gone = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._either = zmq.Poller()
        for one in (self._gone, socket):
            self._either.register(one, zmq.POLLIN)

    def send(self, request: bytes) -> None:
        self._socket.send(request)

    def recv(self) -> bytes:
        ready = [one for one, _ in self._either.poll(self._patience_ms)]
        if self._socket in ready:
            answer: bytes = self._socket.recv()
            return answer
        raise OSError("it has ended" if ready else f"no answer in {self._patience_ms / 1e3:g} s")

    def close(self) -> None:
        self._socket.disable_monitor()
        self._gone.close(linger=0)
        self._socket.close()
