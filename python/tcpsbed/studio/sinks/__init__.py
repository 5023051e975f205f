"""Sinks: where the live data of a run goes besides the page, one file each, in the page's process (docs/sinks.md).

```text
server ── rows, numbers, events ──► a bounded queue for each sink ──► a thread that calls it (running.py)
```
A sink never holds up the page, and so never the run: what it does not take in time it misses.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from pathlib import Path

from tcpsbed import door, results
from tcpsbed.errors import ConfigError
from tcpsbed.hooks import find
from tcpsbed.nearest import close_match

SINKS = {
    "foxglove": "tcpsbed.studio.sinks.foxglove:Foxglove",
    "mcap": "tcpsbed.studio.sinks.mcap:Mcap",
    "openmetrics": "tcpsbed.studio.sinks.openmetrics:OpenMetrics",
    "rerun": "tcpsbed.studio.sinks.rerun:Rerun",
}
"""Class of each sink, by the name that `--sink` takes."""


def opened(text: str) -> door.Sink:
    """The sink of `NAME` or `NAME=TARGET`, ready for a run.

    Raises
    ------
    TcpsbedError
        If there is none of this name, or it cannot use the target.
    """
    name, _, target = text.partition("=")
    code = SINKS.get(name) or door.named("sink", name)
    place, _, symbol = code.rpartition(":")
    if not place:
        known = close_match(name, [*SINKS, *door.installed("sink")])
        raise ConfigError(
            f'found "{name}"', key="--sink", allowed=f'{known}, or code such as "./mine.py:Mine"'
        )
    kind = find(str(Path(place).resolve()) if place.endswith(".py") else place, symbol)
    if not (inspect.isclass(kind) and issubclass(kind, door.Sink) and not inspect.isabstract(kind)):
        allowed = f"class {symbol}(tcpsbed.Sink) with take(self, now), as tcpsbed docs sinks shows"
        raise ConfigError(f'found "{symbol}", which is not a sink', key="--sink", allowed=allowed)
    made: door.Sink = kind(target)
    return made


def port_of(name: str, target: str, usual: int) -> int:
    """The port that a target names; `usual` without one.

    Raises
    ------
    ConfigError
        If it is none.
    """
    if not target:
        return usual
    if not (target.isascii() and target.isdecimal() and int(target) < 1 << 16):
        raise ConfigError(
            f'found "{target}"',
            key=f"--sink {name}",
            allowed=f"a port, such as {name}={usual}; 0: a free one",
        )
    return int(target)


class File:
    """The file of a sink: what is written to `part` takes its place when it is closed.

    Parameters
    ----------
    name, target
        The sink's name, and the file.

    Raises
    ------
    ConfigError
        If no file is given, or it may not be written.
    """

    def __init__(self, name: str, target: str) -> None:
        if not target:
            raise ConfigError(
                "found no file", key=f"--sink {name}", allowed=f"a file to write, such as {name}=run.{name}"
            )
        self.path = Path(target)
        results.may_write(self.path, remedy="another name")
        self._open = ExitStack()
        self.part = self._open.enter_context(results.whole(self.path))

    def close(self) -> None:
        """Puts the file in its place."""
        self._open.close()
