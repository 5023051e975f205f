"""Writes an archive: the same bytes for the same results, inputs and installed packages."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tcpsbed import inputs, results, scenarios
from tcpsbed.archive import crate, inputs_of, results_in
from tcpsbed.archive.content import ABOUT, CRATE, README, SCENARIO, Content, as_text
from tcpsbed.archive.results_in import Found
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios.model.scenario import Scenario

_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the earliest that a zip knows."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Packed:
    """What was written.

    Attributes
    ----------
    content : Content
        What the archive holds.
    newer : list of Path
        Inputs that were changed after the results were written.
    """

    content: Content
    newer: list[Path]


def pack(folder: Path, out: Path, *, licence: str = "", title: str = "") -> Packed:
    """Writes the archive of a run or a sweep.

    Parameters
    ----------
    folder : Path
        Of the results.
    out : Path
        The zip, which must not be there yet.
    licence : str
        Licence of the archive, such as `CC-BY-4.0`; empty: not stated.
    title : str
        Its name in the metadata; empty: that of the scenario.

    Raises
    ------
    DataError
        If there are no results, or they were changed.
    ConfigError
        If the file is there, the scenario names a file by its whole path, or its world is code of the user's.
    """
    _refuse_place(folder, out)
    for key, text in (("--title", title), ("--licence", licence)):
        if hidden := next((letter for letter in text if not letter.isprintable()), ""):
            allowed = 'text that can be seen, on one line, such as "Three transports"'
            raise ConfigError(f"found {inputs.unseen(hidden)}", key=key, allowed=allowed)
    found = results_in.found_in(folder)
    for cell in found.cells:
        if ":" in cell.world:
            named = f"holds a run in the world {cell.world}, which is code outside the scenario"
            raise ConfigError(named, file=folder, allowed="a world that tcpsbed or a package has")
    loaded = [scenarios.load(found.file, one) for one in found.combinations]
    if keys := sorted(set().union(*(one.key_files for one in loaded))):
        allowed = "a run with keys of its own, without key_file: an archive holds nobody's key"
        raise ConfigError(f"names the key {keys[0]}", file=found.file, allowed=allowed)
    own = {inputs_of.plain(found.file)} if found.text is not None else set()
    plans = {inputs_of.plain(found.plan)} if found.plan is not None else set()
    files = sorted(set().union(plans, *map(inputs_of.files_of, loaded)) - own)
    folders = [loaded[0].folder] if found.text is not None else [found.file.parent]
    members = inputs_of.layout(files, folders)
    scenario = results_in.scenario_member(found, folders[0], members)
    made = f"{PurePosixPath(scenario).parent}/{results_in.PLAN}" if found.document else ""
    places = {file: f"{SCENARIO}/{name}" for name, file in members.items()}
    plan = made or scenario if found.plan is None else places[inputs_of.plain(found.plan)]
    if made in places.values():
        raise ConfigError("is in the way of the campaign's", file=made, allowed="another name for that file")
    content = Content(
        found.kind,
        title or loaded[0].name,
        found.command(plan),
        scenario,
        tuple(found.cells),
        {},
        _different(summary.get("versions") for summary in found.cells.values()),
        _different(summary.get("machine") for summary in found.cells.values()),
        _packages(found, loaded, files),
    )
    packed: dict[str, Path | bytes] = {f"{SCENARIO}/{name}": file for name, file in members.items()}
    packed |= dict(found.members)
    name = scenario.removeprefix(f"{SCENARIO}/")
    inputs_of.refuse_elsewhere(members, name, found.text, found.combinations)
    if found.text is not None:
        packed[scenario] = found.text.encode()
    if made:
        packed[made] = results_in.plan_text(found, scenario).encode()
    written = max((file.stat().st_mtime_ns for file in found.members.values()), default=0)
    newer = [file for file in files if file.stat().st_mtime_ns > written]
    return Packed(_write(out, packed, content, found, licence), newer)


def _refuse_place(folder: Path, out: Path) -> None:
    results.may_write(out)
    if out.exists():
        raise ConfigError("exists already", file=out, allowed="another name: an archive replaces nothing")
    if out.suffix != ".zip":
        raise ConfigError("is no name of a zip", file=out, allowed=f"such as {out.with_suffix('.zip')}")
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigError("is in the folder that it holds", file=out, allowed=f"such as {out.name}")


def _packages(found: Found, loaded: Sequence[Scenario], files: Sequence[Path]) -> dict[str, str]:
    """Python and packages that the runs loaded, as they were then; plug-ins and imports of own code as they are now."""
    now = (inputs_of.packages(one, files) for one in loaded)
    then = ((summary.get("versions") or {}) for summary in found.cells.values())
    kept = {name: str(version) for one in (*now, *then) for name, version in one.items()}
    return dict(
        sorted((name, version) for name, version in kept.items() if name not in ("tcpsbed", "commit"))
    )


def _different(found: Any) -> list[dict[str, Any]]:
    """Those of these objects that differ, in the order of their text."""
    return [json.loads(text) for text in sorted({json.dumps(one or {}, sort_keys=True) for one in found})]


def _write(
    out: Path, packed: Mapping[str, Path | bytes], content: Content, found: Found, licence: str
) -> Content:
    hashes: dict[str, tuple[int, str]] = {}
    with results.whole(out) as part, ZipFile(part, "w") as archive:
        for name, what in sorted(packed.items()):
            hashes[name] = _add(archive, name, what)
        hashes[README] = _add(archive, README, crate.readme(content).encode())
        described = crate.metadata(content, hashes, found, licence)
        hashes[CRATE] = _add(archive, CRATE, as_text(described).encode())
        done = Content(**vars(content) | {"files": hashes})
        _add(archive, ABOUT, done.text().encode())
    return done


def _add(archive: ZipFile, name: str, what: Path | bytes) -> tuple[int, str]:
    """Writes a member; its size and SHA-256."""
    info = ZipInfo(name, _BEGIN)
    info.compress_type, info.create_system = ZIP_DEFLATED, 3
    program = isinstance(what, Path) and os.access(what, os.X_OK)
    info.external_attr = (0o100755 if program else 0o100644) << 16
    digest, size = hashlib.sha256(), 0
    if isinstance(what, bytes):
        archive.writestr(info, what)
        return len(what), hashlib.sha256(what).hexdigest()
    with (
        inputs.regular(what, "a file of the scenario").open("rb") as source,
        archive.open(info, "w") as target,
    ):
        while piece := source.read(_PIECE):
            target.write(piece)
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()
