"""The recordings that ship with tcpsbed, by name (their origin and licence: `NOTICE`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

DATA = Path(__file__).resolve().parent.parent / "data"
PREFIX = "builtin:"

#: Name -> file in `tcpsbed/data`. The hand repeats by a loop: backwards its rates would need the other sign.
FILES = {
    "hand": "hand.csv",  # a hand-held inertial sensor in motion, 20 s at 256 Hz
    "arms": "arms/episode.parquet",  # commands and state of a humanoid's arms and hands, teleoperated, 30 Hz
    "fabric": "fabric.csv",  # an accelerometer that strokes a fabric, 20 s at 100 Hz
    "clip": "clip.json",  # the coded pictures of a film, 5 s at 25 Hz, H.264
    "sound": "sound.wav",  # the sound of the same film, 5 s, 16 kHz, mono
    "speech": "speech.wav",  # a sentence that is read aloud, 16 kHz, mono
}
#: How many columns behind the time are meant where a scenario names none, of those that are csv.
USUAL = {"hand": 6, "fabric": 3}
#: The pictures of that film as a camera would give them, 2 s at 25 Hz: JPEG, and where each of them begins.
PICTURES = "pictures.json"
#: The camera that is this film.
FILM = PREFIX + "clip"
#: Laws of web pages.
PAGES = {
    "web": "web.json",  # fitted to measured distributions (Mah 1997)
    "3gpp-http": "3gpp-http.json",  # the web page of 3GPP TR 25.892
}


def pictures() -> tuple[bytes, list[int]]:
    """The pictures of the film that ships: JPEG files behind each other; where each of them begins, and the end."""
    index = json.loads((DATA / PICTURES).read_text(encoding="utf-8"))
    return (DATA / index["file"]).read_bytes(), [int(offset) for offset in index["offsets"]]


def first_row(spec: Mapping[str, Any]) -> list[float] | None:
    """The first values of a recording that ships and is taken as it is, for who needs no more of it, without numpy."""
    name = str(spec["recording"]).removeprefix(PREFIX)
    if list(spec) != ["recording"] or spec["recording"] == name or name not in USUAL:
        return None
    with (DATA / FILES[name]).open(encoding="utf-8") as file:
        next(file)
        return [float(value) for value in next(file).split(",")[1 : 1 + USUAL[name]]]


def resolve(recording: str, base: Path) -> Path:
    """Return the file that a scenario means by `recording`.

    Parameters
    ----------
    recording
        `builtin:NAME`, or a path, absolute or relative to `base`.
    base
        Folder of the scenario file.

    Raises
    ------
    DataError
        No such name, or no such file.
    """
    if recording.startswith(PREFIX):
        name = recording.removeprefix(PREFIX)
        if name not in FILES:
            raise DataError(
                f"found no built-in recording '{name}'",
                allowed=close_match(recording, [PREFIX + known for known in FILES]),
            )
        return DATA / FILES[name]
    allowed = "a path relative to the scenario file, or " + ", ".join(PREFIX + known for known in FILES)
    return inputs.regular(located(recording, base, allowed), allowed)


def located(name: str, base: Path, allowed: str) -> Path:
    """Return the path for a name, absolute or relative to `base`, without checking that it exists.

    Raises
    ------
    DataError
        It cannot be looked up: too long, with a zero in it, of a user that is not known, or in a closed folder.
    """
    try:
        path = base / Path(name).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (RuntimeError, ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"cannot be looked up ({reason})", file=name[:60], allowed=allowed) from None
    return path
