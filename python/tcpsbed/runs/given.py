"""A scenario as its user gave it, in a form that other processes can load again: a file and overrides."""

from __future__ import annotations

import hashlib
import json
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcpsbed import inputs
from tcpsbed.errors import ConfigError

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario
    from tcpsbed.scenarios.overrides import Overrides


@dataclass(frozen=True)
class Given:
    """A scenario to run.

    Attributes
    ----------
    file
        Its file; of a text, and of a scenario made in Python, one that is there until the work ends.
    settings
        Overrides of every run, without a seed.
    scenario
        It, loaded, with its seed.
    """

    file: Path
    settings: tuple[str, ...]
    scenario: Scenario

    def folder(self, kind: str, described: Sequence[str]) -> Path:
        """A folder for many runs of it that the same call finds again."""
        from tcpsbed import scenarios

        told = "\n".join([scenarios.dump(self.scenario), *described])
        return Path("runs") / f"{kind}-{self.scenario.name}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


@contextmanager
def given(
    scenario: Scenario | Path | str,
    *,
    set: Overrides = (),
    duration: str | None = None,
    seed: int | None = None,
) -> Iterator[Given]:
    """A scenario in a file, until the work ends.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or its TOML text (anything with a line break), whose relative paths start from
        the working folder.
    set, duration, seed
        As of `tcpsbed.run`.

    Raises
    ------
    ConfigError
        If the scenario is invalid.
    """
    from tcpsbed import scenarios

    settings = scenarios.overrides(set, duration=duration)
    every = scenarios.overrides(settings, seed=seed)
    if isinstance(scenario, Path) or (isinstance(scenario, str) and "\n" not in scenario):
        yield Given(inputs.path(scenario, "scenario"), tuple(settings), scenarios.load(scenario, every))
        return
    if not isinstance(scenario, str) and not hasattr(scenario, "document"):
        allowed = 'the path of a file, such as "quickstart.toml", the text of one, or a tcpsbed.Scenario'
        raise ConfigError(f"found {type(scenario).__name__}", key="scenario", allowed=allowed)
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        file = Path(folder) / "scenario.toml"
        if isinstance(scenario, str):
            file.write_text(scenario, encoding="utf-8")
            settings[:0] = _base(scenario)
            yield Given(file, tuple(settings), scenarios.load(file, scenarios.overrides(settings, seed=seed)))
        else:
            changed = scenario.changed(set, duration=duration, seed=seed) if every else scenario
            file.write_text(scenarios.dump(changed), encoding="utf-8")
            yield Given(file, (), changed)


def _base(text: str) -> list[str]:
    """The override by which relative paths of a text start from the working folder, unless it names another."""
    try:
        named = "base" in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        named = True
    return [] if named else [f"base={json.dumps(str(Path.cwd()))}"]
