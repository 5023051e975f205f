"""Microphones and speakers of the machine, through PortAudio (package `sounddevice`): `"device"`, or `"device:NAME"`.

A device is opened by its first frame. One that is not there, or goes away, loses the frames that it is asked for, with
the remedy in the report; it is looked for again every second, and all other flows go on.
"""

from __future__ import annotations

import importlib
import time
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tcpsbed.errors import HookError

Samples = NDArray[np.int16]

DEVICE = "device"
AGAIN_S = 1.0
"""Time until a device that could not be opened is tried again."""
MOST_WAITING = 3
"""Frames that a microphone may have ready; of more the oldest are left out, so that sound does not grow old."""


def is_device(name: str) -> bool:
    """Whether a microphone or speaker is one of the machine."""
    return name == DEVICE or name.startswith(f"{DEVICE}:")


def portaudio(name: str) -> ModuleType:
    """The package that reaches the devices.

    Raises
    ------
    HookError
        If it, or the library that it needs, is not there; names both.
    """
    try:
        return importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:
        raise HookError(
            f'"{name}" needs the package sounddevice and the library PortAudio ({error})',
            allowed="pip install 'tcpsbed[sound]' and apt-get install libportaudio2, or another choice",
        ) from None


class _Device:
    """A stream of PortAudio that is opened when it is needed, and again after a failure."""

    kind = ""

    def __init__(self, name: str, sampling_hz: float, channels: int) -> None:
        self.audio: Any = portaudio(name)
        self.name, self.which = name, name.removeprefix(DEVICE).removeprefix(":") or None
        self.hz, self.channels = sampling_hz, channels
        self.stream: Any = None
        self.refused, self.again_s = "", 0.0

    def opened(self) -> Any:
        """The stream.

        Raises
        ------
        HookError
            If there is none now; names the devices that there are.
        """
        if self.stream is None:
            if time.monotonic() < self.again_s:
                raise HookError(self.refused)
            try:
                self.stream = self._open()
            except (self.audio.PortAudioError, ValueError) as error:
                self.fail(str(error))
        return self.stream

    def _open(self) -> Any:
        made = self.audio.InputStream if self.kind == "input" else self.audio.OutputStream
        stream = made(
            samplerate=self.hz, channels=self.channels, dtype="int16", device=self.which, latency="low"
        )
        try:
            stream.start()
        except self.audio.PortAudioError:
            stream.close(ignore_errors=True)
            raise
        return stream

    def fail(self, why: str) -> NoReturn:
        """Gives the device up for a while."""
        if self.stream is not None:
            self.stream.close(ignore_errors=True)
        self.stream, self.again_s = None, time.monotonic() + AGAIN_S
        self.refused = (
            f'"{self.name}": no {self.kind} device gives or takes {self.hz:g} Hz, {self.channels} channels ({why}); '
            f"allowed: {self._known()}"
        )
        raise HookError(self.refused)

    def _known(self) -> str:
        listed = [d["name"] for d in self.audio.query_devices() if d[f"max_{self.kind}_channels"] > 0]
        devices = ", ".join(f'"{DEVICE}:{name}"' for name in listed)
        return devices or "a device (python -m sounddevice lists them: there is none), a wav file"


class DeviceMicrophone(_Device):
    """A microphone of the machine, a frame at a time; a frame that is not ready yet is waited for."""

    kind = "input"

    def __init__(self, name: str, sampling_hz: float, channels: int, samples: int) -> None:
        super().__init__(name, sampling_hz, channels)
        self.samples = samples

    def frame(self, t_ns: int, index: int) -> Samples:
        """The oldest ready frame, after the oldest excess frames were dropped."""
        stream = self.opened()
        try:
            late = stream.read_available // self.samples - MOST_WAITING
            if late > 0:
                stream.read(late * self.samples)
            taken, _ = stream.read(self.samples)
        except self.audio.PortAudioError as error:
            self.fail(str(error))
        return np.array(taken, dtype=np.int16)


class DeviceSpeaker(_Device):
    """A speaker of the machine."""

    kind = "output"
    delay_ns = 0
    """From handing samples over until they are heard, as the device says."""

    def play(self, samples: Samples, t_ns: int, index: int) -> None:
        """Hands a frame over, and waits while the device has no room."""
        stream = self.opened()
        try:
            stream.write(np.ascontiguousarray(samples))
        except self.audio.PortAudioError as error:
            self.fail(str(error))
        self.delay_ns = round(1e9 * float(stream.latency))
