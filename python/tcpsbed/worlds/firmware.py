"""The firmware of boards: compiled for this machine or for a Cortex-M3, once for each state of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tcpsbed.errors import WorldError

SOURCES = "TCPSBED_FIRMWARE"
"""Environment variable that names the folder of the sources, where the package is not run from the project."""
TARGETS = {"host": "board-host", "qemu": "board.elf"}
"""What is compiled, and its file."""
TOOLS = {
    "host": (("make", "cc"), "apt-get install make gcc libc6-dev"),
    "qemu": (
        ("make", "arm-none-eabi-gcc", "qemu-system-arm"),
        "apt-get install make gcc-arm-none-eabi qemu-system-arm",
    ),
}
"""Commands that compile and run it, and how to have them on Debian."""
COMPILE_S = 120


def sources() -> Path | None:
    """The folder of the sources; `None` if it is not there."""
    named = os.environ.get(SOURCES)
    place = Path(named) if named else Path(__file__).resolve().parents[3] / "firmware"
    return place if (place / "core" / "board.c").is_file() else None


def missing(target: str) -> str | None:
    """What lacks for firmware of this target, "host" or "qemu"; `None` if nothing does."""
    if sources() is None:
        return f"the folder firmware/ of the project, named by the environment variable {SOURCES}"
    tools, remedy = TOOLS[target]
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    return f"{', '.join(lacking)}: {remedy}" if lacking else None


def built(target: str) -> Path:
    """The firmware for "host" or "qemu", compiled if it has not been; beside it one that gives every byte back.

    Raises
    ------
    WorldError
        If a tool is missing, or it does not compile.
    """
    if lack := missing(target):
        raise WorldError(f'firmware "{target}" is not ready here: it needs {lack}')
    place = sources()
    assert place is not None
    folder = _cache() / f"{target}-{_state(place)}"
    if not folder.exists():
        _compile(place, target, folder)
    return folder / TARGETS[target]


def provide(plan: dict[str, Any]) -> None:
    """Puts compiled firmware into a plan where it names the project's own.

    Raises
    ------
    WorldError
        As `built`; or if QEMU is missing for an image of the user's.
    """
    for component in plan["components"]:
        attached = (component.get("board") or {}).get("attached")
        if attached is None or attached["kind"] == "port":
            continue
        if attached["path"] in TARGETS:
            attached["path"] = str(built(attached["path"]))
        elif attached["kind"] == "qemu" and shutil.which("qemu-system-arm") is None:
            raise WorldError(
                f"components.{component['name']}.board: qemu-system-arm is missing: apt-get install qemu-system-arm"
            )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tcpsbed" / "firmware"


def _state(place: Path) -> str:
    """What the firmware depends on: its sources."""
    digest = hashlib.sha256()
    for file in [place / "Makefile", *sorted(place.glob("core/*")), *sorted(place.glob("port/*"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _compile(place: Path, target: str, folder: Path) -> None:
    """Into a folder of its own first, so that two runs that compile at once do not meet."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            ["make", "-s", target, f"OUT={fresh}"],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
        )
        if done.returncode:
            raise WorldError(f'{place}: firmware "{target}" does not compile: {done.stderr.strip()[-600:]}')
        if not folder.exists():
            fresh.rename(folder)
    except subprocess.TimeoutExpired:
        raise WorldError(f'{place}: firmware "{target}" is not compiled after {COMPILE_S} s') from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
