"""Sound: microphones, codecs and speakers. A frame is int16 of shape (samples, channels), one period of its flow.

| `microphone` | frames |
|---|---|
| `"test"` | a tone of 440 Hz that swells once a second |
| `"builtin:speech"`, `"builtin:sound"` | speech, the sound of a film, in a circle, at any rate |
| a wav file | its samples, in a circle, at their own rate |
| `"device"`, `"device:NAME"` | a microphone of the machine (`tcpsbed.media.sound_device`) |
| `"ring:FILE"` | what another program puts into a ring buffer in memory (`tcpsbed.media.sound_ring`) |
| `module:Class` | the user's: `frame(t_ns, index)` |

| `codec` | what codes | package |
|---|---|---|
| `pcm` | nothing: 16 bits, little-endian | |
| `opus` | libopus through FFmpeg, frames of 2.5, 5, 10 or 20 ms | `av` (extra `av`) |

| `speaker` | who hears it |
|---|---|
| `"none"` | nobody |
| a wav file | it is written, a frame at a time |
| `"device"`, `"device:NAME"` | a speaker of the machine (`tcpsbed.media.sound_device`) |
| `"ring:FILE"` | another program, through a ring buffer in memory (`tcpsbed.media.sound_ring`) |
| `module:Class` | the user's: `play(samples, t_ns, index)` |
"""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tcpsbed import hooks
from tcpsbed.datasets import builtin, wav
from tcpsbed.errors import DataError, HookError
from tcpsbed.media.packages import need
from tcpsbed.media.sound_device import DeviceMicrophone, DeviceSpeaker, is_device
from tcpsbed.media.sound_ring import RING, RingMicrophone, RingSpeaker

Samples = NDArray[np.int16]
Bytes = NDArray[np.uint8]

TONE_HZ = 440.0
LOUDEST = 12_000.0
MOST_SILENCE_S = 60
"""Longest silence that a wav file gets in one piece, whatever number a frame says that it has."""
OPUS_MS = (2.5, 5.0, 10.0, 20.0)
OPUS_HZ = (8_000, 12_000, 16_000, 24_000, 48_000)


class Microphone(Protocol):
    """Something that gives frames of sound."""

    def frame(self, t_ns: int, index: int) -> Samples:
        """The frame with a number."""
        ...


def open_microphone(name: str, sampling_hz: float, channels: int, samples: int) -> Microphone:
    """The microphone that a scenario names, for frames of so many samples.

    Raises
    ------
    HookError
        If there is none, or its file is of another kind.
    """
    if name == "test":
        return Tone(sampling_hz, channels, samples)
    if is_device(name):
        return DeviceMicrophone(name, sampling_hz, channels, samples)
    if name.startswith(RING):
        return RingMicrophone(name, sampling_hz, channels, samples)
    module, colon, symbol = name.rpartition(":")
    if not colon or name.startswith("builtin:"):
        return Recorded(name, sampling_hz, channels, samples)
    made: Microphone = hooks.find(module, symbol)(sampling_hz=sampling_hz, channels=channels, samples=samples)
    if not callable(getattr(made, "frame", None)):
        raise HookError(f"microphone {name}: found no frame(t_ns, index)", allowed="an object that has it")
    return made


class Tone:
    """A tone that swells once a second."""

    def __init__(self, sampling_hz: float, channels: int, samples: int) -> None:
        self.sampling_hz, self.channels, self.samples = sampling_hz, channels, samples

    def frame(self, t_ns: int, index: int) -> Samples:
        """The frame with a number."""
        t_s = (np.arange(self.samples) + index * self.samples) / self.sampling_hz
        wave_ = LOUDEST * (0.6 + 0.4 * np.sin(2.0 * np.pi * t_s)) * np.sin(2.0 * np.pi * TONE_HZ * t_s)
        return np.repeat(np.round(wave_).astype(np.int16)[:, None], self.channels, axis=1)


