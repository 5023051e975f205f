"""Samples of sound in a wav file as they are.

```text
RIFF 4, length 4, WAVE 4, then chunks: name 4, length 4, content, padded to even
"fmt "   format 2, channels 2, sampling rate 4, bytes a second 4, bytes a sample of all channels 2, bits 2
"data"   samples; length 2^32 - 1: as far as the file goes, which a program wrote that could not know
```
The formats read are those with a constant number of bytes a sample: PCM 1, float 3, A-law 6, mu-law 7, and
the extensible form of these.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNKNOWN = 0xFFFFFFFF
CONSTANT = (1, 3, 6, 7, 0xFFFE)


class Sound(NamedTuple):
    """Samples a second, bytes a sample of all channels, the samples, and their format."""

    sampling_hz: int
    block: int
    samples: bytes
    kind: int


def read(path: Path) -> Sound:
    """Return the sound in a wav file.

    Raises
    ------
    DataError
        Not a wav file, compressed sound, no sound, or less than its header says.
    """
    content = path.read_bytes()
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise DataError(
            "found no RIFF/WAVE at its beginning, so it is not a wav file", file=path, allowed="a wav file"
        )
    sampling_hz = block = kind = 0
    for at, name, length, chunk in _chunks(content):
        if name == b"fmt " and len(chunk) >= 16:
            kind, _, sampling_hz, _, block, _ = struct.unpack_from("<HHIIHH", chunk)
            if kind not in CONSTANT or block == 0 or sampling_hz == 0:
                found = f"found format {kind}, {block} bytes a sample, {sampling_hz} Hz at byte {at}"
                raise DataError(found, file=path, allowed="uncompressed sound")
        elif name == b"data" and length != UNKNOWN and length > len(chunk):
            found = f"found {len(chunk)} B of sound, and a header that says {length} B"
            raise DataError(
                found, file=path, allowed="a whole file: copy it again, or ffmpeg -i it whole.wav"
            )
        elif name == b"data" and block and len(chunk) >= block:
            return Sound(sampling_hz, block, chunk[: len(chunk) // block * block], kind)
    raise DataError("found no format or no samples", file=path, allowed="a wav file with sound")


def mono(sound: Sound, path: Path) -> NDArray[np.float64]:
    """The samples of one channel of 16 bit, or of 32 or 64 bit float, -1 to 1.

    Raises
    ------
    DataError
        Of another format, or not finite.
    """
    import numpy as np

    kinds = {(1, 2): ("<i2", 32_768.0), (3, 4): ("<f4", 1.0), (3, 8): ("<f8", 1.0)}
    if (sound.kind, sound.block) not in kinds:
        found = f"found format {sound.kind} of {sound.block} bytes a sample"
        raise DataError(found, file=path, allowed="one channel, 16 bit or float")
    name, full = kinds[sound.kind, sound.block]
    values = np.frombuffer(sound.samples, name).astype(np.float64) / full
    if not np.all(np.isfinite(values)):
        raise DataError("found a sample that is not finite", file=path, allowed="finite samples")
    return values


def _chunks(content: bytes) -> Iterator[tuple[int, bytes, int, bytes]]:
    at = 12
    while at + 8 <= len(content):
        length = struct.unpack_from("<I", content, at + 4)[0]
        yield at, content[at : at + 4], length, content[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
