"""Base classes for user code, and tables of parameters, checked like those of built-in code.

```python
class Mine(tcpsbed.RateController):
    params = {"k_max": tcpsbed.Param("count", 1, 7, "4", "most samples in a packet")}
```
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tcpsbed import _tcps
from tcpsbed.errors import HookError, Refused, printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import numpy as np
    from numpy.typing import NDArray

KINDS = (
    "component", "controller", "delay", "hook", "hosting", "loss", "metric", "network", "plant", "queue", "robot",
    "sink", "traffic", "transport",
)  # fmt: skip
"""Kinds of code that an installed package can add: entry points of the groups `tcpsbed.hook` and so on."""


ABOVE_ZERO = sys.float_info.min
"""Minimum of a value that must be above 0."""
SUFFIXES = ("ns", "bps", "bytes", "hz", "ppb", "packets")
"""Units at the end of keys of a table; in a scenario the unit is in the value."""
FILES = ("file", "output")
"""Units of built-in code for file names relative to the scenario: a file to read, a file that a run writes."""


@dataclass(frozen=True)
class Param:
    """A parameter of user code. Its key ends with its unit: `hold_ns`, written `hold = "4 ms"` in a scenario."""

    unit: str | dict[str, Any] | tuple[str, ...]
    """`ns`, `bps`, `bytes`, `hz`, `packets`, `share`, `number`, `count`, `flag`, `text`,
    `object` (a table of any keys); a tuple of names, one of which is the value;
    `{"list": "number"}`, `{"array": [3, "number"]}` and similar; in built-in code also `FILES`.
    """
    min: float | None = None
    """Smallest value, in that unit."""
    max: float | None = None
    """Largest value."""
    default: str | None = ""
    """As in a scenario: `"4"`, `"4 ms"`. Empty: required. `None`: optional, and `None` if absent."""
    doc: str = ""
    """Its meaning."""

    def row(self, key: str) -> dict[str, Any]:
        """The parameter as the native module reads it."""
        unit = {"choice": list(self.unit)} if isinstance(self.unit, tuple | list) else self.unit
        unit = "text" if unit in FILES else unit
        default = "-" if self.default is None else self.default
        return {
            "key": key,
            "name": key,
            "unit": unit,
            "min": self.min,
            "max": self.max,
            "default": default,
            "doc": self.doc,
        }


@cache
def installed(kind: str) -> dict[str, EntryPoint]:
    """Entry points of installed packages of a kind, by name: looked up only for names that are not built in (50 ms)."""
    return {point.name: point for point in _points() if point.group == f"tcpsbed.{kind}"}


def misnamed() -> list[EntryPoint]:
    """Entry points of installed packages in groups that do not exist."""
    groups = {f"tcpsbed.{kind}" for kind in KINDS}
    return [point for point in _points() if point.group not in groups]


def _points() -> list[EntryPoint]:
    """Entry points of installed packages; a package whose entry points cannot be read is named and skipped."""
    from importlib.metadata import distribution, distributions

    found: list[EntryPoint] = []
    for package in distributions():
        try:
            points = [point for point in package.entry_points if point.group.partition(".")[0] == "tcpsbed"]
            # Of packages of one name the first that Python finds counts.
            if points and distribution(package.name).locate_file("") == package.locate_file(""):
                found += points
        except Exception as error:  # whatever a package is, commands that do not need it go on
            _tell_unread(str(getattr(package, "_path", package)), str(error))
    return found


@cache
def _tell_unread(place: str, error: str) -> None:
    """Names a package with unreadable entry points, once."""
    allowed = "a package that is reinstalled or removed"
    told = f"{place} cannot be read ({error}), so its package adds nothing; allowed: {allowed}"
    print(f"tcpsbed: {printable(told)}", file=sys.stderr)


def named(kind: str, name: str) -> str:
    """The code `module:Name` of an installed package for a name of a kind; the name itself if there is none."""
    point = installed(kind).get(name)
    return point.value if point else name


def table_of(code: Any) -> dict[str, Param] | None:
    """The table of a class, if it has one."""
    table = getattr(code, "params", None)
    is_table = isinstance(table, dict) and all(isinstance(param, Param) for param in table.values())
    return table if is_table else None


def entries(places: dict[str, tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Classes of modules with their tables, by name, as the native module describes entries."""
    found = {
        name: getattr(importlib.import_module(module), symbol) for name, (module, symbol) in places.items()
    }
    return {
        name: {
            "name": name,
            "doc": (inspect.getdoc(code) or "").partition("\n")[0].rstrip("."),
            "params": [
                param.row(key) | ({"unit": "file"} if param.unit in FILES else {})
                for key, param in (table_of(code) or {}).items()
            ],
        }
        for name, code in found.items()
    }


