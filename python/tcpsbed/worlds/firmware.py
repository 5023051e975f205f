"""The firmware of boards: compiled for this machine or for a Cortex-M3, once for each state of its sources."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tcpsbed.errors import WorldError
from tcpsbed.worlds import compiled

SOURCES = "TCPSBED_FIRMWARE"
"""Environment variable that names a folder of sources other than that of the package."""
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
    place = Path(named) if named else Path(__file__).resolve().parents[1] / "firmware"
    return place if (place / "core" / "board.c").is_file() else None


def missing(target: str) -> str | None:
    """What lacks for firmware of this target, "host" or "qemu"; `None` if nothing does."""
    if sources() is None:
        return f"a folder with core/board.c, as the environment variable {SOURCES} names it"
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
    files = [place / "Makefile", *sorted(place.glob("core/*")), *sorted(place.glob("port/*"))]
    folder = compiled.cache("firmware") / f"{target}-{compiled.state(files)}"
    compiled.once(folder, place, f'firmware "{target}"', [target], COMPILE_S)
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
