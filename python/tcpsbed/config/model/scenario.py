"""The scenario: one typed object with everything that a run needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, StrictInt

from tcpsbed.config.model.code import HOOK_KINDS, Channel, Hook
from tcpsbed.config.model.flow import PRESETS, Flow
from tcpsbed.config.model.link import Link, Topology
from tcpsbed.config.model.measure import Event, Measure
from tcpsbed.config.model.place import KINDS, Component, Host, Node, Real
from tcpsbed.config.model.table import Name, Table
from tcpsbed.config.model.traffic import TRAFFIC_KINDS, Traffic
from tcpsbed.config.origin import Key, Origin
from tcpsbed.config.units import Duration, PositiveDuration
from tcpsbed.errors import ConfigError


def _kinds(known: tuple[str, ...], shorthand: str | None = None) -> BeforeValidator:
    """Fills in the kind of an entry that is named like one."""

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        out = {}
        for name, entry in value.items():
            if shorthand and isinstance(entry, str):
                entry = {shorthand: entry}
            kind = {"kind": name} if name in known else {}
            out[name] = kind | entry if isinstance(entry, dict) else entry
        return out

    return BeforeValidator(fill)


def _traffic(value: Any) -> Any:
    """Fills in the kind of an entry that names none: replay if it has a file, else constant bit rate."""
    if not isinstance(value, dict):
        return value
    fill = {
        name: {"kind": "replay" if "file" in entry else "cbr"}
        for name, entry in value.items()
        if isinstance(entry, dict)
    }
    return {name: fill[name] | entry if name in fill else entry for name, entry in value.items()}


def _presets(value: Any) -> Any:
    """Fills in what flows of usual names are like."""
    if not isinstance(value, dict):
        return value
    return {n: PRESETS.get(n, {}) | flow if isinstance(flow, dict) else flow for n, flow in value.items()}


class Scenario(Table):
    """A scenario, as read from its file with includes and overrides applied."""

    name: str = "scenario"
    """What reports call it; absent: the name of the file."""
    description: str = ""
    """What it is for."""
    duration_ns: PositiveDuration = Field(10_000_000_000, alias="duration")
    """How long it runs."""
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] = 1
    """Seed of every random stream."""
    phases: Literal["aligned", "random"] = "aligned"
    """Whether flows and periodic background traffic begin at their `start`, or each at a random moment of its period."""
    warmup_ns: Duration = Field(0, alias="warmup")
    """Span at the beginning that statistics leave out."""
    base: str | None = None
    """The folder that relative paths start from; absent: that of the file."""
    calibration: str | None = None
    """Costs of stages as `tcpsbed calibrate` wrote them."""
    sessions: Annotated[list[Name], Field(min_length=1)] = Field(["main"])
    """The sessions that share the network."""
    nodes: dict[Name, Node] = Field({})
    """Computers. Those that components name need no entry."""
    components: Annotated[dict[Name, Component], _kinds(KINDS, "node")]
    """Component instances by id, such as `srv = "edge"`."""
    flows: Annotated[dict[Name, Flow], BeforeValidator(_presets)]
    """Flows by name, such as `[flows.kinematic]`."""
    channels: dict[Name, Channel] = Field({})
    """Flows that travel together."""
    hooks: Annotated[dict[Name, Hook], _kinds(HOOK_KINDS, "run")] = Field({})
    """Code in the path of samples."""
    topology: Topology = Topology()
    """The shape of the network beside its links."""
    links: dict[str, Link] = Field({})
    """Links by name."""
    traffic: Annotated[dict[Name, Traffic], BeforeValidator(_traffic), _kinds(TRAFFIC_KINDS)] = Field({})
    """Background traffic by name."""
    events: list[Event] = Field([])
    """What happens when."""
    measure: Measure = Measure()
    """What is measured."""
    real: Real = Real()
    """Settings of the real driver."""
    hosts: dict[Name, Host] = Field({})
    """Computers that `--world hosts` runs nodes on."""
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return (self._origin.folder / (self.base or "")).resolve()

    @property
    def shortened(self) -> bool:
        """Whether the duration was overridden, so that what comes later in the file may be left out."""
        return self._origin.overridden("duration")

    @property
    def document(self) -> dict[str, Any]:
        """The tables and values of the file with includes and overrides applied, as TOML has them."""
        return self._origin.document

    @property
    def files(self) -> list[Path]:
        """The files that it was read from, and those that are there of what it names: recordings, code, models."""
        read = {self._origin.file, *(Path(file) for file, _ in self._origin.places.values())}
        named = {self.folder / name for text in _texts(self.document) for name in _names(text)}
        return [file for file in sorted(read | named) if _is_file(file)]

    def error(self, key: Key, found: str, allowed: str) -> ConfigError:
        """The error of a key of this scenario."""
        return self._origin.error(key, found, allowed)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


def _names(text: str) -> set[str]:
    """Files that a text may name: alone, before a class (`./hold.py:Hold`, `hold:Hold`), after a kind (`operator:a.csv`)."""
    first, _, rest = text.partition(":")
    last = text.rpartition(":")[0]
    return {text, first, last, rest, f"{last.replace('.', '/')}.py"} - {"", ".py"}


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):  # a text too long for a name, or with a zero in it
        return False
