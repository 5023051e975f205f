"""The stages of flows of pictures and sound: capture, code, decode, show, each with a worker of its own.

```text
backward   teleoperator ──► board ──► com ═ net ═ com ──► board ──► operator
             capture        code                           decode     show
```
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpsbed.datasets.builtin import FILM, PREFIX
from tcpsbed.scenarios.compile.book import Book, Instance, Way
from tcpsbed.scenarios.compile.builtins import rehearse
from tcpsbed.scenarios.compile.chain import on_path
from tcpsbed.scenarios.compile.files import existing
from tcpsbed.scenarios.compile.spans import dist
from tcpsbed.scenarios.model.media import Picture, Sound
from tcpsbed.scenarios.origin import Key
from tcpsbed.scenarios.units import SAMPLE_BYTES, parameters

BOARDS = ("ms-embsys", "ms-embsys-app", "ss-embsys", "ss-embsys-app")
_MODULE = "tcpsbed.media.stages"
RING = "ring:"
_DEVICES = "/dev/"
"""Where cameras of the machine are."""
MARK = "tcpsbed.media.region:Mark"
"""The hook that takes the marks of a region."""
_CAMERAS = f'"{FILM}", "test", "/dev/video0", a video file, or code such as "./mine.py:Mine"'
_MICROPHONES = ("builtin:speech", "builtin:sound")
_NO_FILES = ("test", "device")
"""Microphones that are no files, though their names have no colon."""
_SLACK_BYTES = 65_536
"""What coded frames may be larger than raw ones: headers, small pictures."""

Step = dict[str, Any]


def media(way: Way) -> tuple[str, Picture | Sound] | None:
    """The key and the table of what a flow carries, if that is pictures or sound."""
    if way.model.picture is not None:
        return "picture", way.model.picture
    return ("sound", way.model.sound) if way.model.sound is not None else None


def check(book: Book, way: Way) -> None:
    """Refuses what a flow of pictures or sound cannot be."""
    found = media(way)
    if found is None:
        return
    key = (*way.key, found[0])
    flow = way.model
    if flow.picture is not None and flow.sound is not None:
        raise book.scenario.error(key, "found pictures and sound in one flow", "a flow each")
    if flow.source is not None:
        raise book.scenario.error(
            (*way.key, "source"), "found a source of samples", f"what {found[0]} says, or none"
        )
    if flow.codec not in (None, "raw"):
        raise book.scenario.error(
            (*way.key, "codec"), f'found "{flow.codec}"', f'"raw", or none; {found[0]}.codec'
        )
    if flow.sink not in (None, "count"):
        raise book.scenario.error(
            (*way.key, "sink"), f'found "{flow.sink}"', '"count": a frame is shown, not obeyed'
        )
    if _bytes(way) + _SLACK_BYTES > SAMPLE_BYTES:
        raise book.scenario.error(
            key, f"found frames of {_bytes(way)} B", f"at most {SAMPLE_BYTES} B, headers included"
        )
    if isinstance(found[1], Picture):
        _check_camera(book, key, found[1])
        _check_picture(book, key, found[1])
    else:
        _check_microphone(book, key, found[1])


def check_marks(book: Book, marked: Mapping[str, set[int]]) -> None:
    """Refuses marks of a region that no hook takes where it is encoded, and those that sessions would share.

    Parameters
    ----------
    marked
        The nodes at which hooks take marks, by the name of the marks.
    """
    for way in book.ways:
        picture = way.model.picture
        marks = picture.region.marks if picture and picture.region else None
        if picture is None or marks is None:
            continue
        key: Key = (*way.key, "picture", "region", "marks")
        if len(book.sessions) > 1:
            found = f'found "{marks}" in {len(book.sessions)} sessions, which would share it'
            raise book.scenario.error(key, found, "one session, or no marks")
        here = way.path[_at(book, way, ("picture", "encode_at"), picture.encode_at, 0)]
        if here.node not in marked.get(marks, set()):
            found = f'found "{marks}", which no hook takes where {here.id} encodes'
            allowed = f'a hook with run = "{MARK}", at = "{here.id}" and params = {{ name = "{marks}" }}'
            raise book.scenario.error(key, found, allowed)


def _check_camera(book: Book, key: Key, picture: Picture) -> None:
    camera = picture.camera
    if camera.startswith(PREFIX) and camera != FILM:
        raise book.scenario.error((*key, "camera"), f'found "{camera}"', _CAMERAS)
    if picture.params and not _is_code(camera):
        found = f'found parameters of "{camera}", which is not code'
        raise book.scenario.error((*key, "params"), found, 'none; or camera = "./mine.py:Mine"')


def _check_microphone(book: Book, key: Key, sound: Sound) -> None:
    name = sound.microphone
    if name.startswith(PREFIX) and name not in _MICROPHONES:
        allowed = " or ".join(f'"{known}"' for known in _MICROPHONES)
        raise book.scenario.error((*key, "microphone"), f'found "{name}"', f"{allowed}, or a wav file")
    if ":" not in name and name not in _NO_FILES:
        existing(book.scenario, (*key, "microphone"), name)


def _is_code(camera: str) -> bool:
    """Whether a camera is a class of the user's."""
    return ":" in camera and camera != FILM and not camera.startswith(_DEVICES)


