"""The result of one test of the machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TRY_S = 20.0
"""Longest time that trying a thing may take."""


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    Attributes
    ----------
    name : str
        What was tried.
    there : bool
        Whether it works.
    said : str
        What was seen: a version, a figure, or why it does not work.
    remedy : str
        A line to paste where it does not work and something can be done; else empty.
    """

    name: str
    there: bool
    said: str = ""
    remedy: str = ""


def attempt(name: str, action: Callable[[], str | None], remedy: str = "") -> Finding:
    """Tries something; its return value is shown, an exception is the reason why it does not work."""
    try:
        return Finding(name, True, action() or "")
    except (OSError, ValueError, ImportError, RuntimeError, subprocess.SubprocessError) as error:
        return Finding(name, False, (str(error).strip() or type(error).__name__).splitlines()[-1], remedy)


def ran(command: Sequence[str], *, env: dict[str, str] | None = None) -> str:
    """The first line that a command prints.

    Raises
    ------
    FileNotFoundError
        If there is no such command.
    RuntimeError
        With its last words if it fails.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"no command {command[0]}")
    done = subprocess.run(
        list(command),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TRY_S,
        stdin=subprocess.DEVNULL,
        env=env,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(said[-1] if said else f"{command[0]} ended with {done.returncode}")
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()  # some tell their version as an error
    return lines[0] if lines else ""
