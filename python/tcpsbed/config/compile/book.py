"""The register of a compilation: every name of the scenario with its number in the plan."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpsbed.config.compile.files import existing
from tcpsbed.config.model.flow import Flow
from tcpsbed.config.model.place import Component
from tcpsbed.config.model.scenario import Scenario
from tcpsbed.config.model.table import close_match
from tcpsbed.config.origin import Key
from tcpsbed.errors import ConfigError

_MOST_NS = 10**15


def _rising(quantiles: Any) -> bool:
    """Whether these are two quantiles or more, whole nanoseconds within the bounds of a span, in order."""
    if not isinstance(quantiles, list) or len(quantiles) < 2:
        return False
    whole = all(isinstance(ns, int) and not isinstance(ns, bool) for ns in quantiles)
    return whole and quantiles[0] >= 0 and quantiles[-1] <= _MOST_NS and quantiles == sorted(quantiles)


@dataclass(frozen=True)
class Instance:
    """A component in a session: `shared` ones serve all sessions."""

    number: int
    id: str
    name: str
    session: int
    shared: bool
    node: int
    model: Component

    @property
    def kind(self) -> str:
        """Its kind, for example `ms-com`."""
        return self.model.kind


@dataclass
class Way:
    """A flow in a session, and the components that it passes."""

    number: int
    id: str
    name: str
    session: int
    model: Flow
    path: list[Instance] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Its key in the scenario."""
        return ("flows", self.id)


class Book:
    """The names of a scenario and their numbers.

    Parameters
    ----------
    scenario
        The scenario to be compiled.
    inputs
        The folder where tracks and frames of recordings are written.
    rehearsal
        Whether the user's code is loaded, to see that it can be.
    """

    def __init__(self, scenario: Scenario, inputs: Path, *, rehearsal: bool = False) -> None:
        self.scenario = scenario
        self.rehearsal = rehearsal
        self.inputs = inputs
        self.sessions = self._sessions()
        self.nodes = list(dict.fromkeys([*scenario.nodes, *(c.node for c in scenario.components.values())]))
        self.instances = self._instances()
        self.ways = self._ways()

    def _sessions(self) -> list[str]:
        names = self.scenario.sessions
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self.scenario.error(("sessions",), f'found the duplicate id "{twice}"', "each name once")
        return names

    def _of(self, session: str | None, key: Key) -> list[int]:
        if session is None:
            return list(range(len(self.sessions)))
        return [self.find(session, self.sessions, (*key, "session"), "a session")]

    def _name(self, session: int, name: str) -> str:
        return f"{self.sessions[session]}/{name}" if len(self.sessions) > 1 else name

    def _instances(self) -> list[Instance]:
        out: list[Instance] = []
        for id, model in self.scenario.components.items():
            sessions = self._of(model.session, ("components", id))
            shared = (len(sessions) > 1 and model.robot is not None) or model.kind in ("emu", "test-pc")
            for session in sessions[:1] if shared else sessions:
                name = id if shared else self._name(session, id)
                out.append(Instance(len(out), id, name, session, shared, self.nodes.index(model.node), model))
        return out

    def _ways(self) -> list[Way]:
        out: list[Way] = []
        for id, model in self.scenario.flows.items():
            for session in self._of(model.session, ("flows", id)):
                out.append(Way(len(out), id, self._name(session, id), session, model))
        return out

    def of_session(self, session: int) -> list[Instance]:
        """The components of a session and those that it shares with others."""
        return [c for c in self.instances if c.session == session or c.shared]

    def find(self, name: str, names: list[str], key: Key, what: str) -> int:
        """The number of a name, or the error that it is not one of `names`."""
        if name not in names:
            raise self.scenario.error(key, f'found "{name}"', f"{what}: {close_match(name, names)}")
        return names.index(name)

    def flows(self, ids: list[str], key: Key) -> list[Way]:
        """The flows with these ids in all sessions."""
        for id in ids:
            self.find(id, list(self.scenario.flows), key, "a flow")
        return [way for way in self.ways if way.id in ids]

    @cached_property
    def calibration(self) -> dict[str, Any]:
        """Quantiles of the cost of each stage, by its name such as `srv.kinematics`."""
        if self.scenario.calibration is None:
            return {}
        path = existing(self.scenario, ("calibration",), self.scenario.calibration)
        allowed = "a file written by tcpsbed calibrate"
        try:
            stages = json.loads(path.read_text(encoding="utf-8"))["stages"]
            found = {name: stage["quantiles_ns"] for name, stage in stages.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            error: ConfigError = self.scenario.error(
                ("calibration",), f"found {path.name}, which has no stages", allowed
            )
            raise error from None
        for name, quantiles in found.items():
            if not _rising(quantiles):
                text = f"found quantiles of {name} in {path.name} that are no rising spans of time"
                raise self.scenario.error(("calibration",), text, allowed)
        return found
