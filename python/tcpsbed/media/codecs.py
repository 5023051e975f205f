"""Codecs of pictures: frames of shape (height, width, 3) to bytes and back.

| codec | what codes | package |
|---|---|---|
| `raw` | nothing | |
| `jpeg` | libjpeg-turbo, each picture by itself | `simplejpeg` (extra `media`) |
| `h264`, `vp8`, `vp9` | x264, libvpx through FFmpeg, no picture waiting | `av` (extra `av`) |
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media.packages import need

Frame = NDArray[np.uint8]
Bytes = NDArray[np.uint8]

ENCODERS = {
    "h264": ("libx264", {"preset": "ultrafast", "tune": "zerolatency"}),
    "vp8": (
        "libvpx",
        {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0", "error-resilient": "1"},
    ),
    "vp9": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"}),
}
"""Encoder and its options by codec."""
DECODERS = {"h264": "h264", "vp8": "vp8", "vp9": "vp9"}
LEAST_QUALITY, MOST_QUALITY = 5, 95
"""Bounds of the quality of JPEG where it follows a bit rate."""
LEAST_BPS = 50_000.0
"""The least bit rate that an encoder is asked for."""


class Codec(Protocol):
    """A codec of pictures with its state: one object encodes, another decodes."""

    def encode(self, frame: Frame) -> bytes | Bytes:
        """Bytes of a frame."""
        ...

    def decode(self, data: Bytes) -> Frame | None:
        """The frame in some bytes; none where the codec waits for more."""
        ...

    def aim(self, bitrate_bps: float) -> None:
        """From now on this many bits a second."""
        ...


def open_codec(
    name: str, width: int, height: int, rate_hz: float, quality: int, bitrate_bps: float, keyframe: int
) -> Codec:
    """A codec by name; `width` is that of the whole frame.

    Raises
    ------
    HookError
        If its package is missing.
    """
    if name == "raw":
        return Raw(width, height)
    if name == "jpeg":
        return Jpeg(width, height, rate_hz, quality)
    return Ffmpeg(name, width, height, rate_hz, bitrate_bps, keyframe)


class Raw:
    """The picture elements as they are."""

    def __init__(self, width: int, height: int) -> None:
        self.shape = (height, width, 3)

    def encode(self, frame: Frame) -> Bytes:
        """The elements, row by row."""
        return frame.reshape(-1)

    def decode(self, data: Bytes) -> Frame:
        """The frame, if nothing of it is missing."""
        want = int(np.prod(self.shape))
        if data.size != want:
            raise HookError(f"raw picture: found {data.size} B", allowed=f"{want} B")
        return data.reshape(self.shape)

    def aim(self, bitrate_bps: float) -> None:
        """What is not coded has the rate that it has."""


class Jpeg:
    """JPEG by libjpeg-turbo; where it follows a rate, by its quality."""

    def __init__(self, width: int, height: int, rate_hz: float, quality: int) -> None:
        self.turbo: Any = need("simplejpeg", 'codec "jpeg"', "media")
        self.shape, self.rate_hz, self.quality = (height, width, 3), rate_hz, quality
        self.target_bytes: float | None = None

    def encode(self, frame: Frame) -> bytes:
        """A JPEG file."""
        pixels = np.ascontiguousarray(frame)
        coded: bytes = self.turbo.encode_jpeg(pixels, self.quality, "RGB", "420", True)
        if self.target_bytes is not None:
            self._follow(len(coded))
        return coded

    def _follow(self, size: int) -> None:
        """The size grows about with quality to the power 1.2 around its middle: half of the step that this asks for."""
        assert self.target_bytes is not None
        step = (self.target_bytes / size) ** 0.4
        self.quality = int(np.clip(round(self.quality * step), LEAST_QUALITY, MOST_QUALITY))

    def decode(self, data: Bytes) -> Frame:
        """The frame in a JPEG file."""
        try:
            frame: Frame = self.turbo.decode_jpeg(data.tobytes(), "RGB", True)
        except ValueError as error:
            raise HookError(f"JPEG: cannot be decoded ({error})") from None
        if frame.shape != self.shape:
            raise HookError(f"JPEG: found a picture of shape {frame.shape}", allowed=str(self.shape))
        return frame

    def aim(self, bitrate_bps: float) -> None:
        """Chooses the quality by the size of the pictures before."""
        self.target_bytes = bitrate_bps / 8.0 / self.rate_hz


class Ffmpeg:
    """Codecs that code differences between pictures, through PyAV; one thread, so that equal input gives equal bytes."""

    def __init__(
        self, name: str, width: int, height: int, rate_hz: float, bitrate_bps: float, keyframe: int
    ) -> None:
        self.av: Any = need("av", f'codec "{name}"', "av")
        self.name, self.size, self.rate_hz = name, (width, height), rate_hz
        self.bitrate_bps, self.keyframe = bitrate_bps, keyframe
        if width % 2 or height % 2:
            raise HookError(f'codec "{name}": found {width} x {height}', allowed="even width and height")
        self.encoder: Any = None
        self.decoder: Any = None
        self.count = 0

    def _opened(self) -> Any:
        which, options = ENCODERS[self.name]
        context = self.av.CodecContext.create(which, "w")
        context.width, context.height = self.size
        context.pix_fmt = "yuv420p"
        context.framerate = Fraction(self.rate_hz).limit_denominator(1001)
        context.time_base = 1 / context.framerate
        context.bit_rate = int(self.bitrate_bps)
        context.gop_size = self.keyframe
        context.max_b_frames = 0
        context.thread_count = 1
        context.options = options
        context.open()
        return context

    def encode(self, frame: Frame) -> bytes:
        """The packets of a frame; an encoder that keeps one back is refused."""
        if self.encoder is None:
            self.encoder = self._opened()
        picture = self.av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        picture.pts = self.count
        self.count += 1
        return b"".join(bytes(packet) for packet in self.encoder.encode(picture))

    def decode(self, data: Bytes) -> Frame | None:
        """The newest frame that is complete with these bytes."""
        if self.decoder is None:
            self.decoder = self.av.CodecContext.create(DECODERS[self.name], "r")
            self.decoder.thread_count = 1
        try:
            frames = self.decoder.decode(self.av.Packet(data.tobytes()))
        except self.av.error.FFmpegError as error:
            raise HookError(f"{self.name} cannot be decoded ({error})") from None
        if not frames:
            return None
        if (frames[-1].width, frames[-1].height) != self.size:
            raise HookError(
                f"{self.name}: found {frames[-1].width} x {frames[-1].height}", allowed=str(self.size)
            )
        frame: Frame = frames[-1].to_ndarray(format="rgb24")
        return frame

    def aim(self, bitrate_bps: float) -> None:
        """Encoders take a new rate with the next frame."""
        self.bitrate_bps = bitrate_bps
        if self.encoder is not None:
            self.encoder.bit_rate = int(bitrate_bps)
