"""The file of a campaign.

```toml
scenario = "my.toml"                              # relative to this file
seeds = 40                                        # at most, with `until`
until = "haptic.delay_ms.p99 within 5 %"
metrics = ["haptic.delay_ms.p99", "haptic.loss"]
baseline = { "channels.session.transport" = "udp" }
[grid]
links.l1.rate = "1..2 Mbit/s step 0.5"
channels.session.transport = ["udp", "dpm", "tcp"]
```
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tcpsbed.campaign import design, grid
from tcpsbed.campaign.design import Design, Written
from tcpsbed.campaign.grid import Axis
from tcpsbed.campaign.survey import Survey
from tcpsbed.errors import ConfigError, TcpsbedError, counted
from tcpsbed.nearest import close_match
from tcpsbed.scenarios.explain import explain
from tcpsbed.scenarios.fields import Field, Refusal, WrongTable
from tcpsbed.scenarios.load import check_text, tables
from tcpsbed.scenarios.model.table import AnyNames, Name, Names, Table, plain
from tcpsbed.scenarios.origin import Key, Origin, dotted
from tcpsbed.scenarios.units import refuse, shown
from tcpsbed.views.metric import OWN, Metric, metric

MOST_CELLS = 1_000_000
"""Most combinations times seeds."""
MOST_TOLD = 20
"""Errors that one message tells."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
FACTORS = ("grid", "zipped", "random", "latin")
"""Tables of factors."""
"""Directions of a link."""
NO_FACTOR = 'a factor, such as [grid] with "links.l1.rate" = "4..6 Mbit/s step 0.5"'


class Drawn(Table):
    """Points that are drawn; every other key is a factor."""

    extra: ClassVar[bool] = True
    points: Annotated[int, Field(ge=1, le=design.MOST_VALUES)]
    """How many points are drawn."""
    seed: Seed = 1
    """Seed of the draw; another than those of the runs."""


class Campaign(Table):
    """A campaign, as read from its file."""

    name: Name = "campaign"
    """What its folder is called; absent: the name of the file."""
    scenario: str
    """A scenario file, relative to this one."""
    sets: list[str] = Field([], alias="set")
    """Overrides of every cell, such as 'duration="10 s"'."""
    world: Names = Field(["virtual"])
    """One world, or several, which are then a factor."""
    seeds: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Seeds of every combination, counted from the scenario's; with `until` the most."""
    until: str = ""
    """When a combination has seeds enough, such as "haptic.delay_ms.p99 within 5 %"."""
    metrics: AnyNames = Field([])
    """What tables and figures show, such as ["haptic.delay_ms.p99", "haptic.loss"]."""
    baseline: dict[str, Any] = Field({})
    """Values that combinations are compared with, seed by seed; absent: the first combination."""
    labels: dict[str, Any] = Field({})
    """What keys and values are called in tables and figures."""
    warmup: Annotated[int, Field(ge=0, le=100)] = 0
    """Runs before the first cell on the machine's clock, whose results are discarded."""
    order: Seed = 1
    """Seed of the order in which cells run."""
    grid: dict[str, Any] = Field({})
    """Factors of which every value meets every value of the others."""
    zipped: dict[str, Any] = Field({})
    """Factors of which the first values belong together, the second, and so on."""
    random: Drawn | None = None
    """Points that are drawn at random."""
    latin: Drawn | None = None
    """Points of a Latin hypercube."""


def load(file: Path | Mapping[str, Any], out: Path | None = None) -> Survey:
    """The campaign in a file, or in a mapping of the same keys, checked as far as no scenario is needed for it.

    Raises
    ------
    ConfigError
        With all that is wrong.
    """
    origin = _of_python(file) if isinstance(file, Mapping) else tables(file)
    check_text(origin)
    reading = _Reading(origin)
    read = reading.campaign()
    scenario = origin.folder / read.scenario
    axes, points = reading.factors(read)
    made = Design(
        points,
        reading.until(read.until),
        reading.metrics(read.metrics),
        reading.baseline(read.baseline, axes),
        reading.labels(read, axes),
        read.order,
        read.warmup,
        named=True,
        places=reading.places,
        file=None if isinstance(file, Mapping) else near(file),
        document=origin.document if isinstance(file, Mapping) else {},
    )
    if made.until is not None and read.seeds < design.LEAST_SEEDS:
        allowed = (
            f"{design.LEAST_SEEDS} or more with until, such as seeds = 40: fewer have no interval to stop at"
        )
        reading.refused(("seeds",), refuse(f"found {read.seeds}", allowed))
    first = reading.scenario(scenario, read, made, [axis.key for axis in axes])
    if len(points) * read.seeds > MOST_CELLS:
        reading.refused(
            ("seeds",),
            refuse(
                f"found {len(points)} combinations under {read.seeds} seeds each",
                f"at most {MOST_CELLS} cells",
            ),
        )
    if reading.errors or first is None:
        raise joined(reading.errors)
    seeds = tuple(range(first, first + read.seeds))
    short = hashlib.sha256(str(origin.file.resolve()).encode()).hexdigest()[:8]
    folder = out or Path("runs") / f"campaign-{read.name}-{short}"
    return Survey(near(scenario), axes, seeds, tuple(read.sets), read.world[0], folder, made)