class Recorded:
    """A wav file of 16 bits, in a circle."""

    def __init__(self, name: str, sampling_hz: float, channels: int, samples: int) -> None:
        try:
            path = builtin.resolve(name, Path())
            found_hz, block, content, _ = wav.read(path)
        except DataError as error:
            raise HookError(f"microphone {name}: {error.found}", allowed=error.allowed) from None
        self.samples = samples
        if name.startswith(builtin.PREFIX):
            mono = np.frombuffer(content, "<i2")
            self.content = _at_rate(mono, found_hz, sampling_hz)[:, None].repeat(channels, axis=1)
            return
        if block != 2 * channels or found_hz != round(sampling_hz):
            raise HookError(
                f"microphone {name}: found {found_hz} Hz and {block} B a sample of all channels",
                allowed=f"{sampling_hz:g} Hz and {2 * channels} B, or sampling and channels of the file",
            )
        self.content = np.frombuffer(content, "<i2").reshape(-1, channels)

    def frame(self, t_ns: int, index: int) -> Samples:
        """The frame with a number."""
        places = (np.arange(self.samples) + index * self.samples) % len(self.content)
        part: Samples = self.content[places].astype(np.int16)
        return part


def _at_rate(samples: Samples, found_hz: float, wanted_hz: float) -> Samples:
    """The same sound at another rate, linear between samples."""
    count = round(len(samples) * wanted_hz / found_hz)
    if count == len(samples):
        return samples
    at = np.arange(count) * (found_hz / wanted_hz)
    resampled: Samples = np.rint(np.interp(at, np.arange(len(samples)), samples)).astype(np.int16)
    return resampled


class SoundCodec(Protocol):
    """A codec of sound with its state: one object encodes, another decodes."""

    def encode(self, samples: Samples) -> bytes:
        """Bytes of a frame."""
        ...

    def decode(self, data: Bytes) -> Samples | None:
        """The samples in some bytes; none where the codec has none yet."""
        ...


def open_sound_codec(
    name: str, sampling_hz: float, channels: int, samples: int, bitrate_bps: float
) -> SoundCodec:
    """A codec of sound by name.

    Raises
    ------
    HookError
        If its package is missing, or frames are not what it takes.
    """
    return Pcm(channels) if name == "pcm" else Opus(sampling_hz, channels, samples, bitrate_bps)


class Pcm:
    """16 bits a sample, little-endian, channels in turns."""

    def __init__(self, channels: int) -> None:
        self.channels = channels

    def encode(self, samples: Samples) -> bytes:
        """The samples as they are."""
        return samples.astype("<i2").tobytes()

    def decode(self, data: Bytes) -> Samples:
        """The samples, if none is torn."""
        if len(data) % (2 * self.channels):
            raise HookError(f"pcm: found {len(data)} B", allowed=f"a multiple of {2 * self.channels} B")
        return np.frombuffer(data.tobytes(), "<i2").reshape(-1, self.channels).astype(np.int16)


