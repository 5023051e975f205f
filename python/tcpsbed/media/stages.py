"""The stages of flows of pictures and sound, as the native loops call them: `(t_ns, index, x, other, y) -> written`.

`x` and `y` are views of bytes; `show` writes values, which the report calls the age of the frame (from the time in the
picture), the number in the picture, PSNR and SSIM. An encoder is told before each call what the transport allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError
from tcpsbed.media import codecs, displays, picture_code, quality, region, sound, sound_mark
from tcpsbed.media.budget import Budget
from tcpsbed.media.camera import open_camera

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]


def put(data: bytes | Bytes, y: Bytes) -> int:
    """Writes bytes to the front of `y`; returns their number."""
    size = len(data)
    if size > len(y):
        raise HookError(f"found a coded frame of {size} B", allowed=f"{len(y)} B")
    y[:size] = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    return size


class PictureStage:
    """What the stages of pictures have in common: the size of a frame."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self.stereo = bool(params["stereo"])
        self.width = int(params["width"]) * (2 if self.stereo else 1)
        self.height = int(params["height"])

    def camera(self) -> Any:
        """The camera of the flow."""
        p = self.params
        return open_camera(p["camera"], int(p["width"]), int(p["height"]), self.stereo, p.get("params"))

    def codec(self) -> codecs.Codec:
        """The codec of the flow."""
        p = self.params
        shrink = (p.get("region") or {}).get("shrink", 1)
        made = codecs.open_codec(
            p["codec"],
            self.width // shrink,
            self.height // shrink,
            p["rate_hz"],
            p["quality"],
            p["bitrate_bps"],
            p["keyframe"],
        )
        if p.get("region") is None:
            return made
        return region.Regions(made, self.width, self.height, p["region"], p["rate_hz"])


class PictureCapture(PictureStage):
    """A tick to a frame, with time and number drawn into it."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.taken = self.camera()
        if params["stamp"] and picture_code.block(self.width) == 0:
            least = picture_code.COLUMNS * picture_code.LEAST_BLOCK
            raise HookError(
                f"found a picture {self.width} wide, too narrow for its stamp",
                allowed=f"{least}, or stamp = false",
            )

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Takes a frame."""
        frame = self.taken.frame(t_ns, index)
        written = put(frame.reshape(-1), y)
        if self.params["stamp"]:
            taken_ns = t_ns if self.taken.taken_ns is None else self.taken.taken_ns
            picture_code.draw(y[:written].reshape(self.height, self.width, 3), taken_ns, index)
        return written


class PictureEncode(PictureStage):
    """A frame to bytes, at the rate that the transport allows."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.coder = self.codec()
        self.budget = Budget(params["rate_hz"]) if params["follow"] else None
        self.allowed_bps: float | None = None

    def on_allowance(self, bps: float | None) -> None:
        """The rate that the transport now allows the flow, in bit/s, if it has a limit."""
        self.allowed_bps = bps

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Encodes a frame; gives out nothing where what is allowed has been spent."""
        budget, allowed_bps = self.budget, self.allowed_bps
        if budget is None or allowed_bps is None:
            return put(self.coder.encode(x.reshape(self.height, self.width, 3)), y)
        allowed_bps = min(allowed_bps, self.params["bitrate_bps"])
        if not budget.allows(allowed_bps):
            return 0
        self.coder.aim(max(allowed_bps, codecs.LEAST_BPS))
        written = put(self.coder.encode(x.reshape(self.height, self.width, 3)), y)
        budget.spend(written)
        return written


class PictureDecode(PictureStage):
    """Bytes to a frame."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.coder = self.codec()

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Decodes a frame; gives out nothing where the decoder waits for more."""
        frame = self.coder.decode(x)
        return 0 if frame is None else put(frame.reshape(-1), y)


class PictureShow(PictureStage):
    """A frame to the operator, and what is read and measured on it."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.display = displays.open_display(params["display"], self.width, self.height, self.stereo)
        self.every = int(params["compare"])
        self.original = self.camera() if self.every else None
        self.compared: int | None = None

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Floats) -> int:
        """Shows a frame; writes when it was taken, its number, PSNR and SSIM, not a number where they are not known."""
        frame = x.reshape(self.height, self.width, 3)
        if self.display is not None:
            self.display.show(frame, t_ns, index)
        y[:4] = np.nan
        code = picture_code.read(frame) if self.params["stamp"] else None
        if code is not None:
            y[0], y[1] = code
            # A picture that is shown again, moved and marked, says nothing about its codec.
            if self.original is not None and code[1] % self.every == 0 and code[1] != self.compared:
                self.compared = code[1]
                y[2], y[3] = self._compared(frame, *code)
        return 4

    def _compared(self, frame: Bytes, taken_ns: int, number: int) -> tuple[float, float]:
        """What is left of the frame that was taken, the code in it included."""
        assert self.original is not None
        whole = np.array(self.original.frame(taken_ns, number))
        picture_code.draw(whole, taken_ns, number)
        return quality.psnr_db(whole, frame), quality.ssim(whole, frame)


class SoundStage:
    """What the stages of sound have in common: the size of a frame."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self.channels, self.sampling_hz = int(params["channels"]), float(params["sampling_hz"])
        self.samples = max(round(self.sampling_hz / params["rate_hz"]), 1)

    def codec(self) -> sound.SoundCodec:
        """The codec of the flow."""
        p = self.params
        return sound.open_sound_codec(
            p["codec"], self.sampling_hz, self.channels, self.samples, p["bitrate_bps"]
        )

    def shaped(self, x: Bytes) -> NDArray[np.int16]:
        """The samples in raw bytes."""
        return x.view(np.int16).reshape(-1, self.channels)


class SoundCapture(SoundStage):
    """A tick to a frame of sound."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.microphone = sound.open_microphone(
            params["microphone"], self.sampling_hz, self.channels, self.samples
        )
        self.mouth = sound_mark.Mouth(self.sampling_hz) if params["mark"] else None

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Takes a frame."""
        samples = self.microphone.frame(t_ns, index)
        if self.mouth is not None:
            samples = self.mouth.lay(samples, t_ns)
        return put(samples.tobytes(), y)


class SoundEncode(SoundStage):
    """A frame of sound to bytes."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.coder = self.codec()

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Encodes a frame."""
        return put(self.coder.encode(self.shaped(x)), y)


class SoundDecode(SoundStage):
    """Bytes to a frame of sound."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.coder = self.codec()

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Bytes) -> int:
        """Decodes a frame."""
        samples = self.coder.decode(x)
        return 0 if samples is None else put(samples.tobytes(), y)


class SoundShow(SoundStage):
    """A frame of sound to the operator."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.speaker = sound.open_speaker(params["speaker"], self.sampling_hz, self.channels)
        self.ear = sound_mark.Ear(self.sampling_hz) if params["mark"] else None

    def __call__(self, t_ns: int, index: int, x: Bytes, other: Floats, y: Floats) -> int:
        """Plays a frame; writes when the mark that ends in it was laid, and the loudness in dB of full scale."""
        samples = self.shaped(x)
        laid_ns = None if self.ear is None else self.ear.hear(samples, t_ns, index)
        if self.speaker is not None:
            self.speaker.play(samples, t_ns, index)
        power = float(np.mean((samples / 32768.0) ** 2)) if samples.size else 0.0
        y[0] = np.nan if laid_ns is None else laid_ns - getattr(self.speaker, "delay_ns", 0)
        y[1] = 10.0 * np.log10(power) if power > 0.0 else np.nan
        return 2
