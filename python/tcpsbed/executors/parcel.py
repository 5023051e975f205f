"""A scenario that travels: its text and the files that it names, below a folder of their own where it arrives."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.beside import imported
from tcpsbed.errors import ConfigError, TcpsbedError

if TYPE_CHECKING:
    from tcpsbed.scenarios import Scenario

MOST_BYTES = 64 << 20
"""Most bytes of the files of a scenario: they travel with each of its calls."""


@dataclass(frozen=True)
class Parcel:
    """A scenario for a call: itself in this process; pickled for another one, its text and files."""

    scenario: Scenario

    def __reduce__(self) -> tuple[Any, ...]:
        from tcpsbed import scenarios

        folder = str(self.scenario.folder)
        return _Sent, (scenarios.dump(self.scenario), folder, _contents(self.scenario))

    @contextmanager
    def opened(self) -> Iterator[Scenario]:
        """The scenario, with its files at hand."""
        yield self.scenario


@dataclass(frozen=True)
class _Sent:
    """A parcel where it arrives: the text of a scenario, its folder, and its files by their absolute paths."""

    text: str
    folder: str
    files: tuple[tuple[str, bytes], ...]

    @contextmanager
    def opened(self) -> Iterator[Scenario]:
        """The scenario, with its files at hand.

        Raises
        ------
        TcpsbedError
            What is raised meanwhile, with paths as on the machine that sent it.
        """
        from tcpsbed import scenarios

        with tempfile.TemporaryDirectory(prefix="tcpsbed-parcel-") as home:
            for name, content in self.files:
                file = Path(f"{home}{name}")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            Path(f"{home}{self.folder}").mkdir(parents=True, exist_ok=True)
            names = [self.folder, *(name for name, _ in self.files)]
            scenario = Path(home) / "scenario.toml"
            scenario.write_text(_moved(self.text, names, home), encoding="utf-8")
            try:
                yield scenarios.load(scenario)
            except TcpsbedError as error:
                raise error.retold(str(error).replace(home, "")) from None


def _moved(text: str, names: list[str], home: str) -> str:
    """The text of a scenario whose absolute paths lie below another folder."""
    longest_first = sorted(names, key=len, reverse=True)
    of_them = "|".join(re.escape(name) for name in longest_first if name != "/")
    return re.sub(f"(?<=[\"':])(?=(?:{of_them})[/\"':])", home, text) if of_them else text


def _contents(scenario: Scenario) -> tuple[tuple[str, bytes], ...]:
    """The files that a scenario names, with the modules that its code imports.

    Raises
    ------
    ConfigError
        If they are too large, or one has to stay where it is.
    """
    from tcpsbed.scenarios.model.scenario import texts

    if keys := sorted(scenario.key_files):
        found, allowed = f"found the key file {keys[0]}", "security without key_file: each run makes a key"
        raise ConfigError(found, key="--cluster", allowed=allowed)
    if there := [text for text in texts(scenario.document) if text.startswith("~/")]:
        found = f'found "{there[0]}": workers have other files'
        raise ConfigError(found, key="--cluster", allowed="a path relative to the scenario")
    files = {Path(os.path.normpath(file)) for file in scenario.files}
    files |= {module for file in files for module in imported(file)}
    size = sum(file.stat().st_size for file in files)
    if size > MOST_BYTES:
        found, allowed = f"found {size / 1e6:.0f} MB of files", "at most 67 MB, or without --cluster"
        raise ConfigError(found, key="--cluster", allowed=allowed)
    return tuple((str(file), file.read_bytes()) for file in sorted(files))
