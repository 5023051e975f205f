"""Cameras: sources of pictures. A frame is uint8 of shape (height, width, 3), red, green, blue.

A camera has `frame(t_ns, index) -> frame`; one that gives the same for the same index is `repeatable`, so that a
display can compare what it shows with what was taken.

| `camera` | frames |
|---|---|
| `"builtin:clip"` | the film that ships: 2 s of 320 x 180 at 25 Hz as JPEG, enlarged, in a circle (package `simplejpeg`) |
| `"test"` | a walk over a landscape whose spectrum falls with 1/f, seen through a lens |
| `"/dev/video0"` | a camera of the machine (`tcpsbed.media.camera_device`) |
| a video file | its pictures, in a circle (package `av`) |
| `module:Class` | the user's: `frame(t_ns, index)`, `render(camera, width, height)`, or an iterable of `(t_ns, frame)` |
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tcpsbed import hooks
from tcpsbed.datasets import builtin
from tcpsbed.door import complete
from tcpsbed.errors import HookError, TcpsbedError
from tcpsbed.media.camera_device import FOLDER, CameraDevice
from tcpsbed.media.packages import need

Frame = NDArray[np.uint8]

LANDSCAPE = 512
"""Side of the landscape of the test camera, in picture elements; it goes on at its edges."""
LENS = 0.08
"""Cycles in a picture element at which the lens of the test camera lets through 1/e of the contrast."""
STEP = 3
"""Picture elements that the test camera walks from frame to frame."""
DISPARITY = 12
"""Picture elements between the two eyes of the test camera and of the film."""
MOST_BYTES = 1 << 30
"""Most memory that the pictures of a video file take; of a longer one only the beginning is shown."""


class Camera(Protocol):
    """Something that gives frames."""

    repeatable: bool
    taken_ns: int | None
    """When the newest frame was taken, where that is not the moment at which it was asked for."""

    def frame(self, t_ns: int, index: int) -> Frame:
        """The frame for a time and a number."""
        ...


EARLY_S = 1e-3
"""By how much the time of a picture in a file may be rounded down."""


def open_camera(
    name: str, width: int, height: int, stereo: bool, params: Mapping[str, Any] | None = None
) -> Camera:
    """The camera that a scenario names.

    Parameters
    ----------
    name
        `builtin:clip`, `test`, a camera of the machine, a video file, or `module:Class`.
    width, height
        Of the picture of one eye.
    stereo
        Whether a frame is two pictures side by side: shape (height, 2 * width, 3).
    params
        Further parameters of the user's class.

    Raises
    ------
    HookError
        If there is no such camera, or it cannot be opened.
    """
    if name == "test":
        return TestCamera(width, height, stereo)
    if name == builtin.FILM:
        return Film(width, height, stereo)
    if name.startswith(FOLDER):
        return CameraDevice(name, width * (2 if stereo else 1), height)
    module, colon, symbol = name.rpartition(":")
    if colon:
        return UserCamera(module, symbol, width, height, stereo, params or {})
    return Clip(Path(name), width, height, stereo)


class Film:
    """The film that ships: the middle of its pictures in the shape and size that is asked for, in a circle.

    Its 50 pictures are of 320 x 180 (JPEG, quality 65), 25 for each second; they are enlarged to the size asked for,
    and show no more than they had. The second eye sees the same from a little further to the right, as if everything were
    far away.
    """

    repeatable = True
    taken_ns: int | None = None

    def __init__(self, width: int, height: int, stereo: bool) -> None:
        self.turbo = need("simplejpeg", f'camera "{builtin.FILM}"', "media")
        data, offsets = builtin.pictures()
        self.width, self.stereo = width, stereo
        self.size = (width + (DISPARITY if stereo else 0), height)
        most = max(MOST_BYTES // (3 * self.size[0] * height), 1)
        self.coded = [data[begin:end] for begin, end in pairwise(offsets)][:most]
        self.frames: list[Frame | None] = [None] * len(self.coded)
        """Those that have been asked for."""

    def frame(self, t_ns: int, index: int) -> Frame:
        """The picture with a number; it is decoded once."""
        place = index % len(self.frames)
        frame = self.frames[place]
        if frame is None:
            frame = resized(self.turbo.decode_jpeg(self.coded[place], "RGB"), *self.size)
            self.frames[place] = frame
        if not self.stereo:
            return frame
        return np.concatenate([frame[:, : self.width], frame[:, -self.width :]], axis=1)


def resized(frame: Frame, width: int, height: int) -> Frame:
    """The middle of a frame, in another shape and size, linear between its elements."""
    rows, columns = frame.shape[:2]
    wide, high = min(columns, rows * width / height), min(rows, columns * height / width)
    part = _between(frame.astype(np.float32), (rows - high) / 2, high, height)
    part = _between(part.transpose(1, 0, 2), (columns - wide) / 2, wide, width).transpose(1, 0, 2)
    return np.ascontiguousarray(np.rint(part).astype(np.uint8))


def _between(lines: NDArray[np.float32], begin: float, span: float, count: int) -> NDArray[np.float32]:
    """So many lines at even distances over a span, each between its two neighbours."""
    at = np.clip(begin + (np.arange(count) + 0.5) * span / count - 0.5, 0, len(lines) - 1)
    low = at.astype(np.int64)
    share = (at - low).astype(np.float32)[:, None, None]
    mixed: NDArray[np.float32] = lines[low] * (1 - share) + lines[np.minimum(low + 1, len(lines) - 1)] * share
    return mixed


class TestCamera:
    """A walk over a landscape of noise with a 1/f amplitude spectrum (Field 1987, of natural pictures)."""

    repeatable = True
    taken_ns: int | None = None

    def __init__(self, width: int, height: int, stereo: bool) -> None:
        self.width, self.height, self.stereo = width, height, stereo
        self.land = np.pad(_landscape(), ((0, height), (0, width), (0, 0)), mode="wrap")

    def frame(self, t_ns: int, index: int) -> Frame:
        """The frame with a number; the time is ignored."""
        if not self.stereo:
            return self._eye(index, 0)
        return np.concatenate([self._eye(index, 0), self._eye(index, DISPARITY)], axis=1)

    def _eye(self, index: int, shift: int) -> Frame:
        top, left = STEP * index // 2 % LANDSCAPE, (STEP * index + shift) % LANDSCAPE
        return self.land[top : top + self.height, left : left + self.width]


@cache
def _landscape() -> Frame:
    """A square of three colours that repeats itself."""
    random = np.random.default_rng(1987)
    f = np.fft.fftfreq(LANDSCAPE)
    radius = np.hypot(f[:, None], f[None, :])
    fall = np.exp(-((radius / LENS) ** 2)) / np.maximum(radius, 1.0 / LANDSCAPE)
    shared = random.standard_normal((LANDSCAPE, LANDSCAPE))
    planes = []
    for _ in range(3):
        noise = shared + 0.2 * random.standard_normal((LANDSCAPE, LANDSCAPE))
        plane = np.fft.ifft2(np.fft.fft2(noise) * fall).real
        planes.append((plane - plane.mean()) / plane.std())
    return np.clip(np.stack(planes, axis=-1) * 36.0 + 128.0, 0.0, 255.0).astype(np.uint8)


class Clip:
    """The pictures of a video file, or of a span of it in seconds, from the first on and in a circle."""

    repeatable = True
    taken_ns: int | None = None

    def __init__(
        self, path: Path, width: int, height: int, stereo: bool, span_s: tuple[float, float] = (0.0, math.inf)
    ) -> None:
        av = need("av", f"the video file {path.name}", "av")
        if not path.is_file():
            raise HookError(
                f'found "{path}", but there is no such file',
                allowed='"test", a video file, or code such as "./mine.py:Mine"',
            )
        most = max(MOST_BYTES // (3 * width * height), 1)
        try:
            with av.open(str(path)) as file:
                file.seek(int(span_s[0] * 1e6))  # to the key frame before it
                shown = (f for f in file.decode(video=0) if f.time is None or f.time >= span_s[0] - EARLY_S)
                pictures = takewhile(lambda f: f.time is None or f.time < span_s[1] - EARLY_S, shown)
                taken = [
                    frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
                    for _, frame in zip(range(most), pictures, strict=False)
                ]
                cut = next(pictures, None) is not None
        except (av.error.FFmpegError, IndexError, ValueError) as error:
            raise HookError(f"{path} cannot be decoded ({error})", allowed="a file with pictures") from None
        if not taken:
            raise HookError(f"{path}: found no picture", allowed="a file with pictures")
        if cut:
            said = f"only its first {len(taken)} pictures are shown, which take {MOST_BYTES >> 20} MiB"
            print(f"tcpsbed: {path}: {said}", file=sys.stderr)
        self.frames: list[Frame] = taken
        self.stereo = stereo

    def frame(self, t_ns: int, index: int) -> Frame:
        """The picture with a number, twice side by side for two eyes."""
        frame = self.frames[index % len(self.frames)]
        return np.concatenate([frame, frame], axis=1) if self.stereo else frame


class UserCamera:
    """A camera of the user's: `frame(t_ns, index)`, `render(camera, width, height)`, or an iterable of `(t_ns, frame)`."""

    repeatable = False
    taken_ns: int | None = None

    def __init__(
        self, module: str, symbol: str, width: int, height: int, stereo: bool, params: Mapping[str, Any]
    ) -> None:
        self.name = f"{module}:{symbol}"
        made = hooks.find(module, symbol)
        try:
            given = {key: value for key, value in complete(made, dict(params)).items() if value is not None}
            self.object: Any = made(**_wanted(made, width, height, stereo) | given)
        except TcpsbedError as error:
            raise HookError(f"camera {self.name}: {error}") from error
        except Exception as error:  # the user's code may fail in any way
            raise HookError(
                f"camera {self.name}: its class raised {type(error).__name__}: {error}",
                allowed="a class that opens its camera on this machine, which runs its node",
            ) from error
        self.width, self.height, self.stereo = width, height, stereo
        self.pictures: Iterator[tuple[int, Any]] | None = None
        if not hasattr(self.object, "frame") and not hasattr(self.object, "render"):
            if not hasattr(self.object, "__iter__"):
                raise HookError(
                    f"camera {self.name}: found no method that gives pictures",
                    allowed="a class with frame(t_ns, index) or render(camera, width, height), or an iterable of "
                    "(t_ns, picture)",
                )
            self.pictures = iter(self.object)

    def frame(self, t_ns: int, index: int) -> Frame:
        """The next frame.

        Raises
        ------
        HookError
            If it has another shape than the scenario says, or there is none any more.
        """
        frame = np.asarray(self._taken(t_ns, index), dtype=np.uint8)
        want = (self.height, self.width * (2 if self.stereo else 1), 3)
        if frame.shape != want:
            allowed = f"the shape {want}: height, width, 3 colours"
            raise HookError(f"camera {self.name}: found a frame of shape {frame.shape}", allowed=allowed)
        return frame

    def _taken(self, t_ns: int, index: int) -> Any:
        if self.pictures is not None:
            try:
                self.taken_ns, picture = next(self.pictures)
                return picture
            except StopIteration as end:
                why = "" if end.value is None else f": {end.value}"
                raise HookError(
                    f"camera {self.name} has no more pictures{why}",
                    allowed="an iterable that does not end in the run",
                ) from None
        if hasattr(self.object, "frame"):
            return self.object.frame(t_ns, index)
        eyes = ("left", "right") if self.stereo else ("camera",)
        return np.concatenate([self.object.render(eye, self.width, self.height) for eye in eyes], axis=1)


def _wanted(made: Any, width: int, height: int, stereo: bool) -> dict[str, Any]:
    """What of the scenario a class takes: `width`, `height`, `stereo`, or `cameras` with the names of two eyes."""
    offered: dict[str, Any] = {"width": width, "height": height, "stereo": stereo}
    takes = inspect.signature(made).parameters
    if stereo and "cameras" in takes:
        offered["cameras"] = ("left", "right")
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in takes.values()):
        return offered
    return {name: value for name, value in offered.items() if name in takes}
