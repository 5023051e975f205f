"""The register of a compilation: every name of the scenario with its number in the plan."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.compile.files import existing
from tcpsbed.scenarios.model.flow import Flow
from tcpsbed.scenarios.model.place import Component
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key

MEASURED = "a file written by tcpsbed calibrate"
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
        self._shared = [c for c in self.instances if c.shared]
        self._own: dict[int, list[Instance]] = defaultdict(list)
        for instance in self.instances:
            if not instance.shared:
                self._own[instance.session].append(instance)
        self.ways = self._ways()
        self.kinds: dict[str, Any] = {}
        """What the user says of kinds of components, by the ids of these (`compile.kinds`)."""

    def _sessions(self) -> list[str]:
        names = self.scenario.sessions
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self.scenario.error(("sessions",), f'found "{twice}" twice', "each session once")
        return names

    def _of(self, session: str | None, key: Key) -> list[int]:
        if session is None:
            return list(range(len(self.sessions)))
        known = self._sessions_by_name.get(session)
        return [self.find(session, self.sessions, (*key, "session"), "a session") if known is None else known]

    @cached_property
    def _sessions_by_name(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.sessions)}

    def _name(self, session: int, name: str) -> str:
        return f"{self.sessions[session]}/{name}" if len(self.sessions) > 1 else name

    def _instances(self) -> list[Instance]:
        out: list[Instance] = []
        nodes = {name: number for number, name in enumerate(self.nodes)}
        for id, model in self.scenario.components.items():
            sessions = self._of(model.session, ("components", id))
            shared = (len(sessions) > 1 and model.robot is not None) or model.kind in ("emu", "test-pc")
            for session in sessions[:1] if shared else sessions:
                name = id if shared else self._name(session, id)
                out.append(Instance(len(out), id, name, session, shared, nodes[model.node], model))
        return out

    def _ways(self) -> list[Way]:
        out: list[Way] = []
        for id, model in self.scenario.flows.items():
            for session in self._of(model.session, ("flows", id)):
                out.append(Way(len(out), id, self._name(session, id), session, model))
        return out

    def of_session(self, session: int) -> dict[str, Instance]:
        """The components of a session and those that it shares with others, by id."""
        around = sorted([*self._own[session], *self._shared], key=lambda c: c.number)
        return {c.id: c for c in around}

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
    def test_pc(self) -> int | None:
        """The node of the test-pc."""
        return next((c.node for c in self.instances if c.kind == "test-pc"), None)

    @cached_property
    def calibration(self) -> dict[str, Any]:
        """Quantiles of the cost of each stage, by its name such as `srv.kinematics`."""
        return {name: self._rising(name, stage) for name, stage in self._measured["stages"].items()}

    @cached_property
    def boundaries(self) -> dict[str, dict[str, Any]]:
        """Quantiles of `wakeup`, `send` and `receive` of each node that was measured."""
        return {
            node: {kind: self._rising(f"nodes.{node}.{kind}", entry) for kind, entry in kinds.items()}
            for node, kinds in self._measured["nodes"].items()
        }

    @cached_property
    def _measured(self) -> dict[str, dict[str, Any]]:
        """Stages and nodes of the calibration file."""
        if self.scenario.calibration is None:
            return {"stages": {}, "nodes": {}}
        path = existing(self.scenario, ("calibration",), self.scenario.calibration)
        try:
            content = inputs.from_json(path, "a calibration")
            stages, nodes = content["stages"], content.get("nodes", {})
            for entry in [*stages.values(), *(kind for kinds in nodes.values() for kind in kinds.values())]:
                entry["quantiles_ns"]
        except (DataError, KeyError, TypeError, AttributeError):
            error: ConfigError = self.scenario.error(
                ("calibration",), f"found {path.name}, which has no stages", MEASURED
            )
            raise error from None
        kinds = {"wakeup", "send", "receive"}
        if strange := sorted({kind for node in nodes.values() for kind in node} - kinds):
            raise self.scenario.error(
                ("calibration",), f'found the unknown cost "{strange[0]}" of a node in {path.name}', MEASURED
            )
        return {"stages": stages, "nodes": nodes}

    def _rising(self, name: str, entry: dict[str, Any]) -> Any:
        """The quantiles of an entry of the calibration file."""
        if not _rising(entry["quantiles_ns"]):
            file = Path(self.scenario.calibration or "").name
            text = f"found negative or falling quantiles of {name} in {file}"
            raise self.scenario.error(("calibration",), text, MEASURED)
        return entry["quantiles_ns"]
