"""Errors that a user can act on: each says where it is, what was found there and what is allowed.

```text
file:line: key: what was found; allowed: what is possible instead
```
The command line prints the text on standard error and ends with status 2.
"""

from __future__ import annotations

from pathlib import Path


def counted(number: int, word: str) -> str:
    """A number of things: `1 link`, `2 links`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """A text for a terminal: what would move its cursor or turn its writing round is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape", "replace").decode()
        for letter in text
    )


def one_line(text: str) -> str:
    """A text of the user's within a message: line breaks are shown as escapes too."""
    return printable(text).replace("\n", "\\n")


class TcpsbedError(Exception):
    """Something that the user can put right.

    Parameters
    ----------
    found
        What is wrong, as a phrase.
    file, line, key
        Where: a file, its line, and the dotted key in it.
    allowed
        What is possible instead, or what to do about it.
    """

    def __init__(
        self,
        found: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        allowed: str | None = None,
    ) -> None:
        self.found = found
        self.file = str(file) if file is not None else None
        self.line = line
        self.key = key
        self.allowed = allowed
        super().__init__(self._text())

    def _text(self) -> str:
        place = self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        parts = [part for part in (place, self.key, self.found) if part]
        return printable(": ".join(parts) + (f"; allowed: {self.allowed}" if self.allowed else ""))


class ConfigError(TcpsbedError):
    """A scenario that does not make sense."""


class HookError(TcpsbedError):
    """Code of the user that cannot be loaded, or that fails."""


class ProcessDied(HookError):
    """A process that code of the user works with has ended, or was stopped: the run cannot go on."""


class WorldError(TcpsbedError):
    """A world that cannot be built or that broke down while running."""


class DataError(TcpsbedError):
    """A data file that is absent or not what it should be."""
