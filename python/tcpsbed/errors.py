"""Errors that a user can correct: where, what was found, and what is allowed.

```text
file:line: key: what was found (did you mean …?); allowed: alternatives or a remedy
file:line: key is missing; allowed: an example
--option: file is a folder; allowed: alternatives
```
The command line prints the text on standard error and ends with status 2.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

ROOM = "free space there, or a place elsewhere"
"""Remedy for a full disk."""
LIMIT = "a higher limit of the size of files: ulimit -f unlimited"
"""Remedy for the limit of file sizes."""
REMEDIES = {errno.ENOSPC: ROOM, errno.EDQUOT: ROOM, errno.EFBIG: LIMIT}
"""Remedies for failed writes, by errno."""
ALL_REMEDIES = REMEDIES | {
    errno.ENAMETOOLONG: "a shorter name, such as runs/a: a part of it has at most 255 bytes",
    errno.EMFILE: "a higher limit of open files: ulimit -n 4096",
    errno.EAGAIN: "a higher limit of memory and processes (ulimit -v unlimited -u unlimited), or fewer programs",
    errno.EADDRNOTAVAIL: "an address of that computer (ip addr lists them)",
    errno.EACCES: "a place to which you have rights (ls -ld shows them), such as one below your home folder",
    errno.EROFS: "a place that is not read-only, such as one below your home folder",
}
"""Those, and where a name is too long, a limit too low, or rights are missing."""


def counted(number: int, word: str) -> str:
    """A number of things: `1 link`, `2 links`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


UNSEEN = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
"""Letters that no terminal or page may be given, beside control characters below U+0020: those of C1, marks that part lines
or turn the direction of writing, halves of surrogate pairs.
"""
_HIDDEN = re.compile(rf"[\x00-\x09\x0b-\x1f{UNSEEN}]")


def printable(text: str) -> str:
    """A text for a terminal: control characters but line breaks, and `UNSEEN` letters, are shown as escapes."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Text from the user within a message: line breaks are escaped, too."""
    return printable(text).replace("\n", "\\n")


MOST_SHOWN = 80
"""Letters that a message shows of a long text from the user."""
# A word of 300 letters or more, without the quotes and marks at its end: no key and no value that was meant is so long.
_ENDLESS = re.compile(rf"(\S{{{MOST_SHOWN}}})\S{{220,}}?([\"';:,)\]]*)(?!\S)")


# The name that was probably meant, as `tcpsbed.nearest.meant` writes it behind alternatives.
_MEANT = re.compile(r" \(did you mean [^()]*\)")
_PREDICATE = re.compile(r"(is|was|has|had|holds|belongs|exists|cannot|does|needs) ")
"""Begin of a phrase whose subject is the place before it."""


def brief(text: str) -> str:
    """Text from the user within a message: the beginning of a long one."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def cut(message: str) -> str:
    """A message with the beginning of each endless word only."""
    return _ENDLESS.sub(r"\1…\2", message)


class TcpsbedError(Exception):
    """An error that the user can correct.

    Parameters
    ----------
    found
        What is wrong, as a phrase.
    file, line, key
        Where: a file, its line, and the dotted key in it.
    allowed
        Alternatives, or a remedy. The name probably meant, if it is in there, becomes the end of `found`: behind a long
        list nobody sees it.
    """

    kind: ClassVar = ""
    """Its name in the engine (`crates/tcps-plan/src/error.rs`)."""

    def __init__(
        self,
        found: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        allowed: str | None = None,
    ) -> None:
        if allowed and (near := _MEANT.search(allowed)):
            found, allowed = found + near[0], allowed.replace(near[0], "")
        self.found = found
        self.file = str(file) if file is not None else None
        self.line = line
        self.key = key
        self.allowed = allowed
        super().__init__(printable(self.text + (f"; allowed: {cut(allowed)}" if allowed else "")))

    @property
    def text(self) -> str:
        """Place and problem, without `allowed`."""
        place = f'"{self.file}"' if self.file in (".", "..") else self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        parts = [place, cut(self.key or "")]
        if (self.key or "").startswith("--") and self.line is None:
            parts.reverse()
        where = ": ".join(filter(None, parts))
        joint = " " if _PREDICATE.match(self.found) and not (self.line is not None and not self.key) else ": "
        return where + (joint if where else "") + cut(self.found)

    def retold(self, text: str) -> TcpsbedError:
        """An error of the same kind with another message."""
        return (ConfigError if isinstance(self, ConfigError) else type(self))(text)

    @property
    def parts(self) -> tuple[str, str, str | None]:
        """The error in the form of the engine, for user code that raises it."""
        return self.kind, self.text, self.allowed


class ConfigError(TcpsbedError):
    """An invalid scenario, option or argument."""

    kind = "config"


class Refused(ConfigError):
    """A parameter that its table refuses.

    Parameters
    ----------
    text
        The message.
    key
        The key in a plan, with the unit; empty: all parameters together.
    found, allowed
        The value, and the allowed ones.
    """

    key: str
    allowed: str

    def __init__(self, text: str, key: str, found: str, allowed: str) -> None:
        super().__init__(text)
        self.key, self.found, self.allowed = key, found, allowed


class HookError(TcpsbedError):
    """User code that cannot be loaded, or that fails."""

    kind = "hook"


class ProcessDied(HookError):
    """A process that user code depends on has ended or was stopped: the run cannot continue."""


class WorldError(TcpsbedError):
    """A world that cannot be set up, or that fails during a run."""

    kind = "world"


class DataError(TcpsbedError):
    """A data file that is missing or invalid."""

    kind = "data"


def needs_linux(what: str) -> None:
    """Raises `WorldError` on other systems, which have virtual time only."""
    if sys.platform != "linux":
        raise WorldError(f"{what} is not ready here: it needs Linux")


def of_run(
    kind: str,
    error: str,
    allowed: str | None = None,
    errno: int | None = None,
    fault: Sequence[str] | None = None,
) -> TcpsbedError:
    """The error that the engine reports, in this process or in that of a node.

    Parameters
    ----------
    kind, error
        Its class, and what is wrong.
    allowed
        Alternatives, or a remedy.
    errno
        The number of the system's error, if it is one.
    fault
        Key of a parameter, what was found and what is allowed there, if it is one.
    """
    if fault is not None:
        return Refused(error, *fault)
    if errno is not None:
        error, allowed = f"{error}: {os.strerror(errno)}", allowed or ALL_REMEDIES.get(errno)
    classes: dict[str, type[TcpsbedError]] = {c.kind: c for c in (ConfigError, HookError, DataError)}
    return classes.get(kind, WorldError)(error, allowed=allowed)
