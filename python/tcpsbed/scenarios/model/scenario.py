"""The scenario: one typed object with everything that a run needs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Unpack

from tcpsbed import door, results, shipped
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import meant, nearest
from tcpsbed.scenarios.dump import dump
from tcpsbed.scenarios.explain import explain
from tcpsbed.scenarios.fields import BeforeValidator, Called, Fault, Field, Refusal, WrongTable
from tcpsbed.scenarios.load import check_text, override, tables
from tcpsbed.scenarios.model.code import HOOK_KINDS, Channel, Hook
from tcpsbed.scenarios.model.entries import choices
from tcpsbed.scenarios.model.flow import PRESETS, Flow
from tcpsbed.scenarios.model.link import Link, Topology
from tcpsbed.scenarios.model.measure import Event, Measure
from tcpsbed.scenarios.model.place import KINDS, Component, Host, Node, Real
from tcpsbed.scenarios.model.table import Name, Table
from tcpsbed.scenarios.model.traffic import TRAFFIC_KINDS, Traffic
from tcpsbed.scenarios.origin import Key, Origin
from tcpsbed.scenarios.overrides import Overrides, overrides
from tcpsbed.scenarios.units import Duration, PositiveDuration

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import ScenarioKeys


def _kinds(known: tuple[str, ...], shorthand: str | None = None, room: str | None = None) -> BeforeValidator:
    """Fills in the kind of an entry that is named like one, also of an installed package."""

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        out = {}
        for name, entry in value.items():
            if shorthand and isinstance(entry, str):
                entry = {shorthand: entry}
            if isinstance(entry, dict) and "kind" not in entry:
                if name in known or (room and name in door.installed(room)):
                    entry = {"kind": name} | entry
                elif room:
                    node = entry.get("node", "NODE")
                    every = [*known, *door.installed(room)]
                    near = nearest(name, every)
                    own = f'{name} = {{ kind = "{near or known[0]}", node = "{node}" }}'
                    found = f'found "{name}", which is not a built-in {room}{meant(name, every)}'
                    plain = f'a built-in name and its node, such as {near} = "{node}"; or ' if near else ""
                    allowed = f"{plain}a name of your own with kind and node, such as {own}; kinds: "
                    allowed += choices(room, known, "")
                    raise Refusal("refused", key=name, found=found, allowed=allowed)
            out[name] = entry
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
    for name, flow in value.items():
        usual = [known for known in PRESETS if known not in value]
        if (
            isinstance(flow, dict)
            and name not in PRESETS
            and "direction" not in flow
            and nearest(name, usual)
        ):
            allowed = f'"forward" or "backward"; or rename the flow to {nearest(name, usual)}, which has a direction'
            raise Refusal("absent", key="direction", at=(name,), found="is missing", allowed=allowed)
    return {n: PRESETS.get(n, {}) | flow if isinstance(flow, dict) else flow for n, flow in value.items()}


class Scenario(Table):
    """A scenario: read from a file, with includes and overrides applied, or made in Python.

    `Scenario(duration="10 s", links={"wan": Link(...)}, ...)` takes the keys of a file, with its values or with tables of
    `tcpsbed.scenarios.model`. Relative paths start from the working folder.
    """

    name: str = "scenario"
    """Name of the scenario in reports; absent: the name of the file."""
    description: str = ""
    """Purpose of the scenario; absent: none."""
    duration_ns: PositiveDuration = Field(10_000_000_000, alias="duration")
    """Length of the run."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of all random streams. Each random object has a stream of its own."""
    phases: Literal["aligned", "random"] = "aligned"
    """When sources begin. `"aligned"`: each source begins at its `start`, so sources of equal periods stay in
    step. Without random objects the run is then the same for every seed. `"random"`: each flow and each entry
    of background traffic begins later, at a random moment of its first period. Each of them draws from its own
    random stream.
    """
    warmup_ns: Duration = Field(0, alias="warmup")
    """Time at the start of the run that statistics leave out."""
    base: Annotated[str, Called("folder")] | None = None
    """Folder from which relative paths start. The value itself is relative to the folder of the file, or one of
    the folders that come with tcpsbed: `"shipped:scenarios"`, `"shipped:examples"`, `"shipped:examples/hooks"`;
    absent: the folder of the file.
    """
    calibration: Annotated[str, Called("file")] | None = None
    """Costs that `tcpsbed calibrate` measured. They apply to nodes, and to stages without a `cost` in the
    scenario. A stage is a piece of work at a component, such as a hook.
    """
    sessions: Annotated[list[Name], Field(min_length=1)] = Field(["main"])
    """The [sessions](#sessions) that share the network."""
    nodes: dict[Name, Node] = Field({})
    """[Nodes](#nodes) that differ from the default."""
    components: Annotated[dict[Name, Component], _kinds(tuple(KINDS), "node", "component")]
    """A table `[components]` with the node of each [component](#components), such as `srv = "edge"`."""
    flows: Annotated[dict[Name, Flow], BeforeValidator(_presets)]
    """[Flows](#flows) by name, such as `[flows.kinematic]`."""
    channels: dict[Name, Channel] = Field({})
    """[Channels](#channels-and-transports): flows that share a transport."""
    hooks: Annotated[dict[Name, Hook], _kinds(HOOK_KINDS, "run")] = Field({})
    """[Hooks](#hooks): code on the path of samples."""
    topology: Topology = Field(default_factory=Topology)
    """Shape of the network beside its links."""
    links: dict[str, Link] = Field({})
    """[Links](#links) by name."""
    traffic: Annotated[dict[Name, Traffic], BeforeValidator(_traffic), _kinds(TRAFFIC_KINDS)] = Field({})
    """[Background traffic](#background-traffic) by name."""
    events: list[Event] = Field([])
    """[Changes](#events) during the run."""
    measure: Measure = Field(default_factory=Measure)
    """What is measured."""
    real: Real = Field(default_factory=Real)
    """Settings for a real clock."""
    hosts: dict[Name, Host] = Field({})
    """[Computers](#hosts) on which `--world hosts` runs nodes."""
    _origin = Origin()

    def __init__(self, **given: "Unpack[ScenarioKeys]") -> None:
        base = Path.cwd() / (given.get("base") or "")
        super().__init__(**{"name": "scenario"} | given | {"base": base})

    @classmethod
    def read(
        cls, file: Path | str, *, set: Overrides = (), duration: str | None = None, seed: int | None = None
    ) -> Self:
        """The scenario in a file.

        Parameters
        ----------
        file : Path or str
            The file: TOML, or a spreadsheet (`.xlsx`).
        set, duration, seed
            Overrides, as of `tcpsbed.run`.

        Raises
        ------
        ConfigError
            If the scenario is invalid: one message with file, key, what was found and what is allowed.

        Examples
        --------
        >>> Scenario.read("quickstart.toml", set={"links.wan.rate": "2 Mbit/s"})  # doctest: +SKIP
        """
        return cls.of(tables(file, overrides(set, duration=duration, seed=seed)))

    @classmethod
    def shipped(
        cls, name: str, *, set: Overrides = (), duration: str | None = None, seed: int | None = None
    ) -> Self:
        """A scenario that comes with tcpsbed, by its name in `tcpsbed init --list`, without a copy of its file.

        Parameters
        ----------
        name : str
            Such as `quickstart`.
        set, duration, seed
            Overrides, as of `tcpsbed.run`.

        Raises
        ------
        ConfigError
            If there is none of this name, or an override is invalid.

        Examples
        --------
        >>> Scenario.shipped("quickstart").name
        'quickstart'
        """
        return cls.read(shipped.scenario(name), set=set, duration=duration, seed=seed)

    @classmethod
    def of(cls, origin: Origin) -> Self:
        """The scenario of a tree of tables."""
        scenario = cls.__new__(cls)
        scenario._make(origin)
        return scenario

    def changed(self, set: Overrides = (), *, duration: str | None = None, seed: int | None = None) -> Self:
        """The scenario with overrides, as of `tcpsbed.run`.

        Raises
        ------
        ConfigError
            If the overrides are invalid.
        """
        origin = replace(self._origin)
        override(origin, overrides(set, duration=duration, seed=seed))
        return self.of(origin)

    def with_event(self, event: dict[str, Any]) -> Self:
        """The scenario with only this event; at its start, unless the event has a time."""
        origin = self._origin
        places = {key: place for key, place in origin.places.items() if key[:1] != ("events",)}
        document = origin.document | {"events": [{"at": "0 s"} | event]}
        return self.of(replace(origin, document=document, places=places | {("events",): ("event", None)}))

    def _make(self, origin: Origin) -> None:
        check_text(origin)
        if origin.file.suffix.lower() == ".xlsx" and "components" not in origin.document:
            allowed = (
                'a row for each component, such as "components", "srv" and "edge" below section, name and (value); '
                "then the sheets flows and network"
            )
            raise ConfigError("found no component", file=origin.file, key="sheet interfaces", allowed=allowed)
        faults: list[Fault] = []
        self._fill({"name": origin.file.stem} | origin.document, (), faults)
        if faults:
            raise explain(WrongTable(faults), origin)
        self._origin = origin

    def to_toml(self) -> str:
        """It as the text of a file, with includes and overrides applied; relative paths keep their folder (`base`)."""
        return dump(self, based=bool(self._named))

    def write(self, path: Path | str, *, force: bool = False) -> Path:
        """Writes it into a file, whole or not at all.

        Parameters
        ----------
        path : Path or str
            The file, `.toml`.
        force : bool
            Whether to overwrite a file that tcpsbed did not write.

        Raises
        ------
        ConfigError
            If the file may not be overwritten.
        """
        file = Path(path)
        results.may_write(file, force=force, remedy="another name, or force=True to overwrite it")
        with results.whole(file) as part:
            part.write_text(self.to_toml(), encoding="utf-8")
        return file

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return (shipped.BASES.get(self.base or "") or self._origin.folder / (self.base or "")).resolve()

    @property
    def shortened(self) -> bool:
        """Whether the duration was overridden, so that later entries of the file may be skipped."""
        return self.overridden(("duration",))

    def overridden(self, key: Key) -> bool:
        """Whether the value of a key was given by an override, not by a file."""
        return self._origin.overridden(key)

    @property
    def document(self) -> dict[str, Any]:
        """The tables and values of the file with includes and overrides applied, as TOML has them."""
        return self._origin.document

    @property
    def file(self) -> Path:
        """The file that it was read from."""
        return self._origin.file

    @property
    def sources(self) -> list[Path]:
        """That file and those that it includes, links followed."""
        read = {self.file, *(Path(file) for file, _ in self._origin.places.values())}
        return sorted({file.resolve() for file in read if _is_there(file, folders=False)})

    @property
    def files(self) -> list[Path]:
        """The files of the scenario, and the existing files that it names: recordings, code, models; no keys."""
        read = {self._origin.file, *(Path(file) for file, _ in self._origin.places.values())}
        return sorted({file for file in read if _is_there(file, folders=False)} | self._named)

    @property
    def _named(self) -> set[Path]:
        """The existing files that it names."""
        folder = self.folder  # asks the disk
        return {folder / name for name in named_in(self.document, folder) - self.key_files}

    @property
    def key_files(self) -> set[str]:
        """The files with keys that it names: nobody copies them."""
        methods = [channel.security for channel in self.channels.values() if channel.security is not None]
        return {file for method in methods if isinstance(file := method.parameters().get("key_file"), str)}

    def error(self, key: Key, found: str, allowed: str) -> ConfigError:
        """The error of a key of this scenario."""
        return self._origin.error(key, found, allowed)


def named_in(document: dict[str, Any], folder: Path, *, folders: bool = False) -> set[str]:
    """The existing files below a folder that the texts of a scenario's tables name, as they name them; with `folders` those,
    too, since a recording may be one.
    """
    named = set().union(*map(names, {*texts(document)}))
    return {name for name in named if _is_there(folder / name, folders=folders)}


def texts(value: Any) -> Iterator[str]:
    """All texts in a value, but keys."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def names(text: str) -> set[str]:
    """Files that a text may name: alone, before a class (`./hold.py:Hold`, `hold:Hold`), after a kind (`operator:a.csv`)."""
    first, _, rest = text.partition(":")
    last = text.rpartition(":")[0]
    return {text, first, last, rest, f"{last.replace('.', '/')}.py"} - {"", ".py"}


def _is_there(file: Path, *, folders: bool) -> bool:
    try:
        return file.is_file() or (folders and file.is_dir())
    except (OSError, ValueError):  # a text too long for a name, or with a zero in it
        return False
