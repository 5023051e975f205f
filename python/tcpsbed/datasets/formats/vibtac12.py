"""VibTac-12 (Kursun and Patooghy 2020): accelerometer and microphone on twelve textures, one per row.

A folder with `X.csv`, `Y.csv`, `Z.csv`: a row a texture, 20 s at 200 Hz, in the units of the sensor. The sound, 8 kHz, is in
`S.csv`, a row a texture too, or in `TextureN.wav`. With it a recording has 8000 rows a second, and the motion holds between
its own samples: a multimodal sample is x, y, z and sound (Abdullah and Monnet 2023).
"""

from pathlib import Path

import numpy as np

from tcpsbed.datasets import wav
from tcpsbed.datasets.formats.lines import numbers
from tcpsbed.datasets.track import Track, Values
from tcpsbed.errors import DataError

AXES = ("X", "Y", "Z")
TEXTURES = 12
MOTION_HZ, SOUND_HZ = 200, 8000


def is_data_set(folder: Path) -> bool:
    """Tell whether a folder holds the three axes."""
    return all((folder / f"{axis}.csv").is_file() for axis in AXES)


def read(path: Path, texture: int = 1) -> Track:
    """Read a texture, 1 to 12: columns `x`, `y`, `z`, and `sound` where the folder holds its sound."""
    if not is_data_set(path):
        raise DataError("not VibTac-12", file=path, allowed="a folder with X.csv, Y.csv and Z.csv")
    motion = np.column_stack([_row(path / f"{axis}.csv", texture) for axis in AXES])
    names = [axis.lower() for axis in AXES]
    sound = _sound(path, texture)
    if sound is None:
        return Track(path, names, np.arange(len(motion)) / MOTION_HZ, motion)
    held = np.repeat(motion, SOUND_HZ // MOTION_HZ, axis=0)
    length = min(len(held), len(sound))
    values = np.column_stack([held[:length], sound[:length]])
    return Track(path, [*names, "sound"], np.arange(length) / SOUND_HZ, values, held={0, 1, 2})


def _row(file: Path, texture: int) -> Values:
    table = numbers(file, ",")
    if len(table) != TEXTURES:
        raise DataError(f"found {len(table)} rows", file=file, allowed=f"{TEXTURES} rows, one per texture")
    if not 1 <= texture <= TEXTURES:
        raise DataError(f"found {texture}", file=file, key="texture", allowed=f"1 to {TEXTURES}")
    return np.asarray(table[texture - 1])


def _sound(folder: Path, texture: int) -> Values | None:
    """The sound of a texture, -1 to 1 in a wav file; None without one."""
    if (folder / "S.csv").is_file():
        return _row(folder / "S.csv", texture)
    file = folder / f"Texture{texture}.wav"
    if not file.is_file():
        return None
    found = wav.read(file)
    if found.sampling_hz != SOUND_HZ:
        raise DataError(f"found {found.sampling_hz} Hz", file=file, allowed=f"sound at {SOUND_HZ} Hz")
    return wav.mono(found, file)
