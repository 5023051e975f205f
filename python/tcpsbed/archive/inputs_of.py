"""All files that a scenario takes, in their layout, and the installed packages that its code needs."""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tcpsbed import door, scenarios
from tcpsbed.beside import imported, parsed
from tcpsbed.datasets.formats import is_data_set
from tcpsbed.errors import ConfigError, TcpsbedError
from tcpsbed.robots import OUTPUTS
from tcpsbed.scenarios.model.scenario import Scenario, texts

_MODELS = (".xml", ".mjcf", ".urdf")
_NAMED = re.compile(r"""\b(?:file|filename)\s*=\s*["'](?:package://)?([^"']+)["']""")
_FOLDER = re.compile(r"""\b(?:meshdir|texturedir|assetdir)\s*=\s*["']([^"']+)["']""")
_READ_BY_PATH = (".toml", ".xlsx", ".py")
"""Files whose own place says where others are: a link would lead back to the old one."""
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def files_of(scenario: Scenario) -> set[Path]:
    """Absolute paths of the files that a scenario takes, without those that a run of it writes.

    The scenario and its includes, what it names, modules beside its code that are imported, parts of robot models, and all
    files of the data sets that are folders.
    """
    folder = scenario.folder
    written = {plain(folder / name) for name in _written(scenario.document)}
    found = {plain(file) for file in scenario.files} - written
    for file in list(found):
        found |= {plain(one) for one in imported(file)} | _parts(file)
    for name in set(texts(scenario.document)):
        if is_data_set(folder / name):
            found |= {plain(file) for file in (folder / name).rglob("*") if file.is_file()}
    return found


def plain(file: Path) -> Path:
    """The absolute path without `..`; links stay what they are called."""
    return Path(os.path.abspath(file))  # noqa: PTH100 (`resolve` would follow links)


def _written(value: Any) -> Iterator[str]:
    """The files that code of a scenario writes."""
    if isinstance(value, dict):
        yield from (one for key, one in value.items() if key in OUTPUTS and isinstance(one, str))
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _written(one)


def _parts(model: Path) -> set[Path]:
    """Meshes, textures and models that a MJCF or URDF file names, and what these name."""
    if model.suffix not in _MODELS:
        return set()
    found, folders, before = {model}, {model.parent}, 0
    while len(found) > before:
        before = len(found)
        for file in [one for one in found if one.suffix in _MODELS]:
            text = file.read_text(encoding="utf-8", errors="replace")
            folders |= {file.parent, *(model.parent / one for one in _FOLDER.findall(text))}
            named = {plain(folder / name) for name in _NAMED.findall(text) for folder in folders}
            found |= {one for one in named if one.is_file()}
    return found - {model}


def layout(files: Sequence[Path], folders: Sequence[Path]) -> dict[str, Path]:
    """Files by their names relative to the folder that holds them all, and these folders."""
    top = Path(os.path.commonpath([*folders, *(file.parent for file in files)]))
    return {file.relative_to(top).as_posix(): file for file in sorted(files)}


def refuse_elsewhere(
    members: Mapping[str, Path], scenario: str, text: str | None, settings: Sequence[Sequence[str]]
) -> None:
    """Moves the scenario with its files, and raises the error of one that it lacks or still reads at its old place.

    Parameters
    ----------
    members
        From `layout`.
    scenario
        The name of the scenario among them.
    text
        Its text, if it is none of them.
    settings
        Overrides of each combination of values.

    Raises
    ------
    TcpsbedError
        As of `tcpsbed check`, or because a path is one that another machine does not have.
    """
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as made:
        top = Path(made).resolve()
        for name, file in members.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            if file.suffix in _READ_BY_PATH:
                (top / name).write_bytes(file.read_bytes())
            else:
                (top / name).symlink_to(file)
        if text is not None:
            (top / scenario).parent.mkdir(parents=True, exist_ok=True)
            (top / scenario).write_text(text, encoding="utf-8")
        try:
            for one in settings:
                _refuse_outside(scenarios.load(top / scenario, one), top)
            with tempfile.TemporaryDirectory(prefix="tcpsbed-") as inputs:
                scenarios.compile_plan(scenarios.load(top / scenario, settings[0]), inputs)
        except TcpsbedError as error:
            found, allowed = ((one or "").replace(f"{top}/", "") for one in (error.found, error.allowed))
            place = (error.file or "").replace(f"{top}/", "")
            raise ConfigError(
                found, file=place or None, line=error.line, key=error.key, allowed=allowed or None
            ) from None


def _refuse_outside(loaded: Scenario, top: Path) -> None:
    for file in (loaded.folder, *loaded.files):
        if not plain(file).is_relative_to(top):
            found = f"found {file}, a path that another machine does not have"
            allowed = "a path relative to the scenario, such as data/hand.csv"
            raise ConfigError(found, file=loaded.name, allowed=allowed)


def packages(scenario: Scenario, files: Sequence[Path]) -> dict[str, str]:
    """Versions of the installed packages that a scenario names as plug-ins, or that its code imports, by name."""
    heads = {name for file in files if file.suffix == ".py" for name in _imports(file)}
    found: dict[str, str] = {}
    plugins = {name: point for kind in door.KINDS for name, point in door.installed(kind).items()}
    for text in set(texts(scenario.document)):
        if (point := plugins.get(text)) and point.dist:
            found[point.dist.name] = point.dist.version
        module, _, symbol = text.rpartition(":")
        if symbol and _MODULE.fullmatch(module):
            heads.add(module.partition(".")[0])
    homes = metadata.packages_distributions()
    for head in heads - set(sys.stdlib_module_names) - {"tcpsbed"}:
        found |= {name: metadata.version(name) for name in homes.get(head, ())}
    return dict(sorted(found.items()))


def _imports(source: Path) -> Iterator[str]:
    """First names of the modules that a Python file imports."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
