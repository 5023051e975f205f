"""Recordings of bytes in frames: coded pictures, sound, any file.

```toml
[flows.video.source]
frames = "builtin:clip"        # or a .json index, a .wav, or any file with frame_bytes
start = 1.0                    # s, at the flow's rate
stop = 4.0
```
Frames leave one a period of the flow, as they were recorded: a clip of 25 fps in a flow of 50
Hz plays at double speed. Sound is cut into frames of one period. An index is JSON, `{"file": ..., "offsets":
[0, 812, ...]}`, with the file beside it and one more offset than there are frames.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcpsbed import inputs
from tcpsbed.datasets import builtin, wav
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

KEYS = ("frames", "frame_bytes", "start", "stop")
#: A frame of sound is at most this long, in s: no one would speak through more.
LONGEST_SOUND_S = 1.0
#: Largest frame that a flow carries (`tcps_transport::udp::MAX_SAMPLE_BYTES`): 16 MB.
MOST_FRAME_BYTES = 16_000_000


def open_frames(spec: Mapping[str, Any], rate_hz: float, base: Path) -> tuple[bytes, list[int]]:
    """Return the bytes of a recording and where its frames begin.

    Parameters
    ----------
    spec
        The keys of the module's example; `frame_bytes` cuts any file into equal parts.
    rate_hz
        Frames a second of the flow: says how much sound is in a frame, and which frames `start` and `stop`
        mean.
    base
        Folder that relative paths start from.

    Returns
    -------
    content, offsets
        Frame `i` is `content[offsets[i]:offsets[i + 1]]`; the last offset is the length of the content.

    Raises
    ------
    DataError
        The file is absent, empty or not what its ending says; a key is unknown.
    """
    unknown = [key for key in spec if key not in KEYS]
    if unknown or "frames" not in spec:
        found = f"found the unknown key {unknown[0]!r}" if unknown else "found no file of frames"
        raise DataError(found, key="source", allowed=close_match(unknown[0] if unknown else "", KEYS))
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise DataError(f"found a rate of {rate_hz} Hz", allowed="a rate above 0, such as 25 Hz")
    path = builtin.resolve(str(spec["frames"]), base)
    frame_bytes = spec.get("frame_bytes")
    if frame_bytes is not None:
        content, offsets = _equal_parts(path, frame_bytes)
    elif path.suffix == ".wav":
        content, offsets = _sound(path, rate_hz)
    elif path.suffix == ".json":
        content, offsets = _indexed(path)
    else:
        raise DataError(
            "found a file without frames", file=path, allowed="a .json index, a .wav, or frame_bytes = N"
        )
    return _part(path, content, offsets, spec, rate_hz)


def _equal_parts(path: Path, frame_bytes: Any) -> tuple[bytes, list[int]]:
    """Cut a file into frames of equal size; a shorter rest is dropped unless it is the whole file."""
    if not isinstance(frame_bytes, int) or isinstance(frame_bytes, bool) or frame_bytes < 1:
        raise DataError(
            f"found {frame_bytes!r}",
            file=path,
            key="frame_bytes",
            allowed="a number of bytes above 0, such as 160",
        )
    content = path.read_bytes()
    if not content:
        raise DataError("found an empty file", file=path, allowed="a file with at least one byte")
    frames = len(content) // frame_bytes
    if frames == 0:
        return content, [0, len(content)]
    return content[: frames * frame_bytes], list(range(0, frames * frame_bytes + 1, frame_bytes))


def _sound(path: Path, rate_hz: float) -> tuple[bytes, list[int]]:
    """Return the samples of a wav file, cut into frames of one period; a frame begins at the sample nearest to its time."""
    sampling_hz, block, content, _ = wav.read(path)
    if rate_hz < 1.0 / LONGEST_SOUND_S or rate_hz > sampling_hz:
        raise DataError(
            f"found frames of {1000.0 / rate_hz:g} ms ({rate_hz:g} Hz)",
            file=path,
            allowed=f"a flow of 1 Hz to {sampling_hz} Hz",
        )
    samples = len(content) // block
    # The 1e-9 keeps a product that is one bit below a whole number from losing a frame.
    frames = int(samples * rate_hz / sampling_hz + 1e-9)
    if frames == 0:
        raise DataError(
            f"found {samples} samples of sound", file=path, allowed=f"at least {1000.0 / rate_hz:g} ms"
        )
    offsets = [min(round(i * (sampling_hz / rate_hz)), samples) * block for i in range(frames + 1)]
    return content[: offsets[-1]], offsets


def _indexed(path: Path) -> tuple[bytes, list[int]]:
    """Return a file of frames by its index."""
    index = inputs.from_json(path, "an index of frames")
    try:
        name, offsets = index["file"], index["offsets"]
    except (LookupError, TypeError) as error:
        raise DataError(
            f"not an index: {error!r:.80}", file=path, allowed='{"file": ..., "offsets": [0, ...]}'
        ) from error
    if not isinstance(name, str) or not isinstance(offsets, list):
        raise DataError(
            "found file or offsets of another type", file=path, allowed='{"file": "...", "offsets": [0, ...]}'
        )
    content = _beside(path, name)
    whole = all(isinstance(at, int) and not isinstance(at, bool) for at in offsets)
    rising = whole and all(a < b for a, b in pairwise(offsets))
    if len(offsets) < 2 or not rising or offsets[0] != 0 or offsets[-1] != len(content):
        raise DataError(
            "found offsets that do not fit the file",
            file=path,
            key="offsets",
            allowed=f"rising whole numbers from 0 to {len(content)}, the length of {name}",
        )
    return content, offsets


def _beside(index: Path, name: str) -> bytes:
    """Return the bytes of the file that an index names."""
    try:
        return builtin.resolve(name, index.parent).read_bytes()
    except DataError as error:
        found = error.found
    except OSError as error:
        found = f"cannot be read ({error.strerror})"
    raise DataError(f'"{name[:60]}": {found}', file=index, key="file", allowed="a file beside the index")


def _part(
    path: Path, content: bytes, offsets: list[int], spec: Mapping[str, Any], rate_hz: float
) -> tuple[bytes, list[int]]:
    """Return the frames from `start` to `stop`."""
    frames = len(offsets) - 1
    edges = []
    for key, usual in (("start", 0), ("stop", frames)):
        value = spec.get(key)
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
            raise DataError(
                f"found {value!r}", file=path, key=key, allowed="a number of seconds, such as 1.5"
            )
        edges.append(usual if value is None else min(round(value * rate_hz), frames))
    first, last = edges
    if first >= last:
        found = f"found no frames from {spec.get('start', 0)} s to {spec.get('stop', frames / rate_hz)} s"
        raise DataError(
            found, file=path, allowed=f"{frames} frames are {frames / rate_hz:g} s at {rate_hz:g} Hz"
        )
    longest = max(b - a for a, b in pairwise(offsets[first : last + 1]))
    if longest > MOST_FRAME_BYTES:
        raise DataError(f"found a frame of {longest} bytes", file=path, allowed="at most 16 MB")
    begin = offsets[first]
    return content[begin : offsets[last]], [at - begin for at in offsets[first : last + 1]]