def _check_picture(book: Book, key: Key, picture: Picture) -> None:
    if picture.compare and (_is_code(picture.camera) or picture.camera.startswith(_DEVICES)):
        raise book.scenario.error(
            (*key, "compare"),
            f"found {picture.compare} of a camera that gives no picture twice",
            f'0; or camera = "{FILM}", "test" or a file',
        )
    if picture.compare and not picture.stamp:
        raise book.scenario.error(
            (*key, "stamp"),
            "found false, and compare needs the number in the picture",
            "true, or compare = 0",
        )
    region = picture.region
    if region is None:
        return
    if picture.codec != "jpeg":
        raise book.scenario.error((*key, "region"), f'found a region of codec "{picture.codec}"', '"jpeg"')
    across = picture.width * (2 if picture.stereo else 1)
    if region.x + region.width > across or region.y + region.height > picture.height:
        raise book.scenario.error(
            (*key, "region"),
            "found a region beyond the picture",
            f"a part of {across} x {picture.height}",
        )
    if across % region.shrink or picture.height % region.shrink:
        raise book.scenario.error(
            (*key, "region", "shrink"),
            f"found {region.shrink}",
            f"a number that divides {across} and {picture.height}",
        )


def steps(book: Book, way: Way, place: int) -> list[Step]:
    """The steps of pictures or sound at a place on the path."""
    found = media(way)
    if found is None:
        return []
    name, table = found
    last = len(way.path) - 1
    encode = _at(book, way, (name, "encode_at"), table.encode_at, 0)
    decode = _at(book, way, (name, "decode_at"), table.decode_at, last)
    if encode >= decode:
        raise book.scenario.error(
            (*way.key, name, "decode_at"),
            f"found {way.path[decode].id}, which is not after {way.path[encode].id}",
            "a component behind the one that encodes",
        )
    title = name.capitalize()
    chosen = []
    if place == 0:
        chosen.append(_step(book, way, name, table, "capture", f"{title}Capture"))
    if place == encode:
        chosen.append(_step(book, way, name, table, "code", f"{title}Encode"))
    if place == decode:
        chosen.append(_step(book, way, name, table, "decode", f"{title}Decode"))
    if place == last:
        chosen.append(_step(book, way, name, table, "show", f"{title}Show"))
    return chosen


def _at(book: Book, way: Way, key: tuple[str, str], given: str | None, usual: int) -> int:
    """The place of a stage."""
    if given is not None:
        places = on_path(way, [given])
        if not places:
            names = [instance.id for instance in way.path]
            book.find(given, names, (*way.key, *key), "a component on the way")
        return places[0]
    boards = [place for place, instance in enumerate(way.path) if _is_board(instance)]
    first_channel = next(
        (p for p in range(len(way.path) - 1) if way.path[p].node != way.path[p + 1].node), usual
    )
    if usual == 0:
        return next((place for place in boards if place <= first_channel), usual)
    return next((place for place in reversed(boards) if place > first_channel), usual)


def _is_board(instance: Instance) -> bool:
    return instance.kind in BOARDS


def _step(book: Book, way: Way, name: str, table: Picture | Sound, kind: str, symbol: str) -> Step:
    params = _params(book, way, table)
    key: Key = (*way.key, name)
    if book.rehearsal:
        # A camera that is code may want a robot that runs: it is opened by a run alone.
        tried = params | {"camera": "test"} if _is_code(params.get("camera", "")) else params
        rehearse(book.scenario, key, "hook", f"{_MODULE}:{symbol}", tried, kind)
    cost = {"code": "encode"}.get(kind, kind) + "_cost"
    span = getattr(table, cost)
    spans = {} if span is None else {"cost": dist(book.scenario, (*key, cost), span)}
    run = {"kind": "python", "name": _MODULE, "symbol": symbol, "params": params}
    worker = {"queue": table.queue, "most_bytes": _bytes(way) + _SLACK_BYTES}
    return {"kind": kind, "run": run, "worker": worker} | spans


def _bytes(way: Way) -> int:
    """Bytes of a raw frame."""
    picture, sound = way.model.picture, way.model.sound
    if picture is not None:
        return picture.width * picture.height * 3 * (2 if picture.stereo else 1)
    assert sound is not None
    return 2 * sound.channels * max(round(sound.sampling_hz / way.model.rate_hz), 1)


def _params(book: Book, way: Way, table: Picture | Sound) -> dict[str, Any]:
    """The parameters of the stages: the table with resolved files, and the rate of the flow."""
    skipped = {"encode_at", "decode_at", "queue", "capture_cost", "encode_cost", "decode_cost", "show_cost"}
    params = table.model_dump(exclude=skipped, exclude_none=True) | {"rate_hz": way.model.rate_hz}
    for name in ("camera", "microphone", "display", "speaker"):
        if name in params:
            params[name] = _place(book.scenario.folder, params[name])
    return parameters(params)


def _place(folder: Path, text: str) -> str:
    """A file, a file's class or a ring as an absolute path; anything else as it is."""
    if text.startswith(RING):
        return f"{RING}{(folder / text.removeprefix(RING)).resolve()}"
    file, colon, symbol = text.rpartition(":")
    if colon and file.endswith(".py"):
        return f"{(folder / file).resolve()}:{symbol}"
    if not colon and "." in text:
        return str((folder / text).resolve())
    return text
