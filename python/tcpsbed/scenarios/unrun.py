"""What a scenario would run and read, found without running or importing any of it."""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import door
from tcpsbed.errors import ConfigError
from tcpsbed.inputs import LIBRARY
from tcpsbed.robots import OUTPUTS
from tcpsbed.scenarios.compile.code import beside
from tcpsbed.scenarios.model.scenario import Scenario, names
from tcpsbed.scenarios.origin import Key, dotted

_DATA = ("builtin", "memory", "operator")
"""What stands before the colon where a text names data."""
_STARTS = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "ctypes.dlopen"
)  # fmt: skip
"""Events of the interpreter [PEP 578] by which a program starts or a library is loaded."""


@dataclass(frozen=True)
class Named:
    """Something that a run would execute.

    Attributes
    ----------
    key, text
        Where the scenario names it, and how.
    what
        What it is.
    """

    key: str
    text: str
    what: str


def named(scenario: Scenario) -> list[Named]:
    """All that a run of a scenario would execute beside the code of tcpsbed, in the order of the file."""
    packages, found = _packages(), []
    for key, text in _texts(scenario.document, ()):
        if what := _what(scenario.folder, key, text, packages):
            found.append(Named(dotted(key), text, what))
    return found


@dataclass(frozen=True)
class Reading:
    """A file outside the scenario's folder that a run would open.

    Attributes
    ----------
    place
        File and line that name it.
    key
        The key.
    path
        Where it is, links followed.
    what
        What is done with it.
    """

    place: str
    key: str
    path: Path
    what: str


def read_outside(scenario: Scenario) -> list[Reading]:
    """The files outside the scenario's folder that a run of it would read or write, in the order of the file.

    Named are those that exist, and those with an absolute path or a path upwards. Code is among what is `named`.
    """
    home, packages = scenario.file.resolve().parent, _packages()
    found = [
        Reading(_place(scenario, ("include",)), "include", file, "included")
        for file in scenario.sources
        if not file.is_relative_to(home)
    ]
    for key, text in _texts(scenario.document, ()):
        if key[0] in ("hosts", "base") or _what(scenario.folder, key, text, packages):
            continue
        for name in sorted(names(text)):
            path = _resolved(scenario.folder / name)
            if path is None or path.is_relative_to(home) or not (_is_path(name) or path.is_file()):
                continue
            if not path.is_dir() or _is_path(name):
                what = {"key_file": "key"}.get(str(key[-1]), "written" if key[-1] in OUTPUTS else "read")
                found.append(Reading(_place(scenario, key), dotted(key), path, what))
    return found


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # too long, a zero in it, links in a circle
        return None


def _is_path(name: str) -> bool:
    """Whether a text leaves the folder that it starts from."""
    return name.startswith("/") or ".." in Path(name).parts


def _place(scenario: Scenario, key: Key) -> str:
    told = scenario.error(key, "", "")
    return f"{told.file}:{told.line}" if told.line is not None else told.file or ""


def _texts(value: Any, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*key, str(name)))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*key, number))
    elif isinstance(value, str):
        yield key, value


def _packages() -> dict[str, str]:
    """The code of installed packages, by the name that it has in scenarios."""
    return {name: point.value for kind in door.KINDS for name, point in door.installed(kind).items()}


def _what(folder: Path, key: Key, text: str, packages: dict[str, str]) -> str:
    if key[0] == "hosts":
        if key[-1] == "address" and text == "localhost":
            return "this computer, without ssh"
        return {"address": "computer that ssh opens", "python": "program there"}.get(
            str(key[2]) if len(key) > 2 else "address", "option of ssh" if "options" in key else ""
        )
    if "firmware" in key or key[-1] == "board":
        told = {"host": "", "qemu": "QEMU with the firmware of tcpsbed"}
        return told.get(text, "program, or image for QEMU")
    if text.endswith(".onnx"):
        return "learned model"
    if text in packages:
        return f"code of an installed package, {packages[text]}"
    place, colon, symbol = text.rpartition(":")
    if not colon:
        return ""
    if LIBRARY.fullmatch(place):
        return "shared library"
    if place.endswith(".py") or beside(folder, place):  # as the loader looks: beside the scenario first
        return "Python file"
    is_module = all(part.isidentifier() for part in (*place.split("."), symbol))
    return "Python module" if is_module and place not in _DATA and place.split(".")[0] != "tcpsbed" else ""


def forbid() -> None:
    """From now on this process starts no program, loads no library and executes no Python but installed modules.

    It holds until the process ends: hooks of the interpreter's events cannot be removed [PEP 578].

    Raises
    ------
    ConfigError
        In this process, where it tries.
    """
    named = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    places = [*named, *site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    trusted = [Path(place).resolve() for place in places]

    def is_installed(file: str) -> bool:
        return file.startswith("<") or any(Path(file).resolve().is_relative_to(place) for place in trusted)

    def refuse(event: str, details: tuple[Any, ...]) -> None:
        file = (
            getattr(details[0], "co_filename", "")
            if event == "exec"
            else details[1]
            if event == "import"
            else ""
        )
        if event in _STARTS or (file and not is_installed(file)):
            amiss = f"found code of {file}" if file else f"found {event} of {details[:1]}"
            raise ConfigError(amiss, key="--no-code", allowed="a check that runs nothing")

    sys.addaudithook(refuse)