class Opus:
    """Opus (RFC 6716) for low delay, a packet a frame."""

    def __init__(self, sampling_hz: float, channels: int, samples: int, bitrate_bps: float) -> None:
        self.av: Any = need("av", 'codec "opus"', "av")
        span_ms = 1000.0 * samples / sampling_hz
        if span_ms not in OPUS_MS or round(sampling_hz) not in OPUS_HZ:
            raise HookError(
                f'codec "opus": found frames of {span_ms:g} ms at {sampling_hz:g} Hz',
                allowed=f"{', '.join(f'{ms:g}' for ms in OPUS_MS)} ms (a rate of 400, 200, 100 or 50 Hz) at {OPUS_HZ} Hz",
            )
        self.layout = "mono" if channels == 1 else "stereo"
        self.hz, self.channels, self.samples, self.span_ms = round(sampling_hz), channels, samples, span_ms
        self.bitrate_bps = int(bitrate_bps)
        self.encoder: Any = None
        self.decoder: Any = None
        self.resampler: Any = None
        self.at = 0

    def _opened(self) -> Any:
        context = self.av.CodecContext.create("libopus", "w")
        context.sample_rate, context.layout, context.format = self.hz, self.layout, "s16"
        context.bit_rate = self.bitrate_bps
        context.options = {"application": "lowdelay", "frame_duration": f"{self.span_ms:g}"}
        context.open()
        return context

    def encode(self, samples: Samples) -> bytes:
        """A packet."""
        if self.encoder is None:
            self.encoder = self._opened()
        flat = np.ascontiguousarray(samples).reshape(1, -1)
        frame = self.av.AudioFrame.from_ndarray(flat, format="s16", layout=self.layout)
        frame.sample_rate, frame.pts = self.hz, self.at
        self.at += self.samples
        return b"".join(bytes(packet) for packet in self.encoder.encode(frame))

    def decode(self, data: Bytes) -> Samples | None:
        """The samples of a packet."""
        if self.decoder is None:
            self.decoder = self.av.CodecContext.create("libopus", "r")
            self.decoder.sample_rate, self.decoder.layout = self.hz, self.layout
            # The decoder gives 48 kHz, whatever was coded.
            self.resampler = self.av.AudioResampler(format="s16", layout=self.layout, rate=self.hz)
        try:
            decoded = self.decoder.decode(self.av.Packet(data.tobytes()))
            frames = [part for frame in decoded for part in self.resampler.resample(frame)]
        except self.av.error.FFmpegError as error:
            raise HookError(f"opus: cannot be decoded ({error})") from None
        parts = [frame.to_ndarray().reshape(-1, self.channels) for frame in frames]
        return np.concatenate(parts).astype(np.int16) if parts else None


class Speaker(Protocol):
    """Something that plays frames of sound."""

    def play(self, samples: Samples, t_ns: int, index: int) -> None:
        """Plays a frame."""
        ...


def open_speaker(name: str, sampling_hz: float, channels: int) -> Speaker | None:
    """The speaker that a scenario names.

    Raises
    ------
    HookError
        If there is none.
    """
    if name == "none":
        return None
    if is_device(name):
        return DeviceSpeaker(name, sampling_hz, channels)
    if name.startswith(RING):
        return RingSpeaker(name, sampling_hz, channels)
    module, colon, symbol = name.rpartition(":")
    if not colon:
        return WavFile(Path(name), sampling_hz, channels)
    made: Speaker = hooks.find(module, symbol)(sampling_hz=sampling_hz, channels=channels)
    if not callable(getattr(made, "play", None)):
        raise HookError(
            f"speaker {name}: found no play(samples, t_ns, index)", allowed="an object that has it"
        )
    return made


class WavFile:
    """A wav file that grows; what never came is silence, so that it stays in time."""

    def __init__(self, path: Path, sampling_hz: float, channels: int) -> None:
        if path.suffix != ".wav" or not path.parent.is_dir():
            raise HookError(
                f'speaker: found "{path}"',
                allowed='"none", a .wav in an existing folder, or code such as "./mine.py:Mine"',
            )
        self.path, self.hz, self.channels = path, round(sampling_hz), channels
        self.file: Any = None
        self.next = 0

    def play(self, samples: Samples, t_ns: int, index: int) -> None:
        """Appends a frame, behind silence for those that are missing."""
        if self.file is None:
            self.file = wave.open(str(self.path), "wb")  # noqa: SIM115 - it stays open between frames
            self.file.setparams((self.channels, 2, self.hz, 0, "NONE", ""))
            self.next = index
        if index < self.next:  # it comes too late: its place is silence already
            return
        most = MOST_SILENCE_S * self.hz // max(len(samples), 1)
        for _ in range(min(index - self.next, most)):
            self.file.writeframes(bytes(samples.nbytes))
        self.next = index + 1
        self.file.writeframes(samples.astype("<i2").tobytes())