def located(code: Any, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Parameters with file names resolved in a folder; a bare name may be a file that ships."""

    def place(key: str, param: Param) -> str | None:
        value = given.get(key)
        if param.unit not in FILES or not isinstance(value, str):
            return None
        is_path = bool(set(value) & set("./")) or (param.unit == "file" and (folder / value).is_file())
        return str((folder / value).resolve()) if is_path else None

    places = {key: place(key, param) for key, param in (table_of(code) or {}).items()}
    return given | {key: path for key, path in places.items() if path is not None}


def complete(code: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of code, checked by its table and completed with defaults; unchanged if it has no table.

    Raises
    ------
    tcpsbed.errors.Refused
        If a parameter is not in the table, or its value is not allowed.
    HookError
        If a row of the table itself is invalid.
    """
    table = table_of(code)
    if table is None:
        return given
    for key, param in table.items():
        _refuse_wrong(code, key, param)
    rows = [param.row(key) for key, param in table.items()]
    completed: dict[str, Any] = json.loads(_tcps.complete(json.dumps(rows), json.dumps(given)))
    return dict.fromkeys(table) | completed


def _refuse_wrong(code: Any, key: str, param: Param) -> None:
    """Raises `HookError` for a row with invalid bounds or default."""

    def wrong(found: str, allowed: str) -> HookError:
        file = None
        with suppress(TypeError, OSError):
            file = inspect.getfile(code)
        return HookError(found, file=file, key=f'{code.__name__}.params["{key}"]', allowed=allowed)

    low, high = (
        (-math.inf if param.min is None else param.min),
        (math.inf if param.max is None else param.max),
    )
    bounds = [bound for bound in (param.min, param.max) if bound is not None]
    if not all(isinstance(bound, int | float) and math.isfinite(bound) for bound in bounds) or low > high:
        found = f"found min = {param.min}, max = {param.max}"
        raise wrong(found, "numbers, or None for no bound, min at most max, such as 0 and 7")
    if not isinstance(param.default, str | None):
        raise wrong(f"found the default {param.default!r}", f'text, as a scenario has it: "{param.default}"')
    if param.unit in SUFFIXES and not key.endswith(f"_{param.unit}"):
        allowed = f'"{key}_{param.unit}", which a scenario writes as {key}'
        raise wrong(f'found a key without its unit "{param.unit}"', allowed)
    row = param.row(key)
    checked = json.dumps([row | {"default": "-"}])
    try:
        _tcps.complete(checked, "{}")
        if param.default in ("", None, "-"):
            return
        # What is no quantity is left out or null, and what follows the point of a whole number is cut off.
        value = json.loads(_tcps.complete(json.dumps([row]), "{}"))
        value = value if value.get(key) is not None else {key: {"": None}}
        if type(value[key]) is int:
            number = json.loads(_tcps.complete(json.dumps([row | {"unit": "number"}]), "{}"))
            value = value if number == value else number
        _tcps.complete(checked, json.dumps(value))
    except Refused as fault:
        raise wrong(f'found the default "{param.default}"', fault.allowed) from None
    except ValueError:
        allowed = 'one of the units that "tcpsbed docs transports" lists, such as "ns"'
        raise wrong(f"found the unit {param.unit!r}", allowed) from None


class RateController(ABC):
    """A rate controller of your own: samples per packet for a `telehaptic` channel, the rate of flows for an `rtp` channel.

    Parameters become attributes; `channel` describes its channel (`tcpsbed.hooks.Channel`).
    """

    params: ClassVar[dict[str, Param]] = {}

    def __init__(self, channel: Any, **params: Any) -> None:
        self.channel = channel
        for key, value in params.items():
            setattr(self, key, value)

    @abstractmethod
    def on_feedback(self, now_ns: int, delay_ns: int | None, value: float, told: Any) -> float | None:
        """Called with feedback on packets. Returns the new number of samples per packet, or the new rate in bit/s.

        Parameters
        ----------
        now_ns
            Time by this node's clock.
        delay_ns
            The reported delay, or `None`. A clock offset between the two nodes can make it negative.
        value
            The current number of samples per packet, or rate in bit/s.
        told
            All other feedback (`tcpsbed._tcps.Observation`).
        """


class Component(ABC):
    """A kind of component of your own: it is on the path of flows and is called for each sample.

    Each flow has an object of its own. Parameters become attributes.
    """

    after: ClassVar[str | dict[str, str]]
    """The built-in kind before it on the path: `"srv"`, in each direction that has it; or by direction,
    `{"forward": "ms-com", "backward": "srv"}`.
    """
    params: ClassVar[dict[str, Param]] = {}
    run: ClassVar[str | None] = None
    """Its code, as in `run` of a hook, with files relative to that of the class; absent: the class itself."""

    def __init__(self, **params: Any) -> None:
        for key, value in params.items():
            setattr(self, key, value)

    @abstractmethod
    def __call__(self, t_ns: int, index: int, x: Any, other: Any, y: Any) -> int:
        """Writes the output for a sample `x` into `y` and returns its number of values; 0: the sample ends here."""


class Metric(ABC):
    """A metric of your own; the report shows the first line of its docstring."""

    unit: ClassVar[str] = ""
    """Unit of its values, such as `ms` or `share`."""

    @abstractmethod
    def of(self, run: Any) -> float | Mapping[str, float | None] | None:
        """Returns the value for a finished run (`tcpsbed.Run`), or values by name, such as one per flow."""


class Sink(ABC):
    """A sink of your own for the live data of a run, `--sink ./mine.py:Mine=TARGET`.

    It runs in a thread of the page's process. If it fails, that is said once, and the run goes on without it. If it is slow,
    it misses calls, and their number is said.

    Parameters
    ----------
    target
        The text after `=`, such as a port or a file; empty without one.

    Raises
    ------
    TcpsbedError
        If the sink cannot use it: the run does not begin.
    """

    where: str = ""
    """What the user opens, such as an address; it is printed before the run."""
    scenario: str = ""
    """The scenario's text (TOML), from before `begin` on."""

    def __init__(self, target: str) -> None:
        self.target = target

    def begin(self, plan: dict[str, Any]) -> None:  # noqa: B027
        """The run begins; `plan` is the compiled scenario (`plan.json`)."""

    def rows(self, rows: NDArray[np.void], now_s: float) -> None:  # noqa: B027
        """New rows of the record (`tcpsbed.analysis.records.FIELDS`), shape (n,), seen at `now_s` of the run, about 20 times
        a second.
        """

    @abstractmethod
    def take(self, now: dict[str, Any]) -> None:
        """The numbers of the last seconds, about 4 times a second (docs/sinks.md)."""

    def picture(self, t_s: float, jpeg: bytes) -> None:  # noqa: B027
        """What the operator's pane shows from `t_s` of the run on, at most 10 a second; a stereo pair lies side by side."""

    def event(self, t_s: float, name: str) -> None:  # noqa: B027
        """An event took place at `t_s` of the run: one of the scenario, or a change by hand."""

    def end(self) -> None:  # noqa: B027
        """The run is over: nothing follows."""


class Plant(ABC):
    """A linear plant of your own for the step experiment; parameters become attributes."""

    params: ClassVar[dict[str, Param]] = {}

    def __init__(self, **params: Any) -> None:
        for key, value in params.items():
            setattr(self, key, value)

    @abstractmethod
    def matrices(self) -> tuple[Any, ...]:
        """Returns (A, B, C) or (A, B, C, D) of x' = A x + B u, y = 1 + C x + D u, u = k - 1, times in s. Called once.

        At rest k = y = 1. A is a matrix, B and C are vectors, D is a number. With several axes B, C and D are matrices: a
        column for each command k, a row for each answer y.
        """


class NonlinearPlant(ABC):
    """A plant of your own by its differential equation, x' = rates(x, u) and y = output(x, u), times in s, u = k.

    At rest u = y = 1: `rates(x0, 1)` is 0 and `output(x0, 1)` is 1. Between two ticks u holds, and x is computed by the
    classical Runge-Kutta method in steps of at most `step_s`. Parameters become attributes. With several `axes` u and y are
    arrays of as many values.
    """

    params: ClassVar[dict[str, Param]] = {}
    x0: Sequence[float] = ()
    """The state at rest."""
    step_s: float = 1e-4
    """Longest step of the integration."""
    axes: int = 1
    """How many commands and answers it has."""

    def __init__(self, **params: Any) -> None:
        for key, value in params.items():
            setattr(self, key, value)
        self._state: Any = None
        self._held: tuple[int, Any] = (0, 1.0)

    @abstractmethod
    def rates(self, x: NDArray[np.float64], u: Any) -> Any:
        """The rates of the state x under the command u, per s: as many values as `x0` has."""

    @abstractmethod
    def output(self, x: NDArray[np.float64], u: Any) -> Any:
        """The answer y in the state x under the command u."""

    def __call__(
        self, t_ns: int, index: int, x: NDArray[np.float64], other: Any, y: NDArray[np.float64]
    ) -> int:
        """Lets time pass up to `t_ns`, and writes y under the command x[0], or all commands."""
        import numpy as np

        if self._state is None:
            self._state = np.array(self.x0, float)
            self._held = t_ns, 1.0 if self.axes == 1 else np.ones(self.axes)
        then_ns, u = self._held
        steps = math.ceil((t_ns - then_ns) * 1e-9 / self.step_s - 1e-9)
        for _ in range(steps):
            h = (t_ns - then_ns) * 1e-9 / steps
            k1 = np.asarray(self.rates(self._state, u), float)
            k2 = np.asarray(self.rates(self._state + h / 2 * k1, u), float)
            k3 = np.asarray(self.rates(self._state + h / 2 * k2, u), float)
            k4 = np.asarray(self.rates(self._state + h * k3, u), float)
            self._state = self._state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        self._held = t_ns, float(x[0]) if self.axes == 1 else np.array(x[: self.axes])
        y[: self.axes] = self.output(self._state, self._held[1])
        return self.axes


class _Own:
    """Code whose parameters become attributes."""

    params: ClassVar[dict[str, Param]] = {}

    def __init__(self, name: str, seed: int, **params: Any) -> None:
        self.name, self.seed = name, seed
        for key, value in params.items():
            setattr(self, key, value)


class QueueDiscipline(_Own, ABC):
    """A queue discipline of your own: it chooses the next packet, and packets to drop.

    `name` is that of the link, `seed` that of the scenario. A packet beyond the queue's `limit` is dropped without a call.
    Packets are identified by their numbers; append a number to `dropped` to drop that packet.
    """

    @abstractmethod
    def enqueue(self, now_ns: int, packet: _tcps.Arriving, dropped: list[int]) -> None:
        """A packet arrives, with `number`, `bytes`, `flow` and `dscp`."""

    @abstractmethod
    def dequeue(self, now_ns: int, dropped: list[int]) -> int | None:
        """The line is free and packets wait: returns the number of the next one, or `None` if all were dropped."""


class LossModel(_Own, ABC):
    """A loss model of your own; `name` is that of the link, `seed` that of the scenario."""

    @abstractmethod
    def lose(self, now_ns: int, packet: _tcps.Arriving) -> bool:
        """Returns whether the packet that starts on the line now is lost. `number` counts packets of this line."""


class DelayModel(_Own, ABC):
    """A delay model of your own, for the `jitter` of a link; `name` is that of the link, `seed` that of the scenario."""

    @abstractmethod
    def delay(self, now_ns: int, packet: _tcps.Arriving) -> int:
        """Returns the extra delay in ns of the packet that is wholly on the line now. `number` counts those of this line."""


class Source(_Own, ABC):
    """A background source of your own; `name` is that of the traffic entry, `seed` that of the scenario."""

    @abstractmethod
    def next(self) -> tuple[int, int] | None:
        """Returns the next packet as (ns since the source's start, bytes on the wire), in time order; `None` at the end."""
