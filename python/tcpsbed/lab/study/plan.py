"""The file of a study: conditions, scenario, and instructions for subjects.

```toml
scenario = "../scenarios/console-network.toml"   # relative to this file
duration = "30 s"                                # of each presentation
training = "60 s"                                # on the reference; "0 s": none
pairs = true                                     # the reference before each condition
seed = 1                                         # of the orders
instructions = "Push against the wall."
[reference]
set = ['links.l1.loss=0']                        # overrides, as --set has them
[conditions.udp]
set = []
[conditions.tcp]
set = ['channels.all.transport="tcp"']
```
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios.explain import explain
from tcpsbed.scenarios.fields import Field, WrongTable
from tcpsbed.scenarios.load import check_text
from tcpsbed.scenarios.model.table import Name, Table
from tcpsbed.scenarios.origin import Origin
from tcpsbed.scenarios.units import Duration, PositiveDuration


class Condition(Table):
    """What differs from the scenario."""

    sets: list[str] = Field([], alias="set")
    """A list of overrides such as 'links.l1.delay="20 ms"'."""


class Study(Table):
    """A study, as read from its file."""

    name: Name = "study"
    """What its results are called; absent: the name of the file."""
    scenario: str
    """A scenario file, relative to this one."""
    duration_ns: PositiveDuration = Field(30_000_000_000, alias="duration")
    """How long each presentation lasts."""
    training_ns: Duration = Field(60_000_000_000, alias="training")
    """How long a subject practises on the reference first; "0 s": not at all."""
    pairs: bool = True
    """Whether the reference is shown before each condition, and not in the training alone."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of the orders."""
    instructions: str = ""
    """What subjects are told to do."""
    reference: Condition = Condition()
    """What subjects compare with."""
    conditions: Annotated[dict[Name, Condition], Field(min_length=2, max_length=20)]
    """At least two conditions by name, which subjects never see."""
    _origin = Origin()
    _shown: list[dict[str, Any]]
    """The scenario of the reference and of each condition, as it is run."""

    @property
    def file(self) -> Path:
        """The file of the scenario."""
        return self._origin.folder / self.scenario

    @property
    def files(self) -> list[Path]:
        """The file of the study and that of the scenario."""
        return [self._origin.file, self.file]

    @property
    def fingerprint(self) -> str:
        """The content of two files that must agree for their ratings to be in one table: everything that subjects rate."""
        compared = [self.model_dump(exclude={"name", "instructions", "scenario"}), *self._shown]
        return hashlib.sha256(json.dumps(compared, sort_keys=True, default=str).encode()).hexdigest()

    def overrides(self, condition: str | None, length_ns: int) -> list[str]:
        """The overrides of the scenario for a presentation; `None` is the reference."""
        chosen = self.reference if condition is None else self.conditions[condition]
        return [*chosen.sets, f'duration="{length_ns} ns"']


def load(path: Path) -> Study:
    """Reads a study and the scenario of each of its conditions.

    Raises
    ------
    ConfigError
        If anything in them is not as it should be, before a subject is there.
    """
    origin = scenarios.tables(path)
    check_text(origin)
    try:
        study = Study.model_validate({"name": path.stem} | origin.document)
    except WrongTable as error:
        raise explain(error, origin) from None
    study._origin, study._shown = origin, []
    if not study.file.is_file():
        raise origin.error(
            ("scenario",), f'found "{study.scenario}"', f"a scenario file, looked for at {study.file}"
        )
    for name in (None, *study.conditions):
        try:
            shown = scenarios.load(study.file, study.overrides(name, study.duration_ns))
            scenarios.check(shown)
            study._shown.append(shown.model_dump(exclude={"name", "description", "base"}))
        except ConfigError as error:
            key = "reference" if name is None else f"conditions.{name}"
            raise ConfigError(f"{key}: {error}", file=path) from None
    return study
