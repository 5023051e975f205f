"""What code of the user's says of itself: a table of parameters, checked as those of built-in code are.

```python
class Mine(tcpsbed.RateController):
    params = {"k_max": tcpsbed.Param("count", 1, 7, "4", "most samples in a packet")}
```
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from tcpsbed import _tcps

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

KINDS = ("controller", "hook", "hosting", "network", "queue", "robot", "traffic", "transport")
"""What an installed package may bring along: entry points of the groups `tcpsbed.hook` and so on."""


@dataclass(frozen=True)
class Param:
    """A parameter. Its key in the table ends with its unit: `hold_ns`, written `hold = "4 ms"` in a scenario."""

    unit: str | dict[str, Any] | tuple[str, ...]
    """`ns`, `bps`, `bytes`, `hz`, `packets`, `share`, `number`, `count`, `flag`, `text`; names, of which it is one;
    `{"list": "number"}` and the like.
    """
    min: float | None = None
    """Least value, in that unit."""
    max: float | None = None
    """Greatest value."""
    default: str | None = ""
    """As a scenario writes it: `"4"`, `"4 ms"`; empty: it must be given; `None`: it may be absent, and is `None` then."""
    doc: str = ""
    """What it means."""

    def row(self, key: str) -> dict[str, Any]:
        """It as the native module wants it."""
        unit = {"choice": list(self.unit)} if isinstance(self.unit, tuple | list) else self.unit
        default = "-" if self.default is None else self.default
        return {
            "key": key,
            "unit": unit,
            "min": self.min,
            "max": self.max,
            "default": default,
            "doc": self.doc,
        }


@cache
def installed(kind: str) -> dict[str, EntryPoint]:
    """What installed packages bring along of a kind, by name: looked up only for names that are not built in (50 ms)."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"tcpsbed.{kind}")}


def named(kind: str, name: str) -> str:
    """The code `module:Name` that an installed package has under a name of a kind; the name where none does."""
    point = installed(kind).get(name)
    return point.value if point else name


def table_of(code: Any) -> dict[str, Param] | None:
    """The table of a class, if it has one."""
    table = getattr(code, "params", None)
    is_table = isinstance(table, dict) and all(isinstance(param, Param) for param in table.values())
    return table if is_table else None


def complete(code: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters for code, checked by its table and with its defaults; as they are where it has none.

    Raises
    ------
    tcpsbed._tcps.Refused
        If one is none of the table, or not what its row says.
    """
    table = table_of(code)
    if table is None:
        return given
    rows = [param.row(key) for key, param in table.items()]
    completed: dict[str, Any] = json.loads(_tcps.complete(json.dumps(rows), json.dumps(given)))
    return dict.fromkeys(table) | completed


class RateController:
    """A rate controller of your own: at a `telehaptic` channel it merges, at an `rtp` one it says how fast flows may send.

    Its parameters become attributes, and `channel` is what it knows of its channel (`tcpsbed.hooks.Channel`).
    """

    params: ClassVar[dict[str, Param]] = {}

    def __init__(self, channel: Any, **params: Any) -> None:
        self.channel = channel
        for key, value in params.items():
            setattr(self, key, value)

    def on_feedback(self, now_ns: int, delay_ns: int | None, value: float, told: Any) -> float | None:
        """Something was learnt of packets: gives back the samples a packet holds from now on, or the rate in bit/s.

        Parameters
        ----------
        now_ns
            This node's clock.
        delay_ns
            The delay that was told, or `None` if there is none; clocks of two nodes may make it negative.
        value
            What it steers, as it is: samples a packet, or bit/s.
        told
            The rest (`tcpsbed._tcps.Told`).
        """
        raise NotImplementedError


class _Own:
    """Code whose parameters become attributes."""

    params: ClassVar[dict[str, Param]] = {}

    def __init__(self, name: str, seed: int, **params: Any) -> None:
        self.name, self.seed = name, seed
        for key, value in params.items():
            setattr(self, key, value)


class QueueDiscipline(_Own):
    """A queue discipline of your own: who goes first, and who is dropped.

    `name` is that of the link, `seed` that of the scenario. The queue's `limit` is kept for it: what does not fit is dropped
    before it is asked. Packets are known by their numbers; those that it puts into `dropped` are thrown out.
    """

    def enqueue(self, now_ns: int, packet: _tcps.Arriving, dropped: list[int]) -> None:
        """A packet comes: its `number`, `bytes`, `flow` and `dscp`."""
        raise NotImplementedError

    def dequeue(self, now_ns: int, dropped: list[int]) -> int | None:
        """The line is free and packets wait: the number of the one that goes; `None` if all were dropped."""
        raise NotImplementedError


class Source(_Own):
    """A background source of your own; `name` is that of the traffic entry, `seed` that of the scenario."""

    def next(self) -> tuple[int, int] | None:
        """The next packet as (ns since the source's start, bytes on the wire), in order of time; `None` after the last."""
        raise NotImplementedError