def _of_python(given: Mapping[str, Any]) -> Origin:
    """A mapping as the tables of a file."""
    try:
        return Origin(Path("campaign"), plain(given))
    except Refusal as error:
        raise ConfigError(error.context["found"], key="campaign", allowed=error.context["allowed"]) from None


def joined(errors: Sequence[TcpsbedError]) -> ConfigError:
    """All errors as one."""
    if len(errors) == 1 and isinstance(errors[0], ConfigError):
        return errors[0]
    ordered = sorted(errors, key=lambda error: error.line or 0)
    told = [str(error) for error in ordered[:MOST_TOLD]]
    more = [f"and {len(errors) - MOST_TOLD} more"] if len(errors) > MOST_TOLD else []
    return ConfigError(
        "\n  ".join([f"found {counted(len(errors), 'error')}; nothing was run:", *told, *more])
    )


class _Reading:
    """Reads the parts of a campaign and gathers what is wrong with them."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.errors: list[TcpsbedError] = []
        self.whole = True
        """Whether all factors could be read, so that their keys and values are known."""
        self.places: dict[str, Written] = {}
        """Where factors and overrides are written, by key."""

    def campaign(self) -> Campaign:
        """The tables, without what is wrong in them.

        Raises
        ------
        ConfigError
            If that leaves none.
        """
        document = {"name": self.origin.file.stem} | self.origin.document
        while True:
            try:
                read = Campaign.model_validate(document)
                break
            except WrongTable as error:
                wrong = {(*fault.place, fault.context.get("key"))[0] for fault in error.faults}
                for place in dict.fromkeys((fault.place, fault.context.get("key")) for fault in error.faults):
                    same = [one for one in error.faults if (one.place, one.context.get("key")) == place]
                    if same[0].kind != "absent" or place[1] not in self.origin.document:
                        self.errors.append(explain(WrongTable(same), self.origin))
                if not wrong & document.keys():
                    raise joined(self.errors) from None
                document = {key: value for key, value in document.items() if key not in wrong}
                self.whole = self.whole and not wrong.intersection(FACTORS)
        if not (self.origin.folder / read.scenario).is_file():
            allowed = f"a scenario file, looked for at {self.origin.folder / read.scenario}"
            self.errors.append(self.origin.error(("scenario",), f'found "{read.scenario}"', allowed))
            raise joined(self.errors)
        return read

    def refused(self, key: Key, error: Refusal) -> None:
        """Notes what is wrong with a key."""
        self.errors.append(self.origin.error(key, error.context["found"], error.context["allowed"]))

    def factors(self, read: Campaign) -> tuple[tuple[Axis, ...], tuple[tuple[str, ...], ...]]:
        """Axes and points of all factors."""
        groups: list[design.Group] = []
        taken: dict[str, str] = {}
        before = len(self.errors)
        for table in FACTORS:
            found = getattr(read, table)
            factors = self.flat((table,), found.model_extra if isinstance(found, Drawn) else found or {})
            self.places |= {key: self.written((table, *parts)) for key, parts in factors.places.items()}

            def wrong(
                key: str, error: Refusal, table: str = table, keys: dict[str, Key] = factors.places
            ) -> None:
                self.refused((table, *keys[key]), error)

            for key, parts in factors.places.items():
                if key in ("seed", "world"):
                    wrong(
                        key,
                        refuse(
                            f'found the factor "{key}"',
                            f"{key} outside of [{table}], such as {EXAMPLES[key]}",
                        ),
                    )
                elif any(key in group.keys for group in groups):
                    self.refused((table, *parts), refuse("found a second time", "each factor once"))
                elif other := next((other for other in taken if _overlap(key, other)), None):
                    told = (
                        f"found a part of {other}" if len(key) > len(other) else f"found the whole of {other}"
                    )
                    self.refused(
                        (table, *parts),
                        refuse(
                            f"{told}, which is a factor of [{taken[other]}]", f"{key} or {other}, not both"
                        ),
                    )
                taken[key] = table
            if table == "grid":
                groups += design.each(factors, wrong)
            elif table == "zipped":
                groups += design.zipped(factors, wrong)
            elif isinstance(found, Drawn):
                groups += design.drawn(factors, found.points, found.seed, table == "latin", wrong)
        if len(read.world) > 1:
            groups.append(design.Group((grid.WORLD,), tuple((world,) for world in read.world)))
        given = any(self.origin.document.get(table) for table in FACTORS)
        if not groups and not given:
            self.errors.append(self.origin.error(("grid",), "found no factor", NO_FACTOR))
        self.whole = self.whole and len(self.errors) == before
        return design.multiplied(groups)

    def flat(self, above: Key, table: Mapping[str, Any]) -> "Flat":
        """A table by dotted keys; notes those that it has twice, in two ways of writing."""
        found = Flat(table)
        for key, parts in found.twice.items():
            self.refused(
                (*above, *parts), refuse("found a second time, in another way of writing", f"{key} once")
            )
        return found

    def written(self, key: Key) -> Written:
        """Where a key is."""
        file, line = self.origin.place(key)
        return Written(file, line, dotted(key))

    def until(self, text: str) -> design.Until | None:
        """The stopping rule."""
        try:
            return design.until(text) if text else None
        except Refusal as error:
            self.refused(("until",), error)
            return None

    def metrics(self, paths: Sequence[str]) -> tuple[Metric, ...]:
        """What is shown."""
        found = []
        for number, path in enumerate(paths):
            try:
                found.append(metric(path))
            except Refusal as error:
                self.refused(("metrics", number), error)
        return tuple(found)

    def baseline(self, table: Mapping[str, Any], axes: Sequence[Axis]) -> dict[str, str]:
        """Values of some of the factors."""
        found, known = self.flat(("baseline",), table), {axis.key: axis.values for axis in axes}
        for key, value in found.items():
            place: Key = ("baseline", *found.places[key])
            if key not in known:
                if self.whole:
                    self.refused(
                        place, refuse(f'found "{key}", which is not a factor', close_match(key, known))
                    )
            elif design.text_of(value) not in known[key]:
                self.refused(
                    place, refuse(f"found {shown(value)}", close_match(design.text_of(value), known[key]))
                )
        return {key: design.text_of(value) for key, value in found.items()}

    def labels(self, read: Campaign, axes: Sequence[Axis]) -> dict[str, str]:
        """New names of keys, values and metrics, a name for each."""
        found = self.flat(("labels",), read.labels)
        values = {axis.key: [value.strip("\"'") for value in axis.values] for axis in axes}
        known = dict.fromkeys([*values, *(value for of in values.values() for value in of), *read.metrics])
        wrong: dict[str, Refusal] = {}
        for key, value in found.items():
            if not isinstance(value, str) or not value:
                wrong[key] = refuse(f"found {shown(value)}", 'a text, such as "Bottleneck"')
            elif key not in known and self.whole:
                said = f'found "{key}", which is no factor, no value of one and no metric'
                wrong[key] = refuse(said, close_match(key, known))
        for together in (list(values), *values.values()):
            called: dict[str, str] = {}
            for name in together:
                label = str(found.get(name, name))
                if (other := called.setdefault(label, name)) != name:
                    key = name if name in found else other
                    wrong.setdefault(
                        key, refuse(f'found "{label}" for {other} and for {name}', "a label for each")
                    )
        for key, error in wrong.items():
            self.refused(("labels", *found.places[key]), error)
        return {key: str(value) for key, value in found.items()}

    def scenario(self, file: Path, read: Campaign, made: Design, factors: Sequence[str]) -> int | None:
        """The first seed; notes what the scenario itself, its flows and the worlds say."""
        from tcpsbed import scenarios, worlds

        if len(set(read.world)) < len(read.world):
            self.refused(("world",), refuse(f"found a world twice in {read.world}", "each world once"))
        for world in read.world:
            try:
                worlds.require(world)
            except TcpsbedError as error:
                found = error.found if error.key == "--world" else error.text
                allowed = error.allowed or "what it needs, or another world, such as virtual"
                self.refused(("world",), refuse(found, allowed.replace("--world ", "")))
        self.places |= {text.partition("=")[0].strip(): self.written(("set",)) for text in read.sets}
        try:
            first = scenarios.load(file, read.sets)
        except TcpsbedError as error:
            self.errors.append(design.placed(error, self.places))
            return None
        rules = [] if made.until is None else [(("until",), made.until.metric)]
        for key, asked in [*rules, *((("metrics", n), one) for n, one in enumerate(made.metrics))]:
            if asked.listed == OWN and any(key.startswith("measure.metrics") for key in factors):
                continue  # each combination has its own
            if amiss := design.unknown(first, asked):
                self.refused(key, amiss)
        return first.seed


EXAMPLES = {"seed": "seeds = 10", "world": 'world = ["virtual", "real"]'}


class Flat(dict[str, Any]):
    """A table of tables as one, by dotted keys; `places` has their parts, `twice` those of keys that were there."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__()
        self.places: dict[str, Key] = {}
        self.twice: dict[str, Key] = {}
        for parts, value in _leaves(table, ()):
            key = ".".join(str(part) for part in parts)
            if key in self:
                self.twice[key] = parts
            else:
                self[key], self.places[key] = value, parts


def _leaves(table: Mapping[str, Any], above: Key) -> Iterator[tuple[Key, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _overlap(key: str, other: str) -> bool:
    """Whether one of two dotted keys is a part of what the other sets."""
    return key.startswith(f"{other}.") or other.startswith(f"{key}.")


def near(file: Path) -> Path:
    """A file as it is shown: below the working folder without that."""
    file = file.resolve()
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
