"""What a scenario would run and read, found without running or importing any of it."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed import door
from tcpsbed.errors import ConfigError
from tcpsbed.inputs import LIBRARY
from tcpsbed.scenarios.model.scenario import Scenario
from tcpsbed.scenarios.origin import Key, dotted

_CODE = re.compile(r"(?P<place>[^:]+):[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DATA = ("builtin", "memory", "operator")
"""What stands before the colon where a text names data."""
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "ctypes.dlopen")
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
    packages = {name: point.value for kind in door.KINDS for name, point in door.installed(kind).items()}
    found = []
    for key, text in _texts(scenario.document, ()):
        if what := _what(key, text, packages):
            found.append(Named(dotted(key), text, what))
    return found


def _texts(value: Any, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*key, str(name)))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*key, number))
    elif isinstance(value, str):
        yield key, value


def _what(key: Key, text: str, packages: dict[str, str]) -> str:
    if key[0] == "hosts":
        return {"address": "computer that ssh opens", "python": "program there"}.get(
            str(key[2]) if len(key) > 2 else "address", "option of ssh" if "options" in key else ""
        )
    if "firmware" in key or key[-1] == "board":
        return "" if text in ("host", "qemu") else "program, or image for QEMU"
    if text.endswith(".onnx"):
        return "learned model"
    if text in packages:
        return f"code of an installed package, {packages[text]}"
    code = _CODE.fullmatch(text)
    if code is None or text.startswith("tcpsbed."):
        return ""
    place = code["place"]
    if LIBRARY.fullmatch(place):
        return "shared library"
    if place.endswith(".py"):
        return "Python file"
    return "Python module" if place not in _DATA and _MODULE.fullmatch(place) else ""


def forbid() -> None:
    """From now on this process starts no program, loads no library and executes no Python but installed modules.

    It holds until the process ends: hooks of the interpreter's events cannot be removed [PEP 578].

    Raises
    ------
    ConfigError
        In this process, where it tries.
    """
    trusted = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")] + [
        Path(__file__).parents[1]
    ]

    def refuse(event: str, details: tuple[Any, ...]) -> None:
        if event in _STARTS:
            raise ConfigError(
                f"found {event} of {details[:1]}", key="--no-code", allowed="a check that runs nothing"
            )
        if event == "exec":
            file = getattr(details[0], "co_filename", "")
            if not file.startswith("<") and not any(Path(file).is_relative_to(place) for place in trusted):
                raise ConfigError(
                    f"found code of {file}", key="--no-code", allowed="a check that runs nothing"
                )

    sys.addaudithook(refuse)
